"""Safeguards of the automaton's protocol; an ablation test switches one off."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ALL_SAFEGUARDS", "RingSafeguards"]


@dataclass(frozen=True, slots=True)
class RingSafeguards:
    """Each can be switched off.

    Attributes:
        waits_for_readers: A subscription is acknowledged when every peer that has read a piece
            before it was stored has read it anew, not when it is stored.
        remembers_removals: A registration that was removed does not come back with a message that
            came twice.
        passes_on: What comes to a piece that has given it away is passed on to where it went.
        waits_for_pieces: A piece that was cut off is waited for, not taken for empty, until it is
            stored at its peer.
        keeps_doubt: What was lost is not taken for empty, until it has been restored.
        asks_publisher: A subscriber that has not asked for long takes a match only of a publication
            that is not over.
        tells_once: A subscriber takes a match once.
        counts_credits: A publisher says that a publication is proved when all credits are back,
            not when it is begun.
    """

    waits_for_readers: bool = True
    remembers_removals: bool = True
    passes_on: bool = True
    waits_for_pieces: bool = True
    keeps_doubt: bool = True
    asks_publisher: bool = True
    tells_once: bool = True
    counts_credits: bool = True


ALL_SAFEGUARDS = RingSafeguards()
