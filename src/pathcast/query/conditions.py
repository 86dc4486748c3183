"""Building normal forms: conditions into stages, ends into conditions, wildcards into order.

Functions from normal forms to normal forms; what may be written where is the normaliser's matter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from pathcast.query.canonical import condition_text, position_text
from pathcast.query.normal import (
    AnyName,
    AttributeCondition,
    Axis,
    Comparison,
    Condition,
    Constant,
    NestedCondition,
    Operator,
    Position,
    Stage,
    Step,
    TextCondition,
    ValueCondition,
)

_NUMERIC: Final = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*")


def comparison(operator: Operator, constant: Constant) -> Comparison:
    """`op constant`; an ordering against a numeric string is one against the number."""
    if isinstance(constant, str) and operator not in (Operator.EQ, Operator.NE):
        numeric = _NUMERIC.fullmatch(constant)
        number = float(numeric[1]) + 0.0 if numeric else math.inf
        if math.isfinite(number):
            return Comparison(operator, number)
    return Comparison(operator, constant)


def compared(end: AttributeCondition | TextCondition | None, compare: Comparison) -> Condition:
    """The condition that compares what a path ends in."""
    return ValueCondition(compare) if end is None else replace(end, compare=compare)


def stage(positions: Iterable[Position], conditions: Iterable[Condition]) -> Stage:
    """A stage with its parts sorted and without duplicates."""
    in_order = {position_text(position): position for position in positions}
    by_text = {condition_text(condition): condition for condition in conditions}
    return Stage(
        tuple(in_order[text] for text in sorted(in_order)),
        tuple(by_text[text] for text in sorted(by_text)),
    )


def with_condition(step: Step, condition: Condition) -> Step:
    """A step that asks for one thing more, after all its predicates."""
    if not step.stages:
        return replace(step, stages=(Stage((), (condition,)),))
    *others, last = step.stages
    last = stage(last.positions, (*last.conditions, condition))
    return replace(step, stages=(*others, last))


def end_path(steps: list[Step], condition: Condition | None, is_pending: bool) -> None:
    """Puts the condition of a path's end where it belongs.

    Args:
        steps: The steps; changed.
        condition: On the last step, or after `//` on an element there or below.
        is_pending: Whether `//` stands before the end.
    """
    if condition is None:
        return
    if is_pending:
        stages = (Stage((), (condition,)),)
        steps.append(Step(Axis.DESCENDANT_OR_SELF, AnyName(), stages))
    else:
        steps[-1] = with_condition(steps[-1], condition)


def simplified(steps: list[Step], *, is_main: bool) -> tuple[Step, ...]:
    """The steps with wildcards in canonical order.

    Example:
        >>> from pathcast.query.normaliser import canonical_form
        >>> [canonical_form(text) for text in ("//*/*/b", "/a//*", "/a/*//@b", "//@b", "/a//@b")]
        ['/*/*//b', '/a/*', '/a//*[@b]', '//*[@b]', '/a//.[@b]']
    """
    steps = list(steps)
    if steps[-1].axis is Axis.DESCENDANT_OR_SELF:
        if len(steps) > 1 and _is_bare(steps[-2]):
            # One step down or more, then there or below: the same as anywhere below.
            del steps[-2]
            steps[-1] = replace(steps[-1], axis=Axis.DESCENDANT)
        elif len(steps) == 1 and is_main:
            # The document node has neither attributes nor text.
            steps[-1] = replace(steps[-1], axis=Axis.DESCENDANT)
    start = 0
    for index, step in enumerate(steps):
        if _is_bare(step):
            continue
        if any(each.axis is Axis.DESCENDANT for each in steps[start:index]):
            steps[index] = replace(step, axis=Axis.DESCENDANT)
        if index > start and steps[index].axis is Axis.DESCENDANT:
            _to_children(steps, start, index)
        start = index + 1
    _to_children(steps, start, len(steps))
    return tuple(steps)


def _is_bare(step: Step) -> bool:
    return isinstance(step.test, AnyName) and not step.stages


def _to_children(steps: list[Step], start: int, end: int) -> None:
    for index in range(start, end):
        steps[index] = replace(steps[index], axis=Axis.CHILD)


def depth(steps: Iterable[Step]) -> int:
    """How deep brackets nest in the canonical text of a path."""
    deepest = 0
    for step in steps:
        for part in step.stages:
            deepest = max(deepest, 1)
            for condition in part.conditions:
                if isinstance(condition, NestedCondition):
                    deepest = max(deepest, 1 + depth(condition.steps))
    return deepest
