"""Why a subscription is satisfied by a message, or where it first fails, for people.

An XPath is followed step by step (`pathcast.engine.explain`). A FLWR is a run of clauses and
conditions: the kernel says after which of them nothing is left; that one is explained as a query
is, with the variables replaced by their paths.

Example:
    >>> from pathcast import Registry, Subscription
    >>> asked = Subscription("s1", "ann", "for $b in //b where $b/@n > 1 return <r>{$b}</r>")
    >>> print(Registry().explain(asked, b"<a><b n='1'/></a>"))
    nothing is left after `where $b/@n > 1`
    query: no match
      //b[@n>1]
      //b[@n>1]   1 node, which does not pass [@n>1]
                  `@n` is '1', the query wants more than 1

It delivers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final
from xml.sax.saxutils import unescape

from pathcast.engine import Explanation, PartExplanation, Plan
from pathcast.engine.explain import explain_query
from pathcast.engine.messages import message_bytes
from pathcast.engine.results import MatchResult
from pathcast.errors import PathcastError
from pathcast.limits import Limits
from pathcast.model import MessageBytes, Query, Subscription
from pathcast.query.xquery import Part, is_xquery, parts_of, without_comments
from pathcast.registry.registry import Registry
from pathcast.registry.restructuring import Restructuring
from pathcast.registry.steps import parse_steps

VALUES_MAX: Final = 5
"""Values shown of each side of a comparison."""


def explain_subscription(
    asked: Subscription,
    message: MessageBytes | str,
    limits: Limits,
    match: Callable[[MessageBytes | str], MatchResult],
) -> Explanation:
    """How the query of a subscription holds of a message, or where it fails.

    Args:
        asked: The subscription, with all namespaces it may use; its steps are done first.
        message: The message. A refusal is explained, not raised.
        limits: What the message may cost.
        match: Matches it, among all that are registered. One with steps, and an XQuery, is asked
            alone.

    Returns:
        Of an XPath, what each step finds. Of an XQuery, that of the first clause or condition after
        which nothing is left, or of the last if something is; no parts where it gives something of
        every message, or there is no verdict.

    Raises:
        QuerySyntaxError: The query cannot be read.
        UnsupportedQueryError: It has what is not supported.
    """
    is_program = is_xquery(asked.query, asked.language)
    if not (is_program or asked.steps):
        return explain_query(_query(asked.id, asked), message, limits, match)
    registry = Registry(limits, threads=1)
    registry.add(asked)
    told = registry.explain(asked.id)
    plan = Plan(told.gate, told.expression, told.cost.value, told.reasons)
    without = Explanation(asked.id, asked.query, False, plan, None)
    content = message
    try:
        if asked.steps:
            steps = Restructuring(parse_steps(asked.steps, asked.namespaces), limits)
            [made] = steps.apply([message_bytes(message)[0]])
            if isinstance(made, PathcastError):
                return replace(without, error=made.to_dict())
            content = made
        if not is_program:
            return _followed(asked.id, asked, content, limits)
        found = registry.deliver(message)
        error = found.error or found.verdicts.get(asked.id)
        if error is not None:
            return replace(without, error=error.to_dict())
        runs = parts_of(asked.query, asked.namespaces or {}, asked.deliver)
        parts = [_part(asked, run, content, limits) for run in runs if run]
        is_told = len(parts) == len(runs) and None not in parts
        told_parts = tuple(each for each in parts if each is not None) if is_told else ()
        return replace(without, is_match=len(found) > 0, parts=told_parts)
    except PathcastError as refusal:
        return replace(without, error=refusal.to_dict())


def _part(
    asked: Subscription, parts: Sequence[Part], content: MessageBytes | str, limits: Limits
) -> PartExplanation | None:
    """The first part after which nothing is left, or the last; None without a verdict."""
    registry = Registry(limits, threads=1)
    rows = {
        str(number): Subscription(str(number), "explain", part.left, "ids", language="xquery")
        for number, part in enumerate(parts)
    }
    report = registry.add(list(rows.values()))
    found = registry.deliver(content)
    if report.rejected or found.error is not None or found.verdicts:
        return None
    left = {delivery.subscription_id for delivery in found}
    failed = [part for number, part in zip(rows, parts, strict=True) if number not in left]
    part = failed[0] if failed else parts[-1]
    explanation = None if part.xpath is None else _explanation(asked, part.xpath, content, limits)
    if explanation is not None and explanation.is_match is not bool(failed):
        return PartExplanation(part.words, not failed, explanation)
    # XPath does not say it, or each of several variables alone satisfies it.
    values = [(words, _values(query, content, limits)) for words, query in part.sides]
    return PartExplanation(part.words, not failed, None, tuple(values))


def _values(query: str, content: MessageBytes | str, limits: Limits) -> tuple[str, ...]:
    """The first different values that an XQuery gives."""
    registry = Registry(limits, threads=1)
    registry.add([Subscription("values", "explain", query, language="xquery")])
    texts = (unescape((each.fragment or b"").decode()) for each in registry.deliver(content))
    return tuple(list(dict.fromkeys(texts))[:VALUES_MAX])


def _explanation(
    asked: Subscription, xpath: str, content: MessageBytes | str, limits: Limits
) -> Explanation | None:
    """How a path or condition holds; None if XPath cannot ask it, or there is no verdict."""
    try:
        found = _followed("query", asked._replace(query=xpath), content, limits)
    except PathcastError:
        return None
    # It is never registered, so that it has no plan worth telling.
    plan = replace(found.plan, alternatives=(found.text,), expression=None)
    return None if found.error is not None else replace(found, plan=plan)


def _followed(
    name: str, asked: Subscription, content: MessageBytes | str, limits: Limits
) -> Explanation:
    query = _query(name, asked)
    alone = Registry(limits, threads=1)
    alone.add(query)
    return explain_query(query, content, limits, alone.match)


def _query(name: str, asked: Subscription) -> Query:
    return Query(name, without_comments(asked.query), asked.namespaces)
