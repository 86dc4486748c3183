"""What several patterns have in common: one pattern that is there whenever one of them is.

Sixty values of one attribute (`[@x = 1 or @x = 2 ...]`) are too many alternatives to index each;
that there is an `@x` follows from every one of them, and is worth knowing.

A generalisation only ever drops: conditions that not all have, comparisons that differ, ends of
nested paths beyond the steps that all begin with. It never touches what stands before a position,
which counts exactly that.

Example:
    >>> from pathcast_papers.language.normaliser import normalise
    >>> texts = ("/a[@x=1][b/c]", "/a[@x=2][b/d][e]", "/a[@x>7][b[@f]]")
    >>> from pathcast_papers.language.canonical import canonical_text
    >>> common = common_path([normalise(text).steps for text in texts])
    >>> canonical_text(normal.NormalQuery(common))
    '/a[@x]/b'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pathcast_papers.language import normal
from pathcast_papers.language.conditions import simplified, stage
from pathcast_papers.language.normal import (
    AttributeCondition,
    Condition,
    NestedCondition,
    Stage,
    Step,
    TextCondition,
)
from pathcast_papers.language.spine import NodeKind, PatternNode, Spine


def generalised(spines: Sequence[Spine], base: Spine) -> Spine:
    """A spine that is there if one of several is.

    Args:
        spines: One or more, all of them extensions of `base`.
        base: The spine they extend.
    """
    keys = [node.key for node in base]
    if any([node.key for node in spine] != keys for spine in spines):
        return base
    columns = zip(*spines, strict=True)
    return tuple(_node(column, before) for column, before in zip(columns, base, strict=True))


def common_path(paths: Sequence[tuple[Step, ...]]) -> tuple[Step, ...]:
    """The steps that all paths begin with, with the conditions that all have there; or none."""
    return tuple(simplified(_prefix(paths), is_main=True)) if _prefix(paths) else ()


def _node(nodes: Sequence[PatternNode], base: PatternNode) -> PatternNode:
    first = nodes[0]
    if all(node == first for node in nodes):
        return first
    is_main = base.kind is NodeKind.DOCUMENT
    common = _stages([node.stages for node in nodes], is_main=is_main)
    compares = tuple(
        each for each in first.compares if all(each in node.compares for node in nodes)
    )
    return replace(
        base,
        axis=first.axis if all(node.axis is first.axis for node in nodes) else base.axis,
        test=first.test if all(node.test == first.test for node in nodes) else base.test,
        stages=base.stages if common is None else common,
        compares=compares,
    )


def _stages(columns: Sequence[tuple[Stage, ...]], *, is_main: bool) -> tuple[Stage, ...] | None:
    """The predicates that all have; None if they differ in what positions count."""
    if all(not stages for stages in columns):
        return ()
    lasts = [stages[-1] if stages else Stage() for stages in columns]
    earlier = [stages[:-1] for stages in columns]
    first = lasts[0]
    if any(each != earlier[0] for each in earlier):
        return None
    if any(last.positions != first.positions for last in lasts):
        return None
    kept = _conditions([last.conditions for last in lasts], is_main=is_main)
    return (*earlier[0], Stage(first.positions, kept))


def _conditions(sets: Sequence[tuple[Condition, ...]], *, is_main: bool) -> tuple[Condition, ...]:
    first, *others = sets
    kept: list[Condition] = []
    for condition in first:
        if all(condition in other for other in others):
            kept.append(condition)
        elif isinstance(condition, AttributeCondition):
            if all(_has_attribute(other, condition.test) for other in others):
                kept.append(AttributeCondition(condition.test))
        elif isinstance(condition, TextCondition):
            if all(any(isinstance(c, TextCondition) for c in other) for other in others):
                kept.append(TextCondition())
        elif isinstance(condition, NestedCondition):
            common = _common_nested(condition, others)
            if common:
                kept.append(NestedCondition(simplified(common, is_main=is_main)))
    return tuple(kept)


def _has_attribute(conditions: Sequence[Condition], test: normal.NameTest) -> bool:
    return any(isinstance(each, AttributeCondition) and each.test == test for each in conditions)


def _common_nested(
    condition: NestedCondition, others: Sequence[tuple[Condition, ...]]
) -> list[Step]:
    """The common beginning of a nested path and one nested path of each other set."""
    paths = [condition.steps]
    for other in others:
        candidates = [each.steps for each in other if isinstance(each, NestedCondition)]
        if not candidates:
            return []
        paths.append(max(candidates, key=lambda steps: _common_length(condition.steps, steps)))
    return _prefix(paths)


def _common_length(left: tuple[Step, ...], right: tuple[Step, ...]) -> int:
    length = 0
    for ours, theirs in zip(left, right, strict=False):
        if (ours.axis, ours.test) != (theirs.axis, theirs.test):
            break
        length += 1
    return length


def _prefix(paths: Sequence[tuple[Step, ...]]) -> list[Step]:
    """The steps that all paths begin with."""
    first = paths[0]
    length = min(_common_length(first, path) for path in paths)
    prefix: list[Step] = []
    for at in range(length):
        column = [path[at] for path in paths]
        common = _stages([step.stages for step in column], is_main=False)
        stages = tuple(stage(each.positions, each.conditions) for each in common or ())
        kept = tuple(each for each in stages if each.positions or each.conditions)
        prefix.append(replace(first[at], stages=kept))
    return prefix
