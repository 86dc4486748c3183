"""Navigation paths: location steps with the axes `/` and `//` and name tests, nothing else.

Example:
    >>> path = navigation_path("//section//figure/title")
    >>> len(path), path_text(path), descendant_steps(path)
    (3, '//section//figure/title', (1, 2))

Predicates are kept apart from the steps they stand on: see
`pathcast_papers.message_broker.pathsharing.broker_query`.

Source: Diao and Franklin, VLDB 2003, section 2.1.
Differs: name tests may be wildcards and namespaces, as everywhere in the project.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, TypeAlias

from pathcast_papers.language import AnyIn, AnyName, AnyNamespace, Axis, Name, NameTest

_STEP: Final = re.compile(r"(//?)([\w.-]+|\*)")
_PATH: Final = re.compile(rf"(?:{_STEP.pattern})+")


class PathStep(NamedTuple):
    """A location step.

    Attributes:
        axis: `Axis.CHILD` or `Axis.DESCENDANT`.
        test: The name test.
    """

    axis: Axis
    test: NameTest


NavigationPath: TypeAlias = tuple[PathStep, ...]
"""Location steps, read from the document node or, in a relative path, from the bound node."""

PathTuple: TypeAlias = tuple[int, ...]
"""A path match: the node id that each location step is bound to."""


def navigation_path(text: str) -> NavigationPath:
    """The path that a text of names in no namespace and `*` stands for, step by step.

    A text that begins without a slash is relative, and its first step is a child step. Nothing is
    brought into normal form: `//*/a` and `/*//a` select the same, but have other path tuples.

    Raises:
        ValueError: The text is no such path.
    """
    text = text if text.startswith("/") else f"/{text}"
    if not _PATH.fullmatch(text):
        raise ValueError(f"{text!r} is no navigation path")
    return tuple(
        PathStep(Axis(axis), AnyName() if name == "*" else Name("", name))
        for axis, name in _STEP.findall(text)
    )


def descendant_steps(path: NavigationPath) -> tuple[int, ...]:
    """Numbers, from 1 on, of the location steps that contain a `//`."""
    return tuple(
        number for number, step in enumerate(path, start=1) if step.axis is Axis.DESCENDANT
    )


def name_of(test: NameTest) -> tuple[str, str] | None:
    """The one expanded name that passes a test; None for every kind of wildcard."""
    return (test.uri, test.local) if isinstance(test, Name) else None


def path_text(path: NavigationPath) -> str:
    """A path as text; of a path without steps, `.`."""
    return "".join(f"{step.axis.value}{_test_text(step.test)}" for step in path) or "."


def _test_text(test: NameTest) -> str:
    match test:
        case AnyName():
            return "*"
        case Name(uri, local):
            return f"Q{{{uri}}}{local}" if uri else local
        case AnyIn(uri):
            return f"Q{{{uri}}}*"
        case AnyNamespace(local):
            return f"*:{local}"
