"""The settings of one peer of a ring: what `peer.toml` may say.

Example:
    >>> settings = read_settings(PeerSettings, "peer.toml")  # doctest: +SKIP
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from pydantic import Field, SecretStr, field_validator, model_validator

from pathcast.dht.filtering import FilteringSettings
from pathcast.dht.peer import Settings
from pathcast.dht.piece_cutting import PieceSettings
from pathcast.settings import FileSettings, HostPort, SettingsSection
from pathcast.transport.process import Discovery
from pathcast.transport.security import is_local
from pathcast.transport.settings import (
    BrokerSection,
    BrokerSettings,
    ClientSection,
    NeighbourSection,
    ProcessSection,
    TlsSection,
    check_different,
    keys_of,
    secret_of,
)

_LEASE_TICKS = 3
"""Rounds in a lease: one of the base may miss a round, and the next is asked in time."""


_TAKE_OUT: Final = "take the key out; the automaton lies on the ring in pieces"


class PeerSection(ProcessSection):
    """The process itself."""

    ENDED: ClassVar = {"execution": f"{_TAKE_OUT}, and every peer publishes recursively"}

    name: str = Field(min_length=1, max_length=124)
    """Name of the peer; nobody else's."""
    directory: Path
    """Directory of what it keeps: subscriptions and inboxes."""
    address: HostPort | None = None
    """HOST:PORT that others are told to call, if that is not where it listens."""

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if "#" in name:
            raise ValueError(f"{name!r}: # is for the numbers of virtual nodes")
        return name


class RingSection(SettingsSection):
    """Settings on which all peers of a ring agree."""

    ENDED: ClassVar = {
        "fragments": _TAKE_OUT,
        "length": f"{_TAKE_OUT}, whose size is piece_queries_max",
        "whole": f"{_TAKE_OUT}, and the elements that a piece reads travel",
        "on_the_way": f"{_TAKE_OUT}, and predicates are evaluated after structure",
        "replicas": f"{_TAKE_OUT}, and other peers share a busy piece",
        "replicated_share": f"{_TAKE_OUT}, and other peers share a busy piece",
    }

    base: tuple[str, ...] = Field(min_length=2)
    """Peers that are there from the beginning and stay, more than `successors`; everybody else
    joins by way of one of them."""
    successors: int = Field(default=3, ge=1)
    """Length of successor lists."""
    copies: int = Field(default=3, ge=1)
    """Peers that hold a piece."""
    virtual_nodes: int = Field(default=1, ge=1, le=64)
    """Members of the ring in each process, so that loads are more even; with more than one there
    have to be more copies, so that a process that ends takes not all."""
    tick_seconds: float = Field(default=1.0, gt=0)
    """Between rounds of stabilisation."""
    patience_seconds: float = Field(default=1.0, gt=0)
    """Before a question is put again; longer than two ways."""
    attempts: int = Field(default=4, ge=1)
    """Questions without an answer after which a peer is tried: it is expelled if all of the base
    answer and it does not."""
    absent_seconds: float = Field(default=120.0, ge=0)
    """So long the subscriptions of a peer that was expelled, and may come back, are waited for
    before what was lost counts as restored."""
    discovery: bool = False
    """Whether peers tell each other of all that they know, so that each has to be told of one in
    [[peers]] only; what they learn is in their directories."""
    token: SecretStr | None = None
    """Secret of the ring, which peers give each other; one that has a token of its own in [[peers]]
    gives that."""
    refused_is_dead: bool = True
    """Whether a peer is dead as soon as its connection is lost and connections to its address are
    refused; not where something else answers for it, as a proxy does."""
    piece_queries_max: int = Field(default=1_000, ge=2)
    """Queries of a piece before it is cut in two."""
    known_seconds: float = Field(default=60.0, ge=0)
    """So long the owner of a range is not looked up again."""
    gather_seconds: float = Field(default=0.005, ge=0)
    """So long a question waits to travel with others."""

    @model_validator(mode="after")
    def _check_base(self) -> RingSection:
        if len(set(self.base)) <= self.successors:
            raise ValueError(f"the base has to be more than {self.successors} different peers")
        if self.copies > self.successors:
            raise ValueError("there are no more copies than successors")
        if self.virtual_nodes > 1 and self.copies <= self.virtual_nodes:
            raise ValueError(
                f"{self.copies} copies may all be at one process of {self.virtual_nodes} members"
            )
        return self


class PeerSettings(FileSettings):
    """Everything that `pathcast peer run` can be told."""

    peer: PeerSection
    """The process itself."""
    ring: RingSection
    """What all peers have to agree on."""
    tls: TlsSection | None = None
    """Certificates; without them nothing leaves this machine."""
    peers: tuple[NeighbourSection, ...] = ()
    """All other peers that there may be, with addresses, or with discovery one or some that are
    there; of two, the one with the lesser name calls."""
    clients: tuple[ClientSection, ...] = ()
    """Who may publish, subscribe and operate."""

    @model_validator(mode="after")
    def _check_base(self) -> PeerSettings:
        known = [self.peer.name, *(each.name for each in self.peers)]
        check_different([*known, *(each.name for each in self.clients)])
        missing = sorted(set(self.ring.base) - set(known))
        if self.ring.discovery:
            self._check_discovery()
        elif missing:
            raise ValueError(f"no address for {', '.join(missing)}, who are of the base")
        return self

    def _check_discovery(self) -> None:
        listen = self.peer.listen
        if self.tls is None and self.ring.token is None and not is_local(listen):
            raise ValueError("discovery: without tls, whoever has no token would be a peer")
        if self.peer.name not in self.ring.base and not self.peers:
            raise ValueError("discovery: no peer is known")

    @property
    def process(self) -> BrokerSettings:
        """Return the settings of the process: callers that it admits, addresses that it calls."""
        name = self.peer.name
        return BrokerSettings(
            broker=BrokerSection(
                name=name,
                directory=self.peer.directory,
                listen=self.peer.listen,
                allow_plain=self.peer.allow_plain,
                metrics=self.peer.metrics,
            ),
            tls=self.tls,
            neighbours=tuple(
                each.model_copy(
                    update={
                        "address": each.address if name < each.name else None,
                        "token": each.token or self.ring.token,
                    }
                )
                for each in self.peers
            ),
            clients=self.clients,
        )

    @property
    def addresses(self) -> dict[str, str]:
        """Where others listen."""
        return {each.name: each.address for each in self.peers if each.address is not None}

    @property
    def listening(self) -> dict[str, str] | None:
        """Where others listen whose end counts as soon as nobody listens there any more."""
        return self.addresses if self.ring.refused_is_dead else None

    @property
    def discovery(self) -> Discovery | None:
        """How others are found whom the file does not name."""
        if not self.ring.discovery:
            return None
        return Discovery(secret_of(self.ring.token), self.addresses, self.peer.address)

    @property
    def ring_settings(self) -> Settings:
        """Of the protocol of the ring."""
        ring = self.ring
        return Settings(**keys_of(Settings, ring), lease_seconds=_LEASE_TICKS * ring.tick_seconds)

    @property
    def filtering_settings(self) -> FilteringSettings:
        """Of the protocol of the automaton."""
        ring = self.ring
        return FilteringSettings(
            PieceSettings(ring.piece_queries_max),
            gather_seconds=ring.gather_seconds,
            patience_seconds=4 * ring.patience_seconds,
            acknowledge_seconds=16 * ring.patience_seconds,
        )
