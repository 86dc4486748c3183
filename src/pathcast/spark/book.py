"""The subscriptions of a pipeline, taken up anew when they change where they are kept.

Rows (subscriber, query id, query, what is delivered) come from a place (`subscription_places`);
`pathcast.registry.subscription_engines` compiles them. Here they become a generation.

It delivers nothing and knows nothing of Spark.
"""

from __future__ import annotations

import gc
import tempfile
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pathcast.limits import Limits
from pathcast.model import DeliverMode, Subscription
from pathcast.registry import Snapshot
from pathcast.registry.identity import SetVersion
from pathcast.registry.subscription_engines import SubscriptionEngines
from pathcast.registry.subscription_rows import (
    RejectedSubscription,
    SubscriptionKey,
    WarnedSubscription,
)
from pathcast.spark.generations import (
    DESCRIPTION,
    QUERIES,
    TAKERS,
    TAKERS_SCHEMA,
    Generation,
    GenerationFiles,
)
from pathcast.spark.last_valid import LastValidVersions
from pathcast.spark.storage import Storage
from pathcast.spark.unwritable import writing

if TYPE_CHECKING:
    from pathcast.spark.subscription_places import SubscriptionPlace


@dataclass(frozen=True, slots=True)
class TakenUp:
    """A generation of subscriptions, and the rows that were refused.

    Attributes:
        generation: What can be delivered.
        rejected: What cannot, and why.
        warnings: Conditions in it that never or always hold, by place.
    """

    generation: Generation
    rejected: Sequence[RejectedSubscription] = field(default=(), repr=False)
    warnings: Sequence[WarnedSubscription] = field(default=(), repr=False)


class SubscriptionBook:
    """The subscriptions of a pipeline."""

    def __init__(
        self,
        place: SubscriptionPlace,
        output: Storage,
        *,
        deliver: DeliverMode = "ids",
        namespaces: Mapping[str, str] | None = None,
        limits: Mapping[str, int | str] | None = None,
    ) -> None:
        self._limits = dict(limits or {})
        self.place = place
        self._output = output
        self._deliver: DeliverMode = deliver
        self._namespaces = dict(namespaces or {})
        self._state: Hashable = None
        self._current: TakenUp | None = None
        self._engines: SubscriptionEngines | None = None
        self._versions = TakerVersions(self._message_limits(), namespaces)

    def current(self, earlier: Generation | None = None, at_us: int | None = None) -> TakenUp:
        """The generation of the subscriptions as they are now.

        Args:
            earlier: Has the last valid version of a subscription whose row is not valid any more.
                None: such a subscription ends.
            at_us: As for `SubscriptionPlace.state`.

        Raises:
            ConfigError: They cannot be read.

        Cost:
            A look at the place when nothing changed; else the rows are read, what came or changed
            is compiled, and all of it written.
        """
        state = self.place.state(at_us)
        if self._current is None or state != self._state:
            with collector_paused():
                self._current = self._taken_up(self._last_valid(earlier))
            # Only now: a file that could not be read is looked at again, not taken for known.
            self._state = state
        return self._current

    def pinned(self, version: str) -> Generation:
        """An earlier generation, from its files."""
        current = self._current
        if current is not None and current.generation.version == version:
            return current.generation
        return Generation.read(self._output, version)

    def _last_valid(self, earlier: Generation | None) -> LastValidVersions | None:
        if earlier is None:
            return None
        return LastValidVersions(self._output, earlier, self._namespaces)

    def _taken_up(self, last_valid: LastValidVersions | None) -> TakenUp:
        rows = self.place.rows(self._deliver)
        # Whoever is interrupted from here on leaves engines that nobody knows the state of.
        engines, self._engines = self._engines, None
        if engines is None:
            engines = SubscriptionEngines(self._message_limits(), self._namespaces)
        taken = engines.take_up(rows, last_valid)
        self._engines = engines
        written = self._write(engines, {key: row for key, (row, _) in taken.takers.items()})
        return TakenUp(written, tuple(taken.rejected), tuple(engines.warnings(taken)))

    def _message_limits(self) -> Limits:
        return Limits(**self._limits)  # type: ignore[arg-type]

    def _write(
        self, engines: SubscriptionEngines, takers: Mapping[tuple[str, str], Subscription]
    ) -> Generation:
        """The files of a generation; those of a version that is there are left as they are."""
        self._versions.become(takers)
        version = self._versions.text
        generation = Generation(
            version,
            queries=len({name for _, name in takers}),
            subscriptions=len(takers),
            has_notices=any(row.deliver == "ids" for row in takers.values()),
            written=uuid.uuid4().hex,
            limits=tuple(sorted(self._limits.items())),
        )
        output, folder = self._output, generation.folder
        if all(output.exists(f"{folder}/{name}") for name in (QUERIES, DESCRIPTION)):
            generation = Generation.read(output, version)
        else:
            write_ipc(output, f"{folder}/{TAKERS}", self._versions.table())
            save_into(output, f"{folder}/{QUERIES}", engines.registry.freeze().save)
        # Its time says when it was taken up last (`retention`).
        output.write_json(f"{folder}/{DESCRIPTION}", generation)
        return generation


def too_few(
    earlier: int, found: TakenUp, shrink_max: float, ended: Callable[[], int]
) -> str | None:
    """Why a state of the subscriptions is not believed: more of them have gone than may at once.

    Args:
        earlier: Subscriptions before.
        found: The state.
        shrink_max: Share that may go at once.
        ended: Tells how many had said that they would have ended by now; those do not count.
    """
    count = found.generation.subscriptions
    if count >= earlier * (1 - shrink_max):
        return None
    earlier -= ended()
    if count >= earlier * (1 - shrink_max):
        return None
    rejected = f" and {len(found.rejected):,} that were rejected" if found.rejected else ""
    return (
        f"there are {count:,}{rejected}, and were {earlier:,}: more than {shrink_max:.0%} have "
        "gone; if that is meant, run with subscriptions.shrink_max=1"
    )


class TakerVersions:
    """The versions of subscriptions, and that of all of them together, while they come and go.

    Args:
        limits: What a message may cost.
        namespaces: Prefixes for all queries; those of a row go over them.
    """

    def __init__(self, limits: Limits, namespaces: Mapping[str, str] | None = None) -> None:
        self._all = SetVersion(limits)
        self._bound = dict(namespaces or {})
        self._known: dict[SubscriptionKey, tuple[Subscription, bytes]] = {}

    def become(self, rows: Mapping[SubscriptionKey, Subscription]) -> None:
        """Takes in what came, changed and has gone.

        Args:
            rows: Subscriber and id of the query -> the subscription; all that there are.

        Cost: 5 µs for each that is new or another; for the others, a look-up.
        """
        known = self._known
        for key in [key for key in known if key not in rows]:
            self._all.remove(self._bound_row(known.pop(key)[0]))
        for key, row in rows.items():
            before = known.get(key)
            if before is not None:
                if before[0] is row or before[0] == row:
                    continue
                self._all.remove(self._bound_row(before[0]))
            known[key] = row, self._all.add(self._bound_row(row))

    @property
    def text(self) -> str:
        """The version of all."""
        return self._all.text

    def table(self) -> pa.Table:
        """Return the takers of all queries, schema `TAKERS_SCHEMA`. Cost: a sort of them."""
        keys = sorted(self._known)
        columns = (
            [subscriber or None for subscriber, _ in keys],
            [name for _, name in keys],
            [self._known[key][1] for key in keys],
        )
        return pa.table(list(columns), schema=TAKERS_SCHEMA)

    def _bound_row(self, row: Subscription) -> Subscription:
        return row._replace(namespaces={**self._bound, **(row.namespaces or {})} or None)


def saved_files(path: Path, folder: Path) -> GenerationFiles:
    """The files of subscriptions that were saved without takers, by `Snapshot`.

    Args:
        path: The saved file.
        folder: Gets the takers: those that a subscription names, nobody for a filter query.

    Raises:
        SnapshotFormatError: It is no snapshot, or is damaged.

    Cost: 10 µs a query.
    """
    opened = Snapshot.open(path)
    rows = {(row.subscriber, row.id): row for row in opened.subscriptions}
    versions = TakerVersions(opened.limits)
    versions.become(rows)
    write_ipc(Storage(folder), TAKERS, versions.table())
    has_notices = any(row.deliver == "ids" for row in rows.values())
    return GenerationFiles(opened.version, folder / TAKERS, path, has_notices)


def save_into(storage: Storage, name: str, save: Callable[[Path], None]) -> None:
    """Lets something write a file, and takes it into the output."""
    with writing(f"{tempfile.gettempdir()} (TMPDIR)"), tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "written"
        save(path)
        storage.write(name, path.read_bytes())


def write_ipc(storage: Storage, name: str, table: pa.Table) -> None:
    """Writes a table as one record batch, which whoever maps it need not copy."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    storage.write(name, sink.getvalue().to_pybytes())


@contextmanager
def collector_paused() -> Iterator[None]:
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
