"""Query decomposition: a query as its main path and its extended nested paths.

A nested path is taken out of the predicate it stands in and prepended with the main path up to its
anchor step, so that the automaton sees absolute paths only. `/a[d]/b[e/f]/c` becomes the main path
`/a/b/c` and the extended nested paths `/a/d` (anchor step 1) and `/a/b/e/f` (anchor step 2). A
nested path inside a nested path is taken out likewise, to any depth.

Example:
    >>> from pathcast_papers.language import normalise
    >>> plan = QueryPlan(normalise("/a[d]/b[e/f]/c"))
    >>> [(len(path.steps), path.anchor_step) for path in plan.nested_paths]
    [(2, 1), (4, 2)]

It evaluates nothing.

Source: Diao et al., TODS 2003, sections 6.2.1 and 6.2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from pathcast_papers.language import (
    AttributeCondition,
    Axis,
    NameTest,
    NestedCondition,
    NormalQuery,
    Position,
    Step,
    TextCondition,
    ValueCondition,
)


class NestedPath:
    """An extended nested path.

    Attributes:
        steps: The prefix of the path it is nested in, bare, and its own steps.
        anchor_step: Number of the last step of the prefix, from 1 on.
        nested_paths: The nested paths of its own steps, all levels, inner ones first.
        key: Equal for nested paths that are true for the same elements: they share one filter.
    """

    def __init__(self, prefix: Sequence[StepPlan], steps: Sequence[Step]) -> None:
        self.anchor_step = len(prefix)
        self.nested_paths: list[NestedPath] = []
        bare = tuple(StepPlan.bare(step.axis, step.test) for step in prefix)
        self.steps = _planned(bare, steps, self.nested_paths)
        self.key = (tuple((step.axis, step.test) for step in bare), tuple(steps))


PlannedCondition: TypeAlias = AttributeCondition | TextCondition | ValueCondition | NestedPath
"""A condition on an element; a nested path stands for "is in its filter"."""


class StagePlan:
    """A stage of predicates, its nested paths decomposed."""

    __slots__ = ("conditions", "positions")

    def __init__(
        self, positions: Sequence[Position], conditions: Sequence[PlannedCondition]
    ) -> None:
        self.positions = tuple(positions)
        self.conditions = tuple(conditions)


class StepPlan:
    """A location step, its nested paths decomposed. Compared by identity."""

    __slots__ = ("axis", "stages", "test")

    def __init__(self, axis: Axis, test: NameTest, stages: Sequence[StagePlan]) -> None:
        self.axis = axis
        self.test = test
        self.stages = tuple(stages)

    @classmethod
    def bare(cls, axis: Axis, test: NameTest) -> StepPlan:
        """A step without predicates."""
        return cls(axis, test, ())


class QueryPlan:
    """A distinct query: everything that is done once for all queries of the same canonical text.

    Attributes:
        steps: The main path.
        nested_paths: The extended nested paths of all levels, inner ones before those that need
            them; empty for a query without nested paths.
        has_predicates: Whether the main path's structure alone does not decide.
        numbers: Numbers of the registered queries that are this one.
    """

    def __init__(self, query: NormalQuery) -> None:
        self.nested_paths: list[NestedPath] = []
        self.steps = _planned((), query.steps, self.nested_paths)
        self.has_predicates = any(step.stages for step in self.steps)
        self.numbers: list[int] = []


def _planned(
    prefix: tuple[StepPlan, ...], steps: Sequence[Step], found: list[NestedPath]
) -> tuple[StepPlan, ...]:
    """Prefix and steps with the nested paths taken out and added to `found`."""
    planned = prefix
    for step in steps:
        path_to_step = (*planned, StepPlan.bare(step.axis, step.test))
        stages = []
        for stage in step.stages:
            conditions: list[PlannedCondition] = []
            for condition in stage.conditions:
                if isinstance(condition, NestedCondition):
                    nested = NestedPath(path_to_step, condition.steps)
                    found.extend(nested.nested_paths)
                    found.append(nested)
                    conditions.append(nested)
                else:
                    conditions.append(condition)
            stages.append(StagePlan(stage.positions, conditions))
        planned = (*planned, StepPlan(step.axis, step.test, stages))
    return planned
