"""Building normal forms: conditions into stages, branches into order.

Functions from normal forms to normal forms; what may be written where is the normaliser's matter.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pathcast.query.canonical import condition_text, has_literal, position_text
from pathcast.query.normal import (
    AnyName,
    Axis,
    Condition,
    Double,
    NestedCondition,
    Position,
    Stage,
    Step,
)


def stage(positions: Iterable[Position], conditions: Iterable[Condition]) -> Stage:
    """A stage with its parts sorted and without duplicates."""
    in_order = {position_text(position): position for position in positions}
    by_text = {condition_text(condition): condition for condition in conditions}
    return Stage(
        tuple(in_order[text] for text in sorted(in_order)),
        tuple(by_text[text] for text in sorted(by_text)),
    )


def simplified(steps: list[Step], *, is_main: bool) -> tuple[Step, ...]:
    """The steps with branches and wildcards in canonical order.

    Nested paths are in order already; the path is put in order from its end, so that every choice
    among branches is one among paths in normal form.

    Example:
        >>> from pathcast.query.normaliser import canonical_form
        >>> [canonical_form(text) for text in ("//*/*/b", "/a//*", "/a/*//@b", "//@b", "/a//@b")]
        ['/*/*//b', '/a/*', '/a//*[@b]', '//*[@b]', '/a//.[@b]']
        >>> [canonical_form(text) for text in ("//*[b]", "/a[c]/b", "/a[b/@x]/c", "/a[b][2][c]")]
        ['/*//b', '/a[c]/b', '/a[c]/b[@x]', '/a[b][position()=2]/c']
    """
    tail = _Tail()
    for each in reversed(steps):
        step = each
        if step.stages and _nested_paths(step.stages[-1]):
            step, tail = _continued(step, tail)
        tail.prepend(step)
    ordered = tail.in_order()
    if is_main and ordered[0].axis is Axis.DESCENDANT_OR_SELF:
        # The document node has neither attributes nor text.
        return (replace(ordered[0], axis=Axis.DESCENDANT),)
    return ordered


class _Tail:
    """The steps after a step, in normal form: its continuation."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self.steps: list[Step] = []  # the last one first
        self.anchor = -1  # where the first step that is not bare stands
        self.deepest = 0  # how deep brackets nest in the first `counted` steps of the list
        self.counted = 0
        for step in steps:
            self.prepend(step)

    def in_order(self) -> tuple[Step, ...]:
        return tuple(reversed(self.steps))

    def depth(self) -> int:
        """As `depth` of the steps; counts each step once however often it is asked."""
        self.deepest = max(self.deepest, depth(self.steps[self.counted :]))
        self.counted = len(self.steps)
        return self.deepest

    def prepend(self, step: Step) -> None:
        """Puts a step before; in a run of bare wildcards, only the step after it keeps a `//`."""
        if not _is_bare(step):
            self.anchor = len(self.steps)
            self.steps.append(step)
            return
        if self.anchor >= 0:
            after = self.steps[self.anchor]
            is_or_self = after.axis is Axis.DESCENDANT_OR_SELF
            if is_or_self or step.axis is Axis.DESCENDANT:
                self.steps[self.anchor] = replace(after, axis=Axis.DESCENDANT)
            if is_or_self:
                # One step down or more, then there or below: the same as anywhere below.
                return
        self.steps.append(replace(step, axis=Axis.CHILD))


def _continued(step: Step, tail: _Tail) -> tuple[Step, _Tail]:
    """A step with nested paths in its last stage, and which of the branches leads on from it.

    A query asks whether something is selected: the nested paths of the last stage and the
    continuation are asked of the same elements. The one whose brackets nest deepest leads on (the
    first by text among several), which makes brackets nest as little as they can.
    """
    *earlier, last = step.stages
    # Sorted by text: the first of the deepest is found.
    first = max(_nested_paths(last), key=lambda nested: depth(nested.steps))
    others = [condition for condition in last.conditions if condition is not first]
    if tail.steps:
        difference = depth(first.steps) - tail.depth()
        if difference < 0:
            return step, tail
        continuation = NestedCondition(tail.in_order())
        if difference == 0 and condition_text(continuation) < condition_text(first):
            return step, tail
        if continuation != first:
            others.append(continuation)
    left = stage(last.positions, others)
    stages = (*earlier, left) if left.positions or left.conditions else ()
    return replace(step, stages=stages), _Tail(reversed(first.steps))


def _nested_paths(part: Stage) -> list[NestedCondition]:
    return [condition for condition in part.conditions if isinstance(condition, NestedCondition)]


def _is_bare(step: Step) -> bool:
    return isinstance(step.test, AnyName) and not step.stages


def depth(steps: Iterable[Step]) -> int:
    """How deep brackets and calls nest in the canonical text of a path."""
    stages = [stage for step in steps for stage in step.stages]
    inside = (max(map(_condition_depth, stage.conditions), default=0) for stage in stages)
    return max((1 + each for each in inside), default=0)


def _condition_depth(condition: Condition) -> int:
    """How deep brackets and calls nest in a condition, its own bracket not counted."""
    if isinstance(condition, NestedCondition):
        return depth(condition.steps)
    if condition.compare is None:
        return 0
    operator, constant = condition.compare.operator, condition.compare.constant
    is_joined = isinstance(constant, str) and not has_literal(constant)
    return (operator.is_call or isinstance(constant, Double)) + is_joined
