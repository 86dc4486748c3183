"""Messages between the peers of a ring, as data.

Every message is a question with a number (`Ask`) or the answer to one (`Answer`). A question names
the life it is put to: a peer that was begun again is another member, and says so (`Absent`).
What is asked of pieces stands in `pathcast.dht.piece_messages`. Decoding checks the shape of what
comes from outside.

Example:
    >>> ask = Ask(number=3, life=0, what=Get("start"))
    >>> decoded(encoded(ask)) == ask
    True
    >>> decoded(b"no message")
    Traceback (most recent call last):
        ...
    pathcast.errors.PeerError: a message of the ring cannot be read: Expected `array`, got `int`
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from pathcast.dht.identifiers import identifier
from pathcast.dht.piece_messages import Body, PieceQuestion, Place
from pathcast.errors import PeerError

Number = Annotated[int, Meta(ge=0, lt=2**62)]
Key = Annotated[str, Meta(max_length=65_536)]
RECORD_MAX: Final = 1_048_576
"""Bytes that lie under one key."""

Content = Annotated[bytes, Meta(max_length=RECORD_MAX)]


class _Message(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    pass


class Member(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """One life of a peer. Two lives of one peer have different places on the ring."""

    name: Annotated[str, Meta(min_length=1, max_length=128)]
    life: Number

    @property
    def identifier(self) -> int:
        """Where it stands on the circle."""
        return _identifier(self.name, self.life)


@lru_cache(maxsize=65_536)
def _identifier(name: str, life: int) -> int:
    return identifier(f"{life} {name}")


Members = Annotated[tuple[Member, ...], Meta(max_length=256)]


class RingRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The value of a key, with its version.

    Attributes:
        key: Any text.
        value: None: removed.
        version: 1 for the first, one more with each change.
        write: Which `put` made it; tells a repetition from a change by somebody else.
    """

    key: Key
    value: Content | None
    version: Number
    write: Annotated[str, Meta(max_length=256)]


class Known(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Which record whoever asks for a key has itself; version 0: none."""

    key: Key
    version: Number
    write: Annotated[str, Meta(max_length=256)]

    @classmethod
    def of(cls, key: str, record: RingRecord | None) -> Known:
        """That of a record, or none."""
        return cls(key, 0, "") if record is None else cls(key, record.version, record.write)


class Custody(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The holders of all records of an arc (`pathcast.dht.custody`).

    Attributes:
        low: The arc begins after this place.
        high: And ends with this one.
        number: Greater than that of any custody of a part of the arc before.
        owner: Who acknowledges changes.
        holders: Who has all that was acknowledged.
        leaving: Who held it before, and has to be told that it does not any more.
        is_whole: Whether nothing has been lost that was not restored.
        given_at: How often holders had dropped copies when they were given all records.
    """

    low: Place
    high: Place
    number: Number
    owner: Member
    holders: Members
    leaving: Members
    is_whole: bool
    given_at: Annotated[tuple[tuple[Member, Number], ...], Meta(max_length=256)] = ()


Batch = Annotated[tuple[RingRecord, ...], Meta(max_length=4096)]


class Read(_Message, frozen=True):
    """What is your predecessor, what are your successors? Answer: `State`."""


class RouteRequest(_Message, frozen=True, tag="Step"):
    """Who comes next on the way to a place? Answer: `RouteReply`. `avoid` have not answered."""

    to: Place
    avoid: Members


class Rectify(_Message, frozen=True):
    """I take you for my successor: am I nearer than your predecessor, or is it dead?"""

    member: Member


class Leaving(_Message, frozen=True):
    """I am gone as soon as you read this."""

    member: Member


class Alive(_Message, frozen=True):
    """Are you there, with a lease? Answer: `Done`."""


class Renew(_Message, frozen=True):
    """Renew my lease, you of the base. Answer: `Done`; `RequestRefused` if it was expelled."""

    member: Member


class ExpelMember(_Message, frozen=True, tag="Expel"):
    """Renew this member's lease no more: it is silent, and all of the base are there."""

    member: Member


class Missing(_Message, frozen=True):
    """Who was expelled of late, and may come back with subscriptions? Answer: `Away`."""


class Fetch(_Message, frozen=True):
    """What do you hold under these keys? Answer: `Held`."""

    known: Annotated[tuple[Known, ...], Meta(max_length=4096)]


class Range(_Message, frozen=True):
    """What do you hold in (low, high], after a key? Answer: `RecordCopies`, by keys."""

    low: Place
    high: Place
    after: Key | None


class Copy(_Message, frozen=True):
    """Hold these as well. Answer: `CopiesHeld`."""

    records: Batch


class Claims(_Message, frozen=True):
    """What do you know of the custody of (low, high]? Answer: `Claimed`."""

    low: Place
    high: Place


class Hold(_Message, frozen=True):
    """Let this be the custody from now on. Answer: `Done`, or what is known against it.

    Attributes:
        custody: What is proposed.
        based_on: Number of the custody that it replaces, the greatest that its owner knows.
    """

    custody: Custody
    based_on: Number


class Holders(_Message, frozen=True):
    """Which custody of your range was agreed to? Answer: `Claimed`."""


class Get(_Message, frozen=True):
    """What does this key have? Answer: `Value`, `Later`."""

    key: Key


class Put(_Message, frozen=True):
    """Change a key of that version. Answer: `Stored`, `Conflict`, `Later`."""

    key: Key
    value: Content | None
    based_on: Number
    write: Annotated[str, Meta(max_length=256)]


class State(_Message, frozen=True):
    """Pointers of a member."""

    predecessor: Member | None
    successors: Members


class RouteReply(_Message, frozen=True, tag="Hop"):
    """Members on the way, nearest to the place first; `done`: they are what follows the place."""

    members: Members
    done: bool


class RecordCopies(_Message, frozen=True, tag="Records"):
    """Records held; `more` if there was no room for all."""

    records: Batch
    more: bool


class Held(_Message, frozen=True):
    """The values of the first `count` keys that were asked for; the rest had no room.

    Attributes:
        records: Those that whoever asks does not have.
        same: Places of keys whose record is the one it has.
        count: Of the keys.
    """

    records: Batch
    same: Annotated[tuple[Number, ...], Meta(max_length=4096)]
    count: Annotated[int, Meta(ge=0, le=4096)]


class CopiesHeld(_Message, frozen=True, tag="Copied"):
    """Which copies are held.

    Attributes:
        refused: All are held but those at these places, which are older than mine, or beside it.
        droppings: How often this member has dropped copies (`pathcast.dht.surplus`).
    """

    refused: Annotated[tuple[Number, ...], Meta(max_length=4096)]
    droppings: Number = 0


class Claimed(_Message, frozen=True):
    """Custody that is known of an arc, and who comes before and next on the ring."""

    custodies: Annotated[tuple[Custody, ...], Meta(max_length=4096)]
    predecessor: Member | None
    successors: Members


class Away(_Message, frozen=True):
    """Names of peers of which a life was expelled in the last `absent_seconds`."""

    names: Annotated[tuple[str, ...], Meta(max_length=65_536)]


class Value(_Message, frozen=True):
    """Value and version; None and the version of the removal (or 0) if there is none."""

    value: Content | None
    version: Number


class Stored(_Message, frozen=True):
    """The change is held by as many members as there must be."""

    version: Number


class Conflict(_Message, frozen=True):
    """The key has another version than the change is based on."""

    version: Number


class Done(_Message, frozen=True):
    """The request was carried out."""


class RequestRefused(_Message, frozen=True, tag="Refused"):
    """I know nothing of that."""


class Later(_Message, frozen=True):
    """Not mine, or not now: look up again."""


class Absent(_Message, frozen=True):
    """The life you speak of is over, or has not joined."""


class Shared(_Message, frozen=True):
    """As `Done`; and who may run which of the pieces as well as their owner, who says this.

    Attributes:
        pieces: By the key of a piece, the members that share it.
    """

    pieces: dict[Key, Members]


class WorkRate(_Message, frozen=True):
    """The work of a peer: states that publications find at it, a second, and more for each."""

    work: Annotated[float, Meta(ge=0, lt=2**60)]


SingleReply = Done | Later | RequestRefused | Shared


class Replies(_Message, frozen=True):
    """The answers to questions that were put together, in their order."""

    replies: Annotated[tuple[SingleReply, ...], Meta(max_length=262_144)]


RingQuestion = (
    Read
    | RouteRequest
    | Rectify
    | Leaving
    | Alive
    | Renew
    | ExpelMember
    | Missing
    | Fetch
    | Range
    | Copy
    | Claims
    | Hold
    | Holders
    | Get
    | Put
)
Question = RingQuestion | PieceQuestion
Reply = (
    State
    | RouteReply
    | RecordCopies
    | Held
    | CopiesHeld
    | Claimed
    | Away
    | Value
    | Stored
    | Conflict
    | Done
    | RequestRefused
    | Shared
    | WorkRate
    | Later
    | Absent
    | Body
    | Replies
)


class Ask(_Message, frozen=True):
    """A question to one life of a peer; without a life, to whichever it has."""

    number: Number
    life: Number | None
    what: Question


class Answer(_Message, frozen=True):
    """The answer to the question of that number."""

    number: Number
    what: Reply


_ENCODER = msgspec.msgpack.Encoder()
_DECODER: msgspec.msgpack.Decoder[Ask | Answer] = msgspec.msgpack.Decoder(Ask | Answer)


def encoded(message: Ask | Answer) -> bytes:
    """A message as MessagePack."""
    return _ENCODER.encode(message)


def decoded(data: bytes) -> Ask | Answer:
    """The message in these bytes.

    Raises:
        PeerError: "dht.message"; they are none.
    """
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PeerError("dht.message", reason=str(error)) from None


def to_wire(place: int) -> Place:
    """An identifier as it travels."""
    return place.to_bytes(20)


def from_wire(place: Place) -> int:
    """An identifier that has travelled."""
    return int.from_bytes(place)
