"""A subscriber's part: its subscriptions, their way into the automaton and out, and its matches.

A subscription is indexed once for each alternative of its query (`automaton.gates_of`), and is in
force when all of them are. What was not acknowledged in time is sent again; that is safe. In time
is four times what it usually takes, and four times that while others are acknowledged; a thousand
are under way at most. A ring that is busy with queries would be busy with those that are sent
again as well, and so with more and more.

Matches of a publication are delivered once, and those that nobody here asked for are refused: a
match names a registration, and a subscription whose id is used again has others. A visit may be
done again, and late, when its publication has been over for long, and meet a query that was asked
since. So a subscription that is younger than a visit can be old takes a match only when the
publisher says that the publication is not over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf

import msgspec

from pathcast.dht.courier import Courier
from pathcast.dht.gates import gates_of
from pathcast.dht.identifiers import state_key
from pathcast.dht.messages import Done, Later, Reply, RequestRefused
from pathcast.dht.piece_messages import (
    Indexed,
    IndexQuery,
    IsOpen,
    Lost,
    Match,
    NotIndexed,
    RemoveQuery,
)
from pathcast.dht.piece_records import START_PIECE, Entry
from pathcast.dht.publication_memory import AGE_SECONDS
from pathcast.dht.recent import Recent
from pathcast.errors import ConfigError, DuplicateQueryError, UnknownQueryError
from pathcast.protocol import Deliver, Effect, Forget, Save
from pathcast.query import compile_query

_KEY = "subscription "
_MATCHES_MAX = 100_000
_NAME_MAX = 256
_UNDER_WAY_MAX = 1024
_TIMES = 4
_SENT_MAX = 16
_PAUSES = 16
"""What is known to be lost is sent again after so much less than what may be under way."""
_LOST_MAX = 64
_YOUNG_SECONDS = 60.0
_PUBLICATIONS_MAX = 4096
_PATIENCE_MAX = 600.0


class Subscribed(msgspec.Struct, frozen=True, tag=True):
    """From now on every publication meets the subscription."""

    subscription: str


class Unsubscribed(msgspec.Struct, frozen=True, tag=True):
    """From now on no publication meets the subscription."""

    subscription: str


class NotAcknowledged(msgspec.Struct, frozen=True, tag=True):
    """Nobody said in time that the subscription is in force (or is none any more).

    It may be, or not; the peer goes on trying as long as it is asked for nothing else.
    """

    subscription: str


class Matched(msgspec.Struct, frozen=True, tag=True):
    """A publication satisfies a subscription. Told once."""

    subscription: str
    publication: str


class _Saved(msgspec.Struct, frozen=True, array_like=True):
    """The durable record of a subscription.

    Attributes:
        to: Whom it is for.
        indexed: Keys of accepting states, and what is to be there.
        is_leaving: Whether it was taken back.
    """

    to: str
    indexed: tuple[tuple[str, Entry], ...]
    is_leaving: bool = False


@dataclass(slots=True)
class _Standing:
    saved: _Saved
    waiting: set[str] = field(default_factory=set)
    """Registrations that are not acknowledged."""
    tries: int = 0
    timer: str = ""
    """After which it goes on."""
    asked: float = 0.0
    sent: dict[int, float] = field(default_factory=dict)
    """When each attempt was sent."""
    since: int = 0
    """Acknowledgements of earlier attempts are of no use any more."""
    is_told: bool = False
    """Whether the subscriber knows that it is in force."""


class PeerSubscriptions:
    """Subscriptions of those who stand behind a peer.

    Args:
        name: Of the peer.
        life: A number that no life of it had before.
        courier: For what is sent.
        out: Where effects go.
        disk: What was saved.
        retry_seconds: Before a subscription that nobody acknowledged is indexed again.
        tries: After so many times the subscriber is told.
        now: The time.

    Attributes:
        repeated: How often one was put on its way again.
    """

    def __init__(
        self,
        name: str,
        life: int,
        courier: Courier,
        out: list[Effect],
        disk: Mapping[str, bytes],
        retry_seconds: float,
        tries: int,
        now: Callable[[], float],
    ) -> None:
        self._name = name
        self._life = life
        self._courier = courier
        self._out = out
        self._retry_seconds = retry_seconds
        self._tries = tries
        self._now = now
        self._usual_seconds = 0.0
        self._last = 0.0
        self._under_way: set[str] = set()
        self._queue: dict[str, None] = {}
        self.repeated = 0
        self._count = 0
        self._attempts = 0
        self._standing: dict[str, _Standing] = {}
        self._of: dict[str, str] = {}
        self._matched = Recent[tuple[str, str], None](2 * AGE_SECONDS, _MATCHES_MAX, now)
        self._to_ask: dict[str, dict[str, Match]] = {}
        self._over = Recent[str, None](2 * AGE_SECONDS, _PUBLICATIONS_MAX, now)
        self._open_at = Recent[str, float](_YOUNG_SECONDS, _PUBLICATIONS_MAX, now)
        self._lost: dict[tuple[bytes, bytes, int], set[str]] = {}
        for key, value in disk.items():
            if key.startswith(_KEY):
                saved = msgspec.msgpack.decode(value, type=_Saved)
                self._stand(key.removeprefix(_KEY), saved)

    def __len__(self) -> int:
        return len(self._standing)

    def __contains__(self, subscription: str) -> bool:
        standing = self._standing.get(subscription)
        return standing is not None and not standing.saved.is_leaving

    def start(self) -> None:
        """Index again what was saved: nobody knows how far it had come."""
        for subscription in list(self._standing):
            self._begin(subscription)

    def subscribe(
        self,
        subscription: str,
        query: str,
        to: str,
        namespaces: Mapping[str, str] | None = None,
    ) -> None:
        """Subscribe; `Subscribed` is delivered when it is in force, then `Matched`.

        Args:
            subscription: A name of its own at this peer.
            query: XPath 1.0.
            to: Whom it is for.
            namespaces: Prefixes of the query.

        Raises:
            ConfigError: The name is empty or too long to travel.
            DuplicateQueryError: There is a subscription of that name.
            QuerySyntaxError: The query cannot be read.
        """
        if not 0 < len(subscription) <= _NAME_MAX:
            reason = f"a name has 1 to {_NAME_MAX} characters, not {len(subscription)}"
            raise ConfigError("config.invalid", key="subscription", reason=reason)
        if subscription in self._standing:
            raise DuplicateQueryError("query.duplicate", id=subscription)
        bound = tuple(sorted((namespaces or {}).items()))
        indexed = []
        for gate in gates_of(compile_query(query, namespaces)):
            self._count += 1
            registration = f"{self._life} {self._count} {self._name}"
            entry = Entry(registration, subscription, self._name, query, bound, gate.is_exact)
            indexed.append((state_key(gate.labels), entry))
        saved = _Saved(to, tuple(indexed))
        self._save(subscription, saved)
        self._stand(subscription, saved)
        standing = self._standing[subscription]

        def begin() -> None:
            if self._standing.get(subscription) is standing:
                standing.asked = self._now()
                self._begin(subscription)

        # In an event that tells the time; no publication meets it before.
        standing.asked = inf
        self._courier.at_end(begin)

    def unsubscribe(self, subscription: str) -> None:
        """Take a subscription back; `Unsubscribed` is delivered when nothing meets it any more.

        Raises:
            UnknownQueryError: There is none of that name.
        """
        if subscription not in self:
            raise UnknownQueryError("query.unknown", id=subscription)
        standing = self._standing[subscription]
        standing.saved = msgspec.structs.replace(standing.saved, is_leaving=True)
        standing.tries = 0
        self._save(subscription, standing.saved)
        self._begin(subscription)

    def indexed(self, asked: Indexed, answer: Callable[[Reply], None]) -> None:
        """A query is in its piece, or in none any more."""
        answer(Done())
        subscription = self._of.get(asked.registration)
        if subscription is None:
            return
        standing = self._standing[subscription]
        if asked.is_there == standing.saved.is_leaving or asked.attempt < standing.since:
            return
        standing.waiting.discard(asked.registration)
        if standing.waiting:
            return
        self._courier.cancel(standing.timer)
        self._last = self._now()
        # Of the attempt that has come through: what was lost before says nothing of how long one
        # takes.
        of_it = [time for number, time in standing.sent.items() if number <= asked.attempt]
        took = self._last - (of_it[-1] if of_it else standing.asked)
        self._usual_seconds += (took - self._usual_seconds) / _TIMES
        if standing.saved.is_leaving:
            del self._standing[subscription]
            for _, entry in standing.saved.indexed:
                del self._of[entry.registration]
            self._out.append(Forget(_KEY + subscription))
            self._deliver(standing, Unsubscribed(subscription))
        elif not standing.is_told:
            standing.is_told = True
            self._deliver(standing, Subscribed(subscription))
        self._end(subscription)

    def not_indexed(self, asked: NotIndexed, answer: Callable[[Reply], None]) -> None:
        """A query got lost on its way: it is sent again, unless it has been since."""
        answer(Done())
        subscription = self._of.get(asked.registration)
        if subscription is not None:
            standing = self._standing[subscription]
            is_latest = bool(standing.sent) and asked.attempt >= max(standing.sent)
            if is_latest and asked.registration in standing.waiting:
                self._again(subscription, standing)

    def lost(self, asked: Lost) -> bool:
        """Index all queries again: their subscriber does not know which pieces they were in.

        Args:
            asked: The arc whose records are lost.

        Returns:
            Whether all of it is acknowledged, or its subscribers know that it is not.
        """
        loss = asked.low, asked.high, asked.number
        if loss not in self._lost:
            if len(self._lost) >= _LOST_MAX:
                del self._lost[next(iter(self._lost))]
            self._lost[loss] = set(self._standing)
            for subscription in sorted(self._lost[loss]):
                self._standing[subscription].tries = 0
                self._begin(subscription)
        return not self._lost[loss]

    def match(self, asked: Match, answer: Callable[[Reply], None]) -> None:
        """A publication satisfies a subscription, as an accepting peer says."""
        found = self._matched_by(asked)
        if found is None:
            answer(RequestRefused())
            return
        subscription, standing = found
        told = subscription, asked.publication
        if told in self._matched or told[1] in self._over:
            answer(Done())
        elif self._may_be_late(standing, asked):
            # Whoever tells comes again for the answer.
            answer(Later())
            self._ask_publisher(asked)
        else:
            answer(Done())
            self._tell(standing, told)

    def _matched_by(self, asked: Match) -> tuple[str, _Standing] | None:
        """The subscription that a match is of, unless it was taken back or had an earlier life."""
        subscription = self._of.get(asked.registration)
        if subscription is None:
            return None
        standing = self._standing[subscription]
        return None if standing.saved.is_leaving else (subscription, standing)

    def _may_be_late(self, standing: _Standing, asked: Match) -> bool:
        """Whether the publication may have been over when the subscription was asked for."""
        was_open = self._open_at.get(asked.publication)
        is_known = was_open is not None and was_open >= standing.asked
        return not is_known and self._now() < standing.asked + _YOUNG_SECONDS

    def _ask_publisher(self, asked: Match) -> None:
        """Whether a publication is not over yet, so that a query that is new may meet it."""
        is_asked = asked.publication in self._to_ask
        self._to_ask.setdefault(asked.publication, {})[asked.registration] = asked
        if is_asked:
            return
        began = self._now()

        def answered(reply: Reply | None) -> None:
            matches = self._to_ask.pop(asked.publication)
            if isinstance(reply, RequestRefused):
                self._over.put(asked.publication, None)
            elif isinstance(reply, Done):
                self._open_at.put(asked.publication, began)
            for match in matches.values():
                found = self._matched_by(match)
                if found is None:
                    continue
                subscription, standing = found
                told = subscription, match.publication
                is_new = standing.asked <= began and told not in self._matched
                if isinstance(reply, Done) and is_new:
                    self._tell(standing, told)

        self._courier.to_peer(asked.publisher, IsOpen(asked.publication), answered)

    def _tell(self, standing: _Standing, told: tuple[str, str]) -> None:
        self._matched.put(told, None)
        self._deliver(standing, Matched(*told))

    def _stand(self, subscription: str, saved: _Saved) -> None:
        self._standing[subscription] = _Standing(saved, asked=self._now())
        for _, entry in saved.indexed:
            self._of[entry.registration] = subscription

    def _save(self, subscription: str, saved: _Saved) -> None:
        self._out.append(Save(_KEY + subscription, msgspec.msgpack.encode(saved)))

    def _begin(self, subscription: str) -> None:
        standing = self._standing[subscription]
        self._courier.cancel(standing.timer)
        standing.since = self._attempt + 1
        standing.sent.clear()
        standing.waiting = {entry.registration for _, entry in standing.saved.indexed}
        self._under_way.discard(subscription)
        self._queue[subscription] = None
        self._begin_some()

    def _begin_some(self) -> None:
        """Send what is next, if there is room."""
        while self._queue and len(self._under_way) < _UNDER_WAY_MAX:
            subscription = next(iter(self._queue))
            del self._queue[subscription]
            self._under_way.add(subscription)
            self._go_on(subscription, self._standing[subscription])

    @property
    def _attempt(self) -> int:
        """Number of the last attempt; no earlier life had it."""
        return (self._life % 2**20 << 20) + self._attempts

    def _end(self, subscription: str) -> None:
        for left in self._lost.values():
            left.discard(subscription)
        self._queue.pop(subscription, None)
        self._under_way.discard(subscription)
        self._begin_some()

    def _go_on(self, subscription: str, standing: _Standing) -> None:
        """Send what is not acknowledged, and again later."""
        standing.tries += 1
        self.repeated += standing.tries > 1
        self._attempts += 1
        attempt = self._attempt
        standing.sent[attempt] = self._now()
        if len(standing.sent) > _SENT_MAX:
            del standing.sent[min(standing.sent)]
        for key, entry in standing.saved.indexed:
            if entry.registration in standing.waiting:
                asked: IndexQuery | RemoveQuery
                if standing.saved.is_leaving:
                    asked = RemoveQuery(key, entry.registration, self._name, attempt)
                else:
                    asked = IndexQuery(key, entry, attempt)
                sent = partial(self._sent, subscription, attempt)
                self._courier.to_owner(START_PIECE, asked, sent)
        self._wait(subscription, standing, self._now(), 1)
        if standing.tries == self._tries + 1:
            self._deliver(standing, NotAcknowledged(subscription))
            self._end(subscription)

    def _sent(self, subscription: str, attempt: int, reply: Reply | None) -> None:
        """A query is on its way, or not even that."""
        standing = self._standing.get(subscription)
        if reply is not None or standing is None or not standing.waiting:
            return
        if attempt == max(standing.sent, default=-1):
            self._again(subscription, standing)

    def _again(self, subscription: str, standing: _Standing) -> None:
        """Send what got lost again soon: nobody else does."""
        pause = self._pause(self._retry_seconds / _PAUSES, standing)
        self._later(standing, pause, partial(self._go_on, subscription, standing))

    def _pause(self, seconds: float, standing: _Standing) -> float:
        """A pause that doubles with the tries, three times at most."""
        return seconds * (1 << min(max(standing.tries - 1, 0), 3))

    def _wait(self, subscription: str, standing: _Standing, since: float, times: int) -> None:
        """Send it again later, but not while others are acknowledged: then it is in a queue."""

        def waited() -> None:
            if self._last > since and times < _TIMES:
                self._wait(subscription, standing, self._now(), times + 1)
            else:
                self._go_on(subscription, standing)

        patience = max(self._retry_seconds, min(_TIMES * self._usual_seconds, _PATIENCE_MAX))
        self._later(standing, self._pause(patience, standing), waited)

    def _later(self, standing: _Standing, seconds: float, then: Callable[[], None]) -> None:
        """Do one thing for a subscription later, and nothing else that was to be done for it."""
        self._courier.cancel(standing.timer)
        standing.timer = self._courier.after(seconds, then)

    def _deliver(self, standing: _Standing, what: object) -> None:
        self._out.append(Deliver(standing.saved.to, what))
