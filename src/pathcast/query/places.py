"""Places of a message that queries ask about: where paths lead, and what is compared there.

A *place* is a path without predicates and what of its nodes is meant: the elements themselves, an
attribute, text, or the string-value. Two comparisons are of the same place exactly if they have the
same structure and compare the same thing, as the exclusiveness patterns of the paper have it.

Example:
    >>> from pathcast.query.normal import Operator
    >>> place = Place(((PathAxis.CHILD, Name("", "a")), (PathAxis.DESCENDANT, AnyName())), End.TEXT)
    >>> print(place, path_to(place, Comparison(Operator.GT, 3.0)))
    /a//*/text() /a//*[text()>3]

Source: 001, 4.4 (exclusiveness patterns).
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from pathcast.boundary import native
from pathcast.query.canonical import name_test_text
from pathcast.query.normal import (
    AnyIn,
    AnyName,
    AnyNamespace,
    Comparison,
    Name,
    NameTest,
    PathAxis,
)

BareStep: TypeAlias = tuple[PathAxis, NameTest]
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

    def to_native(self) -> NativePlace:
        """Return it as the kernel takes it and `place_of` reads it: numbers and texts."""
        steps = [(_AXES.index(axis), *_native(test)) for axis, test in self.steps]
        return steps, _ENDS.index(self.end), _native(self.attribute or AnyName())

    def to_query(self) -> tuple[str, dict[str, str]]:
        """An expression that selects the attributes, text nodes or elements, and its namespaces.

        Example:
            >>> below = PathAxis.DESCENDANT_OR_SELF
            >>> steps = (PathAxis.CHILD, Name("urn:n", "a")), (below, AnyName())
            >>> place = Place(steps, End.ATTRIBUTE, Name("", "b"))
            >>> print(place, *place.to_query())
            /Q{urn:n}a//./@b /n0:a//@b {'n0': 'urn:n'}
        """
        names = _Prefixes()
        *steps, (axis, test) = self.steps
        is_or_self = axis is PathAxis.DESCENDANT_OR_SELF
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


def _step_text(axis: PathAxis, test: NameTest) -> str:
    if axis is PathAxis.DESCENDANT_OR_SELF:
        return str(axis.value)
    return f"{axis.value}{name_test_text(test)}"


NativeTest: TypeAlias = tuple[str | None, str | None]
"""Namespace URI and local name; None for any."""

NativePlace: TypeAlias = tuple[list[tuple[int, str | None, str | None]], int, NativeTest]
"""Steps (number of the axis, name test), number of the end, and the test of an attribute."""

_AXES: Final = tuple(PathAxis)
_ENDS: Final = tuple(End)


def place_of(place: NativePlace) -> Place:
    """The place that the kernel tells of."""
    steps, end, attribute = place
    named = tuple((_AXES[axis], _test(*test)) for axis, *test in steps)
    is_attribute = _ENDS[end] is End.ATTRIBUTE
    return Place(named, _ENDS[end], _test(*attribute) if is_attribute else None)


def steps_of(path: native.NormalPath) -> tuple[BareStep, ...]:
    """The steps of the main path without their predicates."""
    return tuple((_AXES[axis], _test(*test)) for axis, *test in path.steps())


def path_to(place: Place, compare: Comparison | None = None) -> native.NormalPath:
    """The path to a place, with a comparison there if there is one."""
    return native.NormalPath.at(place.to_native(), None if compare is None else compare.to_native())


def _test(uri: str | None, local: str | None) -> NameTest:
    if uri is None:
        return AnyName() if local is None else AnyNamespace(local)
    return AnyIn(uri) if local is None else Name(uri, local)


def _native(test: NameTest) -> NativeTest:
    match test:
        case AnyName():
            return None, None
        case AnyNamespace(local):
            return None, local
        case AnyIn(uri):
            return uri, None
        case Name(uri, local):
            return uri, local
