"""The construct that a range probably begins in, guessed from the bytes before it.

Records are many and alike, so that most ranges begin below the same ancestors, and the lowest level
that markup comes down to within some records is the same everywhere: as a rule, that between
records. So a *window* before a range tells in what markup the range begins and how far below that
level it is.

Nobody relies on that. A range that was cut from a guess is thrown away, and cut again, unless the
range before it ends exactly there; and where guesses have turned out wrong, no more are made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pathcast.limits import KIB

if TYPE_CHECKING:
    from pathcast.kernel.records import BytePlace, Outcomes

WINDOW_BYTES_MAX: Final = 256 * KIB
_WINDOW_BYTES_MIN: Final = 64
_WINDOWS_A_RANGE: Final = 32

_TEXT: Final = 0
"""The state that a window is taken to begin in; what is read wrongly for it is soon over."""

_RIGHT_FOR_A_WRONG: Final = 4


class Guess(NamedTuple):
    """A place that nobody has confirmed.

    Attributes:
        place: The place.
        low: The level that the window before it is taken to come down to.
    """

    place: BytePlace
    low: int


class Guesses:
    """Guesses at the places of one file, and what became of them.

    Args:
        ancestors: Elements above a record.
        wrong_max: So many may be wrong, and one more for every four that are right.
    """

    def __init__(self, ancestors: int, wrong_max: int) -> None:
        self._ancestors = ancestors
        self._wrong_left = float(wrong_max)
        self._low = ancestors

    @property
    def are_worth_it(self) -> bool:
        """Whether more are to be made."""
        return self._wrong_left > 0

    def guess(self, known: BytePlace, outcomes: Outcomes) -> Guess | None:
        """The place behind a window; None if nothing can be said.

        Args:
            known: A place before it.
            outcomes: What the window does.

        Example:
            >>> from pathcast.kernel.records import BytePlace
            >>> window = [(0, 2, 1, 1, [90])]  # it closes two elements, and leaves one open
            >>> Guesses(1, 4).guess(BytePlace(depth=1, tags=(0,)), window)
            Guess(place=BytePlace(state=0, depth=2, is_closed=False, tags=(0,)), low=1)
        """
        outcome = outcomes[_TEXT]
        if outcome is None:
            return None
        state, closed, beside, left_open, tags = outcome
        if not closed and beside < 2:
            return None
        low = min(self._low, known.depth)
        above = (*known.tags[:low], *tags)[: self._ancestors]
        return Guess(known._replace(state=state, depth=low + left_open, tags=above), low)

    def learn(self, guess: Guess, place: BytePlace) -> None:
        """Record the construct behind a window of this file, to improve later guesses."""
        low = guess.low + place.depth - guess.place.depth
        self._low = min(max(low, 0), self._ancestors)

    def judge(self, guess: Guess, place: BytePlace) -> None:
        """Judge the guess that a range was cut from."""
        self._wrong_left += 1 / _RIGHT_FOR_A_WRONG if guess.place == place else -1
        self.learn(guess, place)


def window_bytes(range_bytes: int) -> int:
    """Bytes of the window before ranges of about this size."""
    return min(max(range_bytes // _WINDOWS_A_RANGE, _WINDOW_BYTES_MIN), WINDOW_BYTES_MAX)
