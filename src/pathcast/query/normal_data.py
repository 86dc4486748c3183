"""Normal forms as the kernel hands them over: tuples, lists and numbers.

Example:
    >>> from pathcast.query.canonical import canonical_text
    >>> step = (1, (None, "a"), [([(0, 2.0)], [(0, ("", "x"), (4, 3.0))])])
    >>> canonical_text(query_of([step]))
    '//*:a[position()=2][@x>3]'

It decides nothing: every number and tuple stands for one value of `pathcast.query.normal`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from pathcast.query.normal import (
    AnyIn,
    AnyName,
    AnyNamespace,
    AttributeCondition,
    Axis,
    Comparison,
    Condition,
    Double,
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

_Compare: TypeAlias = tuple[int, float | str | tuple[float]]


def query_of(steps: Sequence[Any]) -> NormalQuery:
    """The normal form of a main path.

    Args:
        steps: Each (axis, name test, stages), as `native.compile_query` gives them.
    """
    return NormalQuery(_steps(steps))


def _steps(steps: Sequence[Any]) -> tuple[Step, ...]:
    return tuple(
        [
            Step(_AXES[axis], _name_test(test), tuple([_stage(*stage) for stage in stages]))
            for axis, test, stages in steps
        ]
    )


def _stage(positions: Sequence[Any], conditions: Sequence[Any]) -> Stage:
    return Stage(
        tuple([Position(_OPERATORS[operator], number) for operator, number in positions]),
        tuple([_condition(*condition) for condition in conditions]),
    )


def _condition(kind: int, *parts: Any) -> Condition:
    match kind:
        case 0:
            test, compare = parts
            return AttributeCondition(_name_test(test), _comparison(compare))
        case 1:
            return TextCondition(_comparison(parts[0]))
        case 2:
            compare = _comparison(parts[0])
            assert compare is not None
            return ValueCondition(compare)
    return NestedCondition(_steps(parts[0]))


def _comparison(compare: _Compare | None) -> Comparison | None:
    if compare is None:
        return None
    operator, constant = compare
    if isinstance(constant, tuple):
        return Comparison(_OPERATORS[operator], Double(*constant))
    return Comparison(_OPERATORS[operator], constant)


def _name_test(test: tuple[str | None, str | None] | None) -> NameTest:
    match test:
        case None:
            return AnyName()
        case (None, str(local)):
            return AnyNamespace(local)
        case (str(uri), None):
            return AnyIn(uri)
        case (str(uri), str(local)):
            return Name(uri, local)
    raise AssertionError(test)
