"""Paths in normal form, as the kernel's compilers give them.

Example:
    >>> from pathcast.boundary import native
    >>> found = native.compile_subscription("<r>{//a[@x = 'y']}</r>", {}, "fragment")
    >>> found is not None and paths_of(found[3])
    (NormalQuery(steps=(Step(axis=<Axis.DESCENDANT: '//'>, test=Name(uri='', local='a'), stages=(Stage(positions=(), conditions=(AttributeCondition(test=Name(uri='', local='x'), compare=Comparison(operator=<Operator.EQ: '='>, constant='y')),)),)),)),)
"""  # noqa: E501 (the value is shown as it is)

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pathcast.query.normal import (
    AnyIn,
    AnyName,
    AnyNamespace,
    AttributeCondition,
    Axis,
    Comparison,
    Condition,
    Name,
    NameTest,
    NestedCondition,
    NormalQuery,
    Operator,
    Position,
    Stage,
    Step,
    TextCondition,
    ValueCondition,
)

_AXES: Final = tuple(Axis)
_OPERATORS: Final = tuple(Operator)


def paths_of(paths: Iterable[tuple[str, Any]]) -> tuple[NormalQuery, ...]:
    """Paths, each given as (canonical text, steps)."""
    return tuple(NormalQuery(_steps(steps)) for _, steps in paths)


def _steps(steps: Any) -> tuple[Step, ...]:
    return tuple(
        Step(_AXES[axis], _test(test), tuple(map(_stage, stages))) for axis, test, stages in steps
    )


def _stage(stage: Any) -> Stage:
    positions, conditions = stage
    return Stage(
        tuple(Position(_OPERATORS[operator], number) for operator, number in positions),
        tuple(map(_condition, conditions)),
    )


def _condition(condition: Any) -> Condition:
    match condition:
        case (0, test, compare):
            return AttributeCondition(_test(test), compare and _comparison(compare))
        case (1, compare):
            return TextCondition(compare and _comparison(compare))
        case (2, compare):
            return ValueCondition(_comparison(compare))
        case (3, steps):
            return NestedCondition(_steps(steps))
    raise AssertionError(condition)


def _comparison(compare: Any) -> Comparison:
    operator, constant = compare
    return Comparison(_OPERATORS[operator], constant)


def _test(test: Any) -> NameTest:
    match test:
        case None:
            return AnyName()
        case (None, local):
            return AnyNamespace(local)
        case (uri, None):
            return AnyIn(uri)
        case (uri, local):
            return Name(uri, local)
    raise AssertionError(test)
