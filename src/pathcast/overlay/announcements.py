"""Facts that every broker knows: the members, the links each hears, the sources and their schemas.

Each broker announces itself and its sources; of an owner and key the latest version holds, of its
presence that of its latest life, so that it does not matter in which order, how often and over
which way an announcement comes. A new session
of a link begins with all of them, later only what is new is passed on: to every neighbour, tree or
not, because trees are made of what is announced here.

An owner that hears of itself what it did not say (of a life whose disk was lost, or forged) says
what is true in a later version. An expulsion is announced beside it, so that the two cannot hide
each other: a broker is a member again when its presence names the last one.

Source: 001, section 3.2 (control plane) and 5 (catalog manager; schema and other information).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b

from pathcast.errors import PeerError, PublicationError
from pathcast.overlay.messages import (
    NUMBER_MAX,
    Announcement,
    Expelled,
    Presence,
    SourceEntry,
    StreamEnded,
    size_of_body,
)

MEMBERS_MAX = 20_000
SOURCES_MAX = 100_000
SOURCES_BYTES_MAX = 256 * 1024 * 1024
"""Of the schemas and dictionaries of all sources."""
VERSION_AHEAD_MAX = 2**40
STREAM_MAX = NUMBER_MAX // 2

EXPULSION = "!"
STREAM_END = "!stream"
_BODIES = {"": Presence, EXPULSION: Expelled, STREAM_END: StreamEnded}
_OF_OTHERS = (EXPULSION, STREAM_END)
"""Keys that are announced of a broker by others."""


def roster_digest(terms: Mapping[str, int]) -> int:
    """A number that tells sets of members apart, whatever their order.

    Args:
        terms: Member -> the last expulsion of it, 0 for none: a broker that was away as far as
            messages are concerned is not the member that it was.

    Example:
        >>> roster_digest({"a": 0, "b": 0}) == roster_digest({"b": 0, "a": 0})
        True
        >>> roster_digest({"a": 0, "b": 1}) == roster_digest({"a": 0, "b": 0})
        False
    """
    texts = (f"{term} {name}".encode() for name, term in terms.items())
    digests = (blake2b(text, digest_size=8).digest() for text in texts)
    return sum(int.from_bytes(digest, "little") for digest in digests) % NUMBER_MAX


class Announcements:
    """The announcements of all members, at one broker.

    Args:
        me: The broker's name.
        incarnation: Of this life of it.
        members: Brokers that are known to be members though they have announced nothing yet.

    Attributes:
        successor: What another process of this broker's name, which began later, says of itself.
    """

    def __init__(self, me: str, incarnation: int, members: Iterable[str]) -> None:
        self._me = me
        self._incarnation = incarnation
        self.successor: Presence | None = None
        self._known: dict[tuple[str, str], Announcement] = {}
        self._sources = 0
        self._source_bytes = 0
        self._members = {me, *members}

    @property
    def members(self) -> list[str]:
        """Brokers that messages are kept for, this one among them; sorted."""
        return sorted(name for name in self._members if not self.has_left(name))

    def has_left(self, broker: str) -> bool:
        """Whether nothing is kept for a broker: it left, or was expelled and does not know yet."""
        presence = self.presence(broker)
        said = Presence() if presence is None else presence
        return said.left or said.term < self.term(broker)

    def term(self, broker: str) -> int:
        """The last expulsion of a broker; 0 for none."""
        known = self._known.get((broker, EXPULSION))
        return 0 if known is None else known.version

    def roster(self) -> int:
        """Digest of the members."""
        return roster_digest({name: self.term(name) for name in self.members})

    def presence(self, broker: str) -> Presence | None:
        """The last presence that a broker announced."""
        known = self._known.get((broker, ""))
        return known.body if known is not None and isinstance(known.body, Presence) else None

    def is_of_elder(self, one: Announcement) -> bool:
        """Whether a presence is of a life that began earlier than one of its name that is known."""
        known = self._known.get((one.owner, ""))
        return known is not None and isinstance(one.body, Presence) and _life(one) < _life(known)

    def presences(self) -> dict[str, Presence]:
        """By name, in the order of names."""
        return {
            owner: known.body
            for (owner, key), known in sorted(self._known.items())
            if not key and isinstance(known.body, Presence)
        }

    def sources(self) -> dict[str, tuple[str, SourceEntry]]:
        """The catalog: id of a source -> root broker and what it announced."""
        return {
            key: (owner, known.body)
            for (owner, key), known in sorted(self._known.items())
            if isinstance(known.body, SourceEntry) and not known.body.withdrawn
        }

    def everything(self) -> list[Announcement]:
        """All announcements, which begin a new session."""
        return [known for _, known in sorted(self._known.items())]

    def expel(self, broker: str) -> Announcement:
        """Announce that a broker is out of the network until it knows of it."""
        said = Announcement(broker, EXPULSION, self.term(broker) + 1, self._incarnation, Expelled())
        self._keep(said)
        return said

    def end_streams(self, root: str, number: int) -> Announcement | None:
        """Announce that the streams of a root up to this one are over, if that is news."""
        if self.ended_streams(root) >= number:
            return None
        known = self._known.get((root, STREAM_END))
        version = 1 if known is None else known.version + 1
        said = Announcement(root, STREAM_END, version, self._incarnation, StreamEnded(number))
        self._keep(said)
        return said

    def ended_streams(self, root: str) -> int:
        """Number of the last stream of a root that is over, as others say; 0 for none."""
        known = self._known.get((root, STREAM_END))
        return known.body.stream if known and isinstance(known.body, StreamEnded) else 0

    def say(self, key: str, body: Presence | SourceEntry) -> Announcement | None:
        """Announce something of this broker, if it is news and no later process speaks for it."""
        if self.successor is not None:
            return None
        known = self._known.get((self._me, key))
        if known is not None and known.body == body and known.incarnation == self._incarnation:
            return None
        version = 1 if known is None else known.version + 1
        said = Announcement(self._me, key, version, self._incarnation, body)
        self._keep(said)
        return said

    def hear(self, peer: str, said: Sequence[Announcement]) -> list[Announcement]:
        """Take what a neighbour announces; what it did not know or contradicts is given back.

        Returns:
            What is to be passed on: news, and corrections by this broker of what others say it is.

        Raises:
            PeerError: An announcement that nobody makes (`overlay.announcement`), or more than are
                kept (`overlay.catalog`). Those before it were taken.
        """
        news = []
        for one in said:
            self._check(peer, one)
            is_own = one.owner == self._me and one.key not in _OF_OTHERS
            known = self._known.get((one.owner, one.key))
            if known is not None and _age(one) <= _age(known):
                continue
            if is_own and known is not None:
                self._find_successor(one, known)
            is_corrected = is_own and self.successor is None
            kept = self._corrected(one, known) if is_corrected else one
            self._keep(kept)
            news.append(kept)
        return news

    def _find_successor(self, one: Announcement, known: Announcement) -> None:
        """Whether a life that began later speaks for this broker."""
        if not isinstance(one.body, Presence) or one.incarnation == self._incarnation:
            return
        if _life(one) > _life(known):
            self.successor = one.body

    def _corrected(self, one: Announcement, known: Announcement | None) -> Announcement:
        """Somebody speaks for this broker: a former life, an operator or a forger."""
        body = SourceEntry(withdrawn=True) if known is None else known.body
        return Announcement(self._me, one.key, one.version + 1, self._incarnation, body)

    def _check(self, peer: str, one: Announcement) -> None:
        reason = ""
        known = self._known.get((one.owner, one.key))
        ahead = one.version - (0 if known is None else known.version)
        if ahead > VERSION_AHEAD_MAX:
            reason = f"version {one.version} is out of reach"
        elif not isinstance(one.body, _BODIES.get(one.key, SourceEntry)):
            reason = "its body is of another kind"
        elif isinstance(one.body, StreamEnded) and one.body.stream > STREAM_MAX:
            reason = f"stream {one.body.stream} is out of reach"
        if reason:
            raise PeerError(
                "overlay.announcement", peer=peer, owner=one.owner, key=one.key, reason=reason
            )
        what, given, most = self._with(one)
        if given > most:
            raise PeerError("overlay.catalog", given=given, maximum=most, what=what)

    def check_room(self, source: str, entry: SourceEntry) -> None:
        """Whether a source of this broker is one too many: others would not take it.

        Raises:
            PublicationError: It is (`publication.catalog`).
        """
        what, given, most = self._with(Announcement(self._me, source, 0, 0, entry))
        if given > most:
            raise PublicationError(
                "publication.catalog", given=given, maximum=most, what=what, retry="no"
            )

    def _with(self, one: Announcement) -> tuple[str, int, int]:
        """Count the announcements with one more: the bounded quantity, its count, its bound."""
        known = self._known.get((one.owner, one.key))
        if not isinstance(one.body, SourceEntry):
            others = len(self._known) - self._sources
            return ("brokers", others + (known is None), MEMBERS_MAX)
        size = self._source_bytes + _growth(one, known)
        if size > SOURCES_BYTES_MAX:
            return ("bytes of sources", size, SOURCES_BYTES_MAX)
        return ("sources", self._sources + (known is None), SOURCES_MAX)

    def _keep(self, one: Announcement) -> None:
        known = self._known.get((one.owner, one.key))
        if isinstance(one.body, SourceEntry):
            self._sources += known is None
            self._source_bytes += _growth(one, known)
        self._known[one.owner, one.key] = one
        self._members.add(one.owner)


def _growth(one: Announcement, known: Announcement | None) -> int:
    """Bytes by which an announcement in the place of another one is longer."""
    return size_of_body(one.body) - (0 if known is None else size_of_body(known.body))


def _life(one: Announcement) -> tuple[int, int]:
    """Lives of one name, in order. Those that began at once are told apart by their incarnations.

    Two processes that begin from copies of one disk, and whose clocks are behind it, both say that
    they began right after the life before.
    """
    return (one.body.began if isinstance(one.body, Presence) else 0, one.incarnation)


def _age(one: Announcement) -> tuple[int, ...]:
    body = one.body
    if isinstance(body, Presence):
        return (*_life(one), one.version)
    if isinstance(body, StreamEnded):  # several may say so
        return (body.stream, one.version, one.incarnation)
    return (one.version, one.incarnation)
