"""What a worker holds: the memory of a process that evaluates one piece of a large message.

Each piece (a chunk, or the whole message) is read from a file and evaluated by a process of its
own, which has done nothing before; so is the cutting, which writes the chunks into files. The
message is that of the scenario with the content of its root many times over.

What is told is the most that such a process ever had resident: its own, not its parent's, which is
why Linux is asked for it (`VmHWM`) and not `getrusage`.
"""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pathcast.chunking.evaluation import ChunkAnswer, ChunkEvaluator, ChunkTask, merged
from pathcast.chunking.filtering_scheme import Chunking, QuerySet
from pathcast.chunking.streaming import BLOCK_BYTES, StreamingChunker
from pathcast.limits import MIB, Limits
from pathcast_lab.bench.wrong_count import WrongCountError
from pathcast_lab.workload.scenarios import SCENARIOS

if TYPE_CHECKING:
    from pathcast_lab.bench.chunking.inputs import Prepared

_Result = TypeVar("_Result")

LIMITS: Final = Limits(
    message_bytes_max=2**31 - 1,
    elements_max=2**31 - 1,
    evaluation_steps_max=2**31 - 1,
    message_steps_max=2**31 - 1,
)
"""Of every piece: as much as the door can take at all."""


@dataclass(frozen=True)
class Held:
    """The memory of one process.

    Attributes:
        name: What it did.
        bytes: Of the piece; of the whole message where it was cut.
        base: MiB resident before it read anything.
        peak: MiB resident at most.
    """

    name: str
    bytes: int
    base: float
    peak: float


def measured(prepared: Prepared, copies: int, folder: Path) -> Iterator[Held]:
    """Cutting, every chunk, and the whole message.

    Args:
        prepared: The scenario, whose scheme must have no potpourri.
        copies: How many times the content of the root element is in the message.
        folder: Where the files go.

    Raises:
        WrongCountError: Chunks have not given the answer of the whole message.
    """
    assert not prepared.scheme.potpourri, "a potpourri is evaluated on the whole message"
    whole = folder / "whole.xml"
    write_enlarged(whole, prepared.message, copies)
    chunks = [folder / f"chunk {number}" for number in range(1, len(prepared.scheme.chunks) + 1)]
    base, peak = _alone(_cut, prepared.scenario.name, prepared.queries, whole, chunks)
    yield Held("chunking", whole.stat().st_size, base, peak)
    answers: list[ChunkAnswer] = []
    for path, chunk in zip(chunks, prepared.scheme.chunks, strict=True):
        base, peak, answer = _alone(_evaluated, path, chunk.queries)
        answers.append(answer)
        yield Held(path.name, path.stat().st_size, base, peak)
    base, peak, expected = _alone(_evaluated, whole, prepared.scheme.whole)
    found = merged(answers)
    if found != replace(expected, prefix=()) or found.undecided:
        raise WrongCountError(
            case=f"{whole.stat().st_size:,} bytes in {len(chunks)} chunks (queries)",
            found=len(found.query_ids),
            expected=len(expected.query_ids),
            oracle="the whole message",
        )
    yield Held("whole", whole.stat().st_size, base, peak)


def write_enlarged(path: Path, message: bytes, copies: int) -> None:
    """Writes a message with the content of its root element so many times."""
    root = re.search(rb"<\w[^>]*>", message)
    assert root is not None
    start, end = root.end(), message.rindex(b"</")
    with path.open("wb") as file:
        file.write(message[:start])
        for _ in range(copies):
            file.write(message[start:end])
        file.write(message[end:])


def _alone(function: Callable[..., _Result], *arguments: object) -> _Result:
    """What a function gives in a process of its own, which has done nothing else."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def _cut(
    scenario: str, queries: dict[str, str], whole: Path, chunks: list[Path]
) -> tuple[float, float]:
    chunking = Chunking(len(chunks), SCENARIOS[scenario].paths())
    for query_id, text in queries.items():
        chunking.register(query_id, text)
    chunker = StreamingChunker(chunking.scheme())
    base = _resident("VmRSS")
    with ExitStack() as stack:
        sinks = [stack.enter_context(path.open("wb")) for path in chunks]
        source = stack.enter_context(whole.open("rb"))
        cut = chunker.cut_into(sinks, iter(lambda: source.read(BLOCK_BYTES), b""))
    assert not cut.fault, cut.fault
    return base, _resident("VmHWM")


def _evaluated(path: Path, queries: QuerySet) -> tuple[float, float, ChunkAnswer]:
    base = _resident("VmRSS")
    evaluator = ChunkEvaluator(limits=LIMITS)
    answer = evaluator.evaluate(ChunkTask((), queries, path.read_bytes()))
    return base, _resident("VmHWM"), answer


def _resident(key: str) -> float:
    """MiB of this process, now or at most."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(rf"^{key}:\s+(\d+) kB$", status, re.MULTILINE)
    assert found is not None, f"Linux has no {key}"
    return int(found[1]) * 1024 / MIB
