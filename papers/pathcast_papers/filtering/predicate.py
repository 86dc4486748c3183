"""Predicates on the elements of one message.

Attributes, text, value and position are read from the message tree; a nested path is true of the
elements in its filter. Positions count among the children of one parent that pass the node test
and the stages before: `a[@x][2]` is the second `a` with an `x`.

Example:
    >>> from pathcast_papers import parse
    >>> from pathcast.limits import Limits
    >>> from pathcast_papers.language import normalise
    >>> tree = parse(b'<r><a/><a x="1"/><a x="2"/></r>', Limits())
    >>> step = QueryPlan(normalise("//a[@x][2]")).steps[0]
    >>> tests = ElementTests(tree)
    >>> [tests.passes(step, element) for element in (1, 2, 3)]
    [False, False, True]

It does not decide which elements a step is bound to.

Source: Diao et al., TODS 2003, sections 2.2 and 5; XPath 1.0, sections 2.4, 3.4 and 5.
Differs: the paper's predicates on text wait for the end of the element (5.2, blocking operators);
here the whole message is in the tree before the run begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pathcast.message import MessageTree
from pathcast_papers.evaluation.comparison import passes, passes_number
from pathcast_papers.filtering.query_plan import NestedPath, PlannedCondition, QueryPlan, StepPlan
from pathcast_papers.language import (
    AnyIn,
    AnyName,
    AnyNamespace,
    AttributeCondition,
    Comparison,
    Name,
    NameTest,
    TextCondition,
    ValueCondition,
)

__all__ = ["ElementTests", "Predicate", "QueryPlan", "predicates_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Predicate:
    """One predicate of a location step, as the tables of Inline and SP hold it.

    Attributes:
        step_number: The step it is attached to, from 1 on.
        step: That step.
        stage: Number of the stage, from 0 on.
        condition: The condition; None for the positions of the stage.
    """

    step_number: int
    step: StepPlan
    stage: int
    condition: PlannedCondition | None


def predicates_of(plan: QueryPlan) -> Iterator[Predicate]:
    """The predicates of a query in the order of its steps; a step's positions come last.

    Only an element that passes every stage before a position stands in the list where the position
    counts, so the predicates of a step hold together for the same elements as its stages do.
    """
    for number, step in enumerate(plan.steps, start=1):
        for stage_number, stage in enumerate(step.stages):
            for condition in stage.conditions:
                yield Predicate(number, step, stage_number, condition)
        for stage_number, stage in enumerate(step.stages):
            if stage.positions:
                yield Predicate(number, step, stage_number, None)


class ElementTests:
    """What is asked of the elements of one message.

    Attributes:
        filters: Nested path (by key) -> the elements it is true of, as far as they are known.
    """

    def __init__(self, tree: MessageTree) -> None:
        self.filters: dict[object, set[int]] = {}
        self._tree = tree
        self._positions: dict[tuple[StepPlan, int, int], dict[int, int]] = {}

    def passes(self, step: StepPlan, element: int) -> bool:
        """Whether an element that the step is bound to passes all its predicates."""
        return all(
            (not stage.positions or self._is_at(step, number, element))
            and all(self._holds(condition, element) for condition in stage.conditions)
            for number, stage in enumerate(step.stages)
        )

    def holds(self, predicate: Predicate, element: int) -> bool:
        """Whether one predicate is true of an element that its step is bound to."""
        if predicate.condition is None:
            return self._is_at(predicate.step, predicate.stage, element)
        return self._holds(predicate.condition, element)

    def _holds(self, condition: PlannedCondition, element: int) -> bool:
        tree = self._tree
        match condition:
            case AttributeCondition(test, compare):
                return any(
                    is_named(tree.attribute_name[attribute], test)
                    and _compares(tree.attribute_value[attribute], compare)
                    for attribute in range(
                        tree.attribute_start[element], tree.attribute_start[element + 1]
                    )
                )
            case TextCondition(compare):
                return any(
                    tree.text_parent[text] == element and _compares(tree.text_value[text], compare)
                    for text in range(tree.text_start[element], tree.text_end[element])
                )
            case ValueCondition(compare):
                return passes(self._string_value(element), compare)
            case NestedPath():
                return element in self.filters[condition.key]

    def _string_value(self, element: int) -> str:
        # Not kept: the string-values of elements inside one another hold the same text again.
        tree = self._tree
        return "".join(tree.text_value[tree.text_start[element] : tree.text_end[element]])

    def _is_at(self, step: StepPlan, stage: int, element: int) -> bool:
        """Whether an element stands at the positions of a stage, in the list it counts in."""
        position = self._list_before(step, stage, self._tree.parent[element]).get(element)
        return position is not None and all(
            passes_number(float(position), wanted.operator, wanted.number)
            for wanted in step.stages[stage].positions
        )

    def _list_before(self, step: StepPlan, stage: int, parent: int) -> dict[int, int]:
        """The children of a parent that pass node test and earlier stages -> their position."""
        key = (step, stage, parent)
        positions = self._positions.get(key)
        if positions is None:
            if stage == 0:
                left = [
                    child
                    for child in children(self._tree, parent)
                    if is_named(self._tree.name[child], step.test)
                ]
            else:
                earlier = step.stages[stage - 1]
                left = [
                    child
                    for child in self._list_before(step, stage - 1, parent)
                    if (not earlier.positions or self._is_at(step, stage - 1, child))
                    and all(self._holds(condition, child) for condition in earlier.conditions)
                ]
            positions = {child: number for number, child in enumerate(left, start=1)}
            self._positions[key] = positions
        return positions


def children(tree: MessageTree, parent: int) -> Iterator[int]:
    """The child elements of an element in document order; of the document node, the root."""
    if parent < 0:
        yield 0
        return
    child = parent + 1
    while child < tree.element_end[parent]:
        yield child
        child = tree.element_end[child]


def is_named(name: tuple[str, str], test: NameTest) -> bool:
    """Whether an expanded name passes a name test."""
    match test:
        case AnyName():
            return True
        case Name(uri, local):
            return name == (uri, local)
        case AnyIn(uri):
            return name[0] == uri
        case AnyNamespace(local):
            return name[1] == local


def _compares(value: str, compare: Comparison | None) -> bool:
    return compare is None or passes(value, compare)
