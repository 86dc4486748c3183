"""Safeguards of the protocol; an ablation test switches one off and proves that it is needed."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ALL", "BrokerSafeguards"]


@dataclass(frozen=True, slots=True)
class BrokerSafeguards:
    """All are on; only tests of the simulator switch one off.

    Attributes:
        sessions: A link takes frames of its present session alone.
        resend: A frame that is not acknowledged is sent again.
        deduplicate: A frame that has come before is dropped.
        order: A frame that came too early waits for those before it.
        resync: A new session begins with the whole table.
        rewind: A follower's position goes up to the root, behind the interest of its side, and is
            served from there.
        generations: What a `Follow` of before has brought is dropped.
        retain: The root keeps a message until all members have had it, within its retention.
        lapse: Who follows from before the log is told which positions are not kept any more.
        had: ... and subscriptions of this life lapse only where the root gave positions up.
        settle: A subscription is acknowledged when all brokers that can be reached know it.
        known: ... and all members know its host.
        tickets: ... and the ticket that is settled is not one of a former life of its id.
        save_first: A message is on the root's disk before it is sent.
        cursor: A host drops what its position says it has had.
        drop: Parts of a message whose rest will not come are dropped, and others are told so.
        detach: What came over a link that left the tree is taken out of the tables.
        numbers: A root takes no message of a publisher twice that numbers them.
        consider: A subscription is not given a message that was cut before it was known.
        lives: A root whose followers have had what it does not know begins another stream.
        left: A host that comes back to a history that it had left knows what it has had of it.
        elder: Of two processes of one name, the one that began earlier takes nothing any more.
        steps: A host does the steps of a profile that were not done on the way, and no others.
    """

    sessions: bool = True
    resend: bool = True
    deduplicate: bool = True
    order: bool = True
    resync: bool = True
    rewind: bool = True
    generations: bool = True
    retain: bool = True
    lapse: bool = True
    had: bool = True
    settle: bool = True
    known: bool = True
    tickets: bool = True
    save_first: bool = True
    cursor: bool = True
    drop: bool = True
    detach: bool = True
    numbers: bool = True
    consider: bool = True
    lives: bool = True
    left: bool = True
    elder: bool = True
    steps: bool = True


ALL = BrokerSafeguards()
