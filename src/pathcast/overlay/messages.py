"""Messages between brokers, as data.

A connection carries `SessionHello` and `SessionFrame`; a frame carries payloads, the messages of
the planes. Decoding checks the shape of everything that comes from outside (types, lengths,
ranges), so that no plane looks at a malformed one; whether it makes sense is checked where it is
used.

Example:
    >>> frame = SessionFrame(mine=5, theirs=9, number=1, acknowledged=0, payloads=(Settled("", 3),))
    >>> decoded(encoded(frame)) == frame
    True
    >>> decoded(b"no frame")
    Traceback (most recent call last):
        ...
    pathcast.errors.PeerError: a frame cannot be read: Expected `object`, got `int`

Source: 001, section 5 (Figure 10): control, query, catalog and message flows.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pathcast.errors import PeerError
from pathcast.model import STEPS_MAX
from pathcast.moments import MOMENT_US_MAX, MOMENT_US_MIN
from pathcast.overlay.lives import Lives

BUSY_SECONDS_MAX = 600.0
"""For how long an end may say that nothing is heard of it: that it has gone would be as late."""

NUMBER_MAX = 2**62
"""Counters and session numbers stay below; a forged one cannot bring a counter to its end."""

MESSAGE_BYTES_MAX = 64 * 1024 * 1024
"""Bytes of a message that brokers take from each other, in parts."""

NAME_CHARACTERS_MAX = 128
"""Of a broker, a source and a message."""
Name = Annotated[str, Meta(min_length=1, max_length=NAME_CHARACTERS_MAX)]
Tree = Annotated[str, Meta(max_length=128)]
Number = Annotated[int, Meta(ge=0, lt=NUMBER_MAX)]
Moment = Annotated[int, Meta(ge=MOMENT_US_MIN, le=MOMENT_US_MAX)]
"""Microseconds since the beginning of 1970 in UTC, of the years 1 to 9999."""
ENTRY_MAX = 1_114_112
"""Characters of an entry, most of which are the values of its lists."""
Entry = Annotated[str, Meta(max_length=ENTRY_MAX)]
TEXT_MAX = 1_048_576
"""Characters of a schema that is announced."""
Text = Annotated[str, Meta(max_length=TEXT_MAX)]
DICTIONARY_BYTES_MAX = 16_384
"""Bytes of a zstd dictionary of a source."""
ZstdDictionary = Annotated[bytes, Meta(max_length=DICTIONARY_BYTES_MAX)]


class Presence(msgspec.Struct, frozen=True, tag=True):
    """A broker's announcement of itself.

    Attributes:
        links: Neighbours that it hears, with the cost of the link.
        stream: Number of the stream of messages that it is the root of; a greater one after its
            disk was lost, or an older one took its place.
        roster: Digest of the brokers that it knows as members (`roster_digest`).
        term: Last expulsion of it that it knows of.
        left: It is a member no longer; nothing is kept for it.
        began: Grows with each life of it, with its clock: of two processes of one name, the one
            that began later stays; of equal ones, the one with the greater incarnation.
        lives: History of its stream (`pathcast.overlay.lives`).
    """

    links: tuple[tuple[Name, Number], ...] = ()
    stream: Number = 0
    roster: Number = 0
    term: Number = 0
    left: bool = False
    began: Number = 0
    lives: Lives = ()


class SourceEntry(msgspec.Struct, frozen=True, tag="Source"):
    """An entry of the catalog: a data source of a root broker.

    Attributes:
        schema: Location or text of its schema.
        schema_version: Number of the schema; travels in the header of each message.
        withdrawn: The source is no more.
        validated: Whether its root takes valid messages only.
    """

    schema: Text = ""
    schema_version: Number = msgspec.field(default=0, name="dictionary_version")
    withdrawn: bool = False
    validated: bool = False


class Expelled(msgspec.Struct, frozen=True, tag=True):
    """An operator took the owner out of the network: nothing is kept for it until it knows.

    The version of the announcement is the number of the expulsion.
    """


class StreamEnded(msgspec.Struct, frozen=True, tag=True):
    """The streams of the owner up to this one are over: it is to begin another one.

    A host says so that has followed a later stream than the one that is announced: the root began
    again with an older disk. The elder of two processes of one name says so of its own stream, if
    it has messages that the other one has not.
    """

    stream: Number


class Announcement(msgspec.Struct, frozen=True, tag=True):
    """Something that all brokers are to know: the latest of an owner and key holds.

    Attributes:
        owner: The broker whose it is.
        key: "" for its presence, "!" for its expulsion, "!stream" for the end of streams, else the
            id of a source.
        version: Grows with each change.
        incarnation: Of the life of the owner that said it; decides between equal versions.
        body: What is announced.
    """

    owner: Name
    key: Tree
    version: Number
    incarnation: Number
    body: Presence | Expelled | StreamEnded | SourceEntry


class Announce(msgspec.Struct, frozen=True, tag=True):
    """Control and catalog flow: announcements that are new to the neighbour."""

    announcements: tuple[Announcement, ...]


class Interest(msgspec.Struct, frozen=True, tag=True):
    """Query flow: what has changed of what the sender and all behind it want.

    Attributes:
        tree: Whose tables: "" for the one spanning tree, else the root broker's name.
        number: Grows with each that is sent to this neighbour; 1 is the first of a session.
        whole: What was told before is void; `added` begins the table anew.
        added: Entries (disjuncts) that are wanted from now on.
        removed: Entries that are not wanted any more. Both happen at once.
    """

    tree: Tree
    number: Number
    whole: bool
    added: tuple[Entry, ...]
    removed: tuple[Entry, ...]


class Settled(msgspec.Struct, frozen=True, tag=True):
    """Query flow: all interest up to `number` is in the tables of all brokers behind the sender."""

    tree: Tree
    number: Number


class Detach(msgspec.Struct, frozen=True, tag=True):
    """Query flow: the link between the two is no part of the tree any more; tables are void."""

    tree: Tree


class FollowStream(msgspec.Struct, frozen=True, tag="Follow"):
    """Message flow: send what follows a position of a stream.

    Attributes:
        root: Root broker of the stream.
        stream: Its number.
        generation: Grows with each that is sent; comes back in each `Forward` that answers it.
        after: Everything up to this position is had by the sender and all behind it.
        life: That numbered this position, as far as the sender knows.
    """

    root: Name
    stream: Number
    generation: Number
    after: Number
    life: Number = 0


class StreamMessage(msgspec.Struct, frozen=True, tag="Published", omit_defaults=True):
    """A message with its header.

    Attributes:
        position: In the stream of its root, from 1.
        source: Data source.
        message: Id of the message, from the bytes that were published.
        schema_version: Of the source's schema, 0 for none.
        format: "zstd" if `body` is compressed, else "" (`pathcast.overlay.compression`).
        trace: Brokers are to remember from whom they have it (`Broker.arrivals`).
        time: When it was, which is what `current-dateTime()` says at every host: its publisher gave
            it, or it is when the message arrived at its root.
        body: The message.
        considers: None: it is whole. Else it was cut on its way, and wherever it was, all was
            considered that the receiver had told in its tree up to this number (`Interest`).
        steps: How many steps were done to it, which all profiles begin with that were considered.
    """

    position: Number
    source: Tree
    message: Name
    schema_version: Number = msgspec.field(name="dictionary_version")
    format: Tree
    trace: bool
    time: Moment
    body: bytes
    considers: Number | None = None
    steps: Annotated[int, Meta(ge=0, le=STEPS_MAX)] = 0


class Forward(msgspec.Struct, frozen=True, tag=True):
    """Message flow: all that the receiver's side wants of the positions in (after, upto].

    Attributes:
        root: Root broker of the stream.
        stream: Its number.
        generation: Of the `FollowStream` that it answers.
        after: Position after which it begins.
        upto: ... and of its end.
        messages: Those that are wanted.
        life: That numbered the position `upto`.
        dictionaries: Source and zstd dictionary, of those that messages use from here on.
    """

    root: Name
    stream: Number
    generation: Number
    after: Number
    upto: Number
    messages: tuple[StreamMessage, ...]
    life: Number = 0
    dictionaries: Annotated[tuple[tuple[Tree, ZstdDictionary], ...], Meta(max_length=64)] = ()


class MessageBegin(msgspec.Struct, frozen=True, tag=True):
    """Message flow: a message that the receiver's side wants comes in parts.

    It is followed by its `MessagePart`s and, of this stream, by nothing else until the last of them
    or a `MessageDropped`. With the last one everything up to its position has come.

    Attributes:
        root: Root broker of the stream.
        stream: Its number.
        generation: As of `Forward`.
        after: As of `Forward`: of the positions between, nothing is wanted.
        total: Bytes of its body.
        message: Its header, and the first bytes of its body.
        life: That numbered its position.
    """

    root: Name
    stream: Number
    generation: Number
    after: Number
    total: Annotated[int, Meta(ge=1, le=MESSAGE_BYTES_MAX)]
    message: StreamMessage
    life: Number = 0


class MessagePart(msgspec.Struct, frozen=True, tag=True):
    """Message flow: the next bytes of a message that has begun.

    Attributes:
        root: Root broker of the stream.
        stream: Its number.
        generation: As of `Forward`.
        position: Of the message.
        offset: Bytes of its body that have come before.
        body: Those that follow.
    """

    root: Name
    stream: Number
    generation: Number
    position: Number
    offset: Number
    body: Annotated[bytes, Meta(min_length=1)]


class MessageDropped(msgspec.Struct, frozen=True, tag=True):
    """Message flow: the rest of a message that has begun does not come; its parts are void."""

    root: Name
    stream: Number
    generation: Number
    position: Number


class PositionPassed(msgspec.Struct, frozen=True, tag="Passed"):
    """Message flow, backwards: up to which position hosts have had a stream, safely.

    Attributes:
        root: Root broker of the stream.
        stream: Its number.
        positions: Host, position, and the life that numbered it.
    """

    root: Name
    stream: Number
    positions: tuple[tuple[Name, Number, Number], ...]


class Trimmed(msgspec.Struct, frozen=True, tag=True):
    """Message flow: the positions in (after, upto] are not kept any more, and do not come.

    Attributes:
        root: Root broker of the stream.
        stream: Its number.
        generation: As of `Forward`.
        after: Up to here everything has come that the receiver's side wants.
        upto: Here the log of the root begins.
        life: That numbered the position `upto`.
        given_up: The root gave positions up to this one up for members that had not had them. All
            members of then had had those after it. None: an older broker does not say.
    """

    root: Name
    stream: Number
    generation: Number
    after: Number
    upto: Number
    life: Number = 0
    given_up: Number | None = None


InParts = MessageBegin | MessagePart | MessageDropped
"""The packets of a message that comes in parts."""


Payload = (
    Announce
    | Interest
    | Settled
    | Detach
    | FollowStream
    | Forward
    | InParts
    | Trimmed
    | PositionPassed
)


class SessionHello(msgspec.Struct, frozen=True, tag="Hello"):
    """Offers a session, or answers an offer.

    Attributes:
        mine: Number that the sender offers for its end.
        theirs: Number that it has heard from the other end; 0 for none.
    """

    mine: Number
    theirs: Number


class SessionFrame(msgspec.Struct, frozen=True, tag="Frame", omit_defaults=True):
    """Payloads of one session between two neighbours.

    Attributes:
        mine: Number of the session at the sender's end.
        theirs: Number of the session at the receiver's end.
        number: Of the frame, from 1; 0 if it carries an acknowledgement alone.
        acknowledged: All frames up to this one have come.
        payloads: In their order.
        busy_seconds: Of number 0: for so long the link may have to do with what is sent after this
            frame, and bring no other word of the sender.
    """

    mine: Number
    theirs: Number
    number: Number
    acknowledged: Number
    payloads: tuple[Payload, ...]
    busy_seconds: Annotated[float, Meta(ge=0, le=BUSY_SECONDS_MAX)] = 0.0


def size_of(payload: Payload) -> int:
    """Bytes of what is long in a payload: bodies of messages and entries; about, and at least 1."""
    match payload:
        case Forward(messages=messages, dictionaries=dictionaries):
            told = sum(len(data) for _, data in dictionaries)
            return 1 + told + sum(len(one.body) for one in messages)
        case MessageBegin(message=message):
            return 1 + len(message.body)
        case MessagePart(body=body):
            return 1 + len(body)
        case Interest(added=added, removed=removed):
            return 1 + sum(map(len, added)) + sum(map(len, removed))
        case Announce(announcements=said):
            return 1 + sum(size_of_body(one.body) for one in said)
    return 1


def size_of_body(body: Presence | Expelled | StreamEnded | SourceEntry) -> int:
    """Bytes of what is long in an announcement: schema of a source; at least 1."""
    if isinstance(body, SourceEntry):
        return 1 + len(body.schema)
    return 1


_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[SessionHello | SessionFrame] = msgspec.msgpack.Decoder(
    SessionHello | SessionFrame
)


def encoded(message: SessionHello | SessionFrame) -> bytes:
    """The bytes that `decoded` reads."""
    return _ENCODER.encode(message)


def decoded(data: bytes) -> SessionHello | SessionFrame:
    """A message from bytes that anybody may have sent.

    Raises:
        PeerError: They are none (`overlay.frame`).
    """
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError("overlay.frame", reason=str(error)) from None
