"""Linear paths with numbers, found in a part of a message from given places on.

Whoever holds a piece of a larger automaton does not begin at the document: it is told which paths
end at which elements of a part of a message, and finds what goes on from there.

Example:
    >>> finder = PathFinder()
    >>> a, ab = finder.number([("", "a")]), finder.number([("", "a"), None, ("", "b")])
    >>> part = {"names": [("", "a"), ("", "b")], "name": [0, 0, 1], "depth": [1, 2, 2]}
    >>> finder.find(**part, entries=[(a, 1)]).ends
    [(0, 1)]
    >>> finder.find(**part, entries=[(a, 0)])
    FoundPaths(ends=[(0, 0), (1, 2)], steps=3)

It does not check what the part says of names that are not there: parts are made by
`pathcast.dht.events`, which does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from pathcast.boundary import native, native_errors
from pathcast.errors import NotPicklableError


class FoundPaths(NamedTuple):
    """The result of a run.

    Attributes:
        ends: Path and place at which it ends, by place and path.
        steps: Places at which something was active, the document counted.
    """

    ends: list[tuple[int, int]]
    steps: int


def native_finder() -> native.PathFinder:
    """A set of paths in the kernel, which runs its lazy DFA."""
    return native.PathFinder()


class PathFinder:
    """A set of paths that grows.

    Raises:
        KernelMissingError: The kernel is not installed.
    """

    def __init__(self) -> None:
        self._native = native_finder()

    def number(self, labels: Sequence[tuple[str | None, str | None] | None]) -> int:
        """The number of a path, new or known.

        Args:
            labels: Of its transitions: namespace and local name, each None where any will do; None
                for the epsilon-transition of `//`. There are never two of these in sequence.
        """
        with native_errors():
            return self._native.number(list(labels))

    def find(
        self,
        names: Sequence[tuple[str, str]],
        name: Sequence[int],
        depth: Sequence[int],
        entries: Sequence[tuple[int, int]],
    ) -> FoundPaths:
        """Where paths end, given where some end: these, and what goes on from there.

        Args:
            names: Namespace and local name.
            name: Of each element, in document order, as a place in `names`.
            depth: Of each; 1 for the root element. What an element is in is there as well.
            entries: Path and the place of an element; -1 for the document.

        Cost: One look-up an element, and what the lazy DFA has not seen before.
        """
        with native_errors():
            found = self._native.find(list(names), list(name), list(depth), list(entries))
        return FoundPaths(*found)

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "pickle.refused",
            kind="PathFinder",
            instead="send the labels of its paths, and number them in a PathFinder there",
        )

    def __len__(self) -> int:
        return len(self._native)
