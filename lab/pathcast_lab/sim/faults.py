"""What a simulated network does to messages and clocks, as numbers."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["NO_FAULTS", "Faults"]


@dataclass(frozen=True, slots=True)
class Faults:
    """How unkind the network is.

    Attributes:
        loss: Share of messages that never arrive.
        duplicate: Share that arrive twice.
        reorder: Share that may be overtaken, by up to `reorder_seconds`; all others arrive in the
            order in which they were sent between two nodes.
        reorder_seconds: How late a message can be that is overtaken.
        delay_seconds: Least and most time on the way.
        slow: Share of links, drawn once for each, on which everything takes `slow_factor` as long.
        slow_factor: See `slow`.
        skew: Clocks run fast or slow by up to this share, and begin anywhere in an hour.
        unnoticed: Share of lost connections that neither end is told of.
        breaks: Share of messages at whose sending the connection breaks. Another connection is
            made at once.
        remains: Share of directions of a broken connection that still bring a part of what was
            under way. The connection may be cut anywhere, and each direction by itself.
        remains_seconds: How late such a part may come: after what the next connection brings.
        half_open: Share of breaks that nobody notices at first: one direction carries nothing any
            more, the other one works.
        half_open_seconds: For how long at most, until the connection is found to be lost.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    reorder_seconds: float = 0.5
    delay_seconds: tuple[float, float] = (0.001, 0.02)
    slow: float = 0.0
    slow_factor: float = 20.0
    skew: float = 0.0
    unnoticed: float = 0.0
    breaks: float = 0.0
    remains: float = 0.0
    remains_seconds: float = 1.0
    half_open: float = 0.0
    half_open_seconds: float = 12.0


NO_FAULTS = Faults()
