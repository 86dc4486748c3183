"""Compression of messages on links: zstd, with a dictionary sampled from what a source publishes.

Messages of one source resemble each other, and each is compressed alone, so that any can be lost or
cut out. The root of a source takes a sample of what is published, trains a dictionary from it,
and tells the dictionary to a neighbour with the first messages that use it. A broker further down
uses the dictionary that it was told, so a source's messages have one dictionary on all links.

Example:
    >>> here = LinkCompression("b", "zstd", SourceDictionaries("a"))
    >>> there = LinkCompression("a", "text", SourceDictionaries("b"))
    >>> order = b"<order>" + b"<item>tea</item>" * 9 + b"</order>"
    >>> told = Forward("a", 1, 1, 0, 1, (StreamMessage(1, "shop", "m1", 1, "", False, 0, order),))
    >>> packed = here.outgoing(told)
    >>> packed.messages[0].format, len(packed.messages[0].body) < 50
    ('zstd', True)
    >>> there.incoming(packed) == told
    True

It chooses no format: an operator does, for each neighbour. It knows no connection.

Source: 001, 4.3.2 (six formats; which one to choose is left open) and section 5, Figure 10 (message
pre- and post-processor). Differs: docs/adr/0017.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, Final, TypeVar

import msgspec

from pathcast.errors import ConfigError, MissingDependencyError, PeerError, extra
from pathcast.overlay.messages import (
    DICTIONARY_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    Forward,
    Payload,
    StreamMessage,
)

TEXT: Final = "text"
ZSTD: Final = "zstd"
FORMATS: Final = (TEXT, ZSTD)

LEVEL: Final = 3
"""The library's own default."""

PACKED_BYTES_MIN: Final = 64
"""Shorter messages stay text: a frame's header is a fifth of them."""

SAMPLE_BYTES: Final = 128 << 10
SAMPLE_MESSAGES: Final = 16
"""Least bytes and messages of a sample; training from one takes about 20 ms, once in
`RENEW_SECONDS` and source."""
SAMPLED_BYTES_MAX: Final = 16 << 10
"""Bytes of one message that a sample takes."""
RENEW_SECONDS: Final = 3600.0
"""Age at which a source is sampled again."""
MESSAGES_REMEMBERED: Final = 16
"""Messages whose compressed form is kept for the next link; a message goes to all links at once."""
SOURCES_MAX: Final = 32
"""Sources with a dictionary, of one broker and of one direction of a session; half a MiB each."""

_P = TypeVar("_P", bound=Payload)


class ZstdCodec:
    """Compresses and decompresses single messages, without a dictionary."""

    @cached_property
    def compress(self) -> Callable[[bytes], bytes]:
        """Compress a message; a message that goes over several links is compressed once."""
        return lru_cache(MESSAGES_REMEMBERED)(self._compressor().compress)

    @cached_property
    def decompressor(self) -> Any:
        """Decompresses messages."""
        return zstandard().ZstdDecompressor()

    def _compressor(self) -> Any:
        return zstandard().ZstdCompressor(level=LEVEL)


class TrainedDictionary(ZstdCodec):
    """A dictionary of zstd with its number; compresses and decompresses messages of its source.

    Args:
        data: As `zstandard.train_dictionary` wrote it.

    Raises:
        MissingDependencyError: zstandard is not installed.
        ConfigError: These bytes are no trained dictionary.
    """

    def __init__(self, data: bytes) -> None:
        library = zstandard()
        self.data = data
        self._dictionary = library.ZstdCompressionDict(data)
        self.number: int = self._dictionary.dict_id()
        if not self.number:
            raise ConfigError("config.invalid", key="dictionary", reason="it was not trained")

    @classmethod
    def of(cls, sample: Sequence[bytes]) -> TrainedDictionary | None:
        """Train a dictionary; None if the sample has too little in common. Cost: about 20 ms."""
        library = zstandard()
        # Numbers below 2**15 and above 2**31 are reserved.
        digest = int.from_bytes(sha256(b"".join(sample)).digest()[:4], "little")
        number = (1 << 15) + digest % ((1 << 31) - (1 << 15))
        try:
            found = library.train_dictionary(
                DICTIONARY_BYTES_MAX, list(sample), k=1024, d=8, dict_id=number, level=LEVEL
            )
        except library.ZstdError:
            return None
        return cls(found.as_bytes())

    @cached_property
    def decompressor(self) -> Any:
        """Decompresses messages that were compressed with this dictionary."""
        return zstandard().ZstdDecompressor(dict_data=self._dictionary)

    def _compressor(self) -> Any:
        self._dictionary.precompute_compress(level=LEVEL)
        return zstandard().ZstdCompressor(level=LEVEL, dict_data=self._dictionary)


@dataclass(slots=True)
class _Sample:
    due: float
    seen: float
    position: int = 0
    size: int = 0
    messages: list[bytes] = field(default_factory=list)


class SourceDictionaries:
    """The dictionaries of one broker: those that it trains as a root, and those that it was told.

    Both are bounded by `SOURCES_MAX`. A source that is not published to for `RENEW_SECONDS` gives
    its place to another one.

    Args:
        broker: Its name.

    Attributes:
        plain: Compresses messages of sources without a dictionary.
    """

    def __init__(self, broker: str) -> None:
        self.plain = ZstdCodec()
        self._broker = broker
        self._now = 0.0
        self._samples: dict[str, _Sample] = {}
        self._dictionaries: dict[str, TrainedDictionary] = {}

    def of(self, source: str) -> TrainedDictionary | None:
        """The dictionary of a source; None while there is none."""
        return self._dictionaries.get(source)

    def time_is(self, now: float) -> None:
        """Set the time, in seconds, by which dictionaries age."""
        self._now = now

    def observe(self, root: str, messages: Sequence[StreamMessage]) -> None:
        """Take messages that were published here into the samples of their sources, if due.

        Args:
            root: Of the stream that the messages are from; other brokers' streams are not sampled.
            messages: As they go over any link; each counts once.
        """
        if root != self._broker:
            return
        for one in messages:
            if len(one.body) >= PACKED_BYTES_MIN and not one.format:
                self._sample(one)

    def _sample(self, one: StreamMessage) -> None:
        now = self._now
        sample = self._samples.get(one.source)
        if sample is None:
            if not self._has_place(now):
                return
            sample = self._samples[one.source] = _Sample(now, now)
        sample.seen = now
        if now < sample.due or one.position <= sample.position:
            return
        sample.position = one.position
        sample.messages.append(one.body[:SAMPLED_BYTES_MAX])
        sample.size += len(sample.messages[-1])
        if sample.size < SAMPLE_BYTES or len(sample.messages) < SAMPLE_MESSAGES:
            return
        found = TrainedDictionary.of(sample.messages)
        self._samples[one.source] = _Sample(now + RENEW_SECONDS, now, one.position)
        if found is not None:
            self._dictionaries[one.source] = found

    def adopt(self, source: str, dictionary: TrainedDictionary) -> None:
        """Use a neighbour's dictionary for a source that is not published here."""
        known = source in self._dictionaries or len(self._dictionaries) < SOURCES_MAX
        if source not in self._samples and known:
            self._dictionaries[source] = dictionary

    def _has_place(self, now: float) -> bool:
        if len(self._samples) < SOURCES_MAX:
            return True
        oldest = min(self._samples, key=lambda source: self._samples[source].seen)
        if now - self._samples[oldest].seen < RENEW_SECONDS:
            return False
        del self._samples[oldest]
        self._dictionaries.pop(oldest, None)
        return True


class LinkCompression:
    """One end of a link.

    Args:
        peer: The other end, for errors.
        format: Of messages that are sent: one of `FORMATS`.
        dictionaries: Of this broker.

    Attributes:
        text_bytes: Of messages that were sent, before compression.
        sent_bytes: Of the same, as they were sent.
    """

    def __init__(self, peer: str, format: str, dictionaries: SourceDictionaries) -> None:
        self._peer = peer
        self.format = format
        self._dictionaries = dictionaries
        self.text_bytes = self.sent_bytes = 0
        self._told: dict[str, int] = {}
        self._heard: dict[str, TrainedDictionary] = {}

    def began(self) -> None:
        """Forget the dictionaries of the last session."""
        self._told = {}
        self._heard = {}

    def outgoing(self, payload: Payload) -> Payload:
        """The payload as it is sent: its messages compressed, with dictionaries that are new."""
        if not isinstance(payload, Forward) or not payload.messages:
            return payload
        self.text_bytes += sum(len(one.body) for one in payload.messages)
        if self.format == ZSTD:
            self._dictionaries.observe(payload.root, payload.messages)
            payload = self._packed(payload)
        self.sent_bytes += sum(len(one.body) for one in payload.messages)
        return payload

    def incoming(self, payload: _P) -> _P:
        """The payload as it was before `outgoing`.

        Raises:
            PeerError: A dictionary or a message that cannot be read (`overlay.format`), or messages
                of more than `MESSAGE_BYTES_MAX` together.
        """
        if not isinstance(payload, Forward):
            return payload
        for source, data in payload.dictionaries:
            self._hear(source, data)
        if not payload.dictionaries and not any(one.format for one in payload.messages):
            return payload
        room = MESSAGE_BYTES_MAX
        messages = []
        for one in payload.messages:
            body = self._unpacked(one, room) if one.format else one.body
            room -= len(body)
            messages.append(msgspec.structs.replace(one, format="", body=body))
        return msgspec.structs.replace(payload, messages=tuple(messages), dictionaries=())

    def _packed(self, payload: Forward) -> Forward:
        room = MESSAGE_BYTES_MAX
        messages, new = [], []
        for one in payload.messages:
            room -= len(one.body)
            if len(one.body) < PACKED_BYTES_MIN or one.format or room < 0:
                messages.append(one)
                continue
            dictionary = self._dictionaries.of(one.source)
            told = self._told.get(one.source)
            if dictionary is not None and told != dictionary.number:
                if told is None and len(self._told) >= SOURCES_MAX:
                    dictionary = None
                else:
                    self._told[one.source] = dictionary.number
                    new.append((one.source, dictionary.data))
            packed = (dictionary or self._dictionaries.plain).compress(one.body)
            if len(packed) < len(one.body):
                one = msgspec.structs.replace(one, format=ZSTD, body=packed)
            messages.append(one)
        return msgspec.structs.replace(payload, messages=tuple(messages), dictionaries=tuple(new))

    def _hear(self, source: str, data: bytes) -> None:
        if source not in self._heard and len(self._heard) >= SOURCES_MAX:
            raise self._refusal(ZSTD, f"more than {SOURCES_MAX} dictionaries")
        try:
            dictionary = TrainedDictionary(data)
        except (ConfigError, MissingDependencyError) as error:
            raise self._refusal(ZSTD, error.message) from error
        self._heard[source] = dictionary
        self._dictionaries.adopt(source, dictionary)

    def _unpacked(self, one: StreamMessage, room: int) -> bytes:
        """The body of a compressed message.

        Raises:
            PeerError: See `incoming`.
        """
        if one.format != ZSTD:
            raise self._refusal(one.format, "it is none")
        try:
            library = zstandard()
        except MissingDependencyError as error:
            raise self._refusal(ZSTD, error.message) from error
        try:
            told = library.frame_content_size(one.body)
            if told < 0:
                raise self._refusal(ZSTD, "it does not say its length")
            if told > room:
                raise self._refusal(ZSTD, f"{told} bytes, and {room} are allowed")
            number = library.get_frame_parameters(one.body).dict_id
            dictionary = self._heard.get(one.source) if number else None
            if number != (0 if dictionary is None else dictionary.number):
                raise self._refusal(ZSTD, f"its dictionary {number} was not told")
            unpack = (dictionary or self._dictionaries.plain).decompressor
            body: bytes = unpack.decompress(one.body, allow_extra_data=False)
        except library.ZstdError as error:
            raise self._refusal(ZSTD, str(error)) from None
        return body

    def _refusal(self, name: str, reason: str) -> PeerError:
        return PeerError("overlay.format", peer=self._peer, format=name[:40], reason=reason)


def check_format(name: str) -> None:
    """Refuses a format that does not exist, or cannot be written here.

    Raises:
        ConfigError: With what to write instead.
        MissingDependencyError: zstandard is not installed.
    """
    if name not in FORMATS:
        reason = f"{name!r} is neither {TEXT!r} nor {ZSTD!r}"
        if name == "auto" or name.partition("+")[0] in ("text", "stream", "dictionary"):
            reason = f"{name!r} has ended: write {ZSTD!r}, which samples a dictionary itself"
        raise ConfigError("config.invalid", key="format", reason=reason)
    if name == ZSTD:
        zstandard()


def zstandard() -> Any:
    """The library.

    Raises:
        MissingDependencyError: It is not installed.
    """
    with extra("net", "zstd"):
        import zstandard as library
    return library
