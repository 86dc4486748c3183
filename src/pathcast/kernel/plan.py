"""The plan of a subscription in words: which operators serve it, and how many others each serves.

Source: Diao and Franklin, VLDB 2003, sections 3 and 5, for the names of the operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pathcast.query.syntax import Flwor, For, LocationPath, Program
from pathcast.query.xquery import conjuncts, framed, returned, text_of

if TYPE_CHECKING:
    from pathcast.model import Subscription
    from pathcast.query import CompiledSubscription
    from pathcast.query.syntax import Expr

_CHARACTERS_MAX = 400
"""Characters of a path or condition that are shown."""

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
    flwor = None if compiled.program is None else framed(compiled.program.body)
    match flwor:
        case Flwor(clauses=(For(source=LocationPath(steps=steps) as path),)):
            bare = replace(path, steps=tuple(replace(each, predicates=()) for each in steps))
            lines = [f"binding path {_text(bare)}"]
            asked = [each for step in steps for each in step.predicates]
            asked += [] if flwor.where is None else [flwor.where]
            predicates = [_text(each) for every in asked for each in conjuncts(every)]
            returns = [_text(each) for each in returned(flwor.body)]
            shared = {lines[0]: told["binding"] - 1}
        case _:
            # A bare path, whose gate is the path itself.
            lines = [f"path {_shortened(path)}" for path in compiled.alternatives]
            predicates, returns = [], ["."]
            shared = {"binding path": told["binding"] - 1}
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


def _text(expr: Expr) -> str:
    return _shortened(text_of(Program(expr)))


def _shortened(text: str) -> str:
    """A text without most of a long list."""
    return text if len(text) <= _CHARACTERS_MAX else f"{text[:_CHARACTERS_MAX]}..."
