"""A walk round the ring that visits every member, also those that some neighbours do not know yet.

A list of successors may be older than a member that has joined among them. Only that member's
successor and predecessor are sure to know it, so a walk asks each member whom it visits for its
predecessor as well as its successors, and ends when all of those were visited.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from pathcast.dht.asking import Questions
from pathcast.dht.identifiers import CIRCLE
from pathcast.dht.messages import Member
from pathcast.dht.ring import Ring

GoOn: TypeAlias = Callable[[Iterable[Member | None]], None]
"""Goes on with the next member; gets the neighbours of the one that was visited, if it said."""


def walk(
    ring: Ring,
    asking: Questions,
    visit: Callable[[Member, GoOn], None],
    then: Callable[[], None],
) -> None:
    """Visit all other members that are not dead, one after the other, each once.

    Args:
        ring: Pointers of the member that walks.
        asking: Says who is dead.
        visit: Does something at a member, then calls `GoOn`; the walk ends if it does not.
        then: Called when nobody is left.

    Cost: as many visits as there are members.
    """
    known: set[Member] = set()
    visited = {ring.me}

    def go_on(near: Iterable[Member | None]) -> None:
        known.update(member for member in near if member is not None)
        left = [member for member in known - visited if not asking.is_dead(member)]
        if not left:
            then()
            return
        member = min(left, key=distance)
        visited.add(member)
        visit(member, go_on)

    def distance(member: Member) -> int:
        return (member.identifier - ring.me.identifier) % CIRCLE

    go_on((ring.predecessor, *ring.successors))
