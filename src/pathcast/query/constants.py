"""Expressions that have one value whatever the message is.

Example:
    >>> from pathcast.query.reader import parse
    >>> [constant_of(parse(text)) for text in ("-(1 + 2) * 3", "concat('a', 1)", "not(0)", "a")]
    [-9.0, 'a1', True, None]
"""

from __future__ import annotations

from pathcast.query.syntax import (
    BinaryExpr,
    BinaryOperator,
    Expr,
    FunctionCall,
    Literal,
    Number,
    UnaryExpr,
)
from pathcast.query.values import (
    COMPARISONS,
    VALUE_FUNCTIONS,
    Value,
    apply,
    boolean_of,
    calculate,
    compare,
    number_of,
)


def constant_of(expr: Expr) -> Value | None:
    """The value of an expression without paths and without a context; None for any other.

    Cost: linear in the expression.
    """
    match expr:
        case Literal(value=value):
            return value
        case Number(value=value):
            return value
        case UnaryExpr(minuses=minuses, operand=operand):
            operand_value = constant_of(operand)
            if operand_value is None:
                return None
            return number_of(operand_value) * (-1.0 if minuses % 2 else 1.0)
        case FunctionCall(name=name, arguments=arguments):
            values = _all(arguments)
            has_context = not arguments and name not in ("true", "false")
            if values is None or has_context or name not in VALUE_FUNCTIONS:
                return None
            return apply(name, values)
        case BinaryExpr():
            return _binary(expr)
    return None


def _all(exprs: tuple[Expr, ...]) -> list[Value] | None:
    values: list[Value] = []
    for expr in exprs:
        value = constant_of(expr)
        if value is None:
            return None
        values.append(value)
    return values


def _binary(expr: BinaryExpr) -> Value | None:
    values = _all(expr.operands)
    if values is None:
        return None
    result = values[0]
    for operator, right in zip(expr.operators, values[1:], strict=True):
        match operator:
            case BinaryOperator.OR:
                result = boolean_of(result) or boolean_of(right)
            case BinaryOperator.AND:
                result = boolean_of(result) and boolean_of(right)
            case _ if operator in COMPARISONS:
                result = compare(operator, result, right)
            case _:
                result = calculate(operator, number_of(result), number_of(right))
    return result
