"""Subscriptions taken up in sections: no process ever holds all of them.

    rows of the file -> a section by the hash of their ids -> engines of a section, side by side
                     -> its files and what was rejected -> the table of takers of all

    _snapshots/HOME/N/          HOME is a name that no other writing has; N the number of a section
        takers.arrow, notices.snapshot, results.subscriptions, queries.arrow    as of a generation
        ranks.arrow             place of each of its takers in the whole table

What has one id is in one section, in the order of the file: so each section takes and rejects what
all of them together would. The driver holds a batch of rows, a range of takers, and four bytes a
subscription.

It places nothing: `cutting` does.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from pathcast.errors import PathcastError
from pathcast.limits import Limits
from pathcast.partition.placement import stable_hashes
from pathcast.registry.identity import SetVersion
from pathcast.registry.subscription_columns import ROW_SCHEMA, rows_of_table
from pathcast.registry.subscription_engines import SubscriptionEngines
from pathcast.registry.subscription_rows import RejectedSubscription, WarnedSubscription
from pathcast.spark.generations import (
    DESCRIPTION,
    NO_FILES,
    SNAPSHOTS,
    TAKERS,
    Generation,
    PartFiles,
)
from pathcast.spark.merging import merge_takers
from pathcast.spark.routed import opened_ipc
from pathcast.spark.sources import shares_of
from pathcast.spark.taking_up import (
    collector_paused,
    takers_table,
    write_engines,
    write_ipc,
    write_queries,
)

if TYPE_CHECKING:
    from pathcast.model import DeliverMode
    from pathcast.spark.last_valid import LastValidVersions
    from pathcast.spark.storage import Storage
    from pathcast.spark.subscription_places import SubscriptionPlace
    from pathcast.spark.workers import Workers

SECTION_ROWS: Final = 100_000
"""Rows of a section, about: some 100 MB while they are compiled."""

SECTIONS_MAX: Final = 512
"""Sections, each of which is a file that is open while rows are read."""

_ROWS: Final = "rows.arrow"


@dataclass(frozen=True, slots=True)
class SectionUnit:
    """Rows to be taken up.

    Attributes:
        number: Number of the section.
        cost: Rows.
        malformed: Rows of it that are none, and say which subscription they were to be.
    """

    number: int
    cost: int
    malformed: tuple[RejectedSubscription, ...] = ()


@dataclass(slots=True)
class SectionReport:
    """A section that was taken up, and its rows that were refused.

    Attributes:
        number: Its number.
        files: What it has.
        subscriptions: Pairs of subscriber and query.
        version: Of these.
        rejected: The others.
        warnings: Conditions in it that never or always hold.
        error: Why it was not taken up.
    """

    number: int
    version: SetVersion
    files: PartFiles = NO_FILES
    subscriptions: int = 0
    rejected: list[RejectedSubscription] = field(default_factory=list)
    warnings: list[WarnedSubscription] = field(default_factory=list)
    error: PathcastError | None = None


@dataclass(frozen=True, slots=True)
class TakeUpTask:
    """Compiles the rows of sections; pickled.

    Attributes:
        storage: The output.
        home: Folder of the sections.
        path: What most places of rows name.
        namespaces: Prefixes for all queries.
        limits: What a message may cost, where that is not the default.
        last_valid: Gives what is answered in place of rows that are not valid; None for nothing.
    """

    storage: Storage
    home: str
    path: str
    namespaces: tuple[tuple[str, str], ...]
    limits: tuple[tuple[str, int | str], ...]
    last_valid: LastValidVersions | None

    def __call__(self, units: Iterable[SectionUnit]) -> Iterator[SectionReport]:
        """A report a section."""
        limits = Limits(**dict(self.limits))  # type: ignore[arg-type]
        for unit in units:
            report = SectionReport(unit.number, SetVersion(limits))
            try:
                with collector_paused():
                    self._take_up(report, limits, unit.malformed)
            except PathcastError as error:
                report.error = error
            yield report

    def _take_up(
        self, report: SectionReport, limits: Limits, malformed: Sequence[RejectedSubscription]
    ) -> None:
        folder = f"{SNAPSHOTS}/{self.home}/{report.number}"
        with opened_ipc(self.storage, f"{folder}/{_ROWS}") as reader:
            rows = rows_of_table(reader.read_all(), self.path)
        namespaces = dict(self.namespaces)
        engines = SubscriptionEngines(limits, namespaces)
        taken = engines.take_up(rows._replace(rejected=list(malformed)), self.last_valid)
        report.rejected = taken.rejected
        report.warnings = engines.warnings(taken)
        report.subscriptions = len(taken.takers)
        held = {key: row for key, (row, _) in taken.takers.items()}
        table = takers_table(held, report.version, namespaces or None)
        write_ipc(self.storage, f"{folder}/{TAKERS}", table)
        report.files = write_engines(self.storage, folder, engines)
        write_queries(self.storage, folder, engines)


def take_up_in_sections(
    place: SubscriptionPlace,
    deliver: DeliverMode,
    storage: Storage,
    workers: Workers,
    *,
    namespaces: Mapping[str, str],
    limits: Mapping[str, int | str],
    last_valid: LastValidVersions | None = None,
) -> tuple[Generation, list[RejectedSubscription], list[WarnedSubscription]]:
    """Takes up the subscriptions of a place.

    Args:
        place: Where they are.
        deliver: What is delivered where a row does not say.
        storage: The output.
        workers: Who compiles.
        namespaces: Prefixes for all queries.
        limits: What a message may cost, by name.
        last_valid: As for `TakeUpTask`.

    Returns:
        The generation; what was rejected: what says of no subscription that it is one first, then
        by their places; and what is warned of, by place.

    Raises:
        ConfigError: They cannot be read.

    Cost: what compiling all of them costs, shared by the workers; 2 µs a row here.
    """
    written = uuid.uuid4().hex
    home = f"sections-{written}"
    rejected: list[RejectedSubscription] = []
    units = _write_rows(place, deliver, storage, home, rejected)
    agreed = tuple(sorted(limits.items()))
    bound = tuple(sorted(namespaces.items()))
    task = TakeUpTask(storage, home, place.name, bound, agreed, last_valid)
    reports: list[SectionReport] = workers.run(task, shares_of(units, workers.count))
    # Not by the tasks, of which another attempt may still read them.
    storage.delete(f"{SNAPSHOTS}/{home}/{unit.number}/{_ROWS}" for unit in units)
    reports.sort(key=lambda report: report.number)
    version = SetVersion(Limits(**dict(agreed)))  # type: ignore[arg-type]
    refused: list[RejectedSubscription] = []
    warned: list[WarnedSubscription] = []
    for report in reports:
        if report.error is not None:
            raise report.error
        version.add_all(report.version)
        refused += report.rejected
        warned += report.warnings
    refused.sort(key=_place)
    warned.sort(key=_place)
    parts = [report.files for report in reports]
    generation = Generation(
        version.text,
        queries=sum(part.queries for part in parts),
        subscriptions=sum(report.subscriptions for report in reports),
        has_notices=any(part.has_notices for part in parts),
        has_results=any(part.has_results for part in parts),
        written=written,
        limits=agreed,
        home=home,
        sections=tuple(parts),
    )
    return _kept(storage, generation), [*rejected, *refused], warned


def _place(each: RejectedSubscription | WarnedSubscription) -> tuple[str, int, int]:
    return each.place.path, each.place.line, each.place.column or 0


def _kept(storage: Storage, generation: Generation) -> Generation:
    """The generation of this version that is there in sections; else this one, made complete."""
    described = f"{generation.folder}/{DESCRIPTION}"
    if storage.exists(described):
        found = Generation.read(storage, generation.version)
        if found.sections:
            _remove_sections(storage, generation)
            return found
    merge_takers(storage, generation)
    storage.write(described, generation.to_json())
    return generation


def _remove_sections(storage: Storage, generation: Generation) -> None:
    for piece in generation.pieces():
        storage.delete(f"{piece.folder}/{name}" for name in storage.names(piece.folder))


def _write_rows(
    place: SubscriptionPlace,
    deliver: DeliverMode,
    storage: Storage,
    home: str,
    rejected: list[RejectedSubscription],
) -> list[SectionUnit]:
    """Writes each row into the file of its section; `rejected` gets what belongs to no section."""
    count = min(SECTIONS_MAX, place.about() // SECTION_ROWS + 1)
    sizes = np.zeros(count, dtype=np.int64)
    malformed: list[list[RejectedSubscription]] = [[] for _ in range(count)]
    with ExitStack() as stack:
        writers: list[pa.RecordBatchFileWriter] = []
        for number in range(count):
            handle = storage.create(f"{SNAPSHOTS}/{home}/{number}/{_ROWS}")
            stack.enter_context(handle)
            writers.append(stack.enter_context(pa.ipc.new_file(handle, ROW_SCHEMA)))
        for table, found in place.tables(deliver):
            rejected += [each for each in found if each.key is None]
            known = [each for each in found if each.key is not None]
            sections = _sections_of([each.row.id for each in known], count)
            for number, each in zip(sections.tolist(), known, strict=True):
                malformed[number].append(each)
            for number, rows in enumerate(_by_section(table, count)):
                if len(rows):
                    writers[number].write_table(rows)
                    sizes[number] += len(rows)
    return [
        SectionUnit(number, size + len(none), tuple(none))
        for number, (size, none) in enumerate(zip(sizes.tolist(), malformed, strict=True))
    ]


def _sections_of(ids: Sequence[str], count: int) -> np.ndarray:
    """The number of the section of each id."""
    at: np.ndarray = stable_hashes(ids, seed=0) % np.uint32(count)
    return at


def _by_section(table: pa.Table, count: int) -> Sequence[pa.Table]:
    """Rows by the hash of their ids, in their order."""
    at = _sections_of(table.column("query_id").to_pylist(), count)
    ordered = table.take(pa.array(np.argsort(at, kind="stable")))
    ends = np.cumsum(np.bincount(at, minlength=count)).tolist()
    starts = [0, *ends[:-1]]
    return [ordered.slice(start, end - start) for start, end in zip(starts, ends, strict=True)]
