"""What happens in a run, as data: steps at times, and how to find the few that matter.

A run is a seed and a list of steps. A list that makes a run fail is `shrunk` to one from which no
step can be taken without the failure going away (delta debugging: halves, quarters, ... single
steps).

Example:
    >>> steps = [Step(float(n), "say", (n,)) for n in range(20)]
    >>> fails = lambda some: {3, 11} <= {step.args[0] for step in some}
    >>> [str(step) for step in shrunk(steps, fails)]
    ['   3.000 say 3', '  11.000 say 11']
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Step", "shrunk"]


@dataclass(frozen=True, slots=True)
class Step:
    """Something that is done to a network.

    Attributes:
        at: When, seconds of the simulated world.
        action: What: a method of `Network` (`crash`, `restart`, `cut`, ...) or an action of
            whoever drives it.
        args: With what.
    """

    at: float
    action: str
    args: tuple[object, ...] = ()

    def __str__(self) -> str:
        return f"{self.at:8.3f} {self.action} {' '.join(map(str, self.args))}".rstrip()


def shrunk(
    steps: Sequence[Step],
    fails: Callable[[Sequence[Step]], bool],
    *,
    runs_max: int = 400,
) -> list[Step]:
    """A part of `steps` that still fails.

    Args:
        steps: Steps with which the run fails.
        fails: Runs it with some of the steps, and says whether it fails in the same way.
        runs_max: Ends the search.

    Returns:
        Steps in their order; none can be left out, if the search came to its end.
    """
    kept, size, runs = list(steps), max(1, len(steps) // 2), 0
    while kept:
        start, found = 0, False
        while start < len(kept) and runs < runs_max:
            fewer = kept[:start] + kept[start + size :]
            runs += 1
            if fails(fewer):
                kept, found = fewer, True
            else:
                start += size
        if runs >= runs_max or (size == 1 and not found):
            break
        size = max(1, size // 2)
    return kept
