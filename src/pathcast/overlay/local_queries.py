"""Local queries: messages that wait for a broker's own subscribers, and what they give these.

They have the lowest priority: what neighbours are to be sent comes first. How far the subscribers
have had a stream, its *cursor*, is kept with what they were given.

Source: 001, section 4.3.1 (priorities).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from pathcast.overlay.content import Verdict
from pathcast.overlay.deliveries import InboxDelivery, Undecided
from pathcast.overlay.lives import (
    LIVES_MAX,
    Lives,
    common_end,
    had_of_lives,
    known_end,
    with_former,
)
from pathcast.overlay.messages import StreamMessage
from pathcast.overlay.outcome import EventEffects
from pathcast.overlay.streams import Stream
from pathcast.overlay.subscriptions import HostedSubscription, HostedSubscriptions
from pathcast.protocol import Save, records_under

LOCAL_MESSAGES = 64
"""Messages that local queries are run on at a time."""

LOCAL_WAITING_MAX = 4096
"""Messages that wait for local queries, before these are run ahead of what comes next."""


POSITION_MAX = 2**53
"""Beyond any position; of a stream that is over everything has been had."""


class KeptCursor(msgspec.Struct, frozen=True, array_like=True):
    """How far the subscribers of a host have had a stream, on its disk.

    Attributes:
        number: Of the stream. Of a root that has lost its disk and begun no other stream, at most
            0: less the number of the last stream that is over.
        position: Up to which they have had everything.
        lives: History that the position is of; none in files of before there were any.
        left: Of histories that were left, each life and the last position of it that was had.
    """

    number: int = 0
    position: int = 0
    lives: Lives = ()
    left: Lives = ()


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Messages of a stream that wait for local queries, and the position that they end."""

    stream: Stream
    messages: Sequence[StreamMessage]
    upto: int


class LocalQueries:
    """Messages that wait for the subscribers of one host.

    Args:
        subscriptions: Answer messages.
        disk: What was saved by a former life.
        outcome: Takes deliveries and cursors.
    """

    def __init__(
        self,
        subscriptions: HostedSubscriptions,
        disk: Mapping[str, bytes],
        outcome: EventEffects,
    ) -> None:
        self._subscriptions = subscriptions
        self._outcome = outcome
        self._waiting: deque[_Waiting] = deque()
        self._messages = 0
        self._cursors = {
            key.removeprefix("cursor/"): msgspec.msgpack.decode(value, type=KeptCursor)
            for key, value in records_under(disk, "cursor/")
        }

    @property
    def has_work(self) -> bool:
        """Whether messages wait."""
        return bool(self._waiting)

    @property
    def has_little_work(self) -> bool:
        """Whether messages wait, and one batch takes all of them."""
        return bool(self._waiting) and self._messages <= LOCAL_MESSAGES

    @property
    def is_behind(self) -> bool:
        """Whether so many wait that they have to be seen to before anything else is taken."""
        return self._messages > LOCAL_WAITING_MAX

    def number(self, root: str) -> int | None:
        """Number of the stream of a root that subscribers follow; None if they never did."""
        kept = self._cursors.get(root)
        return None if kept is None else kept.number

    def positions(self) -> dict[str, tuple[int, int]]:
        """Root broker -> number of its stream, and how far subscribers have had it, as is kept."""
        return {
            root: (one.number, one.position) if one.number > 0 else (-one.number, POSITION_MAX)
            for root, one in self._cursors.items()
        }

    def begin(self, root: str, number: int, lives: Lives) -> KeptCursor:
        """Where subscribers begin to follow a stream.

        In another stream than the one that they followed, they begin after what they have had of
        its history, in that stream or in one before it, and this is kept.
        """
        kept = self._cursors.get(root, KeptCursor())
        if kept.number == number:
            return kept
        common = common_end(kept.lives, lives, kept.position)
        had = dict(kept.left)
        for life, end in had_of_lives(kept.lives, kept.position, common).items():
            had[life] = max(end, had.pop(life, 0))  # the latest is last
        position = known_end(lives, had, common)
        former = with_former(kept.lives, lives, common)
        left = tuple(had.items())[-LIVES_MAX:]
        made = self._cursors[root] = KeptCursor(number, position, former, left)
        self._outcome.save(f"cursor/{root}", made)
        return made

    def keep_cursor(self, stream: Stream) -> None:
        """Keeps how far subscribers have had a stream, if that is not kept."""
        if self._cursors[stream.root] != self._cursor_of(stream):
            self._outcome.effects.append(self._cursor(stream))

    def add(self, stream: Stream, messages: Sequence[StreamMessage]) -> None:
        """Messages wait from now on."""
        if not messages and stream.cursor == stream.taken:
            stream.passed(stream.at)  # nothing of it waits
            return
        self._waiting.append(_Waiting(stream, messages, stream.at))
        self._messages += len(messages)

    def work(self) -> None:
        """Run local queries on what has waited longest: as many messages as make a batch."""
        taken: list[_Waiting] = []
        count = 0
        while self._waiting and count < LOCAL_MESSAGES:
            taken.append(self._waiting.popleft())
            count += len(taken[-1].messages)
        self._work(taken)

    def retire(self, stream: Stream) -> None:
        """A stream is gone, and may be back: its subscribers are given now what waits of it."""
        waiting = [one for one in self._waiting if one.stream is stream]
        self._waiting = deque(one for one in self._waiting if one.stream is not stream)
        self._work(waiting)

    def _work(self, taken: Sequence[_Waiting]) -> None:
        """Hand deliveries to the carrier, then move the cursors."""
        work = [(one.stream, message) for one in taken for message in one.messages]
        self._messages -= len(work)
        given = self._answer(work) if work else set()
        for one in taken:
            one.stream.passed(one.upto)
        for root, stream in {one.stream.root: one.stream for one in taken}.items():
            if root in given:  # with the deliveries: else they would be made again after a crash
                self._outcome.given.append(self._cursor(stream))

    def _answer(self, work: Sequence[tuple[Stream, StreamMessage]]) -> set[str]:
        """Leaves what messages give with the carrier. Returns the roots of those that give any."""
        roots: set[str] = set()
        done = [one.steps for _, one in work]
        times = [one.time for _, one in work]
        answered = self._subscriptions.answers([one.body for _, one in work], done, times)
        for (stream, one), answers in zip(work, answered, strict=True):
            for subscription, results in answers:
                if not self._is_regarded(subscription, one):
                    continue
                name, version = subscription.name, subscription.version
                at = (name, version, stream.root, stream.number, one.position, one.message)
                if isinstance(results, Verdict):
                    given: InboxDelivery | Undecided = Undecided(*at, results.code, results.reason)
                else:
                    given = InboxDelivery(*at, results)
                self._outcome.deliver(subscription.subscriber, given)
                roots.add(stream.root)
        return roots

    def _is_regarded(self, subscription: HostedSubscription, one: StreamMessage) -> bool:
        """Whether a message, if it was cut, was cut with regard to a subscription."""
        if one.considers is None:
            return True
        return one.considers >= self._subscriptions.ticket(subscription.name)

    def _cursor(self, stream: Stream) -> Save:
        kept = self._cursors[stream.root] = self._cursor_of(stream)
        return Save(f"cursor/{stream.root}", msgspec.msgpack.encode(kept))

    def _cursor_of(self, stream: Stream) -> KeptCursor:
        left = self._cursors[stream.root].left
        return KeptCursor(stream.number, stream.cursor, stream.lives, left)
