"""What a run leaves behind: one CSV of all values, one a figure, plots, and a record.

`values.csv` grows with every point, so that a run that is interrupted, or killed, keeps what it has
measured.

Example:
    >>> from pathcast_lab.bench.figures.point import Place
    >>> value = Place("11", "", "yfilter", 1000.0, 1000).value("mqpt", "us", 12.0)
    >>> ",".join(map(str, value.row()))
    '11,,yfilter,1000.0,1000,mqpt,us,12.0,12.0,12.0'
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from pathcast.errors import ConfigError, KernelMissingError, MissingDependencyError, PathcastError
from pathcast_lab.bench.definitions import SetName
from pathcast_lab.bench.figures.point import COLUMNS, Value
from pathcast_lab.bench.machine import Machine, commit, describe_machine, describe_software
from pathcast_lab.bench.wrong_count import WrongCountError

VALUES_FILE = "values.csv"
RECORD_FILE = "record.json"


class Figure(Protocol):
    """What is kept of a figure's definition."""

    @property
    def name(self) -> str:
        """Such as "11" or "T3"."""
        ...

    @property
    def file_stem(self) -> str:
        """Of its files."""
        ...


FigureType = TypeVar("FigureType", bound=Figure)


@dataclass
class Outcome(Generic[FigureType]):
    """What one figure gave.

    Attributes:
        figure: Its definition.
        workload: Where its inputs came from: a DTD's workload, a domain, a scenario.
        values: What was measured.
        checks: What was compared before times were taken.
        notes: What was left out, and why.
        failure: Why its values do not count, or why there are no more.
        is_complete: Whether it came to its end.
    """

    figure: FigureType
    workload: str
    values: list[Value] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failure: str | None = None
    is_complete: bool = False

    def collect(
        self, points: Iterable[Sequence[Value]], keep: Callable[[Sequence[Value]], None]
    ) -> None:
        """Takes the values of each point as soon as they are there.

        A wrong answer voids all of them; after another error those of the points before it, which
        were checked, stay.

        Args:
            points: The figure's points, measured as they are asked for.
            keep: Takes them too.

        Raises:
            MissingDependencyError: A library that the figure needs is not installed.
            KernelMissingError: The kernel is not installed.
        """
        try:
            for values in points:
                self.values += values
                keep(values)
            self.is_complete = True
        except WrongCountError as error:
            self.failure = str(error)
            self.values = []
        except (MissingDependencyError, KernelMissingError):
            raise
        except PathcastError as error:
            self.failure = str(error)


class Output(Generic[FigureType]):
    """The directory of a run.

    Args:
        directory: Made if missing.
        draw: Writes the plot of a figure, from its values and the name of its workload.
    """

    def __init__(
        self,
        directory: Path,
        draw: Callable[[FigureType, Sequence[Value], str, Path], bool],
    ) -> None:
        self.directory = directory
        self._draw = draw
        # Of the code that runs, whatever is committed meanwhile.
        self._commit = commit()
        directory.mkdir(parents=True, exist_ok=True)
        write_values(directory / VALUES_FILE, ())

    def keep(self, values: Sequence[Value]) -> None:
        """Adds the values of a point to the CSV of the run."""
        with (self.directory / VALUES_FILE).open("a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(value.row() for value in values)

    def finish(
        self,
        outcomes: Sequence[Outcome[FigureType]],
        *,
        set_name: SetName,
        command: Sequence[str],
        started: datetime,
        before: Machine,
    ) -> None:
        """Writes a CSV and a plot for each figure, and the record.

        Args:
            outcomes: What came of the figures, complete or not.
            set_name: Which set was run.
            command: Arguments of the command line; of absolute paths only the name is kept.
            started: When the run began.
            before: The machine at that time.
        """
        for outcome in outcomes:
            figure = outcome.figure
            if outcome.values:
                write_values(self.directory / f"{figure.file_stem}.csv", outcome.values)
                self._draw(figure, outcome.values, outcome.workload, self._path(figure, "png"))
        values = [value for outcome in outcomes for value in outcome.values]
        write_values(self.directory / VALUES_FILE, values)
        record = {
            "format": 1,
            "started": started.astimezone(UTC).isoformat(timespec="seconds"),
            "ended": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": [Path(part).name if Path(part).is_absolute() else part for part in command],
            "commit": self._commit,
            "set": set_name,
            "machine": before,
            "load_at_end": describe_machine()["load"],
            "software": describe_software(),
            "yardstick": "lxml.etree.fromstring over the same messages, alternately, in one run",
            "figures": [
                {
                    "name": outcome.figure.name,
                    "workload": outcome.workload,
                    "is_complete": outcome.is_complete,
                    "failure": outcome.failure,
                    "notes": outcome.notes,
                    "checks": outcome.checks,
                }
                for outcome in outcomes
            ],
        }
        text = json.dumps(record, indent=1) + "\n"
        (self.directory / RECORD_FILE).write_text(text, encoding="utf-8")

    def _path(self, figure: Figure, ending: str) -> Path:
        return self.directory / f"{figure.file_stem}.{ending}"


def run_directory(
    parent: Path, set_name: SetName, started: datetime, kind: str = "figures"
) -> Path:
    """`DATE-COMMIT-figures-SET` below the directory of records."""
    stamp = started.astimezone(UTC).strftime("%Y%m%dT%H%M%S")
    return parent / f"{stamp}-{(commit() or 'no-commit')[:9]}-{kind}-{set_name}"


def write_values(path: Path, values: Sequence[Value]) -> None:
    """Writes a CSV with its heading."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(value.row() for value in values)


def read_run(directory: Path) -> tuple[dict[str, Any], list[Value]]:
    """The record and the values of an earlier run.

    Raises:
        ConfigError: There is no such run.
    """
    try:
        record: dict[str, Any] = json.loads((directory / RECORD_FILE).read_text(encoding="utf-8"))
        with (directory / VALUES_FILE).open(newline="", encoding="utf-8") as file:
            return record, [Value.of_row(row) for row in csv.DictReader(file)]
    except (OSError, ValueError, KeyError) as error:
        raise ConfigError(
            "config.invalid", key="--from", reason=f"{directory} holds no run of figures: {error}"
        ) from error
