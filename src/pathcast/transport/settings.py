"""The settings of one broker process: what `broker.toml` may say.

Example:
    >>> settings = read_settings(BrokerSettings, "broker.toml")  # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, Field, SecretStr, field_validator, model_validator

from pathcast.errors import ConfigError
from pathcast.overlay.broker_node import NodeSettings
from pathcast.overlay.broker_settings import ProtocolSettings as ProtocolSettings
from pathcast.overlay.broker_settings import Trees
from pathcast.overlay.compression import check_format
from pathcast.overlay.link_costs import COST_MAX
from pathcast.overlay.messages import MESSAGE_BYTES_MAX
from pathcast.settings import FileSettings, HostPort, Place, SettingsSection
from pathcast.transport.broker import DEFAULT
from pathcast.transport.carrier import BACKLOG_MAX
from pathcast.transport.connection_guard import ConnectionBounds
from pathcast.transport.grpc_streams import Address
from pathcast.transport.inbox_bounds import (
    BYTES_MAX,
    DEAD_LETTERS_MAX,
    DELIVERIES_MAX,
    InboxBounds,
)
from pathcast.transport.pieces import WHOLE_BYTES_MAX
from pathcast.transport.security import Certificates, KnownCaller, Role, check_name
from pathcast.transport.webhooks import Webhook


def keys_of(kind: type[Any], section: BaseModel) -> dict[str, Any]:
    """The keys of a section that are fields of some settings: one name is one thing in both."""
    return {
        each.name: getattr(section, each.name)
        for each in fields(kind)
        if hasattr(section, each.name)
    }


def check_different(names: Sequence[str]) -> None:
    """Refuses two callers or neighbours of one name; raises ValueError."""
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ValueError(f"{', '.join(doubled)}: two have this name")


class ProcessSection(SettingsSection):
    """The keys that a broker, a peer and a node of the registration service have in common."""

    name: str = Field(min_length=1, max_length=256)
    """Name of the node, which no other has; with certificates, the one that its own is made out
    to."""
    listen: HostPort = "127.0.0.1:0"
    """HOST:PORT where others call; port 0 takes one that is free."""
    allow_plain: bool = False
    """Whether to do without certificates at addresses that are not loopback: everything, tokens
    included, is then readable on the way."""
    metrics: HostPort | None = None
    """HOST:PORT of /metrics, /healthz and /readyz, for Prometheus and whatever restarts processes;
    nowhere when not given. Whoever reaches it may read it, without a token: 127.0.0.1, or an
    address that only monitoring reaches."""


class BrokerSection(ProcessSection):
    """The process itself."""

    directory: Path
    """Directory of what it keeps: made if it is missing, and nobody else's."""
    members: tuple[str, ...] = ()
    """Other brokers of the network as it was founded; those that join later are learned. No message
    is given up before all of them have had it."""
    backlog_max: int = Field(default=BACKLOG_MAX, ge=1)
    """Messages that neighbours have not taken yet, of all of them, before publishers have to
    wait."""
    projection: bool = True
    """Whether messages are cut down to what is of use behind a link, where that saves bytes.
    Without it messages come here whole, and go from here as they come."""

    message_bytes_max: int = Field(default=8 << 20, ge=1, le=MESSAGE_BYTES_MAX)
    """Bytes of a message that publishers may give, and that profiles are answered on; the same at
    all brokers of a network."""
    cut_through: bool = True
    """Whether a long message is sent on as soon as a neighbour is known to want it, before all of
    it is here."""
    trees: Trees = "spanning"
    """Which ways messages take: "spanning", one tree for all, or "broadcast", a tree for each root,
    with tables for each; the same at all brokers of a network."""
    covering: bool = False
    """Whether neighbours are not told what something else that they are told covers: smaller
    tables, and about a millisecond for each subscription that is new."""
    table_entries_max: int | None = Field(default=None, ge=1)
    """Entries of the table of a tree, before it is made wider: those entries are chosen that send
    fewest bytes in vain, on the messages that pass here. Tables are exact when not given."""
    table_review_seconds: float = Field(default=30.0, gt=0, le=86_400)
    """How often such a table is looked at, and made anew if it does not fit or its messages have
    drifted."""
    subscriptions_max: int = Field(default=1_000_000, ge=1)
    """Subscriptions that clients may register here."""
    log_messages_max: int = Field(default=1_000_000, ge=1)
    """Messages published here that some broker has not had yet. With more, publishers are refused
    while all these brokers come forward; for one that does not, the oldest messages are given up,
    and its subscribers are told."""
    log_bytes_max: int = Field(default=1 << 30, ge=1)
    """Bytes of these messages; likewise."""
    lag_seconds: float = Field(default=30.0, gt=0, le=86_400)
    """For so long publishers wait, with a full log, for a broker that has had nothing new."""
    retention_seconds: float = Field(default=7 * 86_400.0, ge=60, le=365 * 86_400.0)
    """Messages published here are kept for so long for brokers that have not had them; also if
    there is room."""
    inbox_deliveries_max: int = Field(default=DELIVERIES_MAX, ge=1)
    """Deliveries that wait for one subscriber; what comes then is dropped, and the subscriber is
    told how much it was."""
    inbox_bytes_max: int = Field(default=BYTES_MAX, ge=1)
    """Bytes of these deliveries; likewise."""
    dead_letters_max: int = Field(default=DEAD_LETTERS_MAX, ge=1)
    """Deliveries that one webhook did not take; with more, or with inbox_bytes_max of them, nothing
    is posted to it until some are retried or dropped."""

    connections_max: int = Field(default=4096, ge=16)
    """Connections in all; an eighth of them is for neighbours and operators alone. Fewer are taken
    where the system lets the process open fewer files."""
    strangers_max: int = Field(default=512, ge=4)
    """Connections over which nobody was admitted yet, a quarter of them of one address; they are
    ended after 10 s, and the oldest with more."""
    client_connections_max: int = Field(default=256, ge=1)
    """Connections of one client; further calls are refused."""
    client_calls_max: int = Field(default=256, ge=1)
    """Calls of one client that are under way; further ones are refused."""
    unfinished_bytes_max: int = Field(default=2 * WHOLE_BYTES_MAX, ge=1 << 20)
    """Bytes of long calls of which not everything has come yet, half of them of one client; calls
    with more are refused."""

    @model_validator(mode="after")
    def _check_bounds(self) -> BrokerSection:
        if self.unfinished_bytes_max < 4 * self.message_bytes_max:
            raise ValueError("unfinished_bytes_max is less than four messages of message_bytes_max")
        if self.strangers_max > self.connections_max // 2:
            raise ValueError("strangers_max is more than half of connections_max")
        return self

    @property
    def connection_bounds(self) -> ConnectionBounds:
        """Of callers."""
        return ConnectionBounds(**keys_of(ConnectionBounds, self))

    @property
    def inbox_bounds(self) -> InboxBounds:
        """Of each inbox."""
        return InboxBounds(self.inbox_deliveries_max, self.inbox_bytes_max, self.dead_letters_max)


class TlsSection(SettingsSection):
    """Certificates, as PEM files."""

    certificate: Path
    """Certificate of the broker, with its name as subject alternative name."""
    key: Path
    """Private key of the certificate."""
    authority: Path
    """Certificates that those of neighbours and clients have to be signed with."""

    @property
    def certificates(self) -> Certificates:
        """Return the certificates as the listener takes them."""
        return Certificates(self.certificate, self.key, self.authority)


LinkCost = Annotated[int, Field(ge=0, le=COST_MAX)]


class NeighbourSection(SettingsSection):
    """Another broker that this one is connected to."""

    name: str = Field(min_length=1, max_length=256)
    """Name of the neighbour."""
    address: HostPort | None = None
    """HOST:PORT where to call it; it has to call here when not given."""
    token: SecretStr | None = None
    """Secret that the two share and that the one who calls gives."""
    projection: bool = True
    """Whether messages to this neighbour are cut down to what is of use behind it."""

    cost: LinkCost = 1
    """What a message over this link costs, beside others: trees are made of the links that cost
    least. 0 for its round trip in milliseconds, as measured: it counts when it has differed by more
    than a factor of two for half a minute. Of what the two ends say the dearer counts."""
    format: str = "text"
    """How messages are written for it: "text", or "zstd", with a dictionary that is sampled from
    what each source publishes."""

    @field_validator("format")
    @classmethod
    def _check_format(cls, format: str) -> str:
        try:
            check_format(format)
        except ConfigError as error:
            raise ValueError(error.params["reason"]) from error
        return format


class CallerSection(SettingsSection):
    """Somebody who publishes or subscribes."""

    name: Annotated[str, AfterValidator(check_name)] = Field(min_length=1, max_length=256)
    """Name of the client; it may have slashes, as that of a certificate has."""
    token: SecretStr | None = None
    """Secret that it gives."""
    publish: bool = True
    """Whether it may publish."""
    subscribe: bool = True
    """Whether it may subscribe."""

    @property
    def roles(self) -> frozenset[Role]:
        """Return the caller's roles."""
        roles: dict[Role, bool] = {"publish": self.publish, "subscribe": self.subscribe}
        return frozenset(role for role, is_given in roles.items() if is_given)

    @property
    def peer(self) -> KnownCaller:
        """Return the caller as authentication knows it."""
        return KnownCaller(self.name, secret_of(self.token), self.roles)


class ClientSection(CallerSection):
    """Somebody who publishes, subscribes or operates."""

    operate: bool = False
    """Whether it may ask what goes on."""
    webhook: str | None = None
    """URL to which its deliveries are posted; it does not follow its inbox then."""
    webhook_secret: SecretStr | None = None
    """Signs what is posted; has to be there with a webhook."""
    webhook_networks: tuple[IPv4Network | IPv6Network, ...] = ()
    """Networks that are not public, and may be posted to all the same."""

    @model_validator(mode="after")
    def _check_secret(self) -> ClientSection:
        if (self.webhook is None) != (self.webhook_secret is None):
            raise ValueError("webhook and webhook_secret are given together")
        return self

    @property
    def roles(self) -> frozenset[Role]:
        """Return the client's roles."""
        return super().roles | (frozenset({"operate"}) if self.operate else frozenset())


SAMPLE_SECONDS_MIN: Final = 0.1


class RegistrationSection(SettingsSection):
    """The registration service that this broker takes its profiles and sources from.

    Processes with the same `broker.name` are one broker: the one that has its lease runs, the
    others wait.
    """

    store: Place
    """The profile database, which brokers and service share: the path of a SQLite file, or a URL
    such as "postgresql://USER@HOST/NAME"."""
    address: HostPort | None = None
    """HOST:PORT where others find this process; where it listens when not given."""
    nodes: tuple[str, ...] = Field(min_length=1)
    """Names of the nodes of the service, which may call here."""
    token: SecretStr | None = None
    """Secret that the nodes of the service give."""
    location: str = ""
    """Where the broker is: names from the widest to the narrowest, "eu/ch/bern"."""
    bandwidth: float = Field(default=1e8, ge=0, le=1e15)
    """Bytes a second that sources may send it."""
    profiles_max: int = Field(default=1_000_000, ge=1)
    """Profiles that it may host."""
    sample_seconds: float = Field(default=60.0, ge=0, le=1e6)
    """How often samples of the messages that are published here are kept in the profile database,
    by which profiles are placed; 0 for never, else 0.1 at least."""
    lease_seconds: float = Field(default=10.0, gt=0, le=3600)
    """A broker that cannot renew its lease for so long ends its work, and another process of its
    name takes over; also if the database cannot be reached."""

    @field_validator("sample_seconds")
    @classmethod
    def _check_sample(cls, seconds: float) -> float:
        if 0 < seconds < SAMPLE_SECONDS_MIN:
            raise ValueError(f"0 for never, or at least {SAMPLE_SECONDS_MIN}")
        return seconds


class BrokerSettings(FileSettings):
    """Everything that `pathcast broker run` can be told."""

    broker: BrokerSection
    """The process itself."""
    tls: TlsSection | None = None
    """Certificates; without them nothing leaves this machine."""
    neighbours: tuple[NeighbourSection, ...] = ()
    """Other brokers that this one is connected to."""
    clients: tuple[ClientSection, ...] = ()
    """Who may publish, subscribe and operate."""
    registration: RegistrationSection | None = None
    """The registration service; without it, clients subscribe at this broker."""

    @model_validator(mode="after")
    def _check_names(self) -> BrokerSettings:
        names = [self.broker.name, *(each.name for each in self.neighbours)]
        names += [each.name for each in self.clients]
        names += self.registration.nodes if self.registration else ()
        check_different(names)
        most = self.broker.subscriptions_max
        if self.registration is not None and self.registration.profiles_max > most:
            raise ValueError(f"registration.profiles_max is more than subscriptions_max, {most}")
        return self

    @property
    def certificates(self) -> Certificates | None:
        """Its certificates, if there are any."""
        return None if self.tls is None else self.tls.certificates

    @property
    def peers(self) -> list[KnownCaller]:
        """Return all callers that are admitted."""
        neighbours = [KnownCaller(each.name, secret_of(each.token)) for each in self.neighbours]
        service: list[KnownCaller] = []
        if self.registration is not None:
            token, roles = secret_of(self.registration.token), frozenset[Role]({"register"})
            service = [KnownCaller(name, token, roles) for name in self.registration.nodes]
        return [*neighbours, *(each.peer for each in self.clients), *service]

    @property
    def webhooks(self) -> dict[str, Webhook]:
        """Clients whose deliveries are posted, and where to."""
        return {
            each.name: Webhook(
                each.webhook,
                each.webhook_secret.get_secret_value().encode(),
                each.webhook_networks,
            )
            for each in self.clients
            if each.webhook is not None and each.webhook_secret is not None
        }

    @property
    def costs(self) -> dict[str, int]:
        """Neighbour -> what the link costs; 0 if that is measured."""
        return {each.name: each.cost for each in self.neighbours}

    @property
    def formats(self) -> dict[str, str]:
        """Neighbour -> how messages are written for it."""
        return {each.name: each.format for each in self.neighbours}

    @property
    def addresses(self) -> dict[str, Address]:
        """Neighbours that are called from here."""
        return {
            each.name: Address(
                each.name,
                each.address,
                secret_of(each.token),
                self.certificates,
                self.broker.allow_plain,
            )
            for each in self.neighbours
            if each.address is not None
        }


def secret_of(token: SecretStr | None) -> str | None:
    """The text of a secret."""
    return None if token is None else token.get_secret_value()


def node_settings(settings: BrokerSettings) -> NodeSettings:
    """Convert the file's settings to those of the protocol."""
    broker = ProtocolSettings(**keys_of(ProtocolSettings, settings.broker))
    return replace(DEFAULT, broker=broker, formats=settings.formats)


def database_of(place: str) -> str | Path:
    """The profile database of a setting, as `Store.open` takes it."""
    return place if "://" in place else Path(place)
