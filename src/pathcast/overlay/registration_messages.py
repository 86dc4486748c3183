"""Messages between sources, users, brokers and the registration service: Figure 3.

    1  RegisterSource     source  -> service   5  RegisterInterest   user   -> service
    2  TellRoot           service -> root      6  TellHost           service -> host broker
       RootKnows          root    -> service      HostKnows          host   -> service
    3  SourceRegistered   service -> source    7  InterestRegistered service -> user
                                               8  ChangeInterest, DeleteInterest  user -> host
                                                  InterestChanged    host   -> user
       UpdateSource       source -> root, for its schema and what it expects; SourceUpdated back
       Locate, Located    who serves a source or a profile now; NotLeading, Refused
       Complete, Completed    what can come next in an interest, by what sources publish

(4) is `Publish` of `pathcast.transport.broker`, to the root broker; (9) is a delivery that the host
broker puts into the user's inbox.

A request has a name that its sender gives to no other; sent again, it is not done again. Decoding
checks shapes and lengths of all that comes from outside.

Source: 001, 3.1 and Figure 3. Differs: (2) and (6) are acknowledged, or one that is lost would be
answered by (3) or (7) all the same.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from pathcast.model import DeliverMode
from pathcast.overlay.content import AskedQuery, QueryInLanguage
from pathcast.store import (
    HANDED_MAX,
    ID_BYTES_MAX,
    LABELS_MAX,
    QUERY_BYTES_MAX,
    SCHEMA_BYTES_MAX,
    STEP_BYTES_MAX,
    ProfileRecord,
    SourceRecord,
)

Request = Annotated[str, Meta(min_length=1, max_length=64)]
Name = Annotated[str, Meta(max_length=ID_BYTES_MAX)]
Labels = Annotated[dict[Name, Name], Meta(max_length=LABELS_MAX)]
Schema = Annotated[str, Meta(max_length=SCHEMA_BYTES_MAX)]
Text = Annotated[str, Meta(max_length=QUERY_BYTES_MAX)]
StepTexts = Annotated[
    tuple[Annotated[str, Meta(max_length=STEP_BYTES_MAX)], ...], Meta(max_length=LABELS_MAX)
]
Handed = Annotated[
    dict[Name, tuple[Annotated[int, Meta(ge=0)], Annotated[int, Meta(ge=0)]]],
    Meta(max_length=HANDED_MAX),
]
Amount = Annotated[float, Meta(ge=0, le=1e15)]


class RegisterSource(msgspec.Struct, frozen=True, tag=True):
    """(1) A data source wants to publish. Its address is that of the sender.

    Its root takes only messages that are valid by the schema if it asks for that (`validated`).
    """

    request: Request
    location: Name
    schema: Schema
    messages_a_second: Amount
    message_bytes: Amount
    validated: bool = False


class TellRoot(msgspec.Struct, frozen=True, tag=True):
    """(2) A broker is the root of a source from now on."""

    source: SourceRecord


class RootKnows(msgspec.Struct, frozen=True, tag=True):
    """The root has the source in its catalog, as it is in that version."""

    source: Name
    version: int


class SourceRegistered(msgspec.Struct, frozen=True, tag=True):
    """(3) The id that messages carry, and where they go."""

    request: Request
    source: Name
    root: Name
    address: Name


class RegisterInterest(AskedQuery, frozen=True, tag=True):
    """(5) A profile. Deliveries go to the address of the sender.

    Attributes:
        request: Its name.
        owner: The user.
        asked: XPath or XQuery, and the language if one was chosen.
        location: Where the user is; as for a source.
        deliver: As for `Subscription`.
        namespaces: Likewise.
        labels: As for `ProfileRecord`.
        steps: Likewise.
    """

    request: Request
    owner: Name
    asked: Text | QueryInLanguage = msgspec.field(name="query")
    location: Name = ""
    deliver: DeliverMode = "fragment"
    namespaces: Labels = msgspec.field(default_factory=dict)
    labels: Labels = msgspec.field(default_factory=dict)
    steps: StepTexts = ()


class TellHost(msgspec.Struct, frozen=True, tag=True):
    """(6) A broker is the host of a profile from now on."""

    profile: ProfileRecord


class HostKnows(msgspec.Struct, frozen=True, tag=True):
    """The host serves the profile, as it is in that version.

    Attributes:
        profile: Its id.
        version: Of its record.
        handed: Of a profile that has a former host: as of `ProfileRecord`.
    """

    profile: Name
    version: int
    handed: Handed = msgspec.field(default_factory=dict)


class InterestRegistered(msgspec.Struct, frozen=True, tag=True):
    """(7) The id of the profile, and the host that it is changed at; `former` as of `Located`."""

    request: Request
    profile: Name
    host: Name
    address: Name
    former: Name = ""
    former_address: Name = ""


class ChangeInterest(AskedQuery, frozen=True, tag=True):
    """(8) The profile is another one, or pauses, or goes on."""

    request: Request
    profile: Name
    asked: Text | QueryInLanguage = msgspec.field(name="query")
    deliver: DeliverMode = "fragment"
    namespaces: Labels = msgspec.field(default_factory=dict)
    labels: Labels = msgspec.field(default_factory=dict)
    paused: bool = False
    steps: StepTexts = ()


class DeleteInterest(msgspec.Struct, frozen=True, tag=True):
    """(8) The profile goes."""

    request: Request
    profile: Name


class InterestChanged(msgspec.Struct, frozen=True, tag=True):
    """The change that (8) asked for is done."""

    request: Request
    profile: Name


class UpdateSource(msgspec.Struct, frozen=True, tag=True):
    """Another schema, or other expectations; None for what stays."""

    request: Request
    source: Name
    schema: Schema | None = None
    messages_a_second: Amount | None = None
    message_bytes: Amount | None = None
    validated: bool | None = None


class SourceUpdated(msgspec.Struct, frozen=True, tag=True):
    """The source is as it asked to be; its catalog has this number."""

    request: Request
    source: Name
    catalog: int


class Locate(msgspec.Struct, frozen=True, tag=True):
    """Which node serves a source or a profile of the sender now?

    Attributes:
        request: Its name.
        id: Of the source or the profile.
        broker: Where it was, as far as the sender knows: asked if there is none of that id now,
            since somebody may have to say that it was deleted.
    """

    request: Request
    id: Name
    broker: Name = ""


class Complete(msgspec.Struct, frozen=True, tag=True):
    """What can come next in an interest that is not written to its end?

    Attributes:
        request: Its name.
        text: XPath, up to where it is written.
        namespaces: Bindings of the interest.
    """

    request: Request
    text: Text
    namespaces: Labels = msgspec.field(default_factory=dict)


class Completed(msgspec.Struct, frozen=True, tag=True):
    """Answers `Complete`.

    Attributes:
        request: As of `Complete`.
        offset: Where the proposals are to be written.
        proposals: Text and kind ("element", "attribute", "value") of each.
    """

    request: Request
    offset: int
    proposals: tuple[tuple[str, Literal["element", "attribute", "value"]], ...]


class Located(msgspec.Struct, frozen=True, tag=True):
    """The broker of a source or a profile, and the address of the node that plays it.

    Attributes:
        request: Its name.
        id: Of the source or the profile.
        broker: Who serves it.
        address: Of the node that plays it.
        former: Who served the profile before and still has deliveries of it, to be read before
            those of `broker`; empty for nobody.
        former_address: Of the node that plays that.
    """

    request: Request
    id: Name
    broker: Name
    address: Name
    former: Name = ""
    former_address: Name = ""


class NotLeading(msgspec.Struct, frozen=True, tag=True):
    """Another node does this now; ask the next one of the service, or where the broker is."""

    request: Request


class RegistrationRefused(msgspec.Struct, frozen=True, tag="Refused"):
    """It is not done, and will not be.

    Attributes:
        request: Its name.
        code: Of the catalogue of errors.
        reason: In words.
        retry: Whether the same request can succeed later.
    """

    request: Annotated[str, Meta(max_length=64)]
    code: Name
    reason: Annotated[str, Meta(max_length=100_000)]
    retry: bool = False


ToService: TypeAlias = RegisterSource | RootKnows | RegisterInterest | HostKnows | Locate | Complete
"""Requests to the registration service."""

ToBroker: TypeAlias = TellRoot | TellHost | ChangeInterest | DeleteInterest | UpdateSource
"""Requests of the service to a broker."""

Answer: TypeAlias = (
    SourceRegistered
    | InterestRegistered
    | InterestChanged
    | SourceUpdated
    | Located
    | Completed
    | NotLeading
    | RegistrationRefused
)
"""Answers, each of which ends a request."""
