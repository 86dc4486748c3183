"""The places of a message that a query asks about: where its paths lead, and its comparisons there.

A *place* is a path without predicates and what of its nodes is meant: the elements themselves, an
attribute, text, or the string-value. Two comparisons are of the same place exactly if they have the
same structure and compare the same thing, as the exclusiveness patterns of the paper have it.

Example:
    >>> from pathcast.query.normaliser import normalise
    >>> found = predicates_of(normalise("/a[b/@id = 7][c = 'x']//d[text() > 3]"))
    >>> for place, compare in found:
    ...     print(place, compare.operator.value, compare.constant)
    /a/b/@id = 7.0
    /a/c/. = x
    /a//d/text() > 3.0

All of them are necessary: a message that has the path has, at each of these places, some value that
compares as asked. What predicates say together (of the same element, at a position) is not kept.

Source: 001, 4.4 (exclusiveness patterns).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple, TypeAlias

from pathcast.query.canonical import name_test_text
from pathcast.query.normal import (
    AnyIn,
    AnyName,
    AttributeCondition,
    Axis,
    Comparison,
    Condition,
    Name,
    NameTest,
    NestedCondition,
    NormalQuery,
    Step,
    TextCondition,
    ValueCondition,
)

BareStep: TypeAlias = tuple[Axis, NameTest]
"""A location step without predicates."""


class End(Enum):
    """The part of the elements at a path that is meant; the value is how it is written."""

    ELEMENT = ""
    ATTRIBUTE = "/@"
    TEXT = "/text()"
    VALUE = "/."


class Place(NamedTuple):
    """A path without predicates, and what of its nodes is meant.

    Attributes:
        steps: From the document node on.
        end: What of the elements there.
        attribute: Name test of the attribute, if that is the end.
    """

    steps: tuple[BareStep, ...]
    end: End
    attribute: NameTest | None = None

    def __str__(self) -> str:
        path = "".join(_step_text(axis, test) for axis, test in self.steps)
        name = "" if self.attribute is None else name_test_text(self.attribute)
        return path + self.end.value + name

    def to_query(self) -> tuple[str, dict[str, str]]:
        """An expression that selects the attributes, text nodes or elements, and its namespaces.

        Example:
            >>> from pathcast.query.normaliser import normalise
            >>> [(place, _)] = predicates_of(normalise("/n:a//@b[. = 1]", {"n": "urn:n"}))
            >>> print(place, *place.to_query())
            /Q{urn:n}a//./@b /n0:a//@b {'n0': 'urn:n'}
        """
        names = _Prefixes()
        *steps, (axis, test) = self.steps
        is_or_self = axis is Axis.DESCENDANT_OR_SELF
        if not is_or_self:
            steps.append((axis, test))
        path = "".join(each.value + names.text(test) for each, test in steps)
        separator = "//" if is_or_self else "/"
        match self.end:
            case End.ATTRIBUTE:
                path += f"{separator}@{names.text(self.attribute or AnyName())}"
            case End.TEXT:
                path += f"{separator}text()"
            case End.ELEMENT | End.VALUE:
                path += "/descendant-or-self::*" if is_or_self else ""
        return path, {prefix: uri for uri, prefix in names.prefixes.items()}


class _Prefixes:
    """Prefixes for the namespaces of an expression, as they turn up."""

    def __init__(self) -> None:
        self.prefixes: dict[str, str] = {}

    def text(self, test: NameTest) -> str:
        match test:
            case Name(uri, local) if uri:
                return f"{self._prefix(uri)}:{local}"
            case AnyIn(uri) if uri:
                return f"{self._prefix(uri)}:*"
            case _:
                return name_test_text(test)

    def _prefix(self, uri: str) -> str:
        return self.prefixes.setdefault(uri, f"n{len(self.prefixes)}")


def end_place(path: NormalQuery) -> Place:
    """Where the main path of a query ends."""
    return Place(tuple((step.axis, step.test) for step in path.steps), End.ELEMENT)


def predicates_of(path: NormalQuery) -> list[tuple[Place, Comparison]]:
    """The comparisons of a path and of its nested paths, each with its place.

    Args:
        path: The path in normal form.

    Returns:
        In the order of the path; equal ones once.

    Cost: linear in the path, times its length.
    """
    return list(dict.fromkeys(_walked((), path.steps)))


def _walked(
    above: tuple[BareStep, ...], steps: tuple[Step, ...]
) -> Iterator[tuple[Place, Comparison]]:
    for step in steps:
        above = (*above, (step.axis, step.test))
        for stage in step.stages:
            for condition in stage.conditions:
                if isinstance(condition, NestedCondition):
                    yield from _walked(above, condition.steps)
                elif condition.compare is not None:
                    yield _place(above, condition), condition.compare


def _place(steps: tuple[BareStep, ...], condition: Condition) -> Place:
    match condition:
        case AttributeCondition(test):
            return Place(steps, End.ATTRIBUTE, test)
        case TextCondition():
            return Place(steps, End.TEXT)
        case ValueCondition() | NestedCondition():
            return Place(steps, End.VALUE)


def _step_text(axis: Axis, test: NameTest) -> str:
    if axis is Axis.DESCENDANT_OR_SELF:
        return str(axis.value)
    return f"{axis.value}{name_test_text(test)}"
