"""`compression`: bytes and time of a message on a link, by format.

Every second message of a domain is the sample that a root would take of its source (its bounds hold
here, too); the others are compressed with zlib, with zstd and with zstd and the trained dictionary,
each message alone, and come back equal before a time is reported.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pathcast.overlay.compression import (
    SAMPLE_BYTES,
    SAMPLE_MESSAGES,
    SAMPLED_BYTES_MAX,
    TrainedDictionary,
    ZstdCodec,
)
from pathcast.workload import DOMAINS, domain_graph, generate_documents
from pathcast_lab.bench.definitions import CompressionDefinition, FilesSet
from pathcast_lab.bench.door import idle_matcher, shared_messages, taken_by_both
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.timing import Spread, elapsed_ns, undisturbed, yardstick
from pathcast_lab.bench.wrong_count import WrongCountError

Step = Callable[[bytes], bytes]


@dataclass(frozen=True)
class Packing:
    """One format over the messages of a case."""

    name: str
    ratio: float
    compress_ns: tuple[int, ...]
    decompress_ns: tuple[int, ...]


@dataclass(frozen=True)
class CompressionResult:
    """One kind of message; the times of one place of all tuples were taken in one round."""

    case: str
    messages: int
    message_bytes: float
    sampled: int
    sampled_bytes: int
    training_ms: float | None
    lxml_ns: tuple[int, ...]
    packings: tuple[Packing, ...]

    def measures(self) -> Iterator[Measure]:
        """Its figures."""

        def figure(name: str, unit: str, value: Spread) -> Measure:
            return Measure("compression", self.case, name, unit, value)

        if self.training_ms is not None:
            yield figure("training", "ms", Spread.of([self.training_ms]))
        for packing in self.packings:
            yield figure(f"{packing.name} bytes", "x text", Spread.of([packing.ratio]))
            for name, times in (
                (f"{packing.name} in by lxml", packing.compress_ns),
                (f"{packing.name} out by lxml", packing.decompress_ns),
            ):
                ratios = [ns / lxml for ns, lxml in zip(times, self.lxml_ns, strict=True)]
                yield figure(name, "x lxml", Spread.of(ratios))


def run_compression(
    definition: CompressionDefinition, chosen: FilesSet, say: Callable[[str], None]
) -> Iterator[CompressionResult]:
    """The messages of Pathcast's domains, and files of the shared data.

    Raises:
        WrongCountError: A message did not come back as it went in.
        MissingDependencyError: zstandard or lxml is not installed.
    """
    matcher = idle_matcher()
    for name, domain in DOMAINS.items():
        parameters = domain.documents(2 * chosen.generated, definition.seed)
        messages = list(generate_documents(domain_graph(name), parameters))
        yield _case(f"{name} generated", messages, chosen.rounds, say)
    for name, messages in shared_messages(2 * chosen.files_a_domain, say):
        taken = taken_by_both(messages, matcher)
        if len(taken) > 1:
            yield _case(name, taken, chosen.rounds, say)


def _case(
    case: str, messages: Sequence[bytes], rounds: int, say: Callable[[str], None]
) -> CompressionResult:
    say(case)
    sample = sample_of(messages[::2])
    rest = messages[1::2]
    started = time.perf_counter_ns()
    trained = TrainedDictionary.of(sample)
    training_ms = (time.perf_counter_ns() - started) / 1e6
    codecs: list[tuple[str, Step, Step]] = [("zlib", zlib.compress, zlib.decompress)]
    codecs.append(("zstd", *_steps(ZstdCodec())))
    if trained is not None:
        codecs.append(("zstd, dictionary", *_steps(trained)))
    parse = yardstick(rest)
    lxml: list[int] = []
    packed = [_checked(case, name, rest, *steps) for name, *steps in codecs]
    taken: list[list[tuple[int, int]]] = [[] for _ in codecs]
    with undisturbed():
        for _ in range(rounds):
            lxml.append(elapsed_ns(parse))
            for place, (_, compress, decompress) in enumerate(codecs):
                taken[place].append((_elapsed(compress, rest), _elapsed(decompress, packed[place])))
    text_bytes = sum(map(len, rest))
    packings = tuple(
        Packing(name, sum(map(len, bodies)) / text_bytes, *zip(*times, strict=True))
        for (name, *_), bodies, times in zip(codecs, packed, taken, strict=True)
    )
    return CompressionResult(
        case=case,
        messages=len(rest),
        message_bytes=text_bytes / len(rest),
        sampled=len(sample),
        sampled_bytes=sum(map(len, sample)),
        training_ms=None if trained is None else training_ms,
        lxml_ns=tuple(lxml),
        packings=packings,
    )


def sample_of(messages: Sequence[bytes]) -> list[bytes]:
    """The messages that a root takes into a sample, as it cuts them.

    Example:
        >>> len(sample_of([b"<a/>" * 2048] * 40)), len(sample_of([b"<a/>"] * 3))
        (16, 3)
    """
    sample: list[bytes] = []
    size = 0
    for message in messages:
        if size >= SAMPLE_BYTES and len(sample) >= SAMPLE_MESSAGES:
            break
        sample.append(message[:SAMPLED_BYTES_MAX])
        size += len(sample[-1])
    return sample


def _steps(codec: ZstdCodec) -> tuple[Step, Step]:
    # Behind the memory of a message that goes over several links.
    compress = codec.compress.__wrapped__  # type: ignore[attr-defined]
    decompressor = codec.decompressor
    return compress, lambda body: bytes(decompressor.decompress(body))


def _checked(
    case: str, name: str, messages: Sequence[bytes], compress: Step, decompress: Step
) -> list[bytes]:
    packed = [compress(message) for message in messages]
    equal = sum(decompress(body) == message for body, message in zip(packed, messages, strict=True))
    if equal != len(messages):
        raise WrongCountError(f"{case}, {name}", equal, len(messages), "what went in")
    return packed


def _elapsed(step: Step, bodies: Sequence[bytes]) -> int:
    def all_of_them() -> None:
        for body in bodies:
            step(body)

    return elapsed_ns(all_of_them)
