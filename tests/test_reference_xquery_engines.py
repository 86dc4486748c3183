"""`testdata/xquery.toml` through every engine's registry: all cases of a group stand at once.

A failure means that an engine reads or evaluates a construct otherwise than the reference
interpreter, or that subscriptions which stand together get into each other's way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from customised_cases import GENEROUS, by_broker
from every_engine import engines
from flwr_cases import FlwrGroup, flwr_groups
from oracles import ENGINES, missing_reason
from oracles.engines import EngineName, made_by
from pathcast.errors import PathcastError
from pathcast.message.canonical import canonical
from pathcast.model import Subscription
from pathcast.query import compile_subscription
from pathcast.query.xquery import is_xquery
from pathcast.registry import Registry
from xquery_cases import refusal_of

GROUPS = {group.name: group for group in flwr_groups()}
_PROLOG = re.compile(r"(?:\s*(?:xquery version|declare )[^;]*;)*\s*")


def as_xquery(query: str, namespaces: Mapping[str, str]) -> str:
    """A query whose results are delivered, with the meaning that it has in XQuery.

    What would be read as a bare XPath stands in a sequence, and booleans are text.
    """
    prolog = _PROLOG.match(query)
    assert prolog is not None
    body = query[prolog.end() :]
    if not is_xquery(body):
        body = f"({body}, ())"
    if refusal_of(prolog[0] + body, namespaces) == "subscription.fragment":
        body = f"for $value in ({body}) return string($value)"
    return prolog[0] + body


def subscribed(group: FlwrGroup, engine: EngineName) -> Registry:
    """A registry with the queries of a group, under their numbers."""
    registry = made_by(engine, Registry, limits=GENEROUS)
    subscriptions = [
        Subscription(
            str(number), "desk", as_xquery(query, group.namespaces), namespaces=group.namespaces
        )
        for number, (query, _) in enumerate(group.cases)
    ]
    report = registry.add(subscriptions)
    assert not report.rejected, {group.cases[int(n)].query: e for n, e in report.rejected.items()}
    return registry


@pytest.mark.parametrize("name", GROUPS)
@engines
def test_cases(engine: EngineName, name: str) -> None:
    group = GROUPS[name]
    (found,) = by_broker(subscribed(group, engine), [group.message])
    for number, (query, expected) in enumerate(group.cases):
        wanted = expected if isinstance(expected, str) else tuple(map(canonical, expected)) or None
        assert found.get(str(number)) == wanted, query


PATHS = ("//namespace::*", "(//namespace::*)[3]", "//@*/..", "//namespace::* | //@*", "//node()")


def selects_nodes(query: str, group: FlwrGroup) -> bool:
    """Whether a query is a bare XPath whose nodes can be delivered."""
    if is_xquery(query):
        return False
    try:
        compile_subscription(query, group.namespaces)
    except PathcastError:
        return False
    return True


@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "reference"])
def test_nodes_of_bare_paths_are_those_of_the_reference(engine: EngineName) -> None:
    """With the semantics of XPath 1.0, so that Saxon and the table have no say."""
    if missing_reason(engine) is not None:
        pytest.skip(str(missing_reason(engine)))
    compared = 0
    for group in GROUPS.values():
        queries = [query for query, _ in group.cases if selects_nodes(query, group)]
        subscriptions = [
            Subscription(query, "desk", query, namespaces=group.namespaces or None)
            for query in dict.fromkeys([*queries, *PATHS])
        ]
        answers = []
        for each in ("reference", engine):
            registry = made_by(each, Registry, limits=GENEROUS)
            assert registry.add(subscriptions).rejected == {}
            answers += by_broker(registry, [group.message])
        assert answers[0] == answers[1], group.name
        compared += len(answers[0])
    assert compared > 200
