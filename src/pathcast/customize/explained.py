"""Why a subscription is satisfied by a message, or where it first fails, for people.

Example:
    >>> asked = Subscription("s1", "ann", "for $b in //b where $b/@n > 1 return <r>{$b}</r>")
    >>> print(explained(asked, b"<a><b n='1'/></a>"))
    every result needs this path
    query: no match
      //b[@n>1]
      //b[@n>1]   1 node, which does not pass [@n>1]
                  `@n` is '1', the query wants more than 1

It delivers nothing.
"""

from __future__ import annotations

from pathcast.boundary import native
from pathcast.customize.broker import Broker
from pathcast.customize.restructuring import Restructuring
from pathcast.customize.steps import parse_steps
from pathcast.engine import QueryIndex, RoutingTable
from pathcast.errors import PathcastError
from pathcast.limits import Limits
from pathcast.model import Query, RoutingEntry, Subscription


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
        Of an XPath, what each step finds. Of an XQuery, that of a path that every result needs, or
        of one of several; None where there is none, or one holds.
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
        broker = Broker(limits, threads=1)
        # Steps are done already.
        if broker.subscribe([asked._replace(steps=())]).rejected:
            return None
        needed = broker.explain(asked.id).gate
        entries = [RoutingEntry((path,), 1) for path in needed]
        [targets] = RoutingTable(entries, 1, limits=limits).router(threads=1).route([content])
        if targets:
            return None
        shown = [native.NormalPath(path).with_numbers_of_xpath().text for path in needed]
        found = [index.explain(Query(query.id, path), content) for path in shown]
    except PathcastError as error:
        return str(error)
    if not found or any(each.is_match for each in found):
        return None
    one = f"one of {len(found)} paths, such as this one" if len(found) > 1 else "this path"
    return f"every result needs {one}\n{found[0]}"
