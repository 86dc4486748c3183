"""The plan of a subscription in words: which operators serve it, and how many others each serves.

Source: Diao and Franklin, VLDB 2003, sections 3 and 5, for the names of the operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pathcast.query.canonical import literal_text
from pathcast.query.xquery import Target, paper_form

if TYPE_CHECKING:
    from pathcast.model import Subscription
    from pathcast.query import CompiledSubscription
    from pathcast.query.syntax import NameTest
    from pathcast.query.xquery.paper import PaperCondition, PaperStep

_SHOWN_MAX = 5
"""Values of a list that are shown."""
_CHARACTERS_MAX = 400
"""Characters of a path that are shown."""

_DELIVER = {
    "fragment": "message factory: write the results",
    "message": "deliver the message",
    "ids": "deliver a notice",
    "nodes": "deliver the places of the nodes",
}


def plan_lines(
    subscription: Subscription, compiled: CompiledSubscription, told: Mapping[str, Any]
) -> tuple[list[str], dict[str, int]]:
    """Operators from the leaves up, and operator -> number of other users.

    Args:
        subscription: The subscription.
        compiled: What `pathcast.query` makes of it.
        told: What the kernel says of it.
    """
    shared: dict[str, int] = {}
    if told["way"] == "shared":
        lines, shared = _shared(compiled, told)
    else:
        lines = [f"path {_shortened(path)}" for path in compiled.alternatives]
        if told["way"] == "gated":
            lines.append("evaluate the program")
        elif told["way"] == "selecting":
            lines.append("select the nodes")
        elif compiled.expression is not None:
            lines.append(f"evaluate {compiled.expression}")
    return [*lines, _DELIVER[subscription.deliver]], shared


def _shared(
    compiled: CompiledSubscription, told: Mapping[str, Any]
) -> tuple[list[str], dict[str, int]]:
    """A plan among the shared ones."""
    form = None if compiled.program is None else paper_form(compiled.program)
    if form is None:
        # A bare path, whose gate is the path itself.
        lines = [f"path {_shortened(path)}" for path in compiled.alternatives]
        predicates, returns = [], ["."]
    else:
        lines = [f"binding path {_steps(form.binding)}"]
        own = [each for step in form.binding for each in step.conditions]
        predicates = [_condition(each) for each in (*own, *form.predicates)]
        returns = [_end(each.steps, each.target, each.attribute) for each in form.returns]
    shared = {"binding path" if form is None else lines[0]: told["binding"] - 1}
    lines += [f"  predicate {each}" for each in predicates]
    lines.append("selection of BoundNodes")
    lines += [f"  GroupBy {each}" for each in dict.fromkeys(returns)]
    uses = told["predicates"]
    if len(predicates) == len(uses) == 1:
        shared[f"predicate {predicates[0]}"] = uses[0] - 1
    else:
        shared |= {f"predicate, number {at}": each - 1 for at, each in enumerate(uses, 1)}
    shared |= {
        "selection of BoundNodes": told["selection"] - 1,
        "return clause": told["template"] - 1,
    }
    return lines, shared


def _shortened(path: str) -> str:
    """A path without most of a long list."""
    return path if len(path) <= _CHARACTERS_MAX else f"{path[:_CHARACTERS_MAX]}..."


def _steps(steps: Sequence[PaperStep]) -> str:
    return "".join(("//" if step.is_descendant else "/") + _name(step.name) for step in steps)


def _end(steps: Sequence[PaperStep], target: Target, attribute: NameTest | None) -> str:
    """A path from a node, and what of its end is meant."""
    path = _steps(steps)
    parts = [f".{path}" if path.startswith("//") else path.removeprefix("/")] if path else []
    if target is Target.TEXT:
        parts.append("text()")
    elif target is Target.ATTRIBUTE and attribute is not None:
        parts.append("@" + _name(attribute))
    return "/".join(parts) or "."


def _condition(condition: PaperCondition) -> str:
    subject = _end(condition.steps, condition.target, condition.attribute)
    if condition.operator is None or condition.constant is None:
        return f"{subject} exists"
    constant = condition.constant
    if isinstance(constant, tuple):
        more = ", ..." if len(constant) > _SHOWN_MAX else ""
        shown = f"({', '.join(map(_literal, constant[:_SHOWN_MAX]))}{more})"
    else:
        shown = _literal(constant)
    return f"{subject} {condition.operator.value} {shown}"


def _literal(constant: str | float) -> str:
    return literal_text(constant) if isinstance(constant, str) else f"{constant:g}"


def _name(test: NameTest) -> str:
    if test.local is None:
        return "*" if test.uri is None else f"Q{{{test.uri}}}*"
    return f"Q{{{test.uri}}}{test.local}" if test.uri else test.local
