"""The error of a benchmark whose subjects answer differently.

Example:
    >>> raise WrongCountError("small", 4, 3, "the plain NFA")
    Traceback (most recent call last):
    pathcast_lab.bench.wrong_count.WrongCountError: small: 4 matches, 3 by the plain NFA; no time \
is reported
"""

from __future__ import annotations


class WrongCountError(RuntimeError):
    """A benchmark found matches that differ from those of another engine; its times are void.

    Args:
        case: The case that was measured.
        found: Its matches.
        expected: The matches by the other.
        oracle: The other.
    """

    def __init__(self, case: str, found: int | str, expected: int | str, oracle: str) -> None:
        super().__init__(case, found, expected, oracle)

    def __str__(self) -> str:
        case, found, expected, oracle = self.args
        return f"{case}: {found} matches, {expected} by {oracle}; no time is reported"
