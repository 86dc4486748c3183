"""A busy piece is run by other peers beside its owner.

A piece is cut when it is large (`piece_cutting`), but what is found in it is found all the same,
and one key with all its subscribers cannot be cut. So the owner of a piece counts its *work*: the
publications that enter it, and the states that they find. If that is more than one peer is to do,
other peers *share* the piece, so many that each has a part that one peer may have.

They are drawn from all peers, three for each that is wanted, and of those whoever does least is
taken: those that are found by keys have the largest parts of the circle, and so much already. Who
enters the piece is told of them with the answer, and from then on chooses among them and the owner
by the publication, so that a visit that comes by two ways is done once.

A peer that shares a piece runs a copy of it (`piece_leases`), which is as new as acknowledgements
need. So a peer that is chosen wrongly, late, or twice does no harm: it asks the owner for the
piece, and if it is not given it, the owner runs the publication. Nothing of this is in a record:
the next owner begins without.

Source: 000, section 6.4, where a state that a tenth of the documents visit has ten replicas.
Differs: how many there are is said by the work, not by the share of documents; where, by what peers
do; and only those are told who ask.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from typing import Final

from pathcast.dht.courier import Courier
from pathcast.dht.identifiers import identifier
from pathcast.dht.messages import Member, Reply, Shared, WorkRate
from pathcast.dht.piece_messages import AskWork
from pathcast.dht.recent import Recent
from pathcast.dht.substrate import Location, Substrate

_WINDOW_SECONDS: Final = 5.0
_QUIET_WINDOWS: Final = 12
SHARERS_MAX: Final = 64
"""Of a piece."""

CANDIDATES: Final = 3
"""Peers that are asked for each that is wanted."""

PUBLICATION: Final = 10.0
"""A publication that enters a piece is as much work as so many states that are found."""

_PIECES_MAX: Final = 1_000
_KNOWN_SECONDS: Final = 600.0
_KNOWN_MAX: Final = 4096
_FAILED_SECONDS: Final = 60.0
_FAILED_MAX: Final = 256


@dataclass(slots=True)
class _Rate:
    """Work a second, counted in windows; `latest` is that of the last one."""

    since: float
    work: float = 0.0
    latest: float = 0.0

    def add(self, work: float, now: float) -> bool:
        """Count some; whether a window is over."""
        self.work += work
        seconds = now - self.since
        if seconds < _WINDOW_SECONDS:
            return False
        self.latest, self.since, self.work = self.work / seconds, now, 0.0
        return True


@dataclass(slots=True)
class _Busy:
    """The work of a piece, and who shares it, with the time at which it last asked for a copy."""

    rate: _Rate
    sharers: dict[Member, float] = field(default_factory=dict)
    is_drawing: bool = False


class PieceSharing:
    """Says which peers share the pieces of an owner, and what this peer does itself.

    Args:
        substrate: For whom keys belong to.
        courier: Asks peers what they do.
        work_max: Work a second that one peer does for a piece.
        now: The time.
    """

    def __init__(
        self,
        substrate: Substrate,
        courier: Courier,
        work_max: float,
        now: Callable[[], float],
    ) -> None:
        self._substrate = substrate
        self._courier = courier
        self._work_max = work_max
        self._now = now
        self._all = _Rate(0.0)
        self._busy: dict[str, _Busy] = {}
        self._shared: dict[str, float] = {}
        self._draws = 0

    def ran(self, piece: str, publications: int, found: int) -> None:
        """So many publications were run through a piece, and found so many states in it."""
        work = publications * PUBLICATION + found
        self._all.add(work, self._now())
        if self._substrate.owns(piece):
            self._add(piece, work)
        else:
            if len(self._shared) >= _PIECES_MAX:
                del self._shared[next(iter(self._shared))]
            self._shared[piece] = self._shared.get(piece, 0.0) + work

    def work_of(self, piece: str) -> float:
        """Work for a piece of somebody else since this was asked last."""
        return self._shared.pop(piece, 0.0)

    def work_rate(self) -> WorkRate:
        """All work that this peer does, a second."""
        now = self._now()
        self._all.add(0.0, now)
        return WorkRate(max(self._all.latest, self._all.work / _WINDOW_SECONDS))

    def sharers(self, piece: str) -> tuple[Member, ...]:
        """Peers that share a piece with this one."""
        busy = self._busy.get(piece)
        return () if busy is None else tuple(sorted(busy.sharers))

    def may_have(self, piece: str, peer: str, work: float) -> bool:
        """Whether a peer shares a piece, and so may have a copy; it has done so much for it."""
        busy = self._busy.get(piece)
        member = next((each for each in busy.sharers if each.name == peer), None) if busy else None
        if busy is None or member is None:
            return False
        busy.sharers[member] = self._now()
        self._add(piece, work)
        return member in busy.sharers

    def _add(self, piece: str, work: float) -> None:
        now = self._now()
        busy = self._busy.get(piece)
        if busy is None:
            if len(self._busy) >= _PIECES_MAX:
                del self._busy[next(iter(self._busy))]
            busy = self._busy[piece] = _Busy(_Rate(now))
        if busy.rate.add(work, now):
            self._judge(piece, busy, now)

    def _judge(self, piece: str, busy: _Busy, now: float) -> None:
        """A window is over: are there as many as are wanted?"""
        times = busy.rate.latest / self._work_max
        # Who has not asked for a copy for long is gone.
        since = now - _QUIET_WINDOWS * _WINDOW_SECONDS
        stay = [member for member, asked in busy.sharers.items() if asked >= since]
        wanted = min(ceil(times) - 1, SHARERS_MAX)
        if times < len(stay) / 2 or not wanted:
            stay = stay[: max(wanted, 0)]
        busy.sharers = {member: busy.sharers[member] for member in stay}
        if wanted > len(stay) and not busy.is_drawing:
            self._draw(piece, busy, wanted - len(stay))

    def _draw(self, piece: str, busy: _Busy, count: int) -> None:
        """Take whoever does least of some peers that are drawn."""
        busy.is_drawing = True
        self._draws += 1
        me = self._substrate.me
        rates: dict[Member, float | None] = {}
        left = CANDIDATES * count

        def is_known() -> None:
            nonlocal left
            left -= 1
            if left:
                return
            least = sorted((rate, member) for member, rate in rates.items() if rate is not None)
            busy.sharers.update(dict.fromkeys((m for _, m in least[:count]), self._now()))
            busy.is_drawing = False

        def found(location: Location | None) -> None:
            member = None if location is None else location.owner
            if member is None or member == me or member in rates or member in busy.sharers:
                is_known()
                return
            rates[member] = None
            self._courier.to_peer(member, AskWork(), partial(answered, member))

        def answered(member: Member, reply: Reply | None) -> None:
            if isinstance(reply, WorkRate):
                rates[member] = reply.work
            is_known()

        for number in range(left):
            key = f"{piece} {me.life} {self._draws} {number} {me.name}"
            self._substrate.find(key, found)


class KnownSharers:
    """Peers that run pieces of others beside them, as the owners have said.

    Args:
        now: The time.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._of = Recent[str, tuple[Member, ...]](_KNOWN_SECONDS, _KNOWN_MAX, now)
        self._failed = Recent[Member, float](_FAILED_SECONDS, _FAILED_MAX, now)
        self._now = now

    def choose(self, piece: str, publication: str) -> Member | None:
        """Chooses the peer that runs a piece for a publication; None: its owner."""
        known = self._of.get(piece)
        if not known:
            return None
        at = identifier(f"{publication} {piece}") % (len(known) + 1)
        chosen = None if at == len(known) else known[at]
        failed = None if chosen is None else self._failed.get(chosen)
        is_failed = failed is not None and self._now() < failed + _FAILED_SECONDS
        return None if is_failed else chosen

    def learn(self, pieces: Iterable[str], reply: Reply) -> None:
        """The owner of some pieces has answered, and said who shares them."""
        shared: Mapping[str, tuple[Member, ...]] = reply.pieces if isinstance(reply, Shared) else {}
        for piece in pieces:
            if piece in shared or piece in self._of:
                self._of.put(piece, shared.get(piece, ()))

    def has_failed(self, member: Member) -> None:
        """A peer has not taken what it was to run; it is not chosen for a while."""
        self._failed.put(member, self._now())
