"""The network of brokers as a subscriber of a pipeline: what it is delivered is published.

    commit -> rows of the subscriber, in the order of its files -> numbered -> root broker

What counts is decided by the commit, before anything is published: the rows of a micro-batch, and
their order, are the same however often they are looked at. So a row has a number that never
changes, and the root takes no number twice (`pathcast.overlay.publishers`). A pipeline that is
killed, or a root, or both, goes on with the micro-batch that it was at: nothing is lost, nothing is
taken twice.

    _published.json     in the checkpoint: whose deliveries, and the last micro-batch that the root
                        has all of

What cannot be published is written to `unpublished/N.jsonl` in the output: a delivery that is
larger than a broker takes, or an id ("ids" were asked for).

The driver publishes, after each commit, so that messages of a micro-batch keep their order and a
root that takes no more makes the pipeline wait.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from pathcast.errors import PublicationError, UnavailableError, invalid_setting
from pathcast.limits import KIB
from pathcast.spark.ledger import Commit, CommitFollower
from pathcast.spark.network import connect, wait_for
from pathcast.spark.outputs import rows_of
from pathcast.spark.schemas import body_of

if TYPE_CHECKING:
    from pathcast.spark.network import NetworkSettings, PublishSettings
    from pathcast.spark.outputs import Layout
    from pathcast.spark.storage import Storage
    from pathcast.transport.broker_requests import PublishRequest
    from pathcast.transport.client import BrokerClient

STATE: Final = "_published.json"
UNPUBLISHED: Final = "unpublished"

ROWS_MAX: Final = 2**32
"""Rows of a micro-batch; its number stands above theirs."""

ROWS_AT_ONCE: Final = 4096

PAUSES: Final = (0.05, 2.0)
"""Seconds before a root is asked again: the first time, and at most; each pause doubles."""

ANSWER_SECONDS: Final = 60.0
"""How long a receipt may take; a connection that is lost is noticed earlier."""

MESSAGE_MARGIN: Final = 64 * KIB
"""What stands around a message in a frame between brokers, at most."""

ID_CHARACTERS_MAX: Final = 128
"""Of the id of a message in the network."""


@dataclass(frozen=True)
class PublishedThrough:
    """The last micro-batch that was published, and whose deliveries if not everybody's."""

    through: int
    subscriber: str = ""


@dataclass(frozen=True)
class PublishedOutput:
    """An output whose commits are published.

    Attributes:
        checkpoint: Where it is remembered what was published.
        last: The last micro-batch that is complete; a publisher that is new begins after it.
        note: Who is told why one waits.
        stop: Ends waiting.
    """

    storage: Storage
    layout: Layout
    checkpoint: Storage
    last: int
    note: Callable[[str], None]
    stop: threading.Event

    def published(self, name: str, subscriber: str = "") -> PublishedThrough:
        """Reads a state of the checkpoint; a new one, which is written, begins with what comes."""
        found = self.checkpoint.find_as(name, PublishedThrough)
        if found is None:
            found = PublishedThrough(self.last, subscriber)
            self.checkpoint.write_json(name, found)
        return found


class NetworkPublisher(CommitFollower):
    """Publishes micro-batches, one after the other.

    Args:
        wanted: Whose deliveries, and of which source they are messages.
        publisher: A name that no other pipeline has, whose numbers these are.

    Raises:
        ConfigError: Deliveries of another subscriber were published so far.
    """

    def __init__(
        self,
        network: NetworkSettings,
        wanted: PublishSettings,
        publisher: str,
        output: PublishedOutput,
    ) -> None:
        self._network = network
        self._wanted = wanted
        self._publisher = publisher
        self._output = output
        subscriber = wanted.subscriber
        state = output.published(STATE, subscriber)
        if state.subscriber != subscriber:
            reason = (
                f"it was {state.subscriber} so far: {subscriber} needs an output of its own, or "
                f"{output.checkpoint}/{STATE} taken away, to begin with what comes from now on"
            )
            raise invalid_setting("publish.subscriber", reason)
        self.through = state.through

    def publish(self, commit: Commit) -> bool:
        """Publishes a micro-batch; whether all of it is on the root's disk.

        False only if it was told to stop: then it is to be called again, by the next run.

        Raises:
            PathcastError: The root refuses, and trying again would not help.

        Cost: the rows of the subscriber are held while they are published; 10 ms, and what the root
            takes.
        """
        subscriber = self._wanted.subscriber
        table = rows_of(self._output.storage, self._output.layout, commit, "inboxes", subscriber)
        if len(table) and not wait_for(self._send(commit.batch_id, table)):
            return False
        self._done(commit.batch_id)
        return True

    async def _send(self, batch_id: int, table: pa.Table) -> bool:
        left_out: list[dict[str, object]] = []
        groups = self._groups(batch_id, table, left_out)
        group = next(groups, None)
        is_known, pause, told = True, PAUSES[0], ""
        while group is not None:
            try:
                async with connect(self._network) as client:
                    if not is_known:
                        await _register(client, self._wanted.source)
                    while group is not None:
                        refused = await _publish(client, self._network.broker, group)
                        left_out += refused
                        self.published += len(group) - len(refused)
                        is_known, pause, told = True, PAUSES[0], ""
                        group = next(groups, None)
            except (UnavailableError, PublicationError) as error:
                if error.code == "publication.source" and is_known:
                    is_known = False
                    continue
                if isinstance(error, PublicationError) and error.params["retry"] != "yes":
                    raise
                if told != error.code:
                    told = error.code
                    waits = f"micro-batch {batch_id} waits to be published"
                    self._output.note(f"{waits}: {error.message}")
                if await asyncio.to_thread(self._output.stop.wait, pause):
                    return False
                pause = min(PAUSES[1], 2 * pause)
        if left_out:
            lines = "".join(json.dumps(row) + "\n" for row in left_out)
            self._output.storage.write(f"{UNPUBLISHED}/{batch_id}.jsonl", lines.encode())
            self._output.note(
                f"{len(left_out):,} deliveries of micro-batch {batch_id} cannot be published: see "
                f"{self._output.storage.url(UNPUBLISHED)}/{batch_id}.jsonl"
            )
        return True

    def _groups(
        self, batch_id: int, table: pa.Table, left_out: list[dict[str, object]]
    ) -> Iterator[Sequence[PublishRequest]]:
        """Messages of a micro-batch, as many at a time as a frame takes; `left_out`: the others."""
        from pathcast.overlay.publishers import Numbered
        from pathcast.transport.broker_requests import PublishRequest
        from pathcast.transport.frames import FRAME_BYTES_MAX, in_groups

        bytes_max = FRAME_BYTES_MAX - MESSAGE_MARGIN
        number = batch_id * ROWS_MAX
        for batch in table.to_batches(max_chunksize=ROWS_AT_ONCE):
            messages = []
            names = [name for name in _COLUMNS if name in batch.schema.names]
            for row in batch.select(names).to_pylist():
                number += 1
                body = body_of(row)
                if body is None or len(body) > bytes_max:
                    large = f"{len(body or b''):,} bytes, at most {bytes_max:,} can be published"
                    reason = "it is delivered as an id, not as a message" if body is None else large
                    left_out.append({"message_id": row["message_id"], "reason": reason})
                    continue
                numbered = Numbered(self._publisher, number)
                messages.append(PublishRequest(self._wanted.source, _id_of(row), body, numbered))
            yield from in_groups(messages, lambda each: len(each.body))

    def _done(self, batch_id: int) -> None:
        """The root has all of the micro-batches up to this one."""
        self.through = batch_id
        state = PublishedThrough(batch_id, self._wanted.subscriber)
        self._output.checkpoint.write_json(STATE, state)


_COLUMNS: Final = ["message_id", "result_number", "fragment", "fragment_bytes", "delivery_id"]


def _id_of(row: Mapping[str, Any]) -> str:
    """Id of a message in the network: that of the message or result, or of the delivery."""
    id: str = row["message_id"]
    if row["result_number"]:
        id = f"{id}#{row['result_number']}"
    return id if len(id) <= ID_CHARACTERS_MAX else row["delivery_id"].hex()


async def _publish(
    client: BrokerClient, broker: str, group: Sequence[PublishRequest]
) -> list[dict[str, object]]:
    """Publishes messages; gives those that the root does not take, because they are none."""
    from pathcast.transport.broker_requests import NotTaken

    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            answers = await client.publish(group)
    except TimeoutError as error:
        raise UnavailableError("peer.silent", name=broker, seconds=ANSWER_SECONDS) from error
    refused = [each for each in answers if isinstance(each, NotTaken)]
    return [{"message_id": each.message, "reason": each.reason} for each in refused]


async def _register(client: BrokerClient, source: str) -> None:
    from pathcast.overlay.messages import SourceEntry
    from pathcast.transport.broker_requests import RegisterSourceRequest

    await client.ask(RegisterSourceRequest(source, SourceEntry()))
