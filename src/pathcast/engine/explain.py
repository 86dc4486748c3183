"""Why a message satisfies a query, or where the query comes to an end in it.

A query is followed step by step through the message tree: how many elements each step selects and
where the first one is; at the step that selects nothing, the first position or condition that
leaves nothing, and the values that it saw.

Example:
    >>> from pathcast import Query, QueryIndex
    >>> index = QueryIndex(engine="reference")
    >>> report = index.register([Query("q1", "/nitf/head//tobject[@type='news']")])
    >>> message = b"<nitf><head><tobject type='sport'/></head></nitf>"
    >>> print(index.freeze().explain("q1", message))
    q1: no match
      /nitf/head//tobject[@type='news']
      /nitf                     1 element, first /nitf[1]
      /head                     1 element, first /nitf[1]/head[1]
      //tobject[@type='news']   none of 1 element passes [@type='news']; seen: "sport"

It uses the oracle, not the automaton, on the tree that the engine's own door gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from pathcast.engine.backend import EngineModule
from pathcast.errors import MessageError, Param
from pathcast.limits import Limits
from pathcast.model import MessageBytes, Query
from pathcast.query import (
    AttributeCondition,
    Axis,
    Condition,
    NestedCondition,
    NormalQuery,
    Stage,
    Step,
    TextCondition,
    ValueCondition,
    canonical_text,
    normalise,
)
from pathcast.query.canonical import condition_text, position_text
from pathcast.reference.oracle import DOCUMENT, Oracle

SEEN_MAX: Final = 5
"""Values shown of a condition that failed."""

SEEN_LENGTH_MAX: Final = 60
"""Characters shown of a value."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What left nothing at a step.

    Attributes:
        test: The axis and node test, position or condition, as it is written canonically.
        kind: "path" (no element there at all), "position", "attribute", "text", "value", "nested".
        candidates: Elements that came to it.
        seen: Names (for "path") or values that were found instead, at most `SEEN_MAX`, shortened.
        nested: For "nested": the steps of the nested path, from all elements that came to it.
    """

    test: str
    kind: str
    candidates: int
    seen: tuple[str, ...]
    nested: tuple[StepExplanation, ...] = ()


@dataclass(frozen=True, slots=True)
class StepExplanation:
    """What became of one location step.

    Attributes:
        step: The step as it is written canonically, predicates included.
        candidates: Elements that its axis and node test reach.
        passed: Elements that also pass its predicates.
        example: Location path of the first of those; None if there is none.
        failure: What left nothing; None if something passed.
    """

    step: str
    candidates: int
    passed: int
    example: str | None
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a message satisfies a query or does not.

    Attributes:
        query_id: Id of the query.
        text: The query as it was registered.
        canonical: Its canonical text, whose steps are explained.
        is_match: Whether the message satisfies the query.
        steps: The steps up to the one that selects nothing.
        error: Code, message and place if the door refused the message.
    """

    query_id: str
    text: str
    canonical: str
    is_match: bool
    steps: tuple[StepExplanation, ...]
    error: dict[str, Param] | None = None

    def to_dict(self) -> dict[str, object]:
        """The same as plain dictionaries and lists, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        verdict = "match" if self.is_match else "no match"
        lines = [f"{self.query_id}: {verdict}", f"  {self.text}"]
        if self.canonical != self.text:
            lines.append(f"  explained as {self.canonical}")
        if self.error is not None:
            lines[0] = f"{self.query_id}: the message was refused"
            lines.append(f"  {self.error['message']}")
        return "\n".join([*lines, *_step_lines(self.steps, "  ")])


def explain_query(
    query: Query,
    message: MessageBytes | str,
    engine: EngineModule,
    limits: Limits,
) -> Explanation:
    """Follows a query through a message.

    Args:
        query: The query, with all namespaces it may use.
        message: The message.
        engine: The engine whose door shall read it.
        limits: What the message may cost.

    Raises:
        QuerySyntaxError: The query cannot be read.
    """
    normal = normalise(query.text, query.namespaces)
    canonical = canonical_text(normal)
    encoding = "UTF-8" if isinstance(message, str) else None
    data = message.encode() if isinstance(message, str) else bytes(message)
    try:
        tree = engine.parse(data, limits, encoding)
    except MessageError as error:
        return Explanation(query.id, query.text, canonical, False, (), error.to_dict())
    steps, selected = _explain_steps(Oracle(tree), normal.steps, [DOCUMENT])
    return Explanation(query.id, query.text, canonical, bool(selected), steps)


def _explain_steps(
    oracle: Oracle, steps: Sequence[Step], context: list[int]
) -> tuple[tuple[StepExplanation, ...], list[int]]:
    """The explanations of a path up to its end, and what it selects."""
    explained = []
    for number, step in enumerate(steps):
        is_nested_start = number == 0 and context != [DOCUMENT]
        explanation, context = _explain_step(oracle, step, context, is_nested_start)
        explained.append(explanation)
        if not context:
            break
    return tuple(explained), context


def _explain_step(
    oracle: Oracle, step: Step, context: list[int], is_nested_start: bool
) -> tuple[StepExplanation, list[int]]:
    text = _step_text(step, is_nested_start)
    lists = list(oracle.candidate_lists(step, context))
    candidates = sorted({node for candidates in lists for node in candidates})
    failure = None
    if not candidates:
        bare = _step_text(Step(step.axis, step.test), is_nested_start)
        failure = Failure(bare, "path", 0, _names_below(oracle, step.axis, context))
    else:
        failure = _first_failure(oracle, lists, step.stages)
    selected = [] if failure else oracle.step(step, context)
    example = location_path(oracle, selected[0]) if selected else None
    return StepExplanation(text, len(candidates), len(selected), example, failure), selected


def _first_failure(
    oracle: Oracle, lists: list[list[int]], stages: Sequence[Stage]
) -> Failure | None:
    """The first position or condition that leaves nothing of any list."""
    for stage in stages:
        if stage.positions:
            left = [oracle.at_positions(nodes, stage.positions) for nodes in lists]
            if not any(left):
                longest = max(len(nodes) for nodes in lists)
                test = " and ".join(position_text(position) for position in stage.positions)
                seen = (f"1 to {longest}",) if longest > 1 else ("1",)
                return Failure(f"[{test}]", "position", _count(lists), seen)
            lists = left
        for condition in stage.conditions:
            left = [[node for node in nodes if oracle.holds(condition, node)] for nodes in lists]
            if not any(left):
                nodes = sorted({node for nodes in lists for node in nodes})
                return _condition_failure(oracle, condition, nodes)
            lists = left
    return None


def _condition_failure(oracle: Oracle, condition: Condition, nodes: list[int]) -> Failure:
    test = f"[{condition_text(condition)}]"
    match condition:
        case AttributeCondition():
            values = [
                value for node in nodes for value in oracle.attribute_values(node, condition.test)
            ]
            return Failure(test, "attribute", len(nodes), _shown(values))
        case TextCondition():
            values = [value for node in nodes for value in oracle.text_values(node)]
            return Failure(test, "text", len(nodes), _shown(values))
        case ValueCondition():
            values = [oracle.string_value(node) for node in nodes]
            return Failure(test, "value", len(nodes), _shown(values))
        case NestedCondition():
            nested, _ = _explain_steps(oracle, condition.steps, nodes)
            return Failure(test, "nested", len(nodes), (), nested)


def _names_below(oracle: Oracle, axis: Axis, context: list[int]) -> tuple[str, ...]:
    """Names of the elements that a step could have met, the first ones."""
    found: dict[str, None] = {}
    for start in context:
        parents = [start] if axis is Axis.CHILD else oracle.descendants_or_self(start)
        for parent in parents:
            for child in oracle.children(parent):
                found[_written(oracle.tree.name[child])] = None
                if len(found) == SEEN_MAX:
                    return tuple(found)
    return tuple(found)


def location_path(oracle: Oracle, node: int) -> str:
    """The path from the root to an element, with its place among children of the same name.

    Example: `/nitf[1]/head[1]`, with a namespace `/Q{urn:n}nitf[1]`.
    """
    parts = []
    while node != DOCUMENT:
        name = oracle.tree.name[node]
        parent = DOCUMENT if node == 0 else oracle.tree.parent[node]
        alike = [child for child in oracle.children(parent) if oracle.tree.name[child] == name]
        parts.append(f"/{_written(name)}[{alike.index(node) + 1}]")
        node = parent
    return "".join(reversed(parts))


def _written(name: tuple[str, str]) -> str:
    return f"Q{{{name[0]}}}{name[1]}" if name[0] else name[1]


def _step_text(step: Step, is_nested_start: bool) -> str:
    text = canonical_text(NormalQuery((step,)))
    if not is_nested_start:
        return text
    return text.removeprefix("/") if step.axis is Axis.CHILD else f".{text}"


def _shown(values: Sequence[str]) -> tuple[str, ...]:
    """The first distinct values, shortened."""
    distinct = list(dict.fromkeys(values))[:SEEN_MAX]
    return tuple(
        value if len(value) <= SEEN_LENGTH_MAX else value[: SEEN_LENGTH_MAX - 1] + "…"
        for value in distinct
    )


def _count(lists: Sequence[Sequence[int]]) -> int:
    return len({node for nodes in lists for node in nodes})


def _step_lines(steps: Sequence[StepExplanation], indent: str) -> list[str]:
    width = max((len(step.step) for step in steps), default=0)
    lines = []
    for step in steps:
        lines.append(f"{indent}{step.step:<{width}}   {_step_sentence(step)}")
        if step.failure is not None and step.failure.nested:
            lines += _step_lines(step.failure.nested, indent + "    ")
    return lines


def _step_sentence(step: StepExplanation) -> str:
    failure = step.failure
    if failure is None:
        return f"{_elements(step.passed)}, first {step.example}"
    if failure.kind == "path":
        seen = ", ".join(failure.seen)
        return "no such element" + (f"; there are: {seen}" if seen else "; there is none at all")
    sentence = f"none of {_elements(failure.candidates)} passes {failure.test}"
    if failure.kind == "nested":
        return sentence + ":"
    if failure.kind == "position":
        return f"{sentence}; positions: {failure.seen[0]}"
    if not failure.seen:
        return f"{sentence}; none has one"
    return f"{sentence}; seen: " + ", ".join(f'"{value}"' for value in failure.seen)


def _elements(count: int) -> str:
    return "1 element" if count == 1 else f"{count} elements"
