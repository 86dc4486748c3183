"""Copies that nobody needs any more are dropped, when the owner of their keys says so.

A member has copies of arcs that it does not hold: it held them before others came between, or was
given them to become a holder, which it did not. It asks the owners of these keys now and then which
custody was agreed to, and drops what it does not hold by that custody. Two rules keep this safe:

- A member that has agreed to hold an arc drops nothing of it before it hears of a custody without
  it that is no older, and that was agreed to. A proposal releases nobody: of two proposals that are
  not agreed to, each may name the other's holders as leaving.
- An owner lets a member hold an arc because it has given it all records. Members say how often they
  have dropped copies with each copy that they take, and do not agree to hold an arc that they did
  not hold if they have dropped any since (`Custody.given_at`).

Cost: in `seconds`, a look-up and a small question for each range of which it has such copies.
"""

from __future__ import annotations

from collections.abc import Callable

from pathcast.dht.asking import Questions
from pathcast.dht.custody import Custodian
from pathcast.dht.identifiers import identifier, is_in_range
from pathcast.dht.messages import Claimed, Holders, Reply
from pathcast.dht.records import RecordStore
from pathcast.dht.ring import Found, Ring


class Surplus:
    """The copies of one member that it does not hold.

    Args:
        ring: Its pointers.
        asking: Its questions.
        custody: Says what it holds.
        records: Its records.
        seconds: Between two rounds.
        now: The time.

    Attributes:
        count: Copies that it did not hold when it last looked.
    """

    def __init__(
        self,
        ring: Ring,
        asking: Questions,
        custody: Custodian,
        records: RecordStore,
        seconds: float,
        now: Callable[[], float],
    ) -> None:
        self._ring = ring
        self._asking = asking
        self._custody = custody
        self._records = records
        self._seconds = seconds
        self._now = now
        self._next = now() + seconds
        self._is_busy = False
        self.count = 0

    @property
    def keys(self) -> list[str]:
        """Keys of these copies, ascending."""
        held = sorted(self._records.held)
        return [key for key in held if not self._custody.may_need(identifier(key))]

    def round(self) -> None:
        """Ask owners, if the time has come."""
        if self._is_busy or not self._ring.is_member or self._now() < self._next:
            return
        self._is_busy = True
        self._ask_owners(self.keys)

    def _ask_owners(self, keys: list[str]) -> None:
        """Ask the owner of the first key, then of the next that is not its."""
        if not keys:
            self._is_busy = False
            self._next = self._now() + self._seconds
            self.count = len(self.keys)
            return

        def found(where: Found | None) -> None:
            if where is None:
                # The next round tries it again.
                self._ask_owners(keys[1:])
                return
            arc = where.before.identifier, where.owner.identifier
            others = [key for key in keys[1:] if not is_in_range(arc[0], identifier(key), arc[1])]

            def answered(reply: Reply | None) -> None:
                if isinstance(reply, Claimed):
                    for low, high in self._custody.released(reply.custodies):
                        self._records.drop(low, high)
                self._ask_owners(others)

            if where.owner == self._ring.me:
                self._ask_owners(others)
            else:
                self._asking.ask(where.owner, Holders(), answered)

        self._ring.find(identifier(keys[0]), found)
