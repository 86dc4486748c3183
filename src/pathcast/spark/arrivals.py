"""Messages that are deliveries of a broker: what waits in an inbox, fetched into files.

    inbox of the broker -> files of the source directory -> journal, tasks, commit -> acknowledged

Each look fetches what waits behind the last position that is known and writes it as Parquet; from
there on these are files of a source like any other, read by the tasks, each handed on once. When a
micro-batch is committed, its files are taken out, and the broker is told that it need not keep what
lies before. So at any moment a delivery is at the broker, in a file, or in a commit; whatever is
killed loses none.

    LIFE-FIRST-LAST.parquet     deliveries by their positions in the inbox
    _inbox.json                 in the checkpoint: the last position, and of each subscription and
                                stream the position of the last message

It takes none twice either: a position is fetched once, and a message that the host broker delivers
again after a crash, or all over again into a new inbox after it has lost its disk, is known by its
position in the stream of its root.

Columns: message_id as it was published (with "#N" for further results of a subscription),
delivery_id, message, subscription, root, stream, position.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from pathcast.errors import SourceError, invalid_setting
from pathcast.limits import MIB
from pathcast.spark.files import FoundFile, SourceListing

if TYPE_CHECKING:
    from pathcast.overlay.deliveries import InboxDelivery
    from pathcast.spark.network import NetworkSettings
    from pathcast.spark.storage import Storage
    from pathcast.transport.client import BrokerClient
    from pathcast.transport.disk import InboxCursor, Waiting

STATE: Final = "_inbox.json"

ARCHIVE: Final = "archive"
"""Id of the profile that a pipeline registers."""

PATTERN: Final = "[0-9]*-[0-9]*-[0-9]*.parquet"
"""Names of the files."""

FILE_BYTES: Final = 64 * MIB
"""Bytes of messages after which another file is begun."""

GROUP_ROWS: Final = 1024
"""Rows of a row group, which a task takes at a time."""

SCHEMA: Final = pa.schema(
    [
        pa.field("message_id", pa.string(), nullable=False),
        pa.field("delivery_id", pa.string(), nullable=False),
        pa.field("message", pa.binary(), nullable=False),
        pa.field("subscription", pa.string(), nullable=False),
        pa.field("root", pa.string(), nullable=False),
        pa.field("stream", pa.int64(), nullable=False),
        pa.field("position", pa.int64(), nullable=False),
    ]
)


@dataclass
class _State:
    """How far an inbox was fetched.

    Attributes:
        after: The last position.
        life: Number of the inbox: a broker whose disk is lost or older has another one.
        broker_life: Of the broker that put the last position there; None of before this was told.
        streams: Subscription, root and number of a stream -> position of its last message.
        profile: What was registered.
    """

    after: int = 0
    life: int = 0
    broker_life: int | None = None
    streams: dict[str, int] = field(default_factory=dict)
    profile: Mapping[str, Any] | None = None


class InboxListing(SourceListing):
    """Files of deliveries, fetched as they are asked for.

    Args:
        files: Lists the files of the directory.
        storage: The directory; nobody else writes there.
        profile: `query`, `deliver` and `namespaces` that the pipeline subscribes to; None where
            somebody else does it for the inbox.
    """

    def __init__(
        self,
        files: SourceListing,
        storage: Storage,
        checkpoint: Storage,
        network: NetworkSettings,
        profile: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(files.path)
        self._files = files
        self._storage = storage
        self._checkpoint = checkpoint
        self._network = network
        self._inbox = network.client
        self._profile = profile
        self._notes: list[tuple[str, str]] = []
        self._settled = 0
        self._state = checkpoint.find_as(STATE, _State) or _State()
        # Files that were written when the process was killed before it could say so.
        state = self._state
        storage.delete(name for name in self._names() if _place(name) > (state.life, state.after))

    def look(
        self, done: Container[str], again: Mapping[str, FoundFile] | None = None
    ) -> tuple[list[FoundFile], dict[str, OSError]]:
        """Fetch the deliveries that wait, into files in the order of their positions."""
        faults: dict[str, OSError] = {}
        try:
            self._exchange()
        except OSError as error:  # the broker is away, or does not know us; what is here goes on
            faults[""] = error
        found, _ = self._files.look(done, again or {})
        return sorted(found, key=lambda file: file.name), faults

    def notes(self) -> list[tuple[str, str]]:
        """Return the oddities of the last look, as `SourceListing.notes` does."""
        notes, self._notes = self._notes, []
        return notes

    def committed(self, names: Iterable[str]) -> None:
        """Delete the files, and acknowledge their deliveries to the broker."""
        self._storage.delete(names)
        # Whoever is away now is told at the next look.
        with contextlib.suppress(OSError):
            self._call(self._settle)

    def _names(self) -> list[str]:
        return [name for name in self._storage.names("") if fnmatchcase(name, PATTERN)]

    def _exchange(self) -> None:
        async def exchange(client: BrokerClient) -> None:
            try:
                await self._settle(client)
                await self._register(client)
                await self._fetch(client)
            except SourceError as error:
                if error.code not in ("inbox.ahead", "inbox.other"):
                    raise
                lost = f"{error.message}; what it has lost is not delivered here"
                self._notes.append((f"life {self._state.life}", lost))
                # With its disk the broker has lost what was registered, too.
                self._state = _State(life=self._state.life + 1, streams=self._state.streams)
                self._settled = 0
                await self._register(client)
                await self._fetch(client)

        self._call(exchange)

    def _call(self, ask: Callable[[BrokerClient], Coroutine[Any, Any, None]]) -> None:
        # Workers, which fetch nothing, need neither settings nor a network.
        from pathcast.spark.network import call

        call(self._network, ask)

    async def _settle(self, client: BrokerClient) -> None:
        """Tells the broker what lies in commits."""
        waiting = [_place(name) for name in self._names()]
        firsts = [first for life, first in waiting if life == self._state.life]
        position = min(firsts, default=self._state.after + 1) - 1
        if position > self._settled:
            await self._check_inbox(client)
            await client.settle(self._inbox, position)
            self._settled = position

    async def _check_inbox(self, client: BrokerClient) -> None:
        """Whether this is the inbox that was fetched: nothing of another one is acknowledged.

        Raises:
            SourceError: It is another one.
        """
        async for _ in client.waiting(self._inbox, self._cursor()):
            return

    def _cursor(self) -> int | InboxCursor:
        from pathcast.transport.disk import InboxCursor

        state = self._state
        if state.broker_life is None:
            return state.after
        return InboxCursor(state.after, state.broker_life)

    async def _register(self, client: BrokerClient) -> None:
        """Subscribes, if that was not done."""
        wanted = self._profile
        if wanted is None or wanted == self._state.profile:
            return
        from pathcast.overlay.content import DeliveryProfile
        from pathcast.transport.broker_requests import RequestAccepted, Subscribe

        bound = tuple(sorted(wanted["namespaces"].items()))
        profile = DeliveryProfile(wanted["query"], wanted["deliver"], bound)
        answer = await client.ask(Subscribe(((ARCHIVE, profile),)))
        assert isinstance(answer, RequestAccepted)
        for _, _, reason in answer.refused:
            raise invalid_setting("source.profile", reason)
        self._state.profile = wanted
        self._write_state()

    async def _fetch(self, client: BrokerClient) -> None:
        from pathcast.overlay.deliveries import Dropped, InboxDelivery, InForce, Lapsed, Undecided
        from pathcast.transport.broker_requests import DELIVERIES

        rows: list[dict[str, object]] = []
        # Of a connection that is lost nothing is known that was not kept.
        streams = dict(self._state.streams)
        size, last, first = 0, self._state.after, self._state.after + 1
        async for waiting in client.waiting(self._inbox, self._cursor()):
            for each in waiting:
                last = each.position
                match DELIVERIES.decode(each.body):
                    case InboxDelivery() as delivery:
                        rows += self._rows_of(each, delivery, streams)
                        size += sum(len(result) for result in delivery.results)
                    case InForce(subscription):
                        self._notes.append((f"{last}", f"the profile {subscription} is in force"))
                    case Lapsed() as lapsed:
                        lost = f"messages may be lost to {lapsed.subscription}: {lapsed.reason}"
                        self._notes.append((f"{last}", lost))
                    case Dropped() as dropped:
                        lost = f"{dropped.count:,} deliveries were dropped: the inbox was full"
                        self._notes.append((f"{last}", lost))
                    case Undecided(subscription, message=message, reason=reason):
                        lost = f"{subscription} has no answer for it: {reason}"
                        self._notes.append((message, lost))
            if size >= FILE_BYTES:
                self._keep(client, rows, first, last, streams)
                rows, size, first = [], 0, last + 1
        self._keep(client, rows, first, last, streams)

    def _rows_of(
        self, waiting: Waiting, delivery: InboxDelivery, streams: dict[str, int]
    ) -> list[dict[str, object]]:
        """A row a result; none for a message that was had before."""
        stream = f"{delivery.subscription}\t{delivery.root}\t{delivery.stream}"
        if delivery.position <= streams.get(stream, 0):
            return []
        streams[stream] = delivery.position
        if not delivery.results:
            without = f"{delivery.subscription} delivers ids: there is nothing to be taken up"
            self._notes.append((delivery.subscription, without))
        return [
            {
                "message_id": f"{delivery.message}#{number}" if number else delivery.message,
                "delivery_id": f"{waiting.delivery_id}\t{number}",
                "message": result,
                "subscription": delivery.subscription,
                "root": delivery.root,
                "stream": delivery.stream,
                "position": delivery.position,
            }
            for number, result in enumerate(delivery.results)
        ]

    def _keep(
        self,
        client: BrokerClient,
        rows: list[dict[str, object]],
        first: int,
        last: int,
        streams: Mapping[str, int],
    ) -> None:
        """Writes a file, and then says that all up to its last position is here."""
        if last == self._state.after:
            return
        if rows:
            sink = pa.BufferOutputStream()
            table = pa.Table.from_pylist(rows, schema=SCHEMA)
            pq.write_table(table, sink, row_group_size=GROUP_ROWS, compression="zstd")
            name = f"{self._state.life:06d}-{first:016d}-{last:016d}.parquet"
            self._storage.write(name, sink.getvalue().to_pybytes())
        self._state.after = last
        self._state.broker_life = None if client.cursor is None else client.cursor.life
        self._state.streams = dict(streams)
        self._write_state()

    def _write_state(self) -> None:
        self._checkpoint.write_json(STATE, self._state)


def _place(name: str) -> tuple[int, int]:
    """The inbox that a file is of, and its first position."""
    life, first, _ = name.removesuffix(".parquet").split("-")
    return int(life), int(first)
