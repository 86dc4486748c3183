"""An explanation as data and as text.

An explanation follows the query as its author wrote it. A location path is told step by step: how
many nodes each step reaches, how many each predicate leaves, where the first ones are, and what
left nothing. Every other expression is told by its value and that of its operands.

Example:
    >>> from pathcast import Query, Registry
    >>> registry = Registry()
    >>> report = registry.add([Query("q1", "//city[@code='SF']")])
    >>> found = registry.explain("q1", b"<a><city code='SFO'/></a>")
    >>> found.failure.near_misses
    ("`@code` is 'SFO', the query wants 'SF'",)

It computes nothing: see `pathcast.engine.explain`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final, Literal, TypeAlias

from pathcast.errors import CATALOGUE, EvaluationBudgetError, Param

WIDTH_MAX: Final = 60
"""Characters of a step beside which there is room for what became of it."""

ValueType: TypeAlias = Literal["node-set", "boolean", "number", "string"]
"""The types of XPath 1.0."""


@dataclass(frozen=True, slots=True)
class NodePlace:
    """A node of the message.

    Attributes:
        path: Where it is: `/nitf[1]/head[1]/@id`; names in a namespace as `p:name` where the query
            binds a prefix, else as `Q{uri}name`.
        value: Its string-value, shortened; None for elements that hold elements.
    """

    path: str
    value: str | None


@dataclass(frozen=True, slots=True)
class Failure:
    """The step that selected no node, or the condition that was false.

    Attributes:
        kind: "name" (no node there passes the node test), "predicate" (none passes it) or
            "condition" (an expression is false).
        text: The step, predicate or condition, as written.
        offset: Where it stands in the query, in characters.
        seen: What was found instead: names for "name", values for the others.
        near_misses: For the node that comes nearest, each condition it fails, with the value.
        nearest: Where that node is.
        near_names: Names that may be meant, as the query would have to write them.
        hint: What to write instead, as a sentence.
    """

    kind: Literal["name", "predicate", "condition"]
    text: str
    offset: int
    seen: tuple[str, ...] = ()
    near_misses: tuple[str, ...] = ()
    nearest: str | None = None
    near_names: tuple[str, ...] = ()
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class PredicateExplanation:
    """The evaluation of one predicate.

    Attributes:
        text: As written, in its brackets.
        offset: Where it stands in the query, in characters.
        candidates: Nodes that came to it.
        passed: Nodes that it left.
        detail: Its value for the node that comes nearest, if it left none.
    """

    text: str
    offset: int
    candidates: int
    passed: int
    detail: ExpressionExplanation | None = None


@dataclass(frozen=True, slots=True)
class StepExplanation:
    """The evaluation of one location step.

    Attributes:
        text: As written, with the slashes before it.
        offset: Where it stands in the query, in characters.
        candidates: Nodes that its axis and node test reach.
        passed: Nodes that also pass its predicates.
        nodes: The first of those.
        predicates: The predicates, up to the one that left nothing.
        failure: What left nothing; None if something passed.
    """

    text: str
    offset: int
    candidates: int
    passed: int
    nodes: tuple[NodePlace, ...]
    predicates: tuple[PredicateExplanation, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class ExpressionExplanation:
    """The value of an expression for one context node.

    Attributes:
        text: As written.
        offset: Where it stands in the query, in characters.
        kind: "path", "filter", "union", "and", "or", "not", "comparison", "function",
            "arithmetic" or "constant".
        type: Type of its value.
        value: Its value as text: "true", "3", "'x'", "2 nodes".
        is_true: What `boolean()` makes of it.
        nodes: The first nodes of a node-set.
        steps: The steps of a path, up to the one that selects nothing.
        operands: What it is made of.
        failure: Why it is false; None if it is true.
    """

    text: str
    offset: int
    kind: str
    type: ValueType
    value: str
    is_true: bool
    nodes: tuple[NodePlace, ...] = ()
    steps: tuple[StepExplanation, ...] = ()
    operands: tuple[ExpressionExplanation, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """How the engine answers a query.

    Attributes:
        alternatives: Canonical texts of the paths that are indexed; one of them is in every message
            that satisfies the query.
        expression: The expression that is evaluated where one of them is found; None if they say
            all of the query.
        cost: "indexed", "candidate-checked" or "scan".
        reasons: Why there is an expression.
    """

    alternatives: tuple[str, ...]
    expression: str | None
    cost: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartExplanation:
    """A clause or condition of an XQuery: is anything left after it and those before it?

    Attributes:
        text: As written: `where $b/price > 30`.
        is_left: Whether something is left.
        explanation: How the path or condition holds, variables replaced by their paths; None where
            XPath does not say it.
        sides: Of a comparison without an explanation, what it compares, as written, and the first
            different values of each.
    """

    text: str
    is_left: bool
    explanation: Explanation | None = None
    sides: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def __str__(self) -> str:
        lines = [f"{'something' if self.is_left else 'nothing'} is left after `{self.text}`"]
        if self.explanation is not None:
            lines.append(str(self.explanation))
        for text, values in self.sides:
            shown = " or ".join(map(repr, values))
            lines.append(f"  `{text}` is {shown}" if values else f"  there is no `{text}`")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a message satisfies a query or does not.

    Attributes:
        query_id: Id of the query.
        text: The query as it was registered.
        is_match: Whether the message satisfies the query, as the engine says.
        plan: How the engine answers it.
        root: The query as an expression; None if there is no verdict, or too much to tell.
        failure: The first condition that failed; None for a match.
        error: Code, message and place if the door refused the message, or if the evaluation went
            over its budget.
        bug: Code and message if the parts do not add up to what the engine says; None as a rule.
        parts: Of an XQuery, for each expression of its frame the first clause or condition after
            which nothing is left, or the last one; it has no `root`.
    """

    query_id: str
    text: str
    is_match: bool
    plan: Plan
    root: ExpressionExplanation | None
    failure: Failure | None = None
    error: dict[str, Param] | None = None
    bug: dict[str, Param] | None = None
    parts: tuple[PartExplanation, ...] = ()

    @property
    def is_told(self) -> bool:
        """Whether there is more to tell than the verdict."""
        found = self.root or self.error or self.bug
        return found is not None or bool(self.parts)

    @property
    def steps(self) -> tuple[StepExplanation, ...]:
        """The steps, if the query is a location path."""
        return () if self.root is None else self.root.steps

    def to_dict(self) -> dict[str, object]:
        """The same as plain dictionaries and lists, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return "\n".join(map(str, self.parts) if self.parts else _lines(self))


def _lines(explanation: Explanation) -> Iterator[str]:
    verdict = "match" if explanation.is_match else "no match"
    if explanation.error is not None:
        family = CATALOGUE[str(explanation.error["code"])].family
        is_undecided = issubclass(family, EvaluationBudgetError)
        verdict = "no verdict" if is_undecided else "the message was refused"
    yield f"{explanation.query_id}: {verdict}"
    yield "  " + " ".join(explanation.text.split("\n"))
    yield from _plan_lines(explanation)
    if explanation.error is not None:
        yield f"  {explanation.error['message']}"
    if explanation.bug is not None:
        yield f"  {explanation.bug['message']}"
    elif explanation.error is None and explanation.root is None:
        yield "  there is too much to tell within evaluation_steps_max; raise it with Limits(...)"
    if explanation.root is not None:
        yield from _expression_lines(explanation.root, "  ", is_query=True)


def _plan_lines(explanation: Explanation) -> Iterator[str]:
    plan = explanation.plan
    if plan.expression is None and plan.alternatives == (explanation.text,):
        return
    cost = plan.cost
    if plan.reasons:
        cost += ": " + "; ".join(plan.reasons)
    yield f"  {cost}"
    for number, alternative in enumerate(plan.alternatives):
        yield f"    {'index' if number == 0 else '   or'} {alternative}"
    if plan.expression is not None:
        yield f"    check {plan.expression}"


def _expression_lines(
    found: ExpressionExplanation, indent: str, *, is_query: bool = False
) -> Iterator[str]:
    """An expression: a path by its steps, anything else by its value and its operands."""
    if is_query and found.kind == "path":
        for operand in found.operands:
            yield from _expression_lines(operand, indent)
        yield from _step_lines(found.steps, indent)
    elif found.kind == "path" and len(found.steps) == 1 and not found.operands:
        [step] = found.steps
        yield f"{indent}{found.text}: {_step_sentence(step)}"
        yield from _failure_lines(step, indent + "  ")
    elif found.kind == "path" and found.is_true:
        yield f"{indent}{found.text}: {_shown(found)}"
    else:
        yield f"{indent}{found.text}: {_shown(found)}"
        if found.kind not in ("and", "or", "union", "path", "filter"):
            yield from (f"{indent}  {miss}" for miss in _misses(found.failure))
        for operand in found.operands:
            if operand.kind != "constant" and not (_is_plain(operand) and found.failure):
                yield from _expression_lines(operand, indent + "  ")
        yield from _step_lines(found.steps, indent + "  ")


def _step_lines(steps: tuple[StepExplanation, ...], indent: str) -> Iterator[str]:
    width = min(max((len(step.text) for step in steps), default=0), WIDTH_MAX)
    for step in steps:
        below = f"{indent}{'':<{width}}   "
        if len(step.text) > width:
            yield indent + step.text
            yield below + _step_sentence(step)
        else:
            yield f"{indent}{step.text:<{width}}   {_step_sentence(step)}"
        passed = [each for each in step.predicates if each.passed]
        if len(step.predicates) > 1:
            yield from (
                f"{below}{each.text}: {each.passed} of {each.candidates}" for each in passed
            )
        yield from _failure_lines(step, below)


def _failure_lines(step: StepExplanation, indent: str) -> Iterator[str]:
    """The nearest misses, under the step that selected no node."""
    failure = step.failure
    if failure is None:
        return
    candidates = step.predicates[-1].candidates if step.predicates else 0
    detail = step.predicates[-1].detail if step.predicates else None
    is_told = detail is not None and _is_worth_telling(detail)
    # What is told in detail has its hint there.
    misses = _misses(failure, has_place=candidates > 1, has_hint=not is_told)
    yield from (f"{indent}{miss}" for miss in misses)
    if detail is not None and is_told:
        yield from _expression_lines(detail, indent + "  ")


def _misses(
    failure: Failure | None, *, has_place: bool = False, has_hint: bool = True
) -> Iterator[str]:
    if failure is None:
        return
    if failure.near_misses:
        where = f"nearest {failure.nearest}: " if has_place else ""
        yield where + "; ".join(failure.near_misses)
    if failure.hint is not None and has_hint:
        yield failure.hint


def _shown(found: ExpressionExplanation) -> str:
    if found.nodes:
        return f"{found.value}, first {found.nodes[0].path}"
    return found.value


def _is_plain(found: ExpressionExplanation) -> bool:
    """Whether an expression is a path of one bare step, of which a near miss says all."""
    if found.kind != "path" or found.operands or not found.is_true:
        return False
    return all(not step.predicates for step in found.steps) and len(found.steps) <= 1


def _is_worth_telling(detail: ExpressionExplanation) -> bool:
    """Whether there is more to a failed predicate than its near misses."""
    if detail.kind == "path":
        return len(detail.steps) > 1 or any(step.predicates for step in detail.steps)
    if detail.kind in ("and", "comparison"):
        return any(_is_worth_telling(operand) for operand in detail.operands)
    return detail.kind not in ("constant", "function") or any(
        _is_worth_telling(operand) for operand in detail.operands
    )


def _step_sentence(step: StepExplanation) -> str:
    failure = step.failure
    if failure is None:
        count = counted(step.passed)
        if step.passed < step.candidates:
            count += f" of {step.candidates}"
        return f"{count}, first {step.nodes[0].path}"
    if failure.kind == "name":
        if not failure.seen:
            return "no such node; there is none at all"
        return "no such node; there are: " + ", ".join(failure.seen)
    candidates = step.predicates[-1].candidates
    if candidates == 1:
        return f"1 node, which does not pass {failure.text}"
    sentence = f"none of {counted(candidates)} passes {failure.text}"
    if failure.seen:
        sentence += "; seen: " + ", ".join(failure.seen)
    return sentence


def counted(count: int) -> str:
    """A number of nodes in words."""
    return "1 node" if count == 1 else f"{count} nodes"
