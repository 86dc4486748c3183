"""Settings of the broker protocol, which an operator chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Trees = Literal["spanning", "broadcast"]


@dataclass(frozen=True, slots=True)
class ProtocolSettings:
    """Settings of one broker's protocol.

    Attributes:
        trees: "spanning": one tree for all, a table per neighbour. "broadcast": a tree per root, a
            table per root and child, as in 001.
        subscriptions_max: Subscriptions that a host takes; a link carries a million entries, and a
            subscription has one or a few.
        log_messages_max: Messages a root holds for members that have not had them. With more it
            refuses publishers, as long as all these members come forward.
        log_bytes_max: Bytes of these messages.
        lag_seconds: With a full log, a member that has had nothing new for so long is not waited
            for: the oldest messages that it lacks are given up, and it is told so.
        retention_seconds: No message is held longer for members that have not had it.
        held_messages_max: Messages a broker holds for a neighbour that is slow.
        held_bytes_max: Bytes of these messages.
        message_bytes_max: Bytes of a message that a root takes; `MESSAGE_BYTES_MAX` at most.
        part_bytes: Bytes of a part; longer messages travel in parts.
        cut_through: Whether a message that comes in parts is sent on before all of it is here.
    """

    trees: Trees = "spanning"
    subscriptions_max: int = 1_000_000
    log_messages_max: int = 1_000_000
    log_bytes_max: int = 1 << 30
    lag_seconds: float = 30.0
    retention_seconds: float = 7 * 86_400.0
    held_messages_max: int = 4096
    held_bytes_max: int = 1 << 28
    message_bytes_max: int = 8 << 20
    part_bytes: int = 64 << 10
    cut_through: bool = True


DEFAULT = ProtocolSettings()
