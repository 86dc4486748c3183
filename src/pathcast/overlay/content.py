"""The protocol's view of content: profiles, routing tables and decisions, as interfaces.

An *entry* is a disjunct of a routing query in its canonical text; here it is opaque.
`InterestTables` aggregates entries and routes messages by them, `Profiles` answers the profiles of
a host exactly.

Source: 001, section 4.2.1 (Map, Collect, Aggregate) and 5 (query plane: local plan and tables).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, Protocol, TypeAlias

import msgspec
from msgspec import Meta

from pathcast.model import STEP_LENGTH_MAX, STEPS_MAX, QueryLanguage

StepText = Annotated[str, Meta(max_length=STEP_LENGTH_MAX)]

LOCAL = ""
"""The origin of what a broker's own subscribers want; no broker has this name."""


@dataclass(frozen=True, slots=True)
class Delta:
    """Entries that a neighbour is told and no longer told; both take effect together.

    Attributes:
        added: Entries that were not told before, sorted.
        removed: Entries that are told no longer, sorted.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class RoutingDecision(Protocol):
    """The followers that want one message, decided while it arrives."""

    def feed(self, part: bytes) -> None:
        """Takes the next bytes of the message; what is wrong with it is found by `route`."""
        ...

    @property
    def wanted(self) -> Set[str]:
        """Origins that may want it, as far as is known. Whoever is among them stays there."""
        ...

    @property
    def decided(self) -> Set[str] | None:
        """All origins that may want it, as `route` would say now; None while that is not known."""
        ...


class Sent(NamedTuple):
    """A message as a neighbour is sent it.

    Attributes:
        body: What there is of it.
        steps: How many of the steps were done to it that all profiles begin with which it is for.
    """

    body: bytes
    steps: int = 0


class InterestTables(Protocol):
    """Tables of a broker: what each origin wants, and what each neighbour is to be told."""

    def check(self, entries: Iterable[str]) -> None:
        """Raises PathcastError if one is no entry."""
        ...

    def update(
        self, origin: str, added: Iterable[str], removed: Iterable[str]
    ) -> Mapping[str, Delta]:
        """Origin wants this from now on; what changes for whom of the neighbours."""
        ...

    def set_neighbours(self, names: Iterable[str]) -> Mapping[str, Delta]:
        """These are the neighbours; entries of one that is gone are gone."""
        ...

    def told(self, neighbour: str) -> frozenset[str]:
        """All that a neighbour is told."""
        ...

    def entries(self, origin: str) -> frozenset[str]:
        """Return the entries of an origin."""
        ...

    def held(self, neighbour: str) -> frozenset[str]:
        """The entries that messages are routed to a neighbour by, which may be wider."""
        ...

    def route(self, bodies: Sequence[bytes]) -> Sequence[Set[str]]:
        """For each message the origins that may want it; never one too few."""
        ...

    def cut(
        self,
        bodies: Sequence[bytes],
        wanted: Mapping[str, Sequence[int]],
        done: Sequence[int] = (),
    ) -> Mapping[str, Sequence[Sent | None]]:
        """Cut messages down to the parts that each neighbour they are routed to needs.

        Args:
            bodies: A batch.
            wanted: Neighbour -> which of them, as places in the batch.
            done: How many steps were done to each; none to any when empty.

        Returns:
            Neighbour -> a message for each: as it is, or after the steps that all behind it, as it
            has told so far, do first, and without what none of them can tell from its results. None
            if there is nothing else in it.
        """
        ...

    def is_cutting(self, neighbour: str) -> bool:
        """Whether a neighbour may be sent another message: none goes before all of it is here."""
        ...

    def decisions(self, size: int) -> RoutingDecision | None:
        """For a message of so many bytes that is arriving; None: it is routed when it is here."""
        ...


Results = tuple[bytes, ...]
"""The results of one subscription for a message, in order."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why it cannot be said what a message gives a subscription.

    Attributes:
        code: Of the error (`pathcast.errors`).
        reason: Its sentence.
    """

    code: str
    reason: str


ProfileText: TypeAlias = Annotated[str, Meta(max_length=1_048_576)]


class QueryInLanguage(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A text and the language that was chosen for it.

    Stands in the place of a text, so that versions that know no languages refuse it, instead of
    reading it in another one.

    Attributes:
        text: The query.
        language: The one that it is read in.
    """

    text: ProfileText
    language: QueryLanguage


def asked_query(text: str, language: QueryLanguage | None) -> str | QueryInLanguage:
    """A text, with its language if one was chosen."""
    return text if language is None else QueryInLanguage(text, language)


class _Asking(Protocol):
    @property
    def asked(self) -> str | QueryInLanguage: ...


class AskedQuery(msgspec.Struct, frozen=True):
    """A struct whose field `asked` is a text, or a text and the language chosen for it."""

    @property
    def query(self: _Asking) -> str:
        """The text of the query."""
        return self.asked if isinstance(self.asked, str) else self.asked.text

    @property
    def language(self: _Asking) -> QueryLanguage | None:
        """The language that was chosen; None leaves it to the text."""
        return None if isinstance(self.asked, str) else self.asked.language


class DeliveryProfile(AskedQuery, frozen=True):
    """A subscriber's query and the form of its deliveries.

    Attributes:
        asked: Text in the language of the network, or the text and the one that was chosen.
        deliver: "fragment": the results of the query. "message": the message. "ids": the fact.
        namespaces: Bindings of the query and of the steps, as (prefix, URI).
        steps: What is done to the message before the query sees it, in order.
    """

    asked: ProfileText | QueryInLanguage = msgspec.field(name="query")
    deliver: Literal["fragment", "message", "ids"] = "message"
    namespaces: Annotated[tuple[tuple[str, str], ...], Meta(max_length=1_024)] = ()
    steps: Annotated[tuple[StepText, ...], Meta(max_length=STEPS_MAX)] = ()


class ProfileSnapshots(Protocol):
    """Snapshots of the profiles of a host, each in a file named after its version."""

    def open(self, version: str, changed: Mapping[str, DeliveryProfile | None]) -> Collection[str]:
        """Answer the profiles of a snapshot from now on, in the place of all others.

        Args:
            version: Of the snapshot.
            changed: What was changed since, id -> profile, or None of one that has left.

        Returns:
            The ids of the profiles that are answered; without those of `changed` that cannot be.

        Raises:
            PathcastError: It is damaged, or of another version of Pathcast.
            OSError: There is no such file.
        """
        ...

    def make(self, base: str, changed: Mapping[str, DeliveryProfile | None]) -> str:
        """Write a snapshot, in any thread; gives its version.

        Args:
            base: Version of the one before; "" for none.
            changed: As of `open`.

        Raises:
            PathcastError: As of `open`.
            OSError: It cannot be written; or as of `open`.
        """
        ...


class Profiles(Protocol):
    """The profiles of a host, each answered exactly."""

    @property
    def snapshots(self) -> ProfileSnapshots | None:
        """Keeps them in files, for a quick start; None if nothing does."""
        ...

    @property
    def entries_by(self) -> str:
        """Names all that `entries` depends on: what was found under this name is found again."""
        ...

    def entries(self, profile: DeliveryProfile) -> tuple[str, ...]:
        """Map: the entries of a profile, which together cover it.

        Raises:
            PathcastError: It is no profile.
        """
        ...

    def add(self, subscription: str, profile: DeliveryProfile) -> None:
        """Answer this profile from now on."""
        ...

    def remove(self, subscription: str) -> None:
        """Answer it no longer."""
        ...

    def answers(
        self, bodies: Sequence[bytes], done: Sequence[int] = (), times: Sequence[int] = ()
    ) -> Sequence[Mapping[str, Results | Verdict]]:
        """For each message the subscriptions that it satisfies, in order, and their results.

        Those for which that cannot be decided are among them, with the reason.

        Args:
            bodies: A batch.
            done: How many steps were done to each; none to any when empty. What is said of a
                subscription that begins with other steps means nothing.
            times: When each was, in microseconds since the beginning of 1970; now when empty.
        """
        ...


@dataclass(frozen=True, slots=True)
class Content:
    """A language of profiles and messages.

    Attributes:
        interests: Makes the tables of a tree, empty.
        profiles: Makes the profiles of a host, empty.
    """

    interests: Callable[[], InterestTables]
    profiles: Callable[[], Profiles]
