"""A filtering scheme that follows its queries: whatever comes and goes, it is the one of now.

If these fail, queries are lost or evaluated on the wrong chunk after somebody else has come or
gone, or a message changes its scheme while it is cut.
"""

from __future__ import annotations

from random import Random

import pytest

from pathcast.chunking.filtering_scheme import Chunking, FilteringScheme
from pathcast.chunking.names import path_text
from pathcast.errors import ConfigError, DuplicateQueryError, UnknownQueryError
from pathcast.schema import LabelPath
from pathcast_lab.bench.chunking.optimal import Goal, Sizes, by_size


def random_text(random: Random) -> str:
    names = [random.choice("abc") for _ in range(random.randrange(1, 5))]
    condition = random.choice(("", "", "[x]", "[. = 1]", "[y = 2]", "[following::z]", "[3]"))
    place = random.randrange(len(names))
    names[place] += condition
    return "/r/" + random.choice(("/", "", "", "")) + "/".join(names)


def as_data(scheme: FilteringScheme) -> object:
    """What a scheme says, whatever its history."""
    return (
        [
            (
                chunk.prefix,
                chunk.filters,
                sorted((t, sorted(i)) for t, i in chunk.queries.queries.items()),
            )
            for chunk in scheme.chunks
        ],
        sorted((text, sorted(ids)) for text, ids in scheme.potpourri.queries.items()),
        sorted((text, sorted(ids)) for text, ids in scheme.whole.queries.items()),
    )


@pytest.mark.parametrize("seed", range(25))
def test_a_history_ends_in_the_scheme_of_the_queries_that_are_left(seed: int) -> None:
    random = Random(seed)
    chunks = random.randrange(1, 6)
    chunking = Chunking(chunks)
    present: dict[str, tuple[str, int]] = {}
    for number in range(60):
        action = random.randrange(5)
        if action < 3 or not present:
            text, weight = random_text(random), random.randrange(1, 5)
            chunking.register(str(number), text, weight=weight)
            present[str(number)] = (text, weight)
        elif action == 3:
            leaving = random.choice(sorted(present))
            chunking.remove(leaving)
            del present[leaving]
        else:
            changed = random.choice(sorted(present))
            weight = random.randrange(1, 9)
            chunking.weigh({changed: weight})
            present[changed] = (present[changed][0], weight)
        if random.randrange(3) == 0:
            anew = Chunking(chunks)
            for query_id, (text, weight) in present.items():
                anew.register(query_id, text, weight=weight)
            assert as_data(chunking.scheme()) == as_data(anew.scheme())
    assert len(chunking) == len(present)
    for query_id in sorted(present):
        chunking.remove(query_id)
    scheme = chunking.scheme()
    assert (scheme.chunks, len(scheme.potpourri), len(chunking.tree)) == ((), 0, 0)


def test_every_alternative_is_in_one_place() -> None:
    random = Random(3)
    chunking = Chunking(4)
    queries = {str(number): random_text(random) for number in range(300)}
    for query_id, text in queries.items():
        chunking.register(query_id, text)
    scheme = chunking.scheme()
    parts = [chunk.queries for chunk in scheme.chunks] + [scheme.potpourri]
    seen = sorted(
        (query_id, text) for part in parts for text, ids in part.queries.items() for query_id in ids
    )
    expected = sorted(
        (query_id, each.text)
        for query_id in queries
        for each in chunking.query(query_id).alternatives
    )
    assert seen == expected
    assert len(scheme.chunks) == 4


def test_a_scheme_that_was_handed_out_stays_as_it_is() -> None:
    chunking = Chunking(2)
    chunking.register("q1", "/a/b/c")
    chunking.register("q2", "/a/d")
    before = chunking.scheme()
    shown = as_data(before)
    assert chunking.scheme() is before, "nothing has changed"
    chunking.register("q3", "/a/d[x]")
    after = chunking.scheme()
    assert as_data(before) == shown
    assert after.version > before.version
    # What has not changed is the same object, so that nobody builds its index again.
    assert after.chunks[0] is before.chunks[0]
    assert after.chunks[1].queries.texts == ("/a/d", "/a/d[x]")


def test_filters_go_with_the_queries_that_need_them() -> None:
    chunking = Chunking(1)
    chunking.register("q1", "/a/b[c]/d")
    chunking.register("q2", "/a/b[c = 1]/d")
    [chunk] = chunking.scheme().chunks
    assert [str(each) for each in chunk.filters] == ["/a/b/c with content"]
    chunking.remove("q2")
    [chunk] = chunking.scheme().chunks
    assert [str(each) for each in chunk.filters] == ["/a/b/c"]
    chunking.remove("q1")
    assert chunking.scheme().chunks == ()


def prefixes(scheme: FilteringScheme) -> list[str]:
    return [path_text(chunk.prefix) for chunk in scheme.chunks]


def test_measured_cost_moves_the_cut() -> None:
    chunking = Chunking(1)
    for number in range(5):
        chunking.register(f"cheap{number}", "/a/b/c")
    chunking.register("dear", "/a/d/e")
    assert prefixes(chunking.scheme()) == ["/a/b/c"]
    chunking.weigh({"dear": 5_000, **{f"cheap{number}": 3 for number in range(5)}})
    assert prefixes(chunking.scheme()) == ["/a/d/e"]


def test_small_changes_of_measured_cost_move_nothing() -> None:
    chunking = Chunking(1, tolerance=0.5)
    chunking.register("q1", "/a/b", weight=100)
    chunking.register("q2", "/a/c", weight=99)
    assert prefixes(chunking.scheme()) == ["/a/b"]
    chunking.weigh({"q2": 110})
    assert prefixes(chunking.scheme()) == ["/a/b"]
    chunking.weigh({"q2": 500})
    assert prefixes(chunking.scheme()) == ["/a/c"]


def test_prefixes_can_be_chosen_by_size() -> None:
    def path(text: str) -> LabelPath:
        return tuple(("", name) for name in text)

    sizes = Sizes(100, {path("a"): 100, path("ab"): 95, path("abc"): 90, path("ad"): 5})
    chunking = Chunking(1, choose=by_size(sizes, Goal.TOTAL))
    for number in range(3):
        chunking.register(f"large{number}", "/a/b/c")
    chunking.register("small", "/a/d")
    # Three queries on 90 of 100 gain less than one on 5.
    assert prefixes(chunking.scheme()) == ["/a/d"]


def test_what_cannot_be_done_is_refused() -> None:
    for chunks in (0, 65, "3"):
        with pytest.raises(ConfigError, match="chunks"):
            Chunking(chunks)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="tolerance"):
        Chunking(1, tolerance=1.0)
    chunking = Chunking(1)
    chunking.register("q", "/a/b")
    with pytest.raises(DuplicateQueryError):
        chunking.register("q", "/a/c")
    for call in (chunking.remove, chunking.query, lambda query_id: chunking.weigh({query_id: 1})):
        with pytest.raises(UnknownQueryError):
            call("nobody")
