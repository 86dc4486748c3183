"""The record of a piece: the queries that end in it, and links to where others go on.

A piece is not stored as states and edges. It has *entries*, queries under the keys of their
accepting states, and *links*, keys of states that are another piece's, with what lies behind them.
Of a key, the link whose key it begins with says where it belongs; without one it belongs here. So
anybody who has a key comes to its piece from any piece that it has ever been in, and a piece that
gives a part away needs to remember nothing else. No link's key begins with another's.

A link can also be of a *bin*, which has all states that are one label behind a state, the label's
hash beginning with some digits: `start/a/#3f`. So a piece from which very many labels part needs no
link for each of them, and none stays behind when a name is not used any more. A bin is no state: a
publication enters the piece in the states that the name of an element leads to.

A link also says what is *read* behind it: which labels, and how many elements deep. That is what
has to travel. It grows with the queries that pass, and never shrinks; of more than 128 labels
every element is read.

Example:
    >>> entry = Entry("r1", "s1", "p", "/a/b", (), True)
    >>> record = with_entry(PieceRecord(), "start/a/b", entry)
    >>> after = moved(record, ["start/a"], "start/a")
    >>> after.entries, after.links["start/a"]
    ({}, PieceLink(piece='start/a', reads=Reads(labels=('b',), levels=1)))
    >>> list(after.leaving["start/a"].entries)
    ['start/a/b']
    >>> covering("start/a/b/c", after.links), covering("start/b", after.links)
    ('start/a', None)
    >>> list(prefixes("start/a/*"))
    ['start', 'start/#8', 'start/#86', 'start/#86f', 'start/a', 'start/a/*']
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from typing import Annotated, Final

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from pathcast.dht.identifiers import BIN
from pathcast.errors import PeerError

START_PIECE: Final = "start"
"""The key of the start state, and the name of the piece that it is in."""

Key = Annotated[str, Meta(max_length=65_536)]
Label = Annotated[str, Meta(max_length=65_536)]
Short = Annotated[str, Meta(max_length=256)]
Text = Annotated[str, Meta(max_length=65_536)]

_REMOVED_MAX = 256
_LABELS_MAX: Final = 128
"""Labels that are read behind a link one by one."""

_ANY: Final = "*"

_DIGITS: Final = 3
_IN_NO_BIN: Final = re.compile(r"\$|(\{.*\})?\*|\{\*\}.*", re.DOTALL)
"""Labels that more than one name leads over, or none."""


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A query at its accepting state, and who wants to know.

    Attributes:
        registration: One indexing of one gate; no other has it.
        subscription: The subscriber's name for it.
        subscriber: The peer that is told.
        query: The whole query.
        namespaces: Its prefixes.
        is_exact: Whether who reaches the state satisfies the query; else it is evaluated.
    """

    registration: Short
    subscription: Short
    subscriber: Short
    query: Text
    namespaces: Annotated[tuple[tuple[Short, Text], ...], Meta(max_length=256)]
    is_exact: bool


class Reads(msgspec.Struct, frozen=True, array_like=True):
    """The parts of the elements in an active element that are read.

    Attributes:
        labels: As in keys, ascending; `*` alone if it is among them.
        levels: How many elements deep; None: as deep as it goes.
    """

    labels: tuple[Label, ...]
    levels: Annotated[int, Meta(ge=0, lt=2**31)] | None


NOTHING: Final = Reads((), 0)
"""Nothing but the element itself."""


class PieceLink(msgspec.Struct, frozen=True, array_like=True):
    """Where a state is.

    Attributes:
        piece: The key of a piece that has it, or knows where it went.
        reads: What is read behind the state.
    """

    piece: Key
    reads: Reads


class PieceRecord(msgspec.Struct, frozen=True, array_like=True):
    """A piece.

    Attributes:
        roots: The keys of its states that are nearest to the start; it has nothing but what lies
            behind them.
        entries: By the key of their accepting state, and by registration.
        links: By the key of the state.
        removed: The latest registrations that were removed here, and do not come back.
        leaving: What was cut off and is not known to have arrived, by the key of its new piece.
        is_there: Whether it has been made; the one of the start state always is.
        cut: Which cut made it; no other has its name.
    """

    roots: tuple[Key, ...] = (START_PIECE,)
    entries: dict[Key, dict[Short, Entry]] = {}
    links: dict[Key, PieceLink] = {}
    removed: tuple[Short, ...] = ()
    leaving: dict[Key, PieceRecord] = {}
    is_there: bool = True
    cut: Short = ""


_DECODER = msgspec.msgpack.Decoder(PieceRecord)


def encoded_piece(record: PieceRecord) -> bytes:
    """A piece as the value of a record."""
    return msgspec.msgpack.encode(record)


def decoded_piece(key: str, value: bytes | None) -> PieceRecord:
    """The piece of a key in the value of its record.

    Raises:
        PeerError: "dht.state"; it is none.
    """
    if value is None:
        return PieceRecord((key,), is_there=key == START_PIECE)
    try:
        return _DECODER.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PeerError("dht.state", reason=str(error)) from None


def prefixes(key: str) -> Iterator[str]:
    """The keys of states and bins on the way to one, the start state first, itself last."""
    start, *labels = key.split("/")
    yield start
    for label in labels:
        for digits in _bins(label):
            yield f"{start}/{BIN}{digits}"
        start = f"{start}/{label}"
        if not label.startswith(BIN):
            yield start


@lru_cache(maxsize=8_192)
def _bins(label: str) -> tuple[str, ...]:
    """The bins that a label is in, the largest first; of a bin, those that it is in, and itself."""
    digits = label[1:] if label.startswith(BIN) else ""
    if not digits and not _IN_NO_BIN.fullmatch(label):
        digits = hashlib.sha1(label.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return tuple(digits[:count] for count in range(1, len(digits) + 1))


def bin_state(key: str) -> str | None:
    """The key of the state that a bin is behind; None if a key is of a state itself."""
    state, _, label = key.rpartition("/")
    return state if label.startswith(BIN) else None


def is_smallest_bin(key: str) -> bool:
    """Whether a key is of a bin in which there is no other."""
    return bin_state(key) is not None and len(key.rpartition(BIN)[2]) == _DIGITS


def covering(key: str, keys: Container[str]) -> str | None:
    """The shortest of some keys that a key begins with, if there is one."""
    return next((prefix for prefix in prefixes(key) if prefix in keys), None)


def joined(first: Reads, second: Reads) -> Reads:
    """Unite two sets of reads."""
    labels = _as_read({*first.labels, *second.labels})
    is_endless = first.levels is None or second.levels is None
    return Reads(labels, None if is_endless else max(first.levels or 0, second.levels or 0))


def read_behind(state: str, key: str, beyond: Reads = NOTHING) -> Reads:
    """Return the reads of a path behind one of its states.

    Args:
        state: Key of the state; of a bin, of the state in it that is on the way.
        key: Of the path; begins with that of the state.
        beyond: What is read behind the path.
    """
    labels = key.split("/")[state.count("/") + 1 :]
    # A bin is entered at elements of names that nobody knows.
    names = [_ANY if label.startswith(BIN) else label for label in labels if label != "$"]
    is_endless = beyond.levels is None or len(names) < len(labels)
    found = Reads(
        _as_read({*names, *beyond.labels}),
        None if is_endless else len(names) + (beyond.levels or 0),
    )
    return NOTHING if not found.labels else found


def _as_read(labels: set[str]) -> tuple[str, ...]:
    """Labels in order, or the one that stands for all of them and more."""
    is_any = _ANY in labels or len(labels) > _LABELS_MAX
    return (_ANY,) if is_any else tuple(sorted(labels))


def with_passed(record: PieceRecord, link: str, key: str) -> PieceRecord:
    """A piece after a query has gone on behind one of its links."""
    before = record.links[link]
    after = replace(before, reads=joined(before.reads, read_behind(link, key)))
    return record if after == before else replace(record, links={**record.links, link: after})


def with_entry(record: PieceRecord, key: str, entry: Entry) -> PieceRecord:
    """A piece after a query has ended in it; its entry is there once."""
    here = record.entries.get(key, {})
    if entry.registration in here or entry.registration in record.removed:
        return record
    here = {**here, entry.registration: entry}
    return replace(record, entries={**record.entries, key: here})


def without_entry(record: PieceRecord, key: str, registration: str) -> PieceRecord:
    """A piece after a query was removed."""
    entries = dict(record.entries)
    here = {name: entry for name, entry in entries.pop(key, {}).items() if name != registration}
    if here:
        entries[key] = here
    removed = record.removed
    if registration not in removed:
        removed = (*removed, registration)[-_REMOVED_MAX:]
    return replace(record, entries=entries, removed=removed)


def with_link_to(record: PieceRecord, key: str, piece: str) -> PieceRecord:
    """A piece after the state of a link has gone to another piece."""
    link = replace(record.links[key], piece=piece)
    return replace(record, links={**record.links, key: link})


def moved(record: PieceRecord, roots: Sequence[str], into: str, cut: str = "") -> PieceRecord:
    """A piece after it was cut: what lies behind some of its states leaves for a new piece.

    Args:
        record: Before.
        roots: Keys of the states; none begins with another, none is of a link, all are behind its
            own roots.
        into: The key of the new piece, one of them.
        cut: A name for the cut.
    """
    gone = set(roots)
    left: dict[str, Reads] = dict.fromkeys(roots, NOTHING)
    moving = PieceRecord(tuple(roots), removed=record.removed, cut=cut)
    stays = replace(record, entries={}, links={})
    for key, entries in record.entries.items():
        root = covering(key, gone)
        (stays if root is None else moving).entries[key] = entries
        if root is not None:
            left[root] = joined(left[root], read_behind(root, key))
    for key, link in record.links.items():
        root = covering(key, gone)
        (stays if root is None else moving).links[key] = link
        if root is not None:
            left[root] = joined(left[root], read_behind(root, key, link.reads))
    links = {**stays.links, **{root: PieceLink(into, reads) for root, reads in left.items()}}
    return replace(stays, links=links, leaving={**record.leaving, into: moving})
