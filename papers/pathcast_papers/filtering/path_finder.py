"""Linear paths with numbers, found in a part of a message from given places on; set by set.

See `pathcast.engine.path_finder`, which says what is asked. The states that are active at each open
element are on a stack, //-child states apart, since they stay active below.

Source: Diao et al., TODS 2003, section 3.2.4 (the run-time stack).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pathcast_papers.evaluation.fragment import EPSILON, Symbol, matching_symbols

__all__ = ["ReferencePathFinder"]

_DOCUMENT: Final = -1


class _State:
    __slots__ = ("label", "path", "targets")

    def __init__(self, label: Symbol) -> None:
        self.label = label
        self.targets: dict[Symbol, _State] = {}
        self.path: int | None = None


class ReferencePathFinder:
    """Paths."""

    def __init__(self) -> None:
        self._start = _State(("", ""))
        self._ends: list[_State] = []

    def number(self, labels: Sequence[Symbol]) -> int:
        """The number of a path, new or known."""
        state = self._start
        for label in labels:
            state = state.targets.setdefault(label, _State(label))
        if state.path is None:
            state.path = len(self._ends)
            self._ends.append(state)
        return state.path

    def find(
        self,
        names: Sequence[tuple[str, str]],
        name: Sequence[int],
        depth: Sequence[int],
        entries: Sequence[tuple[int, int]],
    ) -> tuple[list[tuple[int, int]], int]:
        """Where paths end, by place and path; and how many places something was active at."""
        symbols = [matching_symbols(*each) for each in names]
        entered: dict[int, list[_State]] = {}
        for path, place in entries:
            entered.setdefault(place, []).append(self._ends[path])
        found: list[tuple[int, int]] = []
        steps = 0
        # Of each open element: states that it led to, and //-child states that loop.
        open_: list[tuple[set[_State], set[_State]]] = []
        for place in range(_DOCUMENT, len(name)):
            reached: set[_State] = set()
            looping: set[_State] = set()
            if place != _DOCUMENT:
                del open_[depth[place] :]
                above, loops = open_[-1]
                looping |= loops
                for symbol in symbols[name[place]]:
                    reached |= {s.targets[symbol] for s in above | loops if symbol in s.targets}
            for state in entered.get(place, ()):
                (looping if state.label is EPSILON else reached).add(state)
            looping |= {s.targets[EPSILON] for s in reached if EPSILON in s.targets}
            open_.append((reached, looping))
            steps += bool(reached or looping)
            ends = {s.path for s in reached | looping if s.path is not None}
            found.extend((path, place) for path in sorted(ends))
        return found, steps

    def __len__(self) -> int:
        return len(self._ends)
