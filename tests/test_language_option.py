"""The language that a subscriber chooses for a text.

If one of these fails, a text is read in a language that nobody meant: an alert is not delivered, or
one that was not asked for is.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from customised_cases import agree, by_broker, by_saxon
from every_engine import engines
from generators import QueryShape, random_expression, random_message, random_query
from oracles import saxon_missing_reason
from oracles.engines import EngineName, made_by
from pathcast import PathcastError, Query, Registry, Snapshot, Subscription
from pathcast.errors import QuerySyntaxError, UnsupportedQueryError
from pathcast.message.canonical import canonical
from pathcast.model import (
    DELIVER_MODES,
    QUERY_LANGUAGES,
    DeliverMode,
    LocalDeliverMode,
    QueryLanguage,
)
from pathcast.query import compile_subscription

TEXT = "//alert[@sent > '2026-01-01']"
"""Compares numbers in XPath 1.0, of which none is greater than no number; and strings in XQuery."""

OLD = "<as><alert sent='2025-12-31'/></as>"
NEW = "<as><alert sent='2026-02-01'/><alert sent='x'/><alert sent='2025-01-01'/></as>"

RESULTS = {
    "fragment": [b"<alert sent='2026-02-01'/>", b"<alert sent='x'/>"],
    "message": [NEW.encode()],
    "ids": [None],
}


def asked(language: QueryLanguage | None, deliver: DeliverMode = "fragment") -> Subscription:
    return Subscription(str(language), "desk", TEXT, deliver, language=language)


def delivered(registry: Registry, message: str) -> dict[str, list[bytes | None]]:
    """Id -> results, all of them in the quotes of `RESULTS`, which engines choose."""
    found: dict[str, list[bytes | None]] = {}
    for each in registry.deliver(message, "m"):
        fragment = each.fragment and each.fragment.replace(b'"', b"'")
        found.setdefault(each.subscription_id, []).append(fragment)
    return found


@engines
@pytest.mark.parametrize("deliver", DELIVER_MODES)
def test_one_text_gives_the_answers_of_the_language_that_was_chosen(
    engine: EngineName, deliver: DeliverMode
) -> None:
    registry = made_by(engine, Registry)
    assert registry.add(asked(each, deliver) for each in (None, *QUERY_LANGUAGES)).accepted == 3
    assert delivered(registry, OLD) == {}
    assert delivered(registry, NEW) == {"xquery": RESULTS[deliver]}


@engines
def test_a_broker_has_a_language_for_those_who_choose_none(engine: EngineName) -> None:
    registry = made_by(engine, Registry, language="xquery")
    registry.add([asked(None), asked("xpath1")])
    assert delivered(registry, NEW) == {"None": RESULTS["fragment"]}
    assert registry.get("None").language == "xquery"


def test_the_language_is_in_snapshots_and_versions(tmp_path: Path) -> None:
    registry = Registry(language="xquery")
    registry.add([asked(None), asked("xpath1")])
    registry.freeze().save(tmp_path / "s")
    opened = Snapshot.open(tmp_path / "s")
    assert [each.language for each in opened.subscriptions] == ["xquery", "xpath1"]
    again = Registry.of(opened)
    assert again.version == registry.version == opened.version
    assert delivered(again, NEW) == {"None": RESULTS["fragment"]}
    # What comes later has no language, unless the restored registry has one.
    again.add(asked(None)._replace(id="late"))
    assert delivered(again, NEW) == {"None": RESULTS["fragment"]}
    versions = {}
    for language in (None, *QUERY_LANGUAGES):
        one = Registry()
        one.add(asked(language)._replace(id="s"))
        versions[language] = one.version
    assert versions[None] == versions["xpath1"] != versions["xquery"]


def test_steps_come_before_the_query_in_either_language() -> None:
    registry = Registry()
    steps = ("rename //alarm alert",)
    report = registry.add(asked(each)._replace(steps=steps) for each in QUERY_LANGUAGES)
    assert report.rejected == {}
    found = delivered(registry, NEW.replace("<alert", "<alarm"))
    assert found == {"xquery": RESULTS["fragment"]}


@pytest.mark.parametrize(
    ("language", "text", "code"),
    [
        ("xpath1", "//a[b eq 1]", "XPST0003"),
        ("xpath1", "<r>{//a}</r>", "XPST0003"),
        ("xpath1", "ends-with(//a, 'x')", "XPST0017"),
        ("xpath1", "count(//a)", "subscription.fragment"),
        ("xquery", "//a/namespace::b", "query.unsupported"),
        ("xquery", "//a[b = 'AT&T']", "XPST0003"),
        ("xquery", "1 < 2 < 3", "XPST0003"),
        ("xquery", "1 = 1", "subscription.constant"),
        ("xquery", "//a = 1", "subscription.fragment"),
        ("xpath3", "//a", "query.language"),
        (1, "//a", "row.field"),
    ],
)
@engines
def test_a_text_is_refused_in_the_language_that_was_chosen(
    engine: EngineName, language: QueryLanguage, text: str, code: str
) -> None:
    registry = made_by(engine, Registry)
    with pytest.raises(PathcastError) as caught:
        registry.add(Subscription("s", "desk", text, language=language))
    assert caught.value.code == code
    # Among others as alone.
    rows = [Subscription(name, "desk", "//a", language="xquery") for name in "ab"]
    report = registry.add([*rows, Subscription("s", "desk", text, language=language)])
    assert report.accepted == 2
    assert report.rejected["s"].code == code


def test_literals_have_references_in_xquery_alone() -> None:
    registry = Registry()
    for language in QUERY_LANGUAGES:
        row = Subscription(language, "desk", "//a[. = 'AT&amp;T']", language=language)
        registry.add(row)
    assert [*delivered(registry, "<m><a>AT&amp;T</a></m>")] == ["xquery"]
    assert [*delivered(registry, "<m><a>AT&amp;amp;T</a></m>")] == ["xpath1"]


def test_arithmetic_on_nothing_is_that_of_the_language() -> None:
    """It is NaN in XPath 1.0, which differs from any number, and nothing in XQuery."""
    registry = Registry()
    for language in QUERY_LANGUAGES:
        registry.add(Subscription(language, "d", "//a + 1 != 2", "ids", language=language))
    assert [*delivered(registry, "<m><a>2</a></m>")] == ["xpath1", "xquery"]
    assert [*delivered(registry, "<m/>")] == ["xpath1"]


def test_explain_and_cost_tell_the_language() -> None:
    registry = Registry()
    registry.add([asked(None), *map(asked, QUERY_LANGUAGES)])
    plans = {name: registry.explain(name) for name in ("None", "xpath1", "xquery")}
    assert {name: plan.kind for name, plan in plans.items()} == {
        "None": "xpath",
        "xpath1": "xpath",
        "xquery": "xquery",
    }
    assert plans["xquery"].to_dict()["language"] == "xquery"
    assert "XQuery as chosen" in plans["xquery"].to_text()
    assert "XPath," in plans["None"].to_text()
    for plan in plans.values():
        chosen = plan.subscription.language
        compiled = compile_subscription(TEXT, language=chosen)
        assert plan.gate == compiled.alternatives
        assert plan.cost is compiled.cost


def test_nothing_is_said_of_the_language_where_it_was_chosen() -> None:
    text = "//a[@n > '5']"
    registry = Registry()
    rows = [Subscription(str(each), "d", text, language=each) for each in (None, *QUERY_LANGUAGES)]
    assert [each.query_id for each in registry.add(rows).warnings] == ["None"]
    [warning] = Registry().add(rows[0]).warnings
    assert warning.fix is not None
    assert 'language="xquery"' in warning.fix
    index = Registry(language="xpath1")
    assert not index.add(Query("q", text)).warnings
    assert not Registry().add(Query("q", text, language="xpath1")).warnings


def test_a_query_is_xpath_unless_xquery_is_chosen() -> None:
    registry = Registry()
    rows = [Query(str(each), TEXT, language=each) for each in (None, *QUERY_LANGUAGES)]
    assert registry.add(rows).accepted == 3
    assert registry.get("xquery") == Subscription("xquery", "", TEXT, "ids", language="xquery")
    for messages in (OLD, NEW):
        matched = set(registry.match(messages).query_ids)
        assert matched == {each.subscription_id for each in registry.deliver(messages)}
        assert ("None" in matched) == ("xpath1" in matched)
    assert set(registry.match(NEW).query_ids) != set(registry.match(OLD).query_ids)
    flwr = "for $a in //a return $a"
    assert list(registry.add([Query("flwr", flwr)]).rejected) == ["flwr"]
    assert registry.add(Query("flwr", flwr, language="xquery")).accepted == 1
    chosen = Registry(language="xquery")
    assert chosen.add(Query("flwr", flwr)).accepted == 1
    with pytest.raises(UnsupportedQueryError, match="xpath1"):
        Registry(language="xpath3")  # type: ignore[arg-type]


EXAMPLES = 200
MESSAGES = [random_message(random.Random(f"language {seed}")) for seed in range(40)]


def _texts(seed: str) -> list[str]:
    generator = random.Random(seed)
    shape = QueryShape(predicate_odds=60)
    texts = [random_query(generator, shape=shape) for _ in range(EXAMPLES)]
    return texts + [random_expression(generator) for _ in range(EXAMPLES)]


def _is_taken(text: str, deliver: DeliverMode, language: QueryLanguage | None) -> bool:
    try:
        compile_subscription(text, deliver=deliver, language=language)
    except (QuerySyntaxError, UnsupportedQueryError):
        return False
    return True


def _answers(engine: EngineName, rows: list[Subscription]) -> list[tuple[object, ...]]:
    """Message, id, number and bytes of each result; then message, id and code of each verdict."""
    registry = made_by(engine, Registry)
    assert registry.add(rows).rejected == {}
    batch = registry.deliver(MESSAGES, [str(at) for at in range(len(MESSAGES))])
    found: list[tuple[object, ...]] = [
        (
            row["message_id"],
            row["subscription_id"],
            row["result_number"],
            _alike(row, rows[0].deliver),
        )
        for row in batch.table.to_pylist()
    ]
    columns = ["row", "subscription_id", "code"]
    found += [tuple(row.values()) for row in batch.verdicts.select(columns).to_pylist()]
    return sorted(found, key=repr)


def _alike(row: dict[str, Any], deliver: LocalDeliverMode) -> bytes | None:
    """What is delivered, in one notation."""
    fragment: bytes | None = row["fragment"]
    return canonical(fragment) if fragment is not None and deliver == "fragment" else fragment


@pytest.mark.parametrize("deliver", DELIVER_MODES)
def test_a_chosen_xquery_is_a_module_in_xquery(deliver: DeliverMode) -> None:
    """The version declaration makes any text XQuery, whoever reads it."""
    texts = [text for text in _texts(deliver) if _is_taken(text, deliver, "xquery")]
    assert len(texts) > EXAMPLES // 2
    declared = 'xquery version "1.0"; '
    chosen = [
        Subscription(str(at), "d", text, deliver, language="xquery")
        for at, text in enumerate(texts)
    ]
    written = [Subscription(row.id, "d", declared + row.query, deliver) for row in chosen]
    found = _answers("kernel", chosen)
    assert found
    # As one text, since the difference of long lists is slow to write.
    assert repr(found) == repr(_answers("kernel", written))
    assert repr(found) == repr(_answers("reference", chosen))


_ORDER_OR_NUMBER = re.compile(r"[<>!]|=\s*-?[.\d]|\d\s*=|&")
_POSITIONS = re.compile(r"position\(\)\s*(?:[<>!]?=|[<>])\s*[.\d]+|\[[.\d]+\]")


@pytest.mark.parametrize("deliver", DELIVER_MODES)
def test_both_languages_agree_on_equality_of_strings(deliver: DeliverMode) -> None:
    generator = random.Random(f"agreement {deliver}")
    shape = QueryShape(predicate_odds=25, steps_max=4)
    texts = {random_query(generator, shape=shape) for _ in range(40 * EXAMPLES)}
    texts = {text for text in texts if not _ORDER_OR_NUMBER.search(_POSITIONS.sub("", text))}
    texts = {text for text in texts if _is_taken(text, deliver, "xquery")}
    assert sum(re.search(r"=\s*['\"]", text) is not None for text in texts) > 40
    answers = [
        _answers(
            "kernel",
            [Subscription(text, "d", text, deliver, language=language) for text in sorted(texts)],
        )
        for language in QUERY_LANGUAGES
    ]
    assert answers[0] == answers[1]
    assert len(answers[0]) > 100


@pytest.mark.skipif(saxon_missing_reason() is not None, reason=str(saxon_missing_reason()))
def test_a_bare_path_in_xquery_gives_what_saxon_gives() -> None:
    generator = random.Random("saxon")
    shape = QueryShape(predicate_odds=60, steps_max=3)
    texts = [random_query(generator, shape=shape) for _ in range(3 * EXAMPLES)]
    texts = [text for text in texts if _is_taken(text, "fragment", "xquery")]
    registry = Registry(language="xquery")
    assert not registry.add(
        Subscription(str(at), "d", text) for at, text in enumerate(texts)
    ).rejected
    counted: Counter[str] = Counter()
    for message, ours in zip(MESSAGES[:8], by_broker(registry, MESSAGES[:8]), strict=True):
        for at, text in enumerate(texts):
            saxons = by_saxon(text, message, {})
            difference = agree(ours.get(str(at)), None if saxons == () else saxons)
            assert difference is not None, (text, message, saxons, ours.get(str(at)))
            counted[difference or ("delivered" if saxons else "not delivered")] += 1
    assert counted["delivered"] > EXAMPLES
    assert counted["delivered"] + counted["not delivered"] > 0.8 * counted.total(), counted
