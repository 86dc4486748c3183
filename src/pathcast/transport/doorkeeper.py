"""The message pre-processor of a root broker: what is no message, or no valid one, is not accepted.

Source: 001, section 5, Figure 10 (message pre-processor: the XML parser of a root broker).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from pathcast.errors import (
    MissingDependencyError,
    PathcastError,
    PublicationError,
    SchemaError,
    UnusableRowError,
)
from pathcast.limits import Limits
from pathcast.overlay.messages import (
    NAME_CHARACTERS_MAX,
    SourceEntry,
)
from pathcast.overlay.schemas import check_schema
from pathcast.registry import Registry
from pathcast.schema import validator_of
from pathcast.transport.broker_requests import NotTaken, PublishRequest
from pathcast.transport.ids import check_id, shown


class Doorkeeper:
    """The message pre-processor of a root: what is no message is not accepted.

    Messages are read by the kernel, all of a call at once; inner brokers read them for their tables
    only, and ask no more whether they are any. A message of a source that asks for it is validated
    against the source's schema.

    Args:
        limits: What a message may cost.

    Attributes:
        sources: Those that this broker is the root of.

    Cost: the door's, about 10 µs for 4 KB; some times that for what is validated.

    Source: 001, section 5, Figure 10 (message pre-processor: the XML parser of a root broker).
    """

    def __init__(self, limits: Limits) -> None:
        self.sources: Mapping[str, SourceEntry] = {}
        self._registry = Registry(limits, threads=1)
        self._turn = threading.Lock()

    def __call__(self, messages: Sequence[object]) -> dict[int, object]:
        """Place -> `NotTaken`, of those that are not accepted."""
        refused: dict[int, object] = {}
        published: list[tuple[int, PublishRequest]] = []
        for place, each in enumerate(messages):
            if isinstance(each, PublishRequest):
                try:
                    check_id(each.message, "id of the message", NAME_CHARACTERS_MAX)
                    published.append((place, each))
                except UnusableRowError as error:
                    refused[place] = not_taken(each.message, error)
        if published:
            with self._turn:
                found = self._registry.match([each.body for _, each in published])
            for row, refusal in found.refusals.items():
                place, each = published[row]
                refused[place] = not_taken(each.message, refusal)
        for place, each in published:
            if place not in refused and (invalid := self._invalid(each)) is not None:
                refused[place] = not_taken(each.message, invalid)
        return dict(sorted(refused.items()))

    def looks_long(self, messages: Sequence[object]) -> bool:
        """Whether some are validated, which is done beside the event loop."""
        return any(
            isinstance(each, PublishRequest) and self._validated(each.source) is not None
            for each in messages
        )

    def _validated(self, source: str) -> SourceEntry | None:
        """The entry of a source that asks for validation."""
        entry = self.sources.get(source)
        return entry if entry is not None and entry.validated and not entry.withdrawn else None

    def _invalid(self, asked: PublishRequest) -> PathcastError | None:
        entry = self._validated(asked.source)
        if entry is None:
            return None
        try:
            fault = validator_of(entry.schema).fault(asked.body)
        except (SchemaError, MissingDependencyError) as error:
            return error
        if fault is None:
            return None
        return PublicationError(
            "publication.invalid",
            source=asked.source,
            schema_version=entry.schema_version,
            reason=fault.reason,
            line=fault.line,
            retry="no",
        )


def check_entry(entry: SourceEntry) -> None:
    """Refuses a source whose schema cannot be used.

    Raises:
        SchemaError: It cannot be read, or its messages cannot be validated as it asks.
        MissingDependencyError: What validates them is not installed.
    """
    if entry.withdrawn:
        return
    try:
        check_schema(entry.schema, validated=entry.validated)
    except MissingDependencyError:
        # Without it schemas are announced, and nothing here reads them.
        if entry.validated:
            raise


def not_taken(message: str, error: PathcastError) -> NotTaken:
    """The answer about a message that is refused."""
    line, column, offset = (_number(error, each) for each in ("line", "column", "offset"))
    return NotTaken(shown(message), error.code, error.message, line, column, offset)


def _number(error: PathcastError, name: str) -> int | None:
    given = error.params.get(name)
    return given if isinstance(given, int) else None
