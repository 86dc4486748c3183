"""The frame of a subscription, and the expressions that decide on its delivery.

The frame is what stands around everything that depends on the message: constructors and sequences
reached from the body without passing any other kind of expression. The expressions met there that
depend on the message are the content expressions; a message is delivered if one of them gives an
item. Constants are no content expressions, however they are written, and neither is what stands in
attributes of the frame: those dress a result up, they do not ask for it.

For whoever wants the message or a notice, and no result, the query is a condition: see `parts`.
"""

from __future__ import annotations

from collections.abc import Iterator

from pathcast_papers.language.xquery.dependence import Dependences
from pathcast_papers.language.xquery.syntax import (
    ComputedName,
    Element,
    Enclosed,
    Expr,
    Program,
    Sequence,
    Text,
)


def content_expressions(program: Program) -> tuple[Expr, ...]:
    """The expressions of which one must give an item, from left to right.

    Cost: linear in the program.
    """
    return contents_of(program.body, Dependences())


def contents_of(part: Expr, dependences: Dependences) -> tuple[Expr, ...]:
    """The content expressions of a part of the frame."""
    found: list[Expr] = []
    waiting: list[Expr] = [part]
    while waiting:
        expr = waiting.pop()
        match expr:
            case Sequence(items=items):
                waiting.extend(reversed(items))
            case Element(content=content):
                inner = [part.expr if isinstance(part, Enclosed) else part for part in content]
                waiting.extend(part for part in reversed(inner) if not isinstance(part, Text))
            case _ if not is_constant(expr, dependences):
                found.append(expr)
    return tuple(found)


def has_computed_names(body: Expr) -> bool:
    """Whether a constructor of the frame has a name that an expression gives."""
    waiting: list[object] = [body]
    while waiting:
        match waiting.pop():
            case Sequence(items=items):
                waiting.extend(items)
            case Enclosed(expr=expr):
                waiting.append(expr)
            case Element(name=name, attributes=attributes, content=content):
                names = (name, *(attribute.name for attribute in attributes))
                if any(isinstance(each, ComputedName) for each in names):
                    return True
                waiting.extend(content)
    return False


def parts(program: Program, dependences: Dependences) -> Iterator[Expr]:
    """What the effective boolean value of a subscription is found from, from left to right.

    The items of the body, without those that are constant and without constructors of which no
    content can come: the value is that of the rest, where a constructor is an element if one of its
    content expressions gives an item, and nothing otherwise.
    """
    body = program.body
    for part in body.items if isinstance(body, Sequence) else (body,):
        if contents_of(part, dependences):
            yield part


def is_constant(expr: Expr, dependences: Dependences) -> bool:
    """Whether an expression of the frame, outside all predicates, has nothing of the message."""
    found = dependences.of(expr)
    # The context item is the message here.
    return not (found.is_on_message or found.is_on_item)
