"""Restoration of lost arcs: subscribers put their queries on the ring again.

An arc that nobody holds any more (`pathcast.dht.custody`) is restored by its owner, in three steps,
of which each goes once round the ring, from member to member:

1. It takes what anybody still has of the arc, old copies that were not needed any more, and puts
   the removal of each beside it, so that no old copy is ever taken for newer than what comes now.
   Then it holds the arc, in doubt: records are stored again, and nothing is said of them to
   publications.
2. Everybody is told (`Lost`), again and again: subscribers send their queries that have to do with
   the arc once more, and say when all are acknowledged. Peers that were expelled of late are told
   as well, since they may only be cut off: the arc is not whole before they have answered, or have
   been away for `absent_seconds`.
3. When all say so in one round, the arc is whole.

If the owner dies, the next one begins where the custody says it was. A subscriber that is not there
while an arc is restored begins all its queries anew when it comes back, as always.

Cost: messages, as many as there are members, a few times; and the queries.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pathcast.dht.asking import Questions
from pathcast.dht.custody import Custodian
from pathcast.dht.membership import Membership
from pathcast.dht.messages import Done, Member, Read, Reply, State, to_wire
from pathcast.dht.piece_messages import Lost
from pathcast.dht.records import RecordStore
from pathcast.dht.ring import Ring
from pathcast.dht.substrate import Asked
from pathcast.dht.walking import GoOn, walk

Visit = Callable[[Member, Callable[[bool], None]], None]
"""What is done at a member; then whether it is ready."""

_NUMBERS = 2**62
"""Of losses (`Lost.number`); another life begins elsewhere, so no two losses have one."""


class Restoring:
    """Restores the arcs of an owner's range that nobody holds.

    Args:
        ring: Its pointers.
        asking: Its questions.
        custody: Says which arcs.
        records: Its records.
        membership: Knows of peers that may come back.
        asked: What this peer is told itself; None: nobody is behind it.

    Attributes:
        lost: How many arcs were lost.
    """

    def __init__(
        self,
        ring: Ring,
        asking: Questions,
        custody: Custodian,
        records: RecordStore,
        membership: Membership,
        asked: Asked | None,
    ) -> None:
        self.lost = 0
        self._ring = ring
        self._asking = asking
        self._custody = custody
        self._records = records
        self._membership = membership
        self._asked = asked
        self._is_busy = False
        self._told: dict[tuple[int, int], int] = {}

    def round(self) -> None:
        """Go on with what is lost, if something is."""
        if self._is_busy or not self._ring.is_member:
            return
        if self._custody.doubtful:
            self._is_busy = True
            self._gather(*self._custody.doubtful[0])
        elif in_doubt := self._custody.in_doubt:
            self._is_busy = True
            self._tell(*in_doubt[0])

    def _gather(self, low: int, high: int) -> None:
        def gathered(_: bool) -> None:
            self._is_busy = False
            if self._custody.may_adopt(low, high):
                self.lost += 1
                self._records.clear(low, high)
                self._custody.adopt(low, high)

        self._walk(lambda m, then: self._records.fetch(m, low, high, then), gathered)

    def _tell(self, low: int, high: int) -> None:
        # Only its owners know the number of a custody, so the next owner may count up to the same.
        mine = (self._ring.me.identifier + self._custody.greatest) % _NUMBERS
        number = self._told.setdefault((low, high), mine)
        lost = Lost(to_wire(low), to_wire(high), number)

        def visit(member: Member, then: Callable[[bool], None]) -> None:
            self._asking.ask(member, lost, lambda reply: then(isinstance(reply, Done)))

        def told(are_ready: bool) -> None:
            self._is_busy = False
            if are_ready and (low, high) in self._custody.in_doubt:
                del self._told[low, high]
                self._custody.restored(low, high)

        def has_begun(reply: Reply) -> None:
            is_ready = isinstance(reply, Done)
            self._walk(
                visit, lambda are_ready: self._tell_missing(lost, are_ready and is_ready, told)
            )

        if self._asked is None:
            self._is_busy = False
        else:
            self._asked(self._ring.me.name, lost, has_begun)

    def _tell_missing(self, lost: Lost, are_ready: bool, then: Callable[[bool], None]) -> None:
        """Tell peers that were expelled of late: they may have subscriptions, and come back."""

        def known(names: set[str]) -> None:
            waiting = set(names)

            def answered(name: str, reply: Reply | None) -> None:
                nonlocal are_ready
                are_ready &= isinstance(reply, Done)
                waiting.discard(name)
                if not waiting:
                    then(are_ready)

            if not waiting:
                then(are_ready)
            for name in sorted(names):
                self._asking.ask(name, lost, partial(answered, name))

        self._membership.missing(known)

    def _walk(self, visit: Visit, then: Callable[[bool], None]) -> None:
        """Visit all other members; `then` gets whether all were ready."""
        are_ready = True

        def read(member: Member, go_on: GoOn) -> None:
            def has_read(reply: Reply | None) -> None:
                if not isinstance(reply, State):
                    go_on(())
                    return

                def visited(is_ready: bool) -> None:
                    nonlocal are_ready
                    are_ready &= is_ready
                    go_on((reply.predecessor, *reply.successors))

                visit(member, visited)

            self._asking.ask(member, Read(), has_read)

        walk(self._ring, self._asking, read, lambda: then(are_ready))
