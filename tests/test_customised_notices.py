"""Notices and whole messages go by the effective boolean value of a subscription.

If one of these fails, somebody is told of messages that they did not ask for, or not told of those
they did. The value is that of Saxon's `boolean()`, where Saxon has one; seeds are fixed, so a
failure replays; PATHCAST_NIGHTLY=<examples> makes the nightly run longer.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence

import pytest

from customised_cases import GENEROUS, Skipped, by_broker, by_saxon
from every_engine import engines
from generators import (
    VOCABULARIES,
    GeneratedFlwr,
    MessageTemper,
    random_flwr,
    random_flwr_message,
    random_notice,
)
from oracles import saxon_missing_reason
from oracles.engines import EngineName, made_by
from pathcast.errors import QuerySyntaxError, UnsupportedQueryError
from pathcast.model import DeliverMode, Subscription
from pathcast.query import compile_subscription
from pathcast.query.xquery import is_xquery
from pathcast.registry import Registry

NIGHTLY_EXAMPLES = int(os.environ.get("PATHCAST_NIGHTLY", "20000"))

needs_saxon = pytest.mark.skipif(
    saxon_missing_reason() is not None, reason=str(saxon_missing_reason())
)
vocabularies = pytest.mark.parametrize("vocabulary", sorted(VOCABULARIES))

A = b"<a k='0'>x<b>2</b><b>7</b><e/></a>"
"""A message to try conditions on."""

# A condition, and whether it holds of A.
CONDITIONS = (
    ("ends-with(/a, 'x')", False),
    ("ends-with(/a/b[2], '7')", True),
    ("exists(//zzz)", False),
    ("exists(//b)", True),
    ("empty(//b)", False),
    ("/a eq 'x'", False),
    ("/a/b[1] eq '2'", True),
    ("//zzz eq 'x'", False),
    ("lower-case(/a) = 'x'", False),
    ("lower-case(/a) = 'x27'", True),
    ("some $x in //zzz satisfies $x = 1", False),
    ("some $x in //b satisfies $x = 7", True),
    ("every $x in //zzz satisfies $x = 1", True),
    ("every $x in //b satisfies $x = 7", False),
    ("max(//zzz) > 5", False),
    ("max(//b) > 5", True),
    ("max(//b) > 7", False),
    # One value: by its kind.
    ("min(//b) - 2", False),
    ("min(//b) - 1", True),
    ("max(/a/text())", False),  # NaN
    ("avg(//zzz)", False),
    ("data(//e)", False),
    ("data(/a/@k)", True),
    ("upper-case(//e)", False),
    ("upper-case(//b[1])", True),
    ("string-join(//zzz, '')", False),
    ("distinct-values(//e)", False),
    # Nodes are true, whatever they say; several values are.
    ("(//e, ())", True),
    ("for $b in //b return $b/..", True),
    ("(/a/@k, ())", True),
    ("data(//b)", True),
    ("(//zzz, ())", False),
    ("if (//b) then exists(//zzz) else ()", False),
    ("if (//zzz) then () else //b", True),
    ("let $n := count(//b) return $n = 2", True),
    ("let $n := count(//b) return $n - 2", False),
    ("for $b in //b[2] return $b = 2", False),
    ("for $b in //b return $b = 3", True),  # two booleans
    ("for $b in //b where $b > 7 return $b", False),
    # Constants say nothing.
    ("(1, exists(//zzz))", False),
    ("(0, exists(//b))", True),
    ("'x', //zzz", False),
    # Of a constructor, what it is asked for.
    ("<r>{exists(//zzz)}</r>", True),
    ("<r>{//zzz}</r>", False),
    ("<r>{//zzz}</r>, exists(//b)", True),
    ("<r>{//zzz}</r>, exists(//zzz)", False),
    ("<r>{//b}</r>, exists(//zzz)", True),
    ("for $b in //b return <r/>", True),
    # In XPath too.
    ("contains(/a, 'y')", False),
    ("contains(/a, 'x')", True),
    ("count(//b) - 2", False),
    ("//zzz", False),
    ("//b[. > 6]", True),
    ("string(//e) (: nothing :)", False),
)


@engines
def test_conditions(engine: EngineName) -> None:
    """One by one and together, as notices and as messages."""
    ways: tuple[DeliverMode, ...] = ("ids", "message")
    for deliver in ways:
        registry = made_by(engine, Registry)
        report = registry.add(Subscription(text, "desk", text, deliver) for text, _ in CONDITIONS)
        assert report.rejected == {}
        published = registry.deliver(A)
        assert not published.verdicts
        assert {it.fragment for it in published} == {A if deliver == "message" else None}
        found = [it.subscription_id for it in published]
        assert sorted(found) == sorted(text for text, holds in CONDITIONS if holds)


BOOLEANS = (
    "exists(//a)",
    "/a eq 'x'",
    "some $x in //a satisfies $x = 1",
    "(//a, //b = 1)",
    "if (//a) then //b else not(//c)",
    "let $x := (//a = 1) return $x",
    "for $a in //a return $a/b = 1",
    "distinct-values((//a = 1, //b = 1))",
    "<r>{//a}</r>, empty(//b)",
    "(//a, exists(//b))[2]",
)


@engines
def test_a_result_is_no_boolean(engine: EngineName) -> None:
    """`false` would be sent for every message on which the condition does not hold."""
    registry = made_by(engine, Registry)
    rejected = registry.add(Subscription(text, "desk", text) for text in BOOLEANS).rejected
    assert {name: error.code for name, error in rejected.items()} == dict.fromkeys(
        BOOLEANS, "subscription.fragment"
    )
    for error in rejected.values():
        assert isinstance(error, UnsupportedQueryError)
        for hint in ('deliver="ids"', "if (...) then", "string(...)"):
            assert hint in str(error)
    ids = [Subscription(text, "desk", text, "ids") for text in BOOLEANS]
    assert registry.add(ids).rejected == {}
    inside = [Subscription(f"<r>{{{text}}}</r>", "desk", f"<r>{{{text}}}</r>") for text in BOOLEANS]
    assert registry.add(inside).rejected == {}


@pytest.mark.parametrize(
    "text", ["(count(//a), exists(//b))", "//a = 1, //b = 2, //c", "string(/a), string(/b)"]
)
def test_values_that_are_neither_true_nor_false_are_refused(text: str) -> None:
    """Several values whatever the message; where only one message has them, they are true."""
    for deliver in ("ids", "message"):
        with pytest.raises(QuerySyntaxError) as caught:
            compile_subscription(text, deliver=deliver)
        assert caught.value.code == "FORG0006"


class Notices:
    """Conditions, subscriptions to results that are asked the same, and messages, from one seed."""

    def __init__(self, vocabulary: str, seed: int, count: int) -> None:
        chosen = VOCABULARIES[vocabulary]
        generator = random.Random(f"notices {vocabulary} {seed}")
        self.notices: dict[str, GeneratedFlwr] = {}
        for number in range(count):
            # Every third is written for its results.
            write = random_flwr if number % 3 == 2 else random_notice
            notice = write(generator, chosen)
            # Bare XPath has other oracles; and some are refused for what they always give.
            if is_xquery(notice.text) and is_taken(notice):
                self.notices[str(number)] = notice
        self.messages = [
            random_flwr_message(generator, chosen, MessageTemper(hostility=hostility))
            for hostility in (0.0, 0.1, 0.3, 0.5)
        ]

    def found(self, engine: EngineName, deliver: DeliverMode = "ids") -> list[dict[str, str]]:
        """What reaches whom, message by message: "" or the code of a verdict."""
        registry = made_by(engine, Registry, limits=GENEROUS)
        report = registry.add(
            Subscription(name, "desk", it.text, deliver, it.namespaces)
            for name, it in self.notices.items()
        )
        assert report.rejected == {}
        found: list[dict[str, str]] = [{} for _ in self.messages]
        batch = registry.deliver(self.messages, [str(n) for n in range(len(self.messages))])
        for row in batch.table.to_pylist():
            number, name = int(row["message_id"]), row["subscription_id"]
            assert name not in found[number]
            assert row["fragment"] == (self.messages[number] if deliver == "message" else None)
            found[number][name] = ""
        for verdict in batch.verdicts.to_pylist():
            assert verdict["subscription_id"] not in found[verdict["row"]]
            found[verdict["row"]][verdict["subscription_id"]] = verdict["code"]
        return found


def is_taken(notice: GeneratedFlwr) -> bool:
    try:
        compile_subscription(notice.text, notice.namespaces, "ids")
    except QuerySyntaxError as error:
        return error.code != "FORG0006"
    return True


def against_saxon(cases: Notices, found: Sequence[dict[str, str]]) -> Counter[str]:
    """Compares notices with Saxon's `boolean()`."""
    counted: Counter[str] = Counter()
    for said, message in zip(found, cases.messages, strict=True):
        for name, notice in cases.notices.items():
            wanted = by_saxon(notice.holds, message, notice.namespaces)
            if isinstance(wanted, Skipped | str) or said.get(name):
                counted["skipped"] += 1
                continue
            is_noticed = name in said
            assert wanted == (b"true" if is_noticed else b"false",), (
                f"{notice.text}\n{dict(notice.namespaces)}\n{message.decode()}"
            )
            counted["true" if is_noticed else "false"] += 1
    return counted


def check_counts(counted: Counter[str]) -> None:
    pairs = counted.total()
    assert counted["true"] > pairs / 10, counted
    assert counted["false"] > pairs / 10, counted
    # Conditions written at random meet words where numbers are wanted.
    assert counted["skipped"] < pairs * 0.4, counted


@needs_saxon
@engines
def test_notices_are_those_of_saxon(engine: EngineName) -> None:
    counted: Counter[str] = Counter()
    for vocabulary in VOCABULARIES:
        cases = Notices(vocabulary, 1, 30)
        counted += against_saxon(cases, cases.found(engine))
    assert counted.total() > 350
    check_counts(counted)


@engines
def test_notices_are_those_of_the_reference(engine: EngineName) -> None:
    """Whatever Saxon has no value for, too; and the message goes where the notice does."""
    noticed = 0
    for vocabulary in VOCABULARIES:
        cases = Notices(vocabulary, 2, 60)
        wanted, found = cases.found("reference"), cases.found(engine)
        sent = cases.found(engine, "message")
        for number, message in enumerate(cases.messages):
            assert found[number] == wanted[number], message
            assert sent[number] == found[number]
            noticed += len(found[number])
    assert noticed > 200


@vocabularies
def test_a_notice_is_a_result_that_asks_for_the_same(vocabulary: str) -> None:
    """The value of a whole query is that which it has as a condition in one."""
    cases = Notices(vocabulary, 3, 30)
    registry = made_by("reference", Registry, limits=GENEROUS)
    asked = {
        name: notice.holds.replace("boolean(", "if (", 1) + " then 1 else ()"
        for name, notice in cases.notices.items()
    }
    report = registry.add(
        Subscription(name, "desk", text, namespaces=cases.notices[name].namespaces)
        for name, text in asked.items()
    )
    # Elements that are built are no condition inside a query.
    refused = {name: error.code for name, error in report.rejected.items()}
    assert set(refused.values()) <= {"query.unsupported"}
    assert report.accepted > len(refused)
    results = by_broker(registry, cases.messages)
    for said, noticed in zip(results, cases.found("reference"), strict=True):
        # What is asked until it is known may fail where the whole is computed, and the other way.
        failed = {name for name in said if isinstance(said[name], str)}
        failed |= {name for name in noticed if noticed[name] or name in refused}
        assert said.keys() - failed == noticed.keys() - failed


@pytest.mark.nightly
@needs_saxon
@vocabularies
def test_notices_are_those_of_saxon_at_length(vocabulary: str) -> None:
    counted: Counter[str] = Counter()
    seed = 100
    while counted.total() < NIGHTLY_EXAMPLES // len(VOCABULARIES):
        cases = Notices(vocabulary, seed, 120)
        found = cases.found("kernel")
        assert found == cases.found("reference")
        counted += against_saxon(cases, found)
        seed += 1
    check_counts(counted)
