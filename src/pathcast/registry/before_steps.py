"""Conditions on a message before steps, necessary for a query to hold after them.

A message is routed, and looked at by a gate, before it is restructured or when some of the steps
were done; so what is asked of it there has to be wider than the query.

Example:
    >>> from pathcast.registry.steps import parse_steps
    >>> from pathcast.query import conjunction_of
    >>> def before(path, *steps):
    ...     return str(paths_before(conjunction_of(path), parse_steps(steps)))
    >>> before("/a/list[item='x']/@n", "rename //table list")
    "/a/*[@n]/item[.='x']"
    >>> before("/a/b[. = 'x']/c", "drop //image")
    '/a/b/c'
    >>> before("/a/b[. = 'x']/c", "drop /a/image")
    "/a/b[.='x']/c"
    >>> before("/a/b[@n = 1]/c", "unwrap //p")
    '/a//b[@n=1]//c'

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.2, which does not say what a message is
routed by before its steps.
"""

from __future__ import annotations

from functools import lru_cache

from pathcast.boundary import native
from pathcast.model import QueryLanguage, Subscription
from pathcast.query import compile_subscription
from pathcast.registry.steps import Steps, step_data


def paths_before(paths: native.Conjunction, steps: Steps) -> native.Conjunction:
    """Linear paths that all hold if, some or all steps later, all of some paths do.

    Text may have been dropped or joined, so what is asked of it stays only where no step can have
    done that; an unwrapped element may have stood between two steps, so `/` becomes `//`; a name
    that a renaming gives may have been any.

    Args:
        paths: What must hold after the steps.
        steps: One or more.

    Cost: linear in the text of the paths, times the steps.
    """
    return native.paths_before(paths, step_data(steps))


def conjunctions_before(subscription: Subscription, steps: Steps) -> tuple[native.Conjunction, ...]:
    """Return conjunctions of which one must hold before the steps if anything is delivered after.

    Args:
        subscription: With all namespaces it may use.
        steps: Its steps, read: one or more.

    Raises:
        QuerySyntaxError: Its query cannot be used.
        UnsupportedQueryError: It holds a construct that is refused.

    Cost: a compilation, and as `paths_before`; popular subscriptions are asked for again.
    """
    bound = tuple(sorted((subscription.namespaces or {}).items()))
    query, deliver, language = subscription.query, subscription.deliver, subscription.language
    return _conjunctions(query, bound, deliver, language, steps)


@lru_cache(maxsize=100_000)
def _conjunctions(
    query: str,
    namespaces: tuple[tuple[str, str], ...],
    deliver: str,
    language: QueryLanguage | None,
    steps: Steps,
) -> tuple[native.Conjunction, ...]:
    conjunctions = compile_subscription(query, dict(namespaces), deliver, language).conjunctions
    found = (paths_before(paths, steps) for paths in conjunctions)
    return tuple(dict.fromkeys(found))


def gate_paths(subscription: Subscription, steps: Steps) -> list[native.NormalPath]:
    """Paths of which a message has to have one, as it comes, if anything is delivered of it.

    Args:
        subscription: With all namespaces it may use.
        steps: Its steps, read.

    Raises:
        QuerySyntaxError: Its query cannot be used.
        UnsupportedQueryError: Likewise.

    Cost: a compilation of each distinct query.
    """
    if not steps:
        _, _, query, deliver, namespaces, _, language = subscription
        return list(compile_subscription(query, namespaces, deliver, language).paths)
    # One of the paths that all hold is enough: the one that says most.
    return [
        max(found.paths, key=lambda path: (len(path.text), path.text))
        for found in conjunctions_before(subscription, steps)
    ]
