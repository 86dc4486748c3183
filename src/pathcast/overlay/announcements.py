"""What all brokers are to know: who is there, what links it hears, which sources there are.

Each broker announces itself and its sources; of an owner and key the latest version holds, so that
it does not matter in which order, how often and over which way an announcement comes. A new session
of a link begins with all of them, later only what is new is passed on: to every neighbour, tree or
not, because trees are made of what is announced here.

An owner that hears of itself what it did not say (of a life whose disk was lost, or forged) says
what is true in a later version.

Source: 001, section 3.2 (control plane) and 5 (catalog manager; schema and other information).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from pathcast.errors import PeerError
from pathcast.overlay.messages import NUMBER_MAX, Announcement, Presence, Source

__all__ = ["Announcements", "roster_digest"]

MEMBERS_MAX = 10_000
SOURCES_MAX = 100_000
VERSION_AHEAD_MAX = 2**40


def roster_digest(names: Iterable[str]) -> int:
    """A number that tells sets of names apart, whatever their order.

    Example:
        >>> roster_digest(["a", "b"]) == roster_digest(["b", "a"]) != roster_digest(["a"])
        True
    """
    digests = (blake2b(name.encode(), digest_size=8).digest() for name in names)
    return sum(int.from_bytes(digest, "little") for digest in digests) % NUMBER_MAX


class Announcements:
    """What a broker knows of all of them.

    Args:
        me: The broker's name.
        incarnation: Of this life of it.
        members: Brokers that are known to be members though they have announced nothing yet.

    Attributes:
        was_expelled: An operator took this broker out of the network while it was away.
    """

    def __init__(self, me: str, incarnation: int, members: Iterable[str]) -> None:
        self._me = me
        self._incarnation = incarnation
        self._known: dict[tuple[str, str], Announcement] = {}
        self._members = {me, *members}
        self.was_expelled = False

    @property
    def members(self) -> list[str]:
        """Brokers that messages are kept for, this one among them; sorted."""
        return sorted(name for name in self._members if not self.has_left(name))

    def has_left(self, broker: str) -> bool:
        presence = self.presence(broker)
        return presence is not None and presence.left

    def presence(self, broker: str) -> Presence | None:
        """What a broker last said of itself."""
        known = self._known.get((broker, ""))
        return known.body if known is not None and isinstance(known.body, Presence) else None

    def presences(self) -> dict[str, Presence]:
        """By name, in the order of names."""
        return {
            owner: known.body
            for (owner, key), known in sorted(self._known.items())
            if not key and isinstance(known.body, Presence)
        }

    def sources(self) -> dict[str, tuple[str, Source]]:
        """The catalog: id of a source -> root broker and what it announced."""
        return {
            key: (owner, known.body)
            for (owner, key), known in sorted(self._known.items())
            if isinstance(known.body, Source) and not known.body.withdrawn
        }

    def everything(self) -> list[Announcement]:
        """What a new session begins with."""
        return [known for _, known in sorted(self._known.items())]

    def say(self, key: str, body: Presence | Source, owner: str = "") -> Announcement | None:
        """Announce something of this broker (or that another has left), if it is news."""
        owner = owner or self._me
        known = self._known.get((owner, key))
        if known is not None and known.body == body and known.incarnation == self._incarnation:
            return None
        version = 1 if known is None else known.version + 1
        said = Announcement(owner, key, version, self._incarnation, body)
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
            known = self._known.get((one.owner, one.key))
            if known is not None and _age(one) <= _age(known):
                continue
            kept = self._corrected(one, known) if one.owner == self._me else one
            self._keep(kept)
            news.append(kept)
        return news

    def _corrected(self, one: Announcement, known: Announcement | None) -> Announcement:
        """Somebody speaks for this broker: a former life, an operator or a forger."""
        if isinstance(one.body, Presence) and one.body.left:
            self.was_expelled = True
        body = Source(withdrawn=True) if known is None else known.body
        return Announcement(self._me, one.key, one.version + 1, self._incarnation, body)

    def _check(self, peer: str, one: Announcement) -> None:
        reason = ""
        known = self._known.get((one.owner, one.key))
        ahead = one.version - (0 if known is None else known.version)
        if ahead > VERSION_AHEAD_MAX:
            reason = f"version {one.version} is out of reach"
        elif isinstance(one.body, Presence) != (one.key == ""):
            reason = "its body is of another kind"
        if reason:
            raise PeerError(
                "overlay.announcement", peer=peer, owner=one.owner, key=one.key, reason=reason
            )
        if known is None:
            count = sum(1 for _, key in self._known if bool(key) == bool(one.key))
            what, most = ("sources", SOURCES_MAX) if one.key else ("brokers", MEMBERS_MAX)
            if count >= most:
                raise PeerError("overlay.catalog", given=count + 1, maximum=most, what=what)

    def _keep(self, one: Announcement) -> None:
        self._known[one.owner, one.key] = one
        self._members.add(one.owner)


def _age(one: Announcement) -> tuple[int, int]:
    return (one.version, one.incarnation)
