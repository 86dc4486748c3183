"""Why a subscription is satisfied by a message, or where it first fails, for people.

A FLWR is a run of clauses and conditions. The kernel says after which of them nothing is left; that
one is explained as a query is, with the variables replaced by their paths.

Example:
    >>> asked = Subscription("s1", "ann", "for $b in //b where $b/@n > 1 return <r>{$b}</r>")
    >>> print(explained(asked, b"<a><b n='1'/></a>"))
    nothing is left after `where $b/@n > 1`
    query: no match
      //b[@n>1]
      //b[@n>1]   1 node, which does not pass [@n>1]
                  `@n` is '1', the query wants more than 1

It delivers nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from xml.sax.saxutils import unescape

from pathcast.engine import Explanation, QueryIndex
from pathcast.errors import PathcastError
from pathcast.limits import Limits
from pathcast.model import Query, Subscription
from pathcast.query.xquery import Part, parts_of
from pathcast.registry.broker import Broker
from pathcast.registry.restructuring import Restructuring
from pathcast.registry.steps import parse_steps

VALUES_MAX: Final = 5
"""Values shown of each side of a comparison."""


def explained(
    asked: Subscription,
    message: bytes,
    limits: Limits | None = None,
) -> str | None:
    """How the query of a subscription holds of a message, or where it fails.

    Args:
        asked: The subscription, with all namespaces it may use; its steps are done first.
        message: The message.
        limits: What the message may cost.

    Returns:
        Of an XPath, what each step finds. Of an XQuery, that of the first clause or condition after
        which nothing is left, or of the last if something is; None where it gives something of
        every message, or there is no verdict.
    """
    steps = Restructuring(parse_steps(asked.steps, asked.namespaces), limits)
    [content] = steps.apply([message])
    if isinstance(content, PathcastError):
        return str(content)
    index = QueryIndex(limits=limits, namespaces=asked.namespaces)
    query = Query("query", asked.query, language=asked.language)
    try:
        if not index.register([query]).rejected:
            return str(index.explain(query.id, content))
        runs = parts_of(asked.query, asked.namespaces or {}, asked.deliver)
    except PathcastError as error:
        return str(error)
    if not all(runs):
        return None
    told = [_told(index, parts, content, limits) for parts in runs]
    texts = [each for each in told if each is not None]
    return "\n".join(texts) if texts and len(texts) == len(told) else None


def _told(
    index: QueryIndex, parts: Sequence[Part], content: bytes, limits: Limits | None
) -> str | None:
    """The findings of the first part after which nothing is left, or of the last."""
    broker = Broker(limits, threads=1)
    asked = {
        str(number): Subscription(str(number), "explain", part.left, "ids", language="xquery")
        for number, part in enumerate(parts)
    }
    report = broker.subscribe(list(asked.values()))
    found = broker.publish(content)
    if report.rejected or found.error is not None or found.verdicts:
        return None
    left = {delivery.subscription_id for delivery in found}
    failed = [part for number, part in zip(asked, parts, strict=True) if number not in left]
    part = failed[0] if failed else parts[-1]
    lines = [f"{'nothing' if failed else 'something'} is left after `{part.words}`"]
    explanation = None if part.xpath is None else _explanation(index, part.xpath, content)
    if explanation is not None and explanation.is_match is not bool(failed):
        return f"{lines[0]}\n{explanation}"
    # XPath does not say it, or each of several variables alone satisfies it.
    for words, query in part.sides:
        values = _values(query, content, limits)
        lines.append(f"  `{words}` is {values}" if values else f"  there is no `{words}`")
    return "\n".join(lines)


def _values(query: str, content: bytes, limits: Limits | None) -> str:
    """The first different values that an XQuery gives, "" if there are none."""
    broker = Broker(limits, threads=1)
    broker.subscribe([Subscription("values", "explain", query, language="xquery")])
    texts = (unescape((each.fragment or b"").decode()) for each in broker.publish(content))
    return " or ".join(repr(text) for text in list(dict.fromkeys(texts))[:VALUES_MAX])


def _explanation(index: QueryIndex, xpath: str, content: bytes) -> Explanation | None:
    """How a path or condition holds; None if XPath cannot ask it, or there is no verdict."""
    try:
        found = index.explain(Query("query", xpath), content)
    except PathcastError:
        return None
    # It is never registered, so that it has no plan worth telling.
    plan = replace(found.plan, alternatives=(found.text,), expression=None)
    return None if found.error is not None else replace(found, plan=plan)
