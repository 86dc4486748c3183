"""The form in which messages travel over one link: text, or a wire format that is there sooner.

Each end says at the beginning of a session which formats it reads; what it sends is in the format
that its operator chose for the link, or in the one that is there first by what was measured:
bytes and time of each format on a sample of the messages that go over the link, and the bandwidth
of the link, from how long frames take to be acknowledged that have more or less before them. What
comes is text again before anybody looks at it.

Dictionaries are those of the catalog. A link uses the first `DICTIONARIES_MAX` that its sender has
announced in the session, which the other end has then heard of, since a session keeps its order: so
no message is there before its dictionary. All others, and what a schema does not name, say their
names in the message.

Example:
    >>> here, there = LinkFormats("b", "dictionary+zlib"), LinkFormats("a", "text")
    >>> source = Source(dictionary=("order", "item"))
    >>> announced = Announce((Announcement("a", "shop", 1, 7, source),))
    >>> says = here.began()
    >>> _ = here.incoming(there.began()), there.incoming(says)
    >>> _ = there.incoming(here.outgoing(announced))
    >>> order = b"<order>" + b"<item>tea</item>" * 9 + b"</order>"
    >>> told = Forward("a", 1, 1, 0, 1, (Published(1, "shop", "m1", 1, "", False, order),))
    >>> packed = here.outgoing(told)
    >>> packed.messages[0].format, len(packed.messages[0].body) < 50
    ('dictionary+zlib', True)
    >>> there.incoming(packed) == told
    True

Source: 001, 4.3.2 (six formats; which one to choose is left open) and section 5, Figure 10 (message
pre- and post-processor). Differs: docs/adr/0012.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

import msgspec

from pathcast.engine.wire import decode, encode
from pathcast.errors import ConfigError, MissingDependencyError, PeerError
from pathcast.limits import Limits
from pathcast.message.dictionaries import Dictionaries, Dictionary
from pathcast.message.wire import FormatCost, WireFormat, best_format, compress
from pathcast.overlay.link_speed import LinkSpeed
from pathcast.overlay.messages import (
    Announce,
    Announcement,
    Formats,
    Forward,
    Payload,
    Published,
    Source,
    size_of,
)

__all__ = ["AUTO", "LinkFormats", "check_format", "readable_formats"]

AUTO: Final = "auto"

DICTIONARIES_MAX: Final = 64
"""Dictionaries of one direction of a session."""

SAMPLE_MESSAGES: Final = 16
SAMPLE_AGAIN: Final = 4096
"""Messages of a sample, and messages after which another one is taken."""

_P = TypeVar("_P", bound=Payload)


def readable_formats() -> tuple[str, ...]:
    """The formats that can be read here: zstd needs a library."""
    try:
        compress(b"", WireFormat.TEXT_ZSTD)
    except MissingDependencyError:
        return tuple(each.value for each in WireFormat if each.compression != "zstd")
    return tuple(each.value for each in WireFormat)


class LinkFormats:
    """One end of a link.

    Args:
        peer: The other end.
        chosen: The format of what is sent, as `WireFormat` names it, or "auto".
        clock: Seconds, to measure what formats cost; there is no measuring without it, and "auto"
            is text.
        limits: What a message may cost that comes.
    """

    def __init__(
        self,
        peer: str,
        chosen: str,
        clock: Callable[[], float] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._peer = peer
        self._chosen = chosen
        self._clock = clock
        self._limits = limits or Limits()
        self.speed = LinkSpeed()
        self.costs: Mapping[WireFormat, FormatCost] = {}
        self._since_sample = SAMPLE_AGAIN
        self._reads: frozenset[str] = frozenset()
        self._told: dict[str, Dictionary] = {}
        self._heard = Dictionaries()

    def began(self) -> Formats:
        """A session begins: what is said first in it."""
        self._reads = frozenset()
        self._told = {}
        self._heard = Dictionaries()
        self.speed.restart()
        return Formats(readable_formats())

    def sent(self, number: int, payloads: Sequence[Payload], now: float) -> None:
        """A frame with these payloads is sent."""
        if self._chosen == AUTO:
            self.speed.sent(number, sum(map(size_of, payloads)), now)

    def acknowledged(self, number: int, now: float) -> None:
        """All frames up to this one have come."""
        if self._chosen == AUTO:
            self.speed.acknowledged(number, now)

    @property
    def format(self) -> WireFormat:
        """In which messages are sent now."""
        if self._chosen != AUTO:
            wanted = WireFormat(self._chosen)
            return wanted if wanted.value in self._reads else WireFormat.TEXT
        bandwidth = self.speed.bandwidth
        if not self.costs or bandwidth is None:
            return WireFormat.TEXT
        return best_format(bandwidth, self.costs)

    def outgoing(self, payload: Payload) -> Payload:
        """What is sent in the place of a payload."""
        if isinstance(payload, Announce):
            for said in payload.announcements:
                dictionary = _dictionary_of(said)
                if dictionary is not None and _has_room(list(self._told.values()), dictionary):
                    self._told[said.key] = dictionary
        if not isinstance(payload, Forward) or not payload.messages or not self._reads:
            return payload
        self._sample(payload.messages)
        format = self.format
        if format is WireFormat.TEXT:
            return payload
        return msgspec.structs.replace(payload, messages=self._packed(payload.messages, format))

    def incoming(self, payload: _P) -> _P:
        """What was meant.

        Raises:
            PeerError: A message that cannot be read in its format (`overlay.format`).
        """
        if isinstance(payload, Formats):
            self._reads = frozenset(payload.names) & _KNOWN
        elif isinstance(payload, Announce):
            for said in payload.announcements:
                dictionary = _dictionary_of(said)
                if dictionary is not None and _has_room(list(self._heard), dictionary):
                    self._heard.add(dictionary)
        elif isinstance(payload, Forward) and any(each.format for each in payload.messages):
            return msgspec.structs.replace(payload, messages=self._unpacked(payload.messages))
        return payload

    def _packed(self, messages: Sequence[Published], format: WireFormat) -> tuple[Published, ...]:
        ways: dict[str, list[int]] = {}
        for place, each in enumerate(messages):
            if not each.format and self._can_pack(each.body):
                ways.setdefault(each.source, []).append(place)
        packed = list(messages)
        for source, places in ways.items():
            dictionary = self._told.get(source) if format.encoding == "dictionary" else None
            used = format if dictionary or format.encoding != "dictionary" else _plain(format)
            bodies = encode([messages[place].body for place in places], used, dictionary)
            for place, body in zip(places, bodies.to_pylist(), strict=True):
                packed[place] = msgspec.structs.replace(
                    messages[place], format=used.value, body=body
                )
        return tuple(packed)

    def _can_pack(self, body: bytes) -> bool:
        """Whether the other end gets it back: not what looks like a stream, nor what is long."""
        return body[:1] not in _STREAMS and len(body) <= self._limits.message_bytes_max

    def _unpacked(self, messages: Sequence[Published]) -> tuple[Published, ...]:
        ways: dict[str, list[int]] = {}
        for place, each in enumerate(messages):
            if each.format:
                ways.setdefault(each.format, []).append(place)
        unpacked = list(messages)
        for name, places in ways.items():
            if name not in _KNOWN:
                raise self._refusal(name, "it is none")
            try:
                format, bodies = WireFormat(name), [messages[place].body for place in places]
                found = decode(bodies, format, self._heard, limits=self._limits)
            except MissingDependencyError as error:
                raise self._refusal(name, error.message) from error
            for _, refused in found.refusals:
                raise self._refusal(name, refused.message) from refused
            for place, body in zip(places, found.messages.to_pylist(), strict=True):
                unpacked[place] = msgspec.structs.replace(messages[place], format="", body=body)
        return tuple(unpacked)

    def _refusal(self, name: str, reason: str) -> PeerError:
        return PeerError("overlay.format", peer=self._peer, format=name[:40], reason=reason)

    def _sample(self, messages: Sequence[Published]) -> None:
        """Measures the formats now and then, on what goes over the link."""
        self._since_sample += len(messages)
        if self._chosen != AUTO or self._clock is None or self._since_sample < SAMPLE_AGAIN:
            return
        self._since_sample = 0
        sample = [each for each in messages if not each.format][:SAMPLE_MESSAGES]
        if sample:
            known = Dictionaries(self._told.values())
            readable = [each for each in WireFormat if each.value in self._reads]
            self.costs = {each: self._cost(each, sample, known, self._clock) for each in readable}

    def _cost(
        self,
        format: WireFormat,
        sample: Sequence[Published],
        known: Dictionaries,
        clock: Callable[[], float],
    ) -> FormatCost:
        began = clock()
        packed = self._packed(sample, format) if format is not WireFormat.TEXT else tuple(sample)
        for each in packed:
            if each.format:
                decode([each.body], WireFormat(each.format), known, limits=self._limits)
        seconds = clock() - began
        size = sum(len(each.body) for each in packed)
        return FormatCost(size / len(sample), seconds / len(sample))


_STREAMS: Final = (b"\x01", b"\x02")
_KNOWN: Final = frozenset(each.value for each in WireFormat)


def _plain(format: WireFormat) -> WireFormat:
    """The format without a dictionary: names are said in the message."""
    return WireFormat(format.value.replace("dictionary", "stream"))


def _dictionary_of(said: Announcement) -> Dictionary | None:
    """The dictionary of an announcement; None where there is none, or one that is not any."""
    body = said.body
    if not isinstance(body, Source) or not body.dictionary:
        return None
    try:
        return Dictionary(body.dictionary)
    except ConfigError:
        return None


def _has_room(known: Sequence[Dictionary], dictionary: Dictionary) -> bool:
    versions = {each.version for each in known}
    return dictionary.version in versions or len(versions) < DICTIONARIES_MAX


def check_format(name: str) -> None:
    """Refuses what is neither "auto" nor a wire format that can be written here.

    Raises:
        ConfigError: It is none.
    """
    if name != AUTO and name not in readable_formats():
        reason = f"{name!r} is neither {AUTO!r} nor one of {', '.join(readable_formats())}"
        raise ConfigError("config.invalid", key="format", reason=reason)
