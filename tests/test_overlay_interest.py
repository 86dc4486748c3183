"""What neighbours are told: whatever came before, what a fresh computation says, and enough."""

from __future__ import annotations

import functools

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pathcast.errors import QuerySyntaxError, UnknownQueryError
from pathcast.overlay.content import LOCAL, Delta
from pathcast.overlay.interest import Interests
from pathcast.query import conjunction_of
from pathcast_lab.sim.from_scratch import from_scratch

_read = functools.cache(conjunction_of)

NEIGHBOURS = ["a", "b", "c", "d"]


ENTRIES = [
    "/*", "//b", "/a/b", "/a//b", "/a/*/b", "/a/b[@x]", "/a/b[@x='1']", "/a/b[@x='2']",
    "/a/b[@n>3]", "/a/b[@n>5]", "/a/b[@n>=5]", "/a/b[@n=7]", "//b[@n<=9][@n>=2]", "//*[@x]",
    "/a/b[@x] and /a/c", "/a/c", "//b and //c", "/a/b[starts-with(@x,'1')]",
    "//b[@Q{urn:u}x]", "/a/b[.='x and y']", "/a[@x='1']/b/c",
]  # fmt: skip


class Updates(RuleBasedStateMachine):
    """Any order of updates; the model is which origin asks for what, how often."""

    def __init__(self) -> None:
        super().__init__()
        self.interests: Interests | None = None
        self.local: list[str] = []
        self.behind: dict[str, set[str]] = {}
        self.heard: dict[str, set[str]] = {}

    @precondition(lambda self: self.interests is None)
    @rule(covering=st.booleans(), names=st.sets(st.sampled_from(NEIGHBOURS)))
    def begin(self, covering: bool, names: set[str]) -> None:
        self.covering = covering
        self.interests = Interests(covering=covering)
        self._hear(self.interests.set_neighbours(names), names)

    @precondition(lambda self: self.interests is not None)
    @rule(names=st.sets(st.sampled_from(NEIGHBOURS)))
    def neighbours_change(self, names: set[str]) -> None:
        assert self.interests is not None
        self._hear(self.interests.set_neighbours(names), names)

    @precondition(lambda self: self.interests is not None)
    @rule(data=st.data(), entries=st.lists(st.sampled_from(ENTRIES), max_size=4))
    def profiles_change(self, data: st.DataObject, entries: list[str]) -> None:
        assert self.interests is not None
        gone = data.draw(st.lists(st.sampled_from(self.local), unique=True)) if self.local else []
        self._hear(self.interests.update(LOCAL, entries, gone), self.heard)
        self.local += entries
        for entry in gone:
            self.local.remove(entry)

    @precondition(lambda self: self.heard)
    @rule(
        data=st.data(),
        added=st.sets(st.sampled_from(ENTRIES), max_size=4),
        removed=st.sets(st.sampled_from(ENTRIES), max_size=4),
    )
    def neighbour_tells(self, data: st.DataObject, added: set[str], removed: set[str]) -> None:
        assert self.interests is not None
        name = data.draw(st.sampled_from(sorted(self.heard)))
        self._hear(self.interests.update(name, sorted(added), sorted(removed)), self.heard)
        self.behind[name] = (self.behind[name] | added) - removed

    def _hear(self, deltas: dict[str, Delta], names: object) -> None:
        """Applies deltas at the neighbours, who notice what cannot be."""
        assert self.interests is not None
        current = set(names)  # type: ignore[call-overload]
        self.heard = {name: self.heard.get(name, set()) for name in current}
        self.behind = {name: self.behind.get(name, set()) for name in current}
        for name, delta in deltas.items():
            told = self.heard[name]
            assert delta != Delta()
            assert not told & set(delta.added), "told twice"
            assert told >= set(delta.removed), "taken back what was not told"
            told |= set(delta.added)
            told -= set(delta.removed)

    @invariant()
    def is_as_from_scratch(self) -> None:
        if self.interests is None:
            return
        expected = from_scratch(self.interests)
        assert set(expected) == set(self.heard)
        for name, heard in self.heard.items():
            assert self.interests.told(name) == expected[name] == heard
            assert self.interests.entries(name) == self.behind[name]
            others = [self.local, *(self.behind[each] for each in self.heard if each != name)]
            wanted = set().union(*others)
            for entry in wanted:
                special = _read(entry)
                assert any(_read(general).covers(special) for general in heard), entry
            if not self.covering:
                assert heard == wanted
        assert self.interests.entries(LOCAL) == set(self.local)


TestUpdates = Updates.TestCase
TestUpdates.settings = settings(max_examples=30, stateful_step_count=10, deadline=None)


@pytest.mark.nightly
def test_many_more_updates() -> None:
    run_state_machine_as_test(
        Updates, settings=settings(max_examples=1500, stateful_step_count=40, deadline=None)
    )


def test_a_route_that_another_one_covered_is_announced_again() -> None:
    interests = Interests(covering=True)
    interests.set_neighbours(["up", "left", "right"])
    interests.update("left", ["/a/b[@x='1']"], [])
    assert interests.update("right", ["/a/b"], [])["up"] == Delta(("/a/b",), ("/a/b[@x='1']",))
    assert interests.told("right") == {"/a/b[@x='1']"}
    assert interests.update("right", [], ["/a/b"])["up"] == Delta(("/a/b[@x='1']",), ("/a/b",))


def test_local_profiles_are_counted_and_neighbours_tell_sets() -> None:
    interests = Interests()
    interests.set_neighbours(["n", "m"])
    interests.update(LOCAL, ["/a", "/a"], [])
    assert interests.update(LOCAL, [], ["/a"]) == {}
    assert interests.update(LOCAL, [], ["/a"])["m"] == Delta((), ("/a",))
    interests.update("n", ["/a"], [])
    interests.update("n", ["/a"], [])
    assert interests.update("n", [], ["/a", "/b"]) == {"m": Delta((), ("/a",))}


@pytest.mark.parametrize("covering", [False, True])
def test_what_is_refused_changes_nothing(covering: bool) -> None:
    interests = Interests(covering=covering)
    interests.set_neighbours(["n"])
    interests.update(LOCAL, ["/a"], [])
    with pytest.raises(UnknownQueryError):
        interests.update(LOCAL, ["/b"], ["/a", "/a"])
    if covering:
        with pytest.raises(QuerySyntaxError):
            interests.update(LOCAL, ["/b", "/b["], ["/a"])
    assert interests.told("n") == {"/a"} == interests.entries(LOCAL)
    assert interests.update(LOCAL, ["/b"], ["/a"]) == {"n": Delta(("/b",), ("/a",))}
