"""Lives of a root: which process numbered which positions of a stream.

Each time that a root begins again, a new *life* goes on where its disk ends. A stream says for each
life after which position it began, so two ends can tell whether a position means the same message
to both. It does not if the root began again with a disk older than what others have seen, or if two
processes of one name number messages: then the histories part after some position.

Example:
    >>> seen = ((7, 0), (8, 80))  # life 7 from position 1 on, life 8 from 81 on
    >>> restored = ((7, 0), (9, 60))
    >>> life_at(seen, 80), life_at(seen, 81)
    (7, 8)
    >>> do_agree(seen, restored, 60), do_agree(seen, restored, 61)
    (True, False)
    >>> common_end(seen, restored, 100)
    60

Source: docs/adr/0015; leader epochs of replicated logs are the same idea.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

LIVES_MAX: Final = 256
"""Lives that a root remembers. Only lives that numbered messages of the log count."""

_Number = Annotated[int, Meta(ge=0, lt=2**62)]
Lives: TypeAlias = Annotated[tuple[tuple[_Number, _Number], ...], Meta(max_length=LIVES_MAX)]
"""Life, and the position after which it began; positions grow."""


def life_at(lives: Lives, position: int) -> int:
    """The life that numbered a position; 0 if that is not known any more."""
    return next((life for life, start in reversed(lives) if start < position), 0)


def do_agree(mine: Lives, theirs: Lives, position: int) -> bool:
    """Whether all positions up to this one mean the same messages in two histories.

    Args:
        mine: The history that the position is of.
        theirs: The history of the root. Lives before its first one are trimmed: the log begins
            after them.
        position: In `mine`.
    """
    return has_numbered(theirs, life_at(mine, position), position)


def has_numbered(lives: Lives, life: int, position: int) -> bool:
    """Whether a life numbered a position; of positions before a history, that is taken for so."""
    begin = lives[0][1] if lives else 0
    return position <= begin or life_at(lives, position) == life


def common_end(mine: Lives, theirs: Lives, position: int) -> int:
    """The last position, up to this one, that means the same in two histories; see `do_agree`."""
    if do_agree(mine, theirs, position):
        return position
    shared = set(mine) & set(theirs)
    ends = [min(_end(mine, one), _end(theirs, one), position) for one in shared]
    begin = theirs[0][1] if theirs else 0
    return max(ends, default=min(begin, position))


def had_of_lives(mine: Lives, position: int, common: int) -> dict[int, int]:
    """The positions of a history that another one has not, up to the last one that was had.

    Args:
        mine: The history that is left.
        position: The last position of it that was had.
        common: The last one that the other history has as well.

    Returns:
        Life -> the last position that it numbered, of each life with positions after `common`. A
        life numbers a position once, so this names messages in any history that has the life.
    """
    ends = ((one[0], min(_end(mine, one), position)) for one in mine if one[1] < position)
    return {life: end for life, end in ends if life and end > common}


def known_end(lives: Lives, had: Mapping[int, int], position: int) -> int:
    """The last position up to which a history has only what was had.

    Args:
        lives: The history.
        had: As of `had_of_lives`, of histories that were left.
        position: Up to here all was had.
    """
    for one in lives:
        if _end(lives, one) > position >= one[1]:
            position = max(position, min(_end(lives, one), had.get(one[0], 0)))
    return position


def with_former(mine: Lives, theirs: Lives, position: int) -> Lives:
    """The history of a root with the lives before it that are known here, up to a position.

    A root forgets lives that numbered nothing of its log. It may remember them again, with an older
    disk: then `common_end` finds the positions that they numbered.
    """
    begin = min(theirs[0][1] if theirs else 0, position)
    return (*(one for one in mine if one[1] < begin), *theirs)[-LIVES_MAX:]


def begun(lives: Lives, life: int, position: int, log_start: int) -> Lives:
    """The history with a life that begins after a position.

    A life that numbered nothing leaves it, and so do lives that numbered nothing of the log. Where
    there are more than `LIVES_MAX`, the oldest ones become unknown: whoever has had positions of
    these does not agree any more.
    """
    kept = [one for one in lives if one[1] < position]
    first = max((at for at, one in enumerate(kept) if one[1] < log_start), default=0)
    made = [*kept[first:], (life, position)]
    if len(made) > LIVES_MAX:
        made = [(0, made[0][1]), *made[1 - LIVES_MAX :]]
    return tuple(made)


def _end(lives: Sequence[tuple[int, int]], one: tuple[int, int]) -> int:
    """The last position of a life; of the latest, beyond all."""
    at = lives.index(one) + 1
    return lives[at][1] if at < len(lives) else 2**62
