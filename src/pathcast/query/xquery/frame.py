"""The frame of a subscription, and the expressions that decide on its delivery.

The frame is what stands around everything that depends on the message: constructors and sequences
reached from the body without passing any other kind of expression. The enclosed expressions met
there are the content expressions; a message is delivered if one of them gives an item. Literals are
no content expressions, and neither is what stands in attributes of the frame: those dress a result
up, they do not ask for it. A body that is neither a constructor nor a sequence is itself the one
content expression.
"""

from __future__ import annotations

from pathcast.query.xquery.syntax import Element, Enclosed, Expr, Literal, Program, Sequence, Text


def content_expressions(program: Program) -> tuple[Expr, ...]:
    """The expressions of which one must give an item, from left to right.

    Cost: linear in the frame.
    """
    found: list[Expr] = []
    waiting: list[Expr] = [program.body]
    while waiting:
        expr = waiting.pop()
        match expr:
            case Sequence(items=items):
                waiting.extend(reversed(items))
            case Element(content=content):
                inner = [part.expr if isinstance(part, Enclosed) else part for part in content]
                waiting.extend(part for part in reversed(inner) if not isinstance(part, Text))
            case Literal():
                pass
            case _:
                found.append(expr)
    return tuple(found)
