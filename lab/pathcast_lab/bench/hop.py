"""`hop`: what a broker between two others takes of a core for a message, and for its parsing.

Three broker processes in a line on this machine: messages are published at one end, whoever wants
all of them is at the other, and the time of the broker between them is measured. Beside it stand
parsing alone and routing alone, of the same messages and the same table: as much as a message that
carried its parsed form, or where entries matched it, could save on a hop at most.

It needs the extra `net`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import Field

from pathcast.cli.console import extra
from pathcast_lab.bench.definitions import BenchmarkDefinition, Strict
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.timing import Spread


class HopSet(Strict):
    """What one set runs.

    Attributes:
        entries: Of the table of the broker between, besides the one that wants all.
        sizes: Bytes of messages, a case each.
        megabytes: Of the messages of a round.
        rounds: How often.
    """

    entries: int = Field(ge=1)
    sizes: tuple[int, ...]
    megabytes: float = Field(gt=0)
    rounds: int = Field(ge=1)


class HopDefinition(BenchmarkDefinition[HopSet]):
    """`lab/benchmarks/hop.toml`.

    Attributes:
        batch: Messages that are published with one call.
    """

    batch: int = Field(ge=1)


@dataclass(frozen=True)
class HopResult:
    """What one size gave.

    Attributes:
        case: Its name.
        entries: Of the table.
        message_bytes: Of a message.
        messages: Of a round.
        hop_us: Time of the broker between, a message; a round each.
        parsing_us: Of parsing alone.
        routing_us: Of routing by the table alone, parsing included.
    """

    case: str
    entries: int
    message_bytes: int
    messages: int
    hop_us: tuple[float, ...]
    parsing_us: tuple[float, ...]
    routing_us: tuple[float, ...]

    def measures(self) -> Iterator[Measure]:
        """Its figures."""
        rounds = zip(self.parsing_us, self.hop_us, strict=True)
        shares = tuple(100 * parsing / hop for parsing, hop in rounds)
        for name, unit, values in (
            ("hop", "us/message", self.hop_us),
            ("routing alone", "us/message", self.routing_us),
            ("parsing alone", "us/message", self.parsing_us),
            ("parsing", "% of a hop", shares),
        ):
            yield Measure("hop", self.case, name, unit, Spread.of(values), self.entries)


def order(size: int, number: int) -> bytes:
    """A message of about so many bytes, whose lines no other one has."""
    head = f'<order no="{number}"><to>Bern</to>'
    line = "<line><sku>A7-4411</sku><count>17</count><text>to be sent by rail</text></line>"
    count = max(1, round((size - len(head) - len("</order>")) / len(line)))
    return f"{head}{line * count}</order>".encode()


def run_hop(
    definition: HopDefinition, chosen: HopSet, say: Callable[[str], None]
) -> Iterator[HopResult]:
    """A case for each size.

    Raises:
        WrongCountError: A delivery is lost or doubled.
        MissingDependencyError: The extra `net` is not installed.
    """
    with extra("net", "pathcast-lab bench hop"):
        from pathcast_lab.bench.hop_run import measured
    for size in chosen.sizes:
        say(f"{size:,} bytes, {chosen.entries:,} entries")
        with TemporaryDirectory(prefix="pathcast-bench-") as directory:
            started = time.monotonic()
            yield asyncio.run(measured(chosen, size, definition.batch, Path(directory) / "network"))
            say(f"{time.monotonic() - started:.0f} s")
