"""Name tests of the syntax tree beside the names of a schema.

Example:
    >>> from pathcast.query.syntax import NameTest
    >>> matcher(NameTest(None, "b", "*"))(("urn:n", "b"))
    True
"""

from __future__ import annotations

from collections.abc import Callable

from pathcast.query.syntax import Axis, KindTest, NameTest, NodeKind, NodeTest, Step
from pathcast.schema import ExpandedName, LabelPath


def matcher(test: NameTest) -> Callable[[ExpandedName], bool]:
    """Make a test of expanded names from a resolved name test."""
    uri, local = test.uri, test.local

    def matches(name: ExpandedName) -> bool:
        return (uri is None or name[0] == uri) and (local is None or name[1] == local)

    return matches


def exact_name(test: NodeTest) -> ExpandedName | None:
    """The one name that a node test asks for; None for a wildcard or another kind of node."""
    if isinstance(test, NameTest) and test.uri is not None and test.local is not None:
        return (test.uri, test.local)
    return None


def is_node_test(step: Step) -> bool:
    """Whether the step takes nodes of any kind."""
    return step.test == KindTest(NodeKind.NODE)


def child_step(name: ExpandedName) -> Step:
    """`child::name`."""
    return Step(Axis.CHILD, name_test(name), (), 0)


def name_test(name: ExpandedName) -> NameTest:
    """The test for just this name, as `resolve` leaves it."""
    return NameTest(*name)


def is_prefix(prefix: LabelPath, path: LabelPath) -> bool:
    """Whether a label path begins with another one, or is it.

    Example:
        >>> is_prefix((("", "a"),), (("", "a"), ("", "b")))
        True
    """
    return path[: len(prefix)] == prefix


def path_text(path: LabelPath) -> str:
    """A label path as it is read: `/a/b`, names of a namespace as `Q{uri}name`.

    Example:
        >>> path_text((("", "a"), ("urn:n", "b")))
        '/a/Q{urn:n}b'
    """
    return "".join(f"/Q{{{uri}}}{local}" if uri else f"/{local}" for uri, local in path) or "/"
