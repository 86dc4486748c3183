"""A broker as the root of its sources: what it takes of publishers, and its log.

A message is taken if its source is one of this root's and its sender may publish for it, and if
there is room in the log; it is on the disk before it is sent, and stays there until all members of
the network have had it, or until it is given up for those who are away (`retention`).

What it keeps on disk: its sources and their owners, the number of its stream and its lives, the
last number of each publisher, the log, where it begins, and up to where it was given up.

Source: 001, sections 3.1 and 5 (Figure 10, message pre-processor); docs/adr/0015 for the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from pathcast.errors import PublicationError
from pathcast.overlay.broker_settings import ProtocolSettings
from pathcast.overlay.lives import Lives, begun
from pathcast.overlay.messages import SourceEntry, StreamMessage
from pathcast.overlay.outcome import EventEffects
from pathcast.overlay.publishers import Logged, Numbered, Publishers, PublishRequest
from pathcast.overlay.retention import Lag, Retention
from pathcast.overlay.streams import Stream
from pathcast.protocol import records_under


class _Kept(NamedTuple):
    """Messages that are one value on the disk, by their positions."""

    first: int
    last: int
    at: float | None


class _LoggedBefore(msgspec.Struct, frozen=True):
    """A `Logged` of a version whose messages perhaps had no time."""

    message: dict[str, object]
    numbered: Numbered | None = None
    at: float | None = None


class StreamRoot:
    """Sources, publishers and the log of one root.

    Args:
        incarnation: A number no former life had.
        disk: What was saved by a former life.
        outcome: Takes what is to be kept.
        settings: What an operator decides.

    Attributes:
        sources: By id, those that are withdrawn as well.
        stream_number: Of its stream; 0 while it is the root of nothing.
        lives: History of its stream.
        log_start: Position that the log begins after.
        given_up: The last position that left the log before all members of then had had it; of
            those after it, all members had had each that left the log.
        is_leaving: Nothing is taken any more.
        taken_bytes: Of the messages that this life has taken.
    """

    def __init__(
        self,
        incarnation: int,
        disk: Mapping[str, bytes],
        outcome: EventEffects,
        settings: ProtocolSettings,
    ) -> None:
        self._incarnation = incarnation
        self._outcome = outcome
        self._settings = settings
        self._owners: dict[str, str] = {}
        self._publishers = Publishers()
        self._kept: deque[_Kept] = deque()
        self._retention = Retention(settings)
        self._now = 0.0
        self._taken: list[Logged] = []
        self.sources: dict[str, SourceEntry] = {}
        self.stream_number = 0
        self.lives: Lives = ()
        self.log_start = 0
        self.given_up = 0
        self.taken_bytes = 0
        self.is_leaving = "leaving" in disk
        self._began = 0
        self._is_copy = "restored" in disk
        self._restored = self._restore(disk)

    def start(self, began: int) -> list[StreamMessage]:
        """This life begins. Returns the messages that a former life left in the log."""
        self._began = began
        restored, self._restored = self._restored, []
        if self.stream_number:
            self._live(max(self.log_start, restored[-1].position if restored else 0))
            if self._is_copy:
                self.begin_stream()
        elif self.sources:
            self._have_stream()
        return restored

    def leave(self) -> None:
        """Take nothing any more."""
        self.is_leaving = True
        self._outcome.save("leaving", True)

    # Sources.

    def register(self, source: str, entry: SourceEntry, owner: str) -> None:
        """Take a source; see `Broker.register_source`.

        Raises:
            PublicationError: It is somebody else's.
        """
        self.check_owner(source, owner)
        self.sources[source] = entry
        self._outcome.save(f"source/{source}", entry)
        if owner and self._owners.get(source) != owner:
            self._owners[source] = owner
            self._outcome.save(f"owner/{source}", owner)
        self._have_stream()

    def _have_stream(self) -> None:
        """Begin the root's stream, with a number that no former life has used."""
        if not self.stream_number:
            self._live(0)
            self.begin_stream()

    def begin_stream(self, after: int = 0) -> None:
        """Another stream: who followed the one of before is told that messages may be lost.

        Its positions go on, and so does its history: each host finds where it and the log agree.

        Args:
            after: Its number is greater than this one.
        """
        self.stream_number = max(self._began, self.stream_number + 1, after + 1)
        self._outcome.save("stream", self.stream_number)

    def _live(self, position: int) -> None:
        """This life numbers what follows a position."""
        self._outcome.save("given_up", self.given_up)
        self.lives = begun(self.lives, self._incarnation, position, self.log_start)
        self._outcome.save("lives", self.lives)

    def check_owner(self, source: str, sender: str) -> None:
        """The message pre-processor's check of the id that a message carries.

        Raises:
            PublicationError: It is somebody else's, which is not told apart from none.

        Source: 001, section 5 (Figure 10): the root validates the source id, nobody else does.
        """
        if sender and self._owners.get(source, sender) != sender:
            raise PublicationError("publication.source", source=source, retry="no")

    # Messages.

    def publish(
        self,
        stream: Stream | None,
        members: Callable[[], Sequence[str]],
        has_joined: bool,
        publications: Sequence[PublishRequest],
        sender: str,
    ) -> list[int]:
        """Take messages, all or none; `keep` puts them on the disk. See `Broker.publish_all`.

        Raises:
            PublicationError: See there.
        """
        for source in dict.fromkeys(one.source for one in publications):
            self.check_source(stream, source, sender)
        if not has_joined:
            raise PublicationError("publication.joining", retry="yes")
        if stream is None:
            return []  # there are no publications: there would be a source
        had = self._publishers.has_had
        fresh = [len(one.body) for one in publications if not had(one.numbered)]
        self._check_room(stream, members, fresh)
        return self._take(stream, publications)

    def _take(self, stream: Stream, publications: Sequence[PublishRequest]) -> list[int]:
        """The positions of messages that were checked; 0 of one that was taken before."""
        at, positions = max(stream.at, self.log_start), []
        made: list[StreamMessage] = []
        for one in publications:
            if self._publishers.has_had(one.numbered):  # also earlier among these
                positions.append(0)
                continue
            at += 1
            version = self.sources[one.source].schema_version
            time = int(self._now * 1e6) if one.time is None else one.time
            message = StreamMessage(
                at, one.source, one.message, version, "", one.trace, time, one.body
            )
            self._publishers.took(one.numbered)
            self._taken.append(Logged(message, one.numbered, self._now))
            self.taken_bytes += len(one.body)
            made.append(message)
            positions.append(at)
        if made:
            stream.publish(made)
        return positions

    def check_source(self, stream: Stream | None, source: str, sender: str) -> None:
        """Refuses what is not to be taken for a source.

        Raises:
            PublicationError: The source is not known here or is not the sender's.
        """
        self.check_owner(source, sender)
        entry = self.sources.get(source)
        if entry is None or entry.withdrawn or stream is None or self.is_leaving:
            raise PublicationError("publication.source", source=source, retry="no")

    def _check_room(
        self, stream: Stream, members: Callable[[], Sequence[str]], sizes: Sequence[int]
    ) -> None:
        """Refuses messages of these sizes if one is too long, or no room can be made for all.

        Raises:
            PublicationError: With `retry`.
        """
        settings = self._settings
        longest = max(sizes, default=0)
        if longest > settings.message_bytes_max:
            raise PublicationError(
                "publication.too_long",
                given=longest,
                maximum=settings.message_bytes_max,
                retry="no",
            )
        if sizes and not self._make_room(stream, members(), sizes):
            lags = self._retention.lags(stream.positions_of(members()), self.log_start, stream.at)
            raise PublicationError(
                "publication.log",
                given=len(sizes),
                held=len(stream.held),
                maximum=settings.log_messages_max,
                bytes=stream.held_bytes,
                bytes_maximum=settings.log_bytes_max,
                slowest=next((lag.member for lag in lags if lag.is_waited_for), stream.root),
                lag_seconds=settings.lag_seconds,
                retry="yes",
            )

    # The log.

    def time_is(self, now: float) -> None:
        """Messages that are taken from now on are so old."""
        self._now = now

    def lags(self, stream: Stream, members: Sequence[str]) -> list[Lag]:
        """Members that have not had everything, those that are furthest behind first."""
        return self._retention.lags(stream.positions_of(members), self.log_start, stream.at)

    def keep(self) -> None:
        """Save the messages taken since the last call, together, before any is sent."""
        taken, self._taken = self._taken, []
        if taken:
            first, last = taken[0].message.position, taken[-1].message.position
            self._outcome.save(f"log/{first:016x}", taken)
            self._kept.append(_Kept(first, last, self._now))

    def trim(self, stream: Stream, members: Sequence[str]) -> bool:
        """Trim the log: messages that all members have, and messages past retention.

        Returns:
            Whether anything did.
        """
        positions = stream.positions_of(members)
        self._retention.watch(positions, stream.at, self._now)
        own = stream.positions.get(stream.root, 0)
        position = max(min(positions.values(), default=own), min(self._old(), own))
        if position <= self.log_start:
            return False
        self._trim_until(stream, position, positions)
        return True

    def _old(self) -> int:
        """Position up to which messages are older than they are kept."""
        position = 0
        for kept in self._kept:
            if kept.at is None or self._now - kept.at <= self._settings.retention_seconds:
                break
            position = kept.last
        return position

    def _make_room(self, stream: Stream, members: Sequence[str], fresh: Sequence[int]) -> bool:
        """Whether messages of these sizes fit, after what is kept for stalled members has gone."""
        size = stream.held_bytes + sum(fresh)
        if self._retention.has_room(len(stream.held) + len(fresh), size):
            return True
        waiting = [name for name in members if not self._retention.is_stalled(name)]
        positions = stream.positions_of([stream.root, *members])
        waited_for = min(positions[name] for name in [stream.root, *waiting])
        position = self._retention.room_at(stream.held, stream.held_bytes, fresh, waited_for)
        if position is not None:
            self._trim_until(stream, position, positions)
        return position is not None

    def _trim_until(self, stream: Stream, position: int, positions: Mapping[str, int]) -> None:
        """Messages up to a position leave the log; the members' positions say who had them."""
        if min(positions.values(), default=position) < position:
            self.given_up = position
            self._outcome.save("given_up", position)
        self.log_start = position
        self._outcome.effects += self._publishers.keep()
        self._outcome.save("log", position)
        stream.drop_until(position, self.given_up)
        while self._kept and self._kept[0].last <= position:
            self._outcome.forget(f"log/{self._kept.popleft().first:016x}")

    def _restore(self, disk: Mapping[str, bytes]) -> list[StreamMessage]:
        decode = msgspec.msgpack.decode
        self.log_start = decode(disk["log"], type=int) if "log" in disk else 0
        # A disk of an older version does not say: any of them may have been given up.
        self.given_up = decode(disk["given_up"], type=int) if "given_up" in disk else self.log_start
        self.stream_number = decode(disk["stream"], type=int) if "stream" in disk else 0
        for key, value in records_under(disk, "source/"):
            self.sources[key.removeprefix("source/")] = decode(value, type=SourceEntry)
        for key, value in records_under(disk, "owner/"):
            self._owners[key.removeprefix("owner/")] = decode(value, type=str)
        log: list[Logged] = []
        for _, value in records_under(disk, "log/"):
            kept = _logged(value, disk)
            first, last = kept[0].message.position, kept[-1].message.position
            self._kept.append(_Kept(first, last, kept[0].at))
            log += kept
        self._publishers.restore(disk, log)
        self.lives = decode(disk["lives"], type=Lives) if "lives" in disk else ()
        return [one.message for one in log if one.message.position > self.log_start]


def _logged(value: bytes, disk: Mapping[str, bytes]) -> list[Logged]:
    """The messages of a record of the log."""
    decode = msgspec.msgpack.decode
    try:
        return decode(value, type=list[Logged])
    except msgspec.ValidationError:
        began = (decode(disk["began"], type=int) >> 10) / 1000 if "began" in disk else 0.0
        return [_timed(one, began) for one in decode(value, type=list[_LoggedBefore])]


def _timed(logged: _LoggedBefore, began: float) -> Logged:
    """A message of a version that gave messages no times, with the time of its arrival.

    Args:
        logged: The message.
        began: When the last life of the root began, in place of an arrival that is not known.
    """
    time = int((began if logged.at is None else logged.at) * 1e6)
    message = msgspec.convert({"time": time, **logged.message}, StreamMessage)
    return Logged(message, logged.numbered, logged.at)
