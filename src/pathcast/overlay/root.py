"""A broker as the root of its sources: what it takes of publishers, and its log.

A message is taken if its source is one of this root's and its sender may publish for it, and if
there is room in the log; it is on the disk before it is sent, and stays there until all members of
the network have had it.

What it keeps on disk: its sources and their owners, the number of its stream and its lives, the
last number of each publisher, and the log.

Source: 001, sections 3.1 and 5 (Figure 10, message pre-processor); docs/adr/0015 for the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence

import msgspec

from pathcast.errors import PublicationError
from pathcast.overlay.broker_settings import BrokerSettings
from pathcast.overlay.lives import Lives, begun
from pathcast.overlay.messages import Published, Source
from pathcast.overlay.outcome import Outcome
from pathcast.overlay.publishers import Logged, Publication, Publishers
from pathcast.overlay.safeguards import Safeguards
from pathcast.overlay.streams import Stream

__all__ = ["Root"]


class Root:
    """Sources, publishers and the log of one root.

    Args:
        incarnation: A number no former life had.
        disk: What was saved by a former life.
        outcome: Takes what is to be kept.
        settings: What an operator decides.
        safeguards: For tests.

    Attributes:
        sources: By id, those that are withdrawn as well.
        stream_number: Of its stream; 0 while it is the root of nothing.
        lives: History of its stream.
        log_start: Position up to which all members have had everything.
        is_leaving: Nothing is taken any more.
        taken_bytes: Of the messages that this life has taken.
    """

    def __init__(
        self,
        incarnation: int,
        disk: Mapping[str, bytes],
        outcome: Outcome,
        settings: BrokerSettings,
        safeguards: Safeguards,
    ) -> None:
        self._incarnation = incarnation
        self._outcome = outcome
        self._settings = settings
        self._safeguards = safeguards
        self._owners: dict[str, str] = {}
        self._publishers = Publishers()
        self._kept: deque[tuple[int, int]] = deque()
        self._taken: list[Logged] = []
        self.sources: dict[str, Source] = {}
        self.stream_number = 0
        self.lives: Lives = ()
        self.log_start = 0
        self.taken_bytes = 0
        self.is_leaving = "leaving" in disk
        self._began = 0
        self._is_copy = "restored" in disk
        self._restored = self._restore(disk)

    def start(self, began: int) -> list[Published]:
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

    def register(self, source: str, entry: Source, owner: str) -> None:
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
        """Who is the root of something has a stream, whose number no other life gave one."""
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
        publications: Sequence[Publication],
        sender: str,
    ) -> list[int]:
        """Take messages, all or none; `keep` puts them on the disk. See `Broker.publish_all`.

        Raises:
            PublicationError: See there.
        """
        for source in dict.fromkeys(one.source for one in publications):
            self._check_source(stream, source, sender)
        if not has_joined:
            raise PublicationError("publication.joining", retry="yes")
        if stream is None:
            return []  # there are no publications: there would be a source
        fresh = [len(one.body) for one in publications if not self._has_had(one)]
        self._check_room(stream, members, fresh)
        return self._take(stream, publications)

    def _has_had(self, one: Publication) -> bool:
        """Whether a message was taken before, as far as its publisher numbers them."""
        return self._safeguards.numbers and self._publishers.has_had(one.numbered)

    def _take(self, stream: Stream, publications: Sequence[Publication]) -> list[int]:
        """The positions of messages that were checked; 0 of one that was taken before."""
        at, positions = max(stream.at, self.log_start), []
        made: list[Published] = []
        for one in publications:
            if self._has_had(one):  # also earlier among these
                positions.append(0)
                continue
            at += 1
            version = self.sources[one.source].dictionary_version
            message = Published(
                at, one.source, one.message, version, one.format, one.trace, one.body
            )
            self._publishers.took(one.numbered)
            self._taken.append(Logged(message, one.numbered))
            self.taken_bytes += len(one.body)
            made.append(message)
            positions.append(at)
        if made:
            stream.publish(made)
        return positions

    def _check_source(self, stream: Stream | None, source: str, sender: str) -> None:
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
        """Refuses messages of these sizes if one is too long, or there is no room for all.

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
        is_long = stream.held_bytes + sum(sizes) > settings.log_bytes_max
        if sizes and (is_long or len(stream.held) + len(sizes) > settings.log_messages_max):
            slowest = min(members(), key=lambda name: (stream.positions.get(name, 0), name))
            raise PublicationError(
                "publication.log",
                held=len(stream.held),
                maximum=settings.log_messages_max,
                bytes=stream.held_bytes,
                bytes_maximum=settings.log_bytes_max,
                slowest=slowest,
                retry="yes",
            )

    # The log.

    def keep(self) -> None:
        """What was taken since the last time is kept, together, before it is sent."""
        taken, self._taken = self._taken, []
        if taken and self._safeguards.save_first:
            first, last = taken[0].message.position, taken[-1].message.position
            self._outcome.save(f"log/{first:016x}", taken)
            self._kept.append((first, last))

    def trim(self, stream: Stream, members: Sequence[str]) -> bool:
        """What all members have had leaves the log. Returns whether anything did."""
        if self._safeguards.retain:
            position = min(stream.positions.get(name, 0) for name in members)
        else:
            position = stream.at
        if position <= self.log_start:
            return False
        self.log_start = position
        self._outcome.effects += self._publishers.keep()
        self._outcome.save("log", position)
        stream.drop_until(position)
        while self._kept and self._kept[0][1] <= position:
            self._outcome.forget(f"log/{self._kept.popleft()[0]:016x}")
        return True

    def _restore(self, disk: Mapping[str, bytes]) -> list[Published]:
        decode = msgspec.msgpack.decode
        self.log_start = decode(disk["log"], type=int) if "log" in disk else 0
        self.stream_number = decode(disk["stream"], type=int) if "stream" in disk else 0
        log: list[Logged] = []
        for key in sorted(disk):
            room, _, name = key.partition("/")
            if room == "source":
                self.sources[name] = decode(disk[key], type=Source)
            elif room == "owner":
                self._owners[name] = decode(disk[key], type=str)
            elif room == "log" and name:
                kept = decode(disk[key], type=list[Logged])
                self._kept.append((kept[0].message.position, kept[-1].message.position))
                log += kept
        self._publishers.restore(disk, log)
        self.lives = decode(disk["lives"], type=Lives) if "lives" in disk else ()
        return [one.message for one in log if one.message.position > self.log_start]
