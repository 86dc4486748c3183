"""`capacity`: memory and time of ten million subscriptions on one machine.

Subscriptions and messages are those of `mixed`, in chunks that are generated and forgotten. For
each size one process registers and saves them, and another opens the file and answers, so that each
says what it alone has taken. On a sample of the subscriptions lxml has to give the same answers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pydantic import Field

from pathcast_lab.bench.definitions import BenchmarkDefinition, Strict
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.pipeline.runner import output_of
from pathcast_lab.bench.timing import Spread
from pathcast_lab.bench.wrong_count import WrongCountError


class CapacitySet(Strict):
    """What one set runs.

    Attributes:
        subscriptions: Sizes.
        messages: That are answered, in two passes.
        opened: How often the file is opened.
        check_sample: Subscriptions that lxml evaluates on the first messages.
    """

    subscriptions: tuple[int, ...]
    messages: int = Field(ge=3)
    opened: int = Field(ge=1)
    check_sample: int = Field(ge=1)


class CapacityDefinition(BenchmarkDefinition[CapacitySet]):
    """`lab/benchmarks/capacity.toml`."""


@dataclass(frozen=True)
class Registered:
    """What the process that registered and saved them took.

    Attributes:
        text_bytes: Of all queries.
        registering_s: In calls of `Registry.add`.
        held_bytes: Growth of its memory when all were registered.
        peak_bytes: Growth at most, saving included.
        freezing_s: Of `Registry.freeze`.
        saving_s: Of `Snapshot.save`.
        file_bytes: Of the file.
    """

    text_bytes: int
    registering_s: float
    held_bytes: int
    peak_bytes: int
    freezing_s: float
    saving_s: float
    file_bytes: int


@dataclass(frozen=True)
class Opened:
    """What the process that opened the file took.

    Attributes:
        opening_s: Of `Snapshot.open`, each time.
        opened_bytes: Growth of its memory by the first.
        answered_bytes: Growth of its memory after all messages.
        first_s: Of the first pass over the messages.
        warm_s: Of the second.
        lxml_s: Of lxml's parse of the same messages, between them.
        matches: Of one pass.
        checked: Pairs of subscription and message that lxml was asked about.
        checked_matches: Matches among them, the same.
        distinct: Texts that differ, of all subscriptions.
    """

    opening_s: tuple[float, ...]
    opened_bytes: int
    answered_bytes: int
    first_s: float
    warm_s: float
    lxml_s: float
    matches: int
    checked: int
    checked_matches: int
    distinct: int


@dataclass(frozen=True)
class CapacityResult:
    """One size.

    Attributes:
        subscriptions: How many.
        messages: How many were answered.
        registered: Of the first process.
        opened: Of the second.
    """

    subscriptions: int
    messages: int
    registered: Registered
    opened: Opened

    @property
    def case(self) -> str:
        """Its name."""
        return f"{self.subscriptions:,} subscriptions"

    def measures(self) -> Iterator[Measure]:
        """Its figures."""
        made, opened = self.registered, self.opened

        def figure(name: str, unit: str, *values: float) -> Measure:
            return Measure("capacity", self.case, name, unit, Spread.of(values), self.subscriptions)

        yield figure("distinct texts", "%", 100 * opened.distinct / self.subscriptions)
        yield figure("text", "B each", made.text_bytes / self.subscriptions)
        yield figure("registering", "µs each", made.registering_s * 1e6 / self.subscriptions)
        yield figure("memory", "B each", made.held_bytes / self.subscriptions)
        yield figure("file", "B each", made.file_bytes / self.subscriptions)
        yield figure("memory at most", "MB", made.peak_bytes / 1e6)
        yield figure("freezing", "s", made.freezing_s)
        yield figure("saving", "s", made.saving_s)
        yield figure("opening", "ms", *(seconds * 1e3 for seconds in opened.opening_s))
        yield figure("memory, opened", "MB", opened.opened_bytes / 1e6)
        yield figure("memory, after the messages", "MB", opened.answered_bytes / 1e6)
        yield figure("matches", "a message", opened.matches / self.messages)
        yield figure("first pass", "ms a message", opened.first_s * 1e3 / self.messages)
        yield figure("warm", "ms a message", opened.warm_s * 1e3 / self.messages)
        yield figure("warm by lxml", "x lxml", opened.warm_s / opened.lxml_s)


def run_capacity(
    definition: CapacityDefinition, chosen: CapacitySet, say: Callable[[str], None]
) -> Iterator[CapacityResult]:
    """The sizes, from small to large.

    Raises:
        WrongCountError: lxml answers something else, or the opened file is not what was saved.
        CalledProcessError: A process failed, for want of memory for example.
    """
    for size in sorted(chosen.subscriptions):
        say(f"{size:,} subscriptions")
        with TemporaryDirectory(prefix="pathcast-bench-") as directory:
            file = str(Path(directory) / "subscriptions.snapshot")
            made = _told("register", file, size, definition.seed, chosen)
            found = _told("open", file, size, definition.seed, chosen)
        if wrong := found.pop("wrong"):
            raise WrongCountError(**wrong)
        opening_s = tuple(found.pop("opening_s"))
        yield CapacityResult(
            size, chosen.messages, Registered(**made), Opened(opening_s=opening_s, **found)
        )


def _told(part: str, file: str, size: int, seed: int, chosen: CapacitySet) -> dict[str, Any]:
    """What a process of one part says."""
    command = [sys.executable, "-m", "pathcast_lab.bench.capacity_run", part, file, str(size)]
    printed = output_of([*command, str(seed), chosen.model_dump_json()])
    found: dict[str, Any] = json.loads(printed)
    return found
