"""The messages of peers of pieces, publishers and subscribers to each other, as data.

All are questions of `pathcast.dht.messages`, put until they are answered. `Done` says that
something is taken in hand, not that it is done: what comes of it is said by another question
(`Indexed`, `Ran`). A peer that a piece does not belong to answers `Later`.

Source: 000, procedures 1 and 4, over pieces in place of states. Only `IndexQuery` and `Match` have
counterparts there.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from pathcast.dht.events import ELEMENTS_MAX, Events
from pathcast.dht.piece_records import START_PIECE, Entry, PieceRecord

Place = Annotated[bytes, Meta(min_length=20, max_length=20)]
Short = Annotated[str, Meta(max_length=256)]
StateKey = Annotated[str, Meta(max_length=65_536)]
Count = Annotated[int, Meta(ge=0, lt=2**40)]
Elements = dict[StateKey, Annotated[tuple[Count, ...], Meta(max_length=ELEMENTS_MAX)]]
"""Elements (their L) by the key of the state that is active at them."""
BodyBytes = Annotated[bytes, Meta(max_length=64 * 1024 * 1024)]


class _Message(msgspec.Struct, frozen=True, tag=True, array_like=True, gc=False):
    pass


class Visit(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """A state and the element at which it is active (its L; 0 is the document)."""

    key: StateKey
    element: Count


class Problem(msgspec.Struct, frozen=True, array_like=True, order=True, gc=False):
    """Something that could not be decided or told about a subscription."""

    subscriber: Short
    subscription: Short
    reason: Annotated[str, Meta(max_length=4096)]


class IndexQuery(_Message, frozen=True):
    """Put a query into the piece that its accepting state is in, or pass it on to there.

    Attributes:
        key: Of the accepting state; its labels are the automaton of the query.
        entry: The query and its subscriber.
        attempt: Which try of the subscriber; the same question of the same try is done once.
        piece: The piece that is asked.
    """

    key: StateKey
    entry: Entry
    attempt: Count
    piece: StateKey = START_PIECE


class RemoveQuery(_Message, frozen=True):
    """Take a query out of the piece that its accepting state is in, or pass it on to there."""

    key: StateKey
    registration: Short
    subscriber: Short
    attempt: Count
    piece: StateKey = START_PIECE


class Indexed(_Message, frozen=True):
    """A query is in its piece, or in none any more; every later message sees that.

    Attributes:
        registration: Which.
        is_there: Whether it is there.
        attempt: Which try of the subscriber has come through.
    """

    registration: Short
    is_there: bool
    attempt: Count


class NotIndexed(_Message, frozen=True):
    """No owner took a query on its way: send it again.

    Attributes:
        registration: Which.
        attempt: Which try of the subscriber was in vain.
    """

    registration: Short
    attempt: Count


class Lost(_Message, frozen=True):
    """The records of (low, high] are lost. Answer: `Done` when the receiver has restored its own.

    Attributes:
        low: The arc begins after this place.
        high: And ends with this one.
        number: Of the loss; the same arc may be lost again, also by another owner.
    """

    low: Place
    high: Place
    number: Annotated[int, Meta(ge=0, lt=2**62)]


class RunPieces(_Message, frozen=True):
    """Run pieces over a part of a message, and hand on what leaves them.

    Attributes:
        publication: Of the message; no other has it.
        publisher: The peer that gets what was done, and that has the whole message.
        pieces: By piece, the states in which it is entered and the elements at which they are
            active.
        events: Those elements, those they are in, and of those in them what is read.
        hops: Messages in the longest chain that led here.
        way: The same with the hops of look-ups, as if each message had gone over them.
        is_shared: Whether it goes to a peer that shares the pieces, not to their owner.
    """

    publication: Short
    publisher: Short
    pieces: dict[StateKey, Elements]
    events: Events
    hops: Count
    way: Count
    is_shared: bool = False


class Ran(_Message, frozen=True):
    """Credits thrown back to the publisher: where pieces were entered, and where others are.

    Attributes:
        publication: Of the message.
        done: States and elements at which pieces were run.
        handed: Those at which others are entered.
        hops: As of the message that asked for it.
        way: As there.
        problems: What could not be decided or told.
    """

    publication: Short
    done: Elements
    handed: Elements
    hops: Count
    way: Count
    problems: Annotated[tuple[Problem, ...], Meta(max_length=4096)]


class FetchPiece(_Message, frozen=True):
    """What has a piece, if it has changed since a version?

    Answer: `Value`, without a value if the version is the same; `Refused` if the piece has queries
    that the sender is not to have, since it does not share the piece.

    Attributes:
        piece: Its key.
        version: That the sender has; 0: none.
        with_queries: Whether to have its queries, or its states and links only.
        work: What the sender did for the piece since it asked last.
    """

    piece: StateKey
    version: Annotated[int, Meta(ge=0, lt=2**62)]
    with_queries: bool = False
    work: Annotated[float, Meta(ge=0, lt=2**40)] = 0.0


class AskWork(_Message, frozen=True):
    """How much do you do? Answer: `WorkRate`."""


class TakePiece(_Message, frozen=True):
    """A piece that was cut off another, and is to be there from now on.

    Attributes:
        piece: Its key.
        record: What it has; one that is not there asks whether the key is free.
    """

    piece: StateKey
    record: PieceRecord


class Relink(_Message, frozen=True):
    """A state has gone to a new piece: tell whoever has the link to it.

    Attributes:
        piece: That is asked.
        key: Of the state.
        left: The piece that it has left; a link to another one is not changed.
        to: The new piece.
    """

    piece: StateKey
    key: StateKey
    left: StateKey
    to: StateKey


class Match(_Message, frozen=True):
    """A message satisfies a subscription.

    Attributes:
        publication: Of the message.
        registration: That of the entry that was satisfied. An id that is used again, with another
            query or after its peer lost its disk, has other registrations, so a match of an entry
            that was left behind is told from one of the present subscription.
        publisher: The peer that knows whether the publication is over.
    """

    publication: Short
    registration: Short
    publisher: Short


class IsOpen(_Message, frozen=True):
    """Is this publication of yours not over? Answer: `Done`, or `Refused` if it is."""

    publication: Short


class FetchBody(_Message, frozen=True):
    """The message as it was published. Answer: `Body`."""

    publication: Short


class Body(_Message, frozen=True):
    """The message; None if it is not there any more."""

    body: BodyBytes | None


SingleQuestion = (
    IndexQuery | RemoveQuery | Indexed | NotIndexed | Relink | RunPieces | Ran | Match | IsOpen
)
"""What is answered at once, and travels with others to the same peer."""


class Together(_Message, frozen=True):
    """Several questions. Answer: `Replies`, one for each."""

    questions: Annotated[tuple[SingleQuestion, ...], Meta(max_length=256)]


PieceQuestion = SingleQuestion | FetchBody | FetchPiece | AskWork | TakePiece | Lost | Together
