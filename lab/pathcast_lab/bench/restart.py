"""`restart`: how long a broker that was killed takes until it answers again.

One broker process on this machine, with profiles of which every second is in XQuery. It is killed
(SIGKILL) and started, and asked until it answers, in turn with its snapshot, without it, and with
no profiles at all. Beside the clock stands the time of the process, which says more where the
machine is shared.

It needs the extra `net`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import Field

from pathcast.cli.console import extra
from pathcast_lab.bench.definitions import BenchmarkDefinition, Strict
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.timing import Spread


class RestartSet(Strict):
    """What one set runs.

    Attributes:
        profiles: Of the broker, all distinct.
        rounds: How often it is killed, with the snapshot and without.
    """

    profiles: int = Field(ge=1)
    rounds: int = Field(ge=1)


class RestartDefinition(BenchmarkDefinition[RestartSet]):
    """`lab/benchmarks/restart.toml`."""


@dataclass(frozen=True)
class RestartResult:
    """What one kind of start gave.

    Attributes:
        case: Its name.
        profiles: Of the broker.
        answers_s: From the start of the process to its first answer; a round each.
        processor_s: What the process took of a core until then.
    """

    case: str
    profiles: int
    answers_s: tuple[float, ...]
    processor_s: tuple[float, ...]

    def measures(self) -> Iterator[Measure]:
        """Its figures."""
        for name, values in (("answers", self.answers_s), ("processor", self.processor_s)):
            yield Measure("restart", self.case, name, "s", Spread.of(values), self.profiles)


def run_restart(
    definition: RestartDefinition, chosen: RestartSet, say: Callable[[str], None]
) -> Iterator[RestartResult]:
    """A case for each kind of start.

    Raises:
        WrongCountError: A profile is missing after a start.
        MissingDependencyError: The extra `net`, or lxml, is not installed.
    """
    with extra("net", "pathcast-lab bench restart"):
        from pathcast_lab.bench.restart_run import measured
    say(f"{chosen.profiles:,} profiles")
    with TemporaryDirectory(prefix="pathcast-bench-") as directory:
        yield from asyncio.run(measured(chosen, definition.seed, Path(directory)))
