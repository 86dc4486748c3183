"""Conditions on a message before steps, necessary for a query to hold after them.

A message is routed, and looked at by a gate, before it is restructured or when some of the steps
were done; so what is asked of it there has to be wider than the query.

Example:
    >>> from pathcast.customize.steps import parse_steps
    >>> from pathcast.query import canonical_text, normalise
    >>> def before(path, *steps):
    ...     found = paths_before([normalise(path)], parse_steps(steps))
    ...     return " and ".join(map(canonical_text, found))
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

from collections.abc import Iterable, Sequence
from functools import lru_cache

from pathcast.customize.steps import Edit, EditStep, Steps
from pathcast.model import QueryLanguage, Subscription
from pathcast.query import NormalQuery, canonical_text, compile_subscription
from pathcast.query.normal import AnyNamespace, AttributeCondition, Axis, Name, Step, TextCondition
from pathcast.query.widening import Leaf, any_name, anywhere, conditions_kept
from pathcast.query.xquery import form_of_path

__all__ = ["conjunctions_before", "gate_paths", "paths_before"]


def paths_before(paths: Iterable[NormalQuery], steps: Steps) -> tuple[NormalQuery, ...]:
    """Linear paths that all hold if, some or all steps later, all of some paths do.

    Text may have been dropped or joined, so what is asked of it stays only where no step can have
    done that; an unwrapped element may have stood between two steps, so `/` becomes `//`; a name
    that a renaming gives may have been any.

    Args:
        paths: What must hold after the steps.
        steps: One or more.

    Returns:
        Distinct, sorted by canonical text.

    Cost: 100 µs a path.
    """
    effect = _effect(steps)
    found = (effect.before(kept) for path in paths for kept in conditions_kept(path, effect.keeps))
    by_text = {canonical_text(path): path for path in found}
    return tuple(by_text[text] for text in sorted(by_text))


def conjunctions_before(
    subscription: Subscription, steps: Steps
) -> tuple[tuple[NormalQuery, ...], ...]:
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
) -> tuple[tuple[NormalQuery, ...], ...]:
    conjunctions = compile_subscription(query, dict(namespaces), deliver, language).conjunctions
    found = (paths_before(paths, steps) for paths in conjunctions)
    return tuple(dict.fromkeys(found))


def gate_paths(subscription: Subscription, steps: Steps) -> list[NormalQuery]:
    """Paths of which a message has to have one, as it comes, if anything is delivered of it.

    Args:
        subscription: With all namespaces it may use.
        steps: Its steps, read.

    Raises:
        QuerySyntaxError: Its query cannot be used.
        UnsupportedQueryError: Likewise.

    Cost: 0.4 ms a distinct query.
    """
    if not steps:
        _, _, query, deliver, namespaces, _, language = subscription
        return list(compile_subscription(query, namespaces, deliver, language).paths)
    # One of the paths that all hold is enough: the one that says most.
    return [
        max(paths, key=lambda path: (len(canonical_text(path)), canonical_text(path)))
        for paths in conjunctions_before(subscription, steps)
    ]


class _Effect:
    """The effect of steps on a condition."""

    def __init__(self, steps: Steps) -> None:
        self._given = {step.name for step in steps if step.edit is Edit.RENAME}
        self._unwraps = any(step.edit is Edit.UNWRAP for step in steps)
        self._dropped = [_labels_of(step) for step in steps if step.edit is Edit.DROP]

    def keeps(self, path: Sequence[Step], condition: Leaf) -> bool:
        """Whether a condition on the element that a path leads to holds before if it does after."""
        if isinstance(condition, AttributeCondition):
            return True
        if isinstance(condition, TextCondition) and self._unwraps:
            return False
        return not self._dropped or self._is_apart(path)

    def _is_apart(self, path: Sequence[Step]) -> bool:
        """Whether nothing is dropped within the element that a path leads to.

        Where nothing is unwrapped, and no element on the path renamed, all of these have always had
        the names that they have; and so has what was dropped in them.
        """
        names = [step.test for step in path if step.axis is Axis.CHILD]
        if self._unwraps or len(names) < len(path):
            return False
        if not all(isinstance(name, Name) and name.local not in self._given for name in names):
            return False
        return all(
            dropped is not None and (len(dropped) <= len(names) or dropped[: len(names)] != names)
            for dropped in self._dropped
        )

    def before(self, path: NormalQuery) -> NormalQuery:
        """A path that holds before if another one does after."""
        for at, step in enumerate(path.steps):
            test = step.test
            if isinstance(test, Name | AnyNamespace) and test.local in self._given:
                path = any_name(path, at)
            if self._unwraps and at and step.axis is Axis.CHILD:
                path = anywhere(path, at)
        return path


_effect = lru_cache(maxsize=1_024)(_Effect)


def _labels_of(step: EditStep) -> list[Name] | None:
    """The names of a path of child steps, with or without conditions; None if it is another one."""
    form = form_of_path(step.path, dict(step.namespaces))
    steps = [] if form is None else form.binding
    names = [
        Name(each.name.uri, each.name.local)
        for each in steps
        if not each.is_descendant and each.name.uri is not None and each.name.local is not None
    ]
    return names if names and len(names) == len(steps) else None
