"""Steps of subscriptions in one process: what is delivered is of the message after them.

The oracle is lxml's tree for the steps, and a registry that is given that tree for what the query
makes of it. If one of these fails, a subscriber with steps gets what it did not ask for, or another
gets what it should not for sharing a registry with it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pyarrow as pa
import pytest

from broker_engines import broker_engines, missing
from oracles.engines import EngineName, made_by
from pathcast import Registry, Snapshot, Subscription
from pathcast.errors import PathcastError
from pathcast.limits import Limits
from pathcast.message.canonical import canonical
from pathcast.model import DELIVER_MODES, STEP_LENGTH_MAX, Query
from pathcast.registry import restructuring, subscription_version
from pathcast.registry.before_steps import gate_paths
from pathcast.registry.steps import Steps, parse_steps, split_steps
from test_restructuring import BOUND, by_tree, element, random_steps

QUERIES: Final = (
    "/top/a[. = '1']/b",
    "//e",
    "//b/@x",
    "//c",
    "/top/*[b]",
    "/top/a/b | //e/c",
    "//b[a]//c",
    "//*[text() = '12']",
    "//e[. = '1' or @y]",
    "/top//e/n:d[2]",
    "/top[a and b]//c",
    "count(//b) > 3",
    "not(//e)",
    "for $v in //e where $v/@y = '2' return <hit>{$v/b}</hit>",
    "for $v in //b return $v/c",
)


def drawn(rng: random.Random, count: int) -> list[Subscription]:
    """Subscriptions, most with steps, of which many begin as those of others do."""
    series = [tuple(map(str, random_steps(rng))) for _ in range(3)]
    found = []
    for number in range(count):
        steps = rng.choice(series)
        steps = steps[: rng.randint(0, len(steps))] + rng.choice([(), rng.choice(series)[:1]])
        query = rng.choice(QUERIES)
        deliver = rng.choice(DELIVER_MODES)
        if deliver == "fragment" and query.startswith(("count", "not")):
            deliver = "ids"
        found.append(Subscription(f"s{number}", f"u{number % 3}", query, deliver, None, steps))
    return found


@cache
def expected(message: bytes, asked: Subscription) -> list[bytes | None]:
    """What lxml and the reference make of one subscription on one message."""
    after = by_tree(message, parsed(asked.steps))
    registry = made_by("reference", Registry, namespaces=BOUND)
    assert not registry.add(asked._replace(steps=())).errors
    return [
        None if each.fragment is None else canonical(each.fragment)
        for each in registry.deliver(after)
    ]


def parsed(steps: Sequence[str]) -> Steps:
    return parse_steps(steps, BOUND)


def messages_of(rng: random.Random, count: int) -> list[bytes]:
    return [element(rng, 4, "top").encode() for _ in range(count)]


def given(
    registry: Registry, messages: Sequence[bytes]
) -> dict[tuple[int, str], list[bytes | None]]:
    """Deliveries by message and subscription; all ways of the registry say the same."""
    batch = registry.deliver(messages, [f"{row}" for row in range(len(messages))])
    assert not batch.refusals
    assert not batch.verdicts.num_rows
    found: dict[tuple[int, str], list[bytes | None]] = {}
    for row in range(len(messages)):
        for number, each in enumerate(batch.deliveries(row)):
            made = None if each.fragment is None else canonical(each.fragment)
            found.setdefault((row, each.subscription_id), []).append(made)
            assert each.result_number == len(found[row, each.subscription_id]) - 1, number
    again: dict[tuple[int, str], list[bytes | None]] = {}
    for row, name, _, result in batch.results:
        again.setdefault((row, name), []).append(None if result is None else canonical(result))
    assert again == found
    rows = [row for row, *_ in batch.results]
    assert rows == sorted(rows)
    table = batch.table
    assert table["message_id"].to_pylist() == [f"{row}" for row in rows]
    assert batch.stats.deliveries == len(batch) == len(rows)
    assert batch.stats.messages == len(messages)
    return found


def right(
    messages: Sequence[bytes], held: Sequence[Subscription]
) -> dict[tuple[int, str], list[bytes | None]]:
    """What has to be delivered."""
    return {
        (row, asked.id): results
        for row, message in enumerate(messages)
        for asked in held
        if (results := expected(message, asked))
    }


@broker_engines
def test_each_subscription_is_answered_on_the_message_after_its_steps(engine: EngineName) -> None:
    pytest.importorskip("lxml")
    rng, delivered, changed = random.Random("steps"), 0, 0
    for _ in range(8 if engine == "kernel" else 3):
        asked = drawn(rng, 14)
        messages = messages_of(rng, 5)
        registry = made_by(engine, Registry, namespaces=BOUND, threads=rng.choice([1, 2]))
        assert registry.add(asked).accepted == len(asked)
        found = given(registry, messages)
        assert found == right(messages, asked)
        # Some leave, one comes again, a new one comes.
        leaving = rng.sample(asked, 6)
        registry.remove([each.id for each in leaving])
        new = [leaving[0], *(each._replace(id=f"new {each.id}") for each in drawn(rng, 3))]
        assert registry.add(new).accepted == 4
        held = [each for each in asked if each not in leaving] + new
        assert given(registry, messages) == right(messages, held)
        plain = made_by(engine, Registry, namespaces=BOUND)
        plain.add([each._replace(steps=()) for each in asked])
        changed += given(plain, messages) != found
        delivered += sum(map(len, found.values()))
    assert delivered > 40
    assert changed


@broker_engines
def test_a_file_of_subscriptions_has_their_steps(engine: EngineName, tmp_path: Path) -> None:
    rng = random.Random(5)
    asked, messages = drawn(rng, 20), messages_of(rng, 4)
    registry = made_by(engine, Registry, namespaces=BOUND)
    registry.add(asked)
    registry.freeze().save(tmp_path / "s")
    opened = made_by(engine, Snapshot.open, tmp_path / "s")
    assert {each.id: each.steps for each in opened.subscriptions} == {
        each.id: each.steps for each in asked
    }
    restored = made_by(engine, Registry.of, opened)
    assert restored.version == registry.version == opened.version
    assert given(restored, messages) == given(registry, messages)
    ids = [
        set(each.deliver(messages).table["delivery_id"].to_pylist())
        for each in (registry, restored)
    ]
    assert ids[0] == ids[1]


@broker_engines
def test_paths_of_a_population_are_of_messages_as_they_come(engine: EngineName) -> None:
    registry = made_by(engine, Registry)
    steps = ("rename //ol list", "unwrap //p")
    registry.add([Subscription("s", "", "/n/list[@k = '1']/li", steps=steps)])
    assert {str(place) for place in registry.population().places} == {"/n//*//li", "/n//*/@k"}
    rng, held = random.Random(3), 0
    for asked in drawn(rng, 40):
        bound = made_by(engine, Registry, namespaces=BOUND)
        bound.add(asked)
        held_as = bound.get(asked.id)
        steps_read = parse_steps(held_as.steps, held_as.namespaces)
        paths = [path.text for path in gate_paths(held_as, steps_read)]
        index = made_by(engine, Registry)
        index.add([Query(path, path) for path in paths])
        for message in messages_of(rng, 3):
            if len(bound.deliver(message)):
                assert index.match([message])[0].query_ids, asked
                held += 1
    assert held > 5


@broker_engines
@pytest.mark.parametrize(
    ("steps", "code"),
    [
        (("move //a",), "XPST0003"),
        (("drop //a[",), "XPST0003"),
        (("drop for $a in //a return $a",), "XPST0003"),
        (("drop count(//a)",), "subscription.fragment"),
        (("rename //a 1b",), "XPST0003"),
        (("drop //p:a",), "XPST0081"),
        (("drop //a",) * 65, "subscription.steps"),
        (("drop //" + "a" * STEP_LENGTH_MAX,), "subscription.steps"),
        ((1,), "row.field"),
        ("drop //a", "row.field"),
        (None, "row.field"),
        (("drop //\ud800",), "row.surrogate"),
    ],
)
def test_what_is_no_step_is_refused_and_disturbs_no_other(
    engine: EngineName, steps: object, code: str
) -> None:
    registry = made_by(engine, Registry)
    rows = [
        Subscription("before", "", "//b", steps=("drop //c",)),
        Subscription("wrong", "", "//b", steps=steps),  # type: ignore[arg-type]
        Subscription("after", "", "//b"),
    ]
    report = registry.add(rows)
    assert {place: error.code for place, error in report.errors.items()} == {1: code}
    assert str(report.errors[1])
    assert sorted(each.subscription_id for each in registry.deliver(b"<a><b/></a>")) == [
        "after",
        "before",
    ]
    assert len(registry) == 2
    assert "wrong" not in registry


@broker_engines
def test_a_refused_query_leaves_nothing_of_its_steps(engine: EngineName) -> None:
    registry = made_by(engine, Registry)
    steps = ("drop //c",)
    report = registry.add(
        [
            Subscription("plain", "", "//b"),
            Subscription("s", "", "//b[", steps=steps),
            Subscription("s", "", "//b", steps=steps),
            Subscription("s", "", "//b", steps=("drop //d",)),
            Subscription("s", "", "//b"),
            Subscription("plain", "", "//b", steps=steps),
        ]
    )
    assert {place: error.code for place, error in report.errors.items()} == {
        1: "XPST0003",
        3: "query.duplicate",
        4: "query.duplicate",
        5: "query.duplicate",
    }
    assert [each.subscription_id for each in registry.deliver(b"<a><b/></a>")] == ["plain", "s"]
    registry.remove(["s", "plain"])
    assert not len(registry.deliver(b"<a><b/></a>"))
    assert registry.add(Subscription("plain", "", "//b", steps=steps)).accepted == 1


UNEDITABLE: Final = {
    "an element out of an entity": b"<!DOCTYPE a [<!ENTITY e '<c/>'>]><a><b/>&e;</a>",
    "another encoding": "<?xml version='1.0' encoding='latin-1'?><a>\u00e9<b/></a>".encode(
        "latin-1"
    ),
    "two bytes a character": "<a><b/></a>".encode("utf-16"),
}


@broker_engines
@pytest.mark.parametrize("name", sorted(UNEDITABLE))
def test_what_steps_cannot_be_done_to_is_undecided_for_those_it_may_concern(
    engine: EngineName, name: str
) -> None:
    registry = made_by(engine, Registry)
    registry.add(
        [
            Subscription("plain", "", "//b", "ids"),
            Subscription("s", "ann", "//b", "ids", steps=("drop //c",)),
            Subscription("elsewhere", "", "//other", "ids", steps=("drop //c",)),
        ]
    )
    batch = registry.deliver([b"<a><b/></a>", UNEDITABLE[name], b"<a>"])
    assert [row["row"] for row in batch.errors.to_pylist()] == [2]
    found = [
        (row["row"], row["subscription_id"], row["code"]) for row in batch.verdicts.to_pylist()
    ]
    assert found == [(1, "s", "message.unreadable")]
    assert [each.subscription_id for each in batch.deliveries(0)] == ["plain", "s"]
    assert [each.subscription_id for each in batch.deliveries(1)] == ["plain"]
    assert list(batch.deliveries(1).verdicts) == ["s"]
    assert batch.stats.verdicts == 1


@broker_engines
def test_a_step_that_takes_too_much_is_a_verdict_that_names_the_subscription(
    engine: EngineName,
) -> None:
    registry = made_by(engine, Registry, limits=Limits(evaluation_steps_max=100))
    steps = ("drop //b[count(//b[count(//b) > 1]) > 1]",)
    registry.add(
        [Subscription("s", "", "//a", "ids", steps=steps), Subscription("plain", "", "//a", "ids")]
    )
    found = registry.deliver(b"<a>" + b"<b/>" * 40 + b"</a>")
    assert [each.subscription_id for each in found] == ["plain"]
    assert found.verdicts["s"].code == "limit.evaluation_steps"
    assert found.verdicts["s"].params["id"] == "s"


@broker_engines
def test_text_is_utf_8_whatever_it_declares(engine: EngineName) -> None:
    registry = made_by(engine, Registry)
    registry.add(Subscription("s", "", "//b[. = '\u00e9']", "message", steps=("drop //c",)))
    text = "<?xml version='1.0' encoding='latin-1'?><a><c/><b>\u00e9</b></a>"
    [found] = registry.deliver(text)
    assert found.fragment == text.replace("<c/>", "").encode()


def test_steps_make_another_subscription_and_none_change_nothing() -> None:
    plain = Subscription("s1", "ann", "//a")
    assert subscription_version(plain) == "20dca70b1dc82f9a916b62c922b318e4"
    every = [
        plain,
        plain._replace(steps=("drop //b",)),
        plain._replace(steps=("drop //b", "drop //c")),
        plain._replace(steps=("drop //bdrop //c",)),
    ]
    assert len({subscription_version(each) for each in every}) == len(every)


def test_steps_that_several_begin_with_are_done_once() -> None:
    """A message pays for a beginning once, and not for series that it cannot satisfy."""

    def taken(*series: tuple[str, ...]) -> int:
        registry = Registry()
        for number, steps in enumerate(series):
            asked = Subscription(f"s{number}", "", "/a", steps=steps)
            assert registry.add(asked).accepted == 1
        own, passed_by = (
            registry.deliver([message])
            for message in (b"<a><c/><b/></a>", b"<nobody><c/></nobody>")
        )
        assert (len(own), len(passed_by)) == (len(series), 0)
        # An element is a step of the gate.
        return own.stats.steps - 3 - (passed_by.stats.steps - 2)

    first, second, third = "drop //c", "rename //b d", "unwrap //b"
    # To read a text and to write it takes a step each, to serve it another one.
    assert taken((first,)) == 3
    assert taken((first, second)) == 5
    assert taken((first,), (first, second), (first, third)) == 9


def test_the_plan_says_steps_and_who_shares_them() -> None:
    registry = Registry()
    steps = ("drop //c", "rename //ol list")
    registry.add(
        [
            Subscription("s", "ann", "/n/list", steps=steps),
            Subscription("t", "ann", "/n/b", steps=steps[:1]),
            Subscription("u", "ann", "/n/list", steps=steps),
        ]
    )
    plan = registry.explain("s")
    assert plan.plan[:2] == ("step 1: drop //c", "step 2: rename //ol list")
    assert plan.gate == ("/n/*",)
    assert (plan.shared["step 1: drop //c"], plan.shared["step 2: rename //ol list"]) == (2, 1)
    assert plan.to_dict()["steps"] == list(steps)
    assert "drop //c" in plan.to_text()


def test_a_cell_is_cut_at_semicolons_that_are_no_literals() -> None:
    text = "drop //a[b = ';' or c = \"';'\"];rename //b c ; ; unwrap //d;"
    assert split_steps(text) == (
        "drop //a[b = ';' or c = \"';'\"]",
        "rename //b c",
        "unwrap //d",
    )
    assert split_steps(" ; ") == ()
    assert split_steps("drop //a[b = ';x]") == ("drop //a[b = '", "x]")


@pytest.mark.skipif(missing("kernel") is not None, reason=str(missing("kernel")))
def test_the_reference_finds_elements_where_the_kernel_does() -> None:
    rng, edited = random.Random(17), 0
    kinds = [lambda m: m, lambda m: b"\xef\xbb\xbf" + m, lambda m: m.decode().encode("utf-16")]
    kinds += [lambda m: b"<?xml version='1.0' encoding='us-ascii'?>" + m]
    kinds += [lambda m: b"<!DOCTYPE top [<!ENTITY e '<b/>x'>]>" + m.replace(b"<!--</b>-->", b"&e;")]
    for _ in range(60):
        steps = random_steps(rng)
        messages = [rng.choice(kinds)(each) for each in messages_of(rng, 4)]
        native, plain = (
            made_by(name, restructuring.Restructuring, steps).apply(messages)
            for name in ("kernel", "reference")
        )
        for one, other in zip(native, plain, strict=True):
            told = [each.code if isinstance(each, PathcastError) else each for each in (one, other)]
            assert told[0] == told[1]
            edited += isinstance(one, bytes)
    assert edited > 100


@broker_engines
def test_missing_messages_and_arrow_columns(engine: EngineName) -> None:
    registry = made_by(engine, Registry)
    registry.add(Subscription("s", "", "/a/b", steps=("drop //c",)))
    column = pa.chunked_array([[b"<a><b><c/></b></a>", None], [b"<a><b/></a>"]], pa.large_binary())
    batch = registry.deliver(column)
    assert batch.table["fragment"].to_pylist() in (
        [b"<b></b>", b"<b/>"],
        [b"<b/>", b"<b/>"],
    )
