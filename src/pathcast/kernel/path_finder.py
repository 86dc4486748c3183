"""Numbered paths in parts of messages, through the kernel's lazy DFA."""

from __future__ import annotations

from collections.abc import Sequence

from pathcast.boundary import native, native_errors


class KernelPathFinder:
    """Paths."""

    def __init__(self) -> None:
        self._native = native.PathFinder()

    def number(self, labels: Sequence[tuple[str | None, str | None] | None]) -> int:
        """The number of a path, new or known."""
        with native_errors():
            return self._native.number(list(labels))

    def find(
        self,
        names: Sequence[tuple[str, str]],
        name: Sequence[int],
        depth: Sequence[int],
        entries: Sequence[tuple[int, int]],
    ) -> tuple[list[tuple[int, int]], int]:
        """Where paths end, by place and path; and how many places something was active at."""
        with native_errors():
            return self._native.find(list(names), list(name), list(depth), list(entries))

    def __len__(self) -> int:
        return len(self._native)
