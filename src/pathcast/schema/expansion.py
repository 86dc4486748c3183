"""Which label paths a location path can mean, by the element graph: `*` and `//` resolved.

A label path is the names from the root element down to an element. What stands after `//` is looked
for in each branch down to where recursion begins, that is, where a child has a name that the way
down to it has already; there the `//` stays, and everything below is left to it.

Example:
    >>> from pathcast.schema import parse_dtd
    >>> paths = ElementPaths(parse_dtd(
    ...     "<!ELEMENT a (b+)><!ELEMENT b (l*, m*)><!ELEMENT l (c*)><!ELEMENT m (c*, a*)>"
    ...     "<!ELEMENT c EMPTY>"), root="a")
    >>> step = PathStep(Way.DESCENDANT, lambda name: name[1] == "c")
    >>> for each in expand(paths, [step]):
    ...     print("/".join(local for _, local in each.names), each.is_open([step]))
    a/b/l/c False
    a/b/m True

It knows names only: what predicates ask for is another room's.

Source: Lehner and Irmert, BTW 2003, section 3 ("Cleaning and Transforming XPath Expressions").
Differs: an element that can stand in itself is looked for below its first appearance as well, or
what lies below it would be lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from pathcast.schema.element_paths import ElementPaths, ExpandedName

LabelPath: TypeAlias = tuple[ExpandedName, ...]
"""Names from the root element down to an element; empty for the document node."""

EXPANSIONS_MAX: Final = 64
"""Label paths that one location path becomes at most; what would be more stays open."""


class Way(Enum):
    """How a step leads down."""

    CHILD = "/"
    DESCENDANT = "//"
    DESCENDANT_OR_SELF = "//."


@dataclass(frozen=True, slots=True)
class PathStep:
    """A step without predicates, which selects elements: of the document node nothing is said.

    Attributes:
        way: How it leads down.
        matches: What the element must be called.
    """

    way: Way
    matches: Callable[[ExpandedName], bool]


@dataclass(frozen=True, slots=True)
class Expansion:
    """A label path that the first steps of a location path can mean.

    Attributes:
        names: The label path.
        ends: For each resolved step, how many of the names it and the steps before it take. Steps
            beyond these are not resolved: they lead on from the last name.
    """

    names: LabelPath
    ends: tuple[int, ...]

    def is_open(self, steps: Sequence[PathStep]) -> bool:
        """Whether steps are left."""
        return len(self.ends) < len(steps)


def expand(
    paths: ElementPaths,
    steps: Sequence[PathStep],
    *,
    above: LabelPath = (),
    expansions_max: int = EXPANSIONS_MAX,
) -> tuple[Expansion, ...]:
    """Every label path that a location path can mean, each once.

    Every element that the location path selects in a message of this element graph lies on one of
    them, or where an open one leads; none of them can be left out for its names alone.

    Args:
        paths: The element graph; its root is where paths begin. Without a root, every path is open
            from the document node.
        steps: From the document node, or from `above`.
        above: A label path of the element graph that the steps begin at.
        expansions_max: How many are made at most.

    Cost: of the order of the expansions, times depth and children.
    """
    found = [Expansion(above, ())]
    for number, step in enumerate(steps):
        following: list[Expansion] = []
        for index, each in enumerate(found):
            if len(each.ends) < number:
                following.append(each)
                continue
            room = expansions_max - len(following) - (len(found) - index - 1)
            following += _one_step(paths, each, step, max(room, 1))
        found = following
    return tuple(each for each in _distinct(found) if _can_end(paths, each, steps))


def _one_step(
    paths: ElementPaths, above: Expansion, step: PathStep, room: int
) -> Iterable[Expansion]:
    if paths.root is None:
        return (above,)
    found: list[Expansion] = []
    for names, is_open in _ways(paths, above.names, step):
        if len(found) == room:
            return (above,)
        ends = above.ends if is_open else (*above.ends, len(names))
        found.append(Expansion(names, ends))
    return found


def _ways(
    paths: ElementPaths, above: LabelPath, step: PathStep
) -> Iterator[tuple[LabelPath, bool]]:
    """Label paths of one step; with True where recursion begins and the step stays."""
    if step.way is Way.CHILD:
        for name in _children(paths, above):
            if step.matches(name):
                yield (*above, name), False
        return
    if step.way is Way.DESCENDANT_OR_SELF and above and step.matches(above[-1]):
        yield above, False
    leading = paths.leading_to(name for name in paths.names if step.matches(name))
    waiting = [above]
    while waiting:
        here = waiting.pop()
        children = [name for name in _children(paths, here) if name in leading]
        if any(name in here for name in children):
            yield here, True
            continue
        for name in children:
            if step.matches(name):
                yield (*here, name), False
        waiting += [(*here, name) for name in reversed(children)]


def _children(paths: ElementPaths, above: LabelPath) -> tuple[ExpandedName, ...]:
    if above:
        return paths.children(above[-1])
    return () if paths.root is None else (paths.root,)


def _distinct(found: Iterable[Expansion]) -> list[Expansion]:
    return list(dict.fromkeys(found))


def _can_end(paths: ElementPaths, each: Expansion, steps: Sequence[PathStep]) -> bool:
    """Whether the steps that are left can select something, by names alone."""
    if paths.root is None:
        return True
    rest = steps[len(each.ends) :]
    here: frozenset[ExpandedName | None] = frozenset([each.names[-1] if each.names else None])
    for step in rest:
        below: set[ExpandedName | None] = set()
        for name in here:
            below |= _names_below(paths, name, step)
        if step.way is Way.DESCENDANT_OR_SELF:
            below |= {name for name in here if name is not None and step.matches(name)}
        here = frozenset(below)
    return bool(here)


def _names_below(
    paths: ElementPaths, name: ExpandedName | None, step: PathStep
) -> set[ExpandedName]:
    candidates = set(_children(paths, () if name is None else (name,)))
    if step.way is not Way.CHILD:
        for above in (*candidates,) if name is None else (name,):
            candidates |= paths.below(above)
    return {below for below in candidates if step.matches(below)}
