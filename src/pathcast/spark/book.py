"""The subscriptions of a pipeline, taken up anew when their files change.

Rows (subscriber, query id, query, what is delivered) come from a table, from `.xq` files, or from a
folder of them: `subscriptions` reads them. Here they become a generation. A query that several
subscribers want is compiled once; the same id with another query, or delivered in another way, is
rejected, since a delivery names the query by its id.

It delivers nothing and knows nothing of Spark.
"""

from __future__ import annotations

import gc
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pyarrow as pa

from pathcast.customize import Broker
from pathcast.customize.identity import SetVersion
from pathcast.engine import QueryIndex
from pathcast.errors import DuplicateQueryError, PathcastError
from pathcast.limits import Limits
from pathcast.model import DeliverMode, EngineName, Query, Subscription
from pathcast.spark.generations import (
    DESCRIPTION,
    NOTICES,
    RESULTS,
    TAKERS,
    TAKERS_SCHEMA,
    Generation,
)
from pathcast.spark.subscriptions import (
    RejectedSubscription,
    Signature,
    read_rows,
    rejected,
    signature_of,
)

if TYPE_CHECKING:
    from pathcast.spark.storage import Storage


@dataclass(frozen=True, slots=True)
class TakenUp:
    """What became of the files of subscriptions.

    Attributes:
        generation: What can be delivered.
        rejected: What cannot, and why.
    """

    generation: Generation
    rejected: Sequence[RejectedSubscription] = field(default=(), repr=False)


class SubscriptionBook:
    """The subscriptions of a pipeline.

    Args:
        path: A table, a `.xq` file, or a folder of them.
        output: Where generations are kept.
        deliver: What is delivered where a row does not say.
        engine: Which engine compiles the queries.
        namespaces: Prefixes for all queries.
        limits: What a message may cost, by name; the defaults for the others.
    """

    def __init__(
        self,
        path: Path,
        output: Storage,
        *,
        deliver: DeliverMode = "ids",
        engine: EngineName | None = None,
        namespaces: Mapping[str, str] | None = None,
        limits: Mapping[str, int | str] | None = None,
    ) -> None:
        self._limits = dict(limits or {})
        self._path = path
        self._output = output
        self._deliver: DeliverMode = deliver
        self._engine = engine
        self._namespaces = dict(namespaces or {})
        self._signature: Signature | None = None
        self._current: TakenUp | None = None
        self._compiled: _Compiled | None = None

    def current(self) -> TakenUp:
        """The generation of the files as they are now.

        Raises:
            ConfigError: They cannot be read, or are no subscriptions.

        Cost:
            A `stat` a file when nothing changed; else the files are read, what came or changed is
            compiled, and all of it written.
        """
        signature = signature_of(self._path)
        if self._current is None or signature != self._signature:
            self._current = self._build()
            # Only now: a file that could not be read is looked at again, not taken for known.
            self._signature = signature
        return self._current

    def pinned(self, version: str) -> Generation:
        """An earlier generation, from its files."""
        current = self._current
        if current is not None and current.generation.version == version:
            return current.generation
        return Generation.read(self._output, version)

    def check(self) -> tuple[int, list[RejectedSubscription]]:
        """What would be taken up of the files as they are: how many, and what not; writes nothing.

        Raises:
            ConfigError: They cannot be read, or are no subscriptions.
        """
        takers, refused, _ = self._compile()
        return len(takers), refused

    def _build(self) -> TakenUp:
        with _collector_paused():
            takers, refused, compiled = self._compile()
            return TakenUp(self._write(compiled, takers), tuple(refused))

    def _compile(
        self,
    ) -> tuple[dict[tuple[str, str], Subscription], list[RejectedSubscription], _Compiled]:
        """Subscriber and query id -> subscription, what is none, and the engines filled."""
        rows, places, refused = read_rows(self._path, self._deliver)
        wanted: dict[str, Subscription] = {}
        takers: dict[tuple[str, str], Subscription] = {}
        place_of: dict[tuple[str, str], str] = {}
        for row, place in zip(rows, places, strict=True):
            first = wanted.setdefault(row.id, row)
            if (first.query, first.deliver) != (row.query, row.deliver) or (
                (row.subscriber, row.id) in takers
            ):
                error = DuplicateQueryError("query.duplicate", id=row.id)
                refused.append(rejected(row, error, place))
            else:
                takers[row.subscriber, row.id] = row
                place_of[row.subscriber, row.id] = place
        # Whoever is interrupted from here on leaves engines that nobody knows the state of.
        compiled, self._compiled = self._compiled or self._new_engines(), None
        faults = compiled.become(wanted)
        self._compiled = compiled
        for key, row in list(takers.items()):
            if row.id in faults:
                refused.append(rejected(row, faults[row.id], place_of[key]))
                del takers[key]
        return takers, refused, compiled

    def _new_engines(self) -> _Compiled:
        limits = Limits(**self._limits)  # type: ignore[arg-type]
        return _Compiled(
            QueryIndex(engine=self._engine, limits=limits, namespaces=self._namespaces),
            Broker(self._engine, limits, self._namespaces, threads=1),
        )

    def _write(
        self, compiled: _Compiled, takers: Mapping[tuple[str, str], Subscription]
    ) -> Generation:
        """The files of a generation; those of a version that is there are left as they are."""
        rows = [takers[key] for key in sorted(takers)]
        version = SetVersion(Limits(**self._limits))  # type: ignore[arg-type]
        namespaces = self._namespaces or None
        versions = [version.add(row._replace(namespaces=namespaces)) for row in rows]
        generation = Generation(
            version.text,
            queries=len({row.id for row in rows}),
            subscriptions=len(rows),
            has_notices=len(compiled.index) > 0,
            has_results=len(compiled.broker) > 0,
            written=uuid.uuid4().hex,
            limits=tuple(sorted(self._limits.items())),
        )
        output, folder = self._output, generation.folder
        if output.exists(f"{folder}/{DESCRIPTION}"):
            return Generation.read(output, version.text)
        table = pa.table(
            [[row.subscriber for row in rows], [row.id for row in rows], versions],
            schema=TAKERS_SCHEMA,
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, TAKERS_SCHEMA) as writer:
            writer.write_table(table)
        output.write(f"{folder}/{TAKERS}", sink.getvalue().to_pybytes())
        with TemporaryDirectory() as temporary:
            file = Path(temporary) / "snapshot"
            if generation.has_notices:
                compiled.index.freeze().save(file)
                output.write(f"{folder}/{NOTICES}", file.read_bytes())
            if generation.has_results:
                compiled.broker.freeze().save(file)
                output.write(f"{folder}/{RESULTS}", file.read_bytes())
        output.write(f"{folder}/{DESCRIPTION}", generation.to_json())
        return generation


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Leaves the garbage collector out: millions of objects are made that stay, in no circle.

    To look through them again and again as they become more is a quarter of the time that it takes
    to make them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def too_few(earlier: int, found: TakenUp, shrink_max: float) -> str | None:
    """Why a state of the subscriptions is not believed: more of them have gone than may at once.

    Args:
        earlier: Number of subscriptions before.
        found: The state that was found.
        shrink_max: Share that may go.
    """
    count = found.generation.subscriptions
    if count >= earlier * (1 - shrink_max):
        return None
    rejected = f" and {len(found.rejected):,} that were rejected" if found.rejected else ""
    return (
        f"there are {count:,}{rejected}, and were {earlier:,}: more than {shrink_max:.0%} have "
        "gone; if that is meant, run with subscriptions.shrink_max=1"
    )


class _Compiled:
    """The queries of a book in the engines that answer them, changed as the files change."""

    def __init__(self, index: QueryIndex, broker: Broker) -> None:
        self.index = index
        self.broker = broker
        # Query id -> what is compiled; and which of them the broker has.
        self._held: dict[str, Subscription] = {}

    def become(self, wanted: Mapping[str, Subscription]) -> Mapping[str, PathcastError]:
        """Makes them exactly these queries; gives those that are refused."""
        gone = [name for name, row in self._held.items() if not _is_same(row, wanted.get(name))]
        of_index = [name for name in gone if name in self.index]
        if of_index:
            self.index.remove(of_index)
            self.index.compact()
        self.broker.unsubscribe([name for name in gone if name in self.broker])
        for name in gone:
            del self._held[name]
        new = [row for name, row in wanted.items() if name not in self._held]
        notices = [row for row in new if row.deliver == "ids"]
        declined = self.index.register([Query(row.id, row.query) for row in notices]).rejected
        # What is no XPath may be XQuery; the broker knows both, and says what is wrong.
        others = [row for row in new if row.deliver != "ids" or row.id in declined]
        refused = dict(self.broker.subscribe(others).rejected)
        self._held |= {row.id: row for row in new if row.id not in refused}
        return refused


def _is_same(row: Subscription, other: Subscription | None) -> bool:
    """Whether two rows are one query, whoever takes it."""
    return other is not None and (row.query, row.deliver) == (other.query, other.deliver)
