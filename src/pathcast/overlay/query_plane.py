"""The query plane of one tree: tables, what is told of them, and when it is known everywhere.

Over each link of the tree a broker tells what it and all behind it want: the whole table when the
link joins the tree or has a new session, then changes, numbered. A neighbour answers that a number
is *settled* when what followed from it is in the tables of all brokers behind it, which it knows
from what its own neighbours say is settled; so a change is known to be in force without a table of
who is where. Covering needs no word of its own: what a change does not add to waits for what was
told last, whatever that was.

A link counts when both ends have it in their tree: then one end has told the other a whole table.
What a neighbour tells before this broker sees the link in its tree is kept for then.

Whether a link that is gone, or one that is new, has been waited for does not matter: what a root
publishes meanwhile comes again by position (`pathcast.overlay.streams`), judged by the new tables.

Source: 001, section 4.2.1; tables per neighbour, and per root, as docs/adr/0015 says.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pathcast.errors import PathcastError, PeerError
from pathcast.overlay.content import LOCAL, Delta, InterestTables
from pathcast.overlay.messages import Detach, Interest, Payload, Settled, StreamMessage

ENTRIES_MAX = 1_000_000
CHUNK_ENTRIES = 4096
"""Entries of a message; what is more goes into several, additions first."""
HISTORY_MAX = 4096
"""Changes of one origin that others were told of and are remembered for messages under way."""


@dataclass(slots=True)
class _Unsettled:
    """A change that waits until others have it."""

    origin: str
    number: int
    needs: dict[str, int] | None
    """Neighbour -> number that it must settle; None: the link to `origin` is not in the tree."""


class QueryPlane:
    """Tables of one broker for one tree.

    Args:
        tree: "" for the spanning tree, else the root's name.
        interests: Empty tables.
        send: Gives a payload to a neighbour, in order and once within a session.
        on_settled: Called with a ticket of `want` when all that can be reached know it.
        on_forgotten: Called when of messages under way it is not known any more what was considered
            where they were cut: they have to be asked for again.
    """

    def __init__(
        self,
        tree: str,
        interests: InterestTables,
        send: Callable[[str, Payload], None],
        on_settled: Callable[[int], None],
        on_forgotten: Callable[[], None],
    ) -> None:
        self.interests = interests
        self._tree = tree
        self._send = send
        self._on_settled = on_settled
        self._on_forgotten = on_forgotten
        self._attached: dict[str, bool] = {}
        self._heard: dict[str, set[str]] = {}
        self._heard_number: dict[str, int] = {}
        self._number: dict[str, int] = {}
        self._settled: dict[str, int] = {}
        self._unsettled: list[_Unsettled] = []
        self._history: dict[str, list[tuple[int, dict[str, int]]]] = {}

    def is_active(self, neighbour: str) -> bool:
        """Whether both ends have the link in their tree, and the table of the other is here."""
        return neighbour in self._attached and neighbour in self._heard

    def considered(self, origin: str, upstream: str | None, number: int | None) -> int:
        """Up to which of its changes an origin was considered where a message was cut.

        Args:
            origin: A neighbour, or `LOCAL`, whose changes are the tickets of `want`.
            upstream: The neighbour that the message came from.
            number: What this broker had told upstream that was considered
            (`StreamMessage.considers`);
                None if the message came whole: nobody but this broker cuts it.

        Cost: logarithmic in the changes that are remembered.
        """
        if number is None:
            return self._heard_number.get(origin, 0)
        if upstream is None:
            return 0
        history = self._history.get(origin, [])
        passed = bisect_right(history, number, key=lambda one: one[1].get(upstream, 0))
        return history[passed - 1][0] if passed else 0

    def want(self, added: Iterable[str], removed: Iterable[str], ticket: int) -> None:
        """The broker's own subscribers want this; `on_settled(ticket)` when it is known."""
        self._tell(self.interests.update(LOCAL, added, removed))
        self._wait(LOCAL, ticket)
        self.settle()

    def attach(self, links: Mapping[str, bool]) -> list[str]:
        """These links that have a session are the tree's, and whether the other end is told.

        Args:
            links: Neighbour -> whether it is told a table (in a broadcast tree: the parent alone).

        Returns:
            Neighbours that are active now and were not.
        """
        active = {name for name in self._attached if self.is_active(name)}
        lost = [name for name in self._attached if name not in links]
        new = [name for name in links if name not in self._attached]
        turned = [name for name, told in links.items() if self._attached.get(name, told) != told]
        if not (lost or new or turned):
            return []
        self._attached = dict(links)
        for name in [*lost, *turned]:
            self._send(name, Detach(self._tree))
            self._no_longer_wait_for(name)
        deltas = self.interests.set_neighbours(sorted(links))
        for name in [*new, *turned]:
            self._tell_whole(name)
        self._tell({name: one for name, one in deltas.items() if name not in (*new, *turned)})
        heard = [name for name in new if name in self._heard]
        for name in heard:
            self._tell(self.interests.update(name, sorted(self._heard[name]), ()))
        for name in heard:
            self._remember(name, self._heard_number[name], self._needs(name))
        for waiting in self._unsettled:
            if waiting.origin in new and waiting.needs is None:
                waiting.needs = self._needs(waiting.origin)
        self.settle()
        return sorted({name for name in links if self.is_active(name)} - active)

    def session_ended(self, neighbour: str) -> None:
        """Forget the table exchange with a neighbour, whose link leaves the tree."""
        self._heard.pop(neighbour, None)
        self._heard_number.pop(neighbour, None)
        self._number.pop(neighbour, None)
        self._no_longer_wait_for(neighbour)
        self._unsettled = [one for one in self._unsettled if one.origin != neighbour]
        if self._attached.pop(neighbour, None) is not None:
            self._tell(self.interests.set_neighbours(sorted(self._attached)))
        self.settle()

    def hear_interest(self, peer: str, told: Interest) -> bool:
        """A neighbour tells. Returns whether it is active now and was not before.

        Raises:
            PeerError: Out of order (`overlay.interest`), too much (`overlay.entries`) or no entry
                (`overlay.entry`). Nothing is changed then.
        """
        was_active = self.is_active(peer)
        known = self._heard_number.get(peer, 0)
        follows = told.number == known + 1 and peer in self._heard
        if not (follows or (told.whole and told.number > known)):
            raise PeerError("overlay.interest", peer=peer, given=told.number, known=known)
        heard = self._heard.get(peer, set())
        added = set(told.added)
        removed = heard - added if told.whole else heard.intersection(told.removed) - added
        added -= heard
        count = len(heard) + len(added) - len(removed)
        if count > ENTRIES_MAX:
            raise PeerError("overlay.entries", peer=peer, given=count, maximum=ENTRIES_MAX)
        try:
            self.interests.check(added)
        except PathcastError as error:
            raise PeerError("overlay.entry", peer=peer, reason=error.message) from None
        heard -= removed
        heard |= added
        self._heard[peer], self._heard_number[peer] = heard, told.number
        if peer in self._attached:
            self._tell(self.interests.update(peer, sorted(added), sorted(removed)))
        self._wait(peer, told.number)
        self.settle()
        return self.is_active(peer) and not was_active

    def hear_detach(self, peer: str) -> None:
        """The neighbour's tree has the link no more."""
        gone = self._heard.pop(peer, set())
        self._history.pop(peer, None)
        self._unsettled = [one for one in self._unsettled if one.origin != peer]
        if peer in self._attached:
            self._tell(self.interests.update(peer, (), sorted(gone)))
        self.settle()

    def hear_settled(self, peer: str, said: Settled) -> None:
        """Everything up to a number is in force behind the neighbour.

        Raises:
            PeerError: The number was never told (`overlay.settled`).
        """
        told = self._number.get(peer, 0)
        if said.number > told:
            raise PeerError("overlay.settled", peer=peer, given=said.number, told=told)
        if peer in self._attached:
            self._settled[peer] = max(said.number, self._settled.get(peer, 0))
            self.settle()

    def check_considered(self, peer: str, messages: Iterable[StreamMessage]) -> None:
        """Nobody can consider what was not told, or do steps without saying for whom.

        Raises:
            PeerError: A message is to have considered more (`overlay.considered`), or steps were
                done to it and nothing considered (`overlay.steps`).
        """
        messages = list(messages)
        for one in messages:
            if one.steps and one.considers is None:
                raise PeerError("overlay.steps", peer=peer, given=one.steps)
        given = max((one.considers or 0 for one in messages), default=0)
        told = self._number.get(peer, 0)
        if given > told:
            raise PeerError("overlay.considered", peer=peer, given=given, told=told)

    def settle(self) -> None:
        """Say of changes that wait what can be said now, in order."""
        waiting, settled = [], {}
        for one in self._unsettled:
            if one.needs is not None and self._is_settled(one.needs):
                settled[one.origin, one.number if one.origin == LOCAL else 0] = one
            else:
                waiting.append(one)
        self._unsettled = waiting
        for (origin, _), one in settled.items():
            if origin == LOCAL:
                self._on_settled(one.number)
            else:
                self._send(origin, Settled(self._tree, one.number))

    def _is_settled(self, needs: Mapping[str, int]) -> bool:
        return all(self._settled.get(name, 0) >= number for name, number in needs.items())

    def _no_longer_wait_for(self, name: str) -> None:
        """Its link left the tree: should it come back, it is told everything (see the module)."""
        self._settled.pop(name, None)
        self._history.pop(name, None)
        for history in self._history.values():
            for _, needs in history:
                needs.pop(name, None)
        for one in self._unsettled:
            if one.origin == name:
                one.needs = None
            elif one.needs is not None:
                one.needs.pop(name, None)

    def _wait(self, origin: str, number: int) -> None:
        needs = self._needs(origin) if origin == LOCAL or origin in self._attached else None
        self._unsettled.append(_Unsettled(origin, number, needs))
        if needs is not None and number:
            self._remember(origin, number, dict(needs))

    def _remember(self, origin: str, number: int, needs: dict[str, int]) -> None:
        """From the number `needs` says on, what a neighbour sends considers this change.

        If nobody was told anything since the change before, what considers that considers this.
        """
        history = self._history.setdefault(origin, [])
        if history and history[-1][1] == needs:
            history.pop()
        history.append((number, needs))
        if len(history) > HISTORY_MAX:
            # Whatever is asked for from here on considers the last change, and with it all others.
            del history[:-1]
            self._on_forgotten()

    def _needs(self, origin: str) -> dict[str, int]:
        return {
            name: self._number[name]
            for name, told in self._attached.items()
            if told and name != origin
        }

    def _tell(self, changes: Mapping[str, Delta]) -> None:
        for name in sorted(changes):
            change = changes[name]
            if self._attached.get(name) and (change.added or change.removed):
                self._tell_one(name, False, change.added, change.removed)

    def _tell_whole(self, name: str) -> None:
        entries = tuple(sorted(self.interests.told(name))) if self._attached[name] else ()
        self._tell_one(name, True, entries, ())

    def _tell_one(
        self, name: str, whole: bool, added: tuple[str, ...], removed: tuple[str, ...]
    ) -> None:
        while len(added) + len(removed) > CHUNK_ENTRIES and added:
            some, added = added[:CHUNK_ENTRIES], added[CHUNK_ENTRIES:]
            self._send(name, Interest(self._tree, self._next(name), whole, some, ()))
            whole = False
        self._send(name, Interest(self._tree, self._next(name), whole, added, removed))

    def _next(self, name: str) -> int:
        self._number[name] = self._number.get(name, 0) + 1
        return self._number[name]
