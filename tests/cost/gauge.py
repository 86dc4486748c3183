"""What a candidate costs: processor time beside lxml's parse, and memory, in a process of its own.

The process is asked over a pipe, has a bound on its memory, and is ended when it takes too long: a
candidate that runs away is a measurement like any other.

Example:
    >>> from cost.candidate import STARTS
    >>> with Gauge() as gauge:  # doctest: +SKIP
    ...     gauge.measured(STARTS["positions"], 100_000).ratio < 10
    True
"""

from __future__ import annotations

import json
import os
import resource
import select
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa

from cost.candidate import Candidate
from cost.queries import QUERIES_MAX
from oracles.engines import made_by

MEMORY_MAX: Final = 6 << 30
"""Bytes of address space of the process that answers."""

STALE: Final = 400 << 20
"""Bytes of resident memory at which a process is replaced, so that it can be seen to grow."""


BEGINS: Final = b"begins\n"
LATE: Final = b"late\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a message cost.

    Attributes:
        message_bytes: Of the message.
        queries: That were taken.
        seconds: Processor time of the message, the least of some.
        lxml_seconds: The same of `lxml.etree.fromstring`.
        memory_bytes: By how much the process grew at its peak, at least; 0 where earlier
            candidates needed more.
        failure: Why there is no answer, "" if there is one.
    """

    message_bytes: int
    queries: int
    seconds: float
    lxml_seconds: float
    memory_bytes: int = 0
    failure: str = ""

    @property
    def ratio(self) -> float:
        """Time per byte over lxml's."""
        return self.seconds / self.lxml_seconds

    def __str__(self) -> str:
        return (
            f"{self.message_bytes:,} bytes, {self.queries:,} queries: {self.seconds:.3f} s, "
            f"{self.ratio:.1f} times lxml's parse, {self.memory_bytes / 1e6:.0f} MB"
            + (f" ({self.failure})" if self.failure else "")
        )


def answering(
    candidate: Candidate, engine: str, most: int
) -> tuple[int, Callable[[bytes], object]]:
    """How many queries are taken, and what answers a message."""
    from pathcast import Registry

    if candidate.way == "broker":
        registry = made_by(engine, Registry, threads=1)
        taken = registry.add(candidate.subscriptions(most)).accepted
        return taken, lambda message: registry.deliver([message]).rows.num_rows
    index = made_by(engine, Registry)
    taken = index.add(candidate.standing(most)).accepted
    if candidate.way == "live":
        return taken, lambda message: index.match(pa.array([message])).stats
    snapshot = index.freeze()
    # A new matcher knows no label path.
    return taken, lambda message: snapshot.match(pa.array([message])).stats


def measure(
    candidate: Candidate,
    size: int,
    rounds: int,
    most: int = QUERIES_MAX,
    engine: str = "kernel",
    begins: Callable[[], object] = lambda: None,
) -> Cost:
    """The cost of a candidate, in this process.

    Args:
        candidate: Which one.
        size: Of its message.
        rounds: How often it is answered.
        most: Queries at most.
        engine: By which engine.
        begins: Is told when everything is registered.
    """
    from lxml import etree

    message = candidate.shape.message(size)
    taken, answer = answering(candidate, engine, most)
    parser = etree.XMLParser(huge_tree=True)
    answer(b"<r/>")
    lxml_seconds = min(_seconds(lambda: etree.fromstring(message, parser)) for _ in range(3))
    begins()
    before = _resident(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds = min(_seconds(lambda: answer(message)) for _ in range(rounds))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Cost(
        message_bytes=len(message),
        queries=taken,
        seconds=seconds,
        lxml_seconds=lxml_seconds,
        memory_bytes=max(0, peak - before[0]) if peak > before[1] else 0,
    )


def _seconds(action: Callable[[], object]) -> float:
    before = time.process_time()
    action()
    return max(time.process_time() - before, 1e-6)


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * resource.getpagesize()


class Gauge:
    """A process that measures candidates.

    Args:
        engine: Which one.
        seconds_max: Of processor time, after which a candidate is given up.
    """

    def __init__(self, engine: str = "kernel", seconds_max: float = 20.0) -> None:
        self._engine = engine
        self._seconds_max = seconds_max
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def measured(
        self, candidate: Candidate, size: int, rounds: int = 2, most: int = QUERIES_MAX
    ) -> Cost:
        """The cost of a candidate; with a failure where the process ended or had to be."""
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        ask = {
            "candidate": candidate.model_dump_json(),
            "size": size,
            "rounds": rounds,
            "most": most,
        }
        process.stdin.write(json.dumps(ask).encode() + b"\n")
        # Registering is not what a message costs: it says when it begins to answer.
        line = process.stdout.readline()
        if line == BEGINS:
            line = process.stdout.readline() if self._is_ready(process) else LATE
        if line in (b"", LATE):
            self.close()
            failure = "ended" if not line else f"more than {self._seconds_max:g} s"
            return self._lost(candidate, size, failure)
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{candidate.model_dump_json()}: {answer['error']}")
        if answer.pop("resident") > STALE:
            self.close()
        return Cost(**answer)

    def _is_ready(self, process: subprocess.Popen[bytes]) -> bool:
        """Waits for an answer, no longer than its processor time allows."""
        start = _processor_seconds(process.pid)
        assert process.stdout is not None
        while not select.select([process.stdout], [], [], 0.2)[0]:
            if _processor_seconds(process.pid) - start > self._seconds_max:
                return False
        return True

    def _lost(self, candidate: Candidate, size: int, failure: str) -> Cost:
        from lxml import etree

        message = candidate.shape.message(size)
        return Cost(
            message_bytes=len(message),
            queries=len(candidate.queries()),
            seconds=self._seconds_max,
            lxml_seconds=_seconds(
                lambda: etree.fromstring(message, etree.XMLParser(huge_tree=True))
            ),
            memory_bytes=MEMORY_MAX if failure == "ended" else 0,
            failure=failure,
        )

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import serve; serve({self._engine!r})"],
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Nothing is read ahead, so that `select` sees what there is.
                bufsize=0,
            )
        return self._process


def serve(engine: str) -> None:
    """Measures the candidates that standard input has, one a line."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MAX, MEMORY_MAX))
    for line in sys.stdin:
        ask = json.loads(line)
        print(json.dumps(_answer(ask, engine)), flush=True)


def _begins() -> None:
    sys.stdout.write(BEGINS.decode())
    sys.stdout.flush()


def _answer(ask: dict[str, Any], engine: str) -> dict[str, Any]:
    candidate = Candidate.model_validate_json(ask["candidate"])
    try:
        cost = measure(candidate, ask["size"], ask["rounds"], ask["most"], engine, _begins)
    except Exception:
        return {"error": traceback.format_exc()}
    return {**asdict(cost), "resident": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
