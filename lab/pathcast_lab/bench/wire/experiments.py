"""Measures wire formats: bytes, and the time of each step on the way.

All steps are in plain Python (`pathcast_papers`), so that a stream and a text are read by the same
parser; the yardstick lxml is not.

Example:
    >>> label(6, 3)
    '6-3'

Source: 001, 4.3.2.
"""

from __future__ import annotations

import socket
import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from pathcast.limits import Limits
from pathcast.schema import ElementGraph
from pathcast.workload import DocumentParameters, generate_documents
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.timing import Spread, elapsed_ns, undisturbed, yardstick
from pathcast_lab.bench.wire.definition import WireFigure, WireFigures, WireSet
from pathcast_lab.bench.wrong_count import WrongCountError
from pathcast_papers import parse
from pathcast_papers.onyx.dictionaries import Dictionaries, Dictionary
from pathcast_papers.onyx.wire import decode, dictionary_of_schema, encode
from pathcast_papers.onyx.wire_formats import WireFormat, compress, decompress

STEPS: Final = ("serialise", "compress", "decompress", "read")
"""Of a delay: at the sender the first two, at the receiver the others."""
LXML: Final = "text, read by lxml"
"""The series of a reader that is not Pathcast's."""


def label(depth: int, repeats: int) -> str:
    """A complexity as the paper writes it: DocDepth-MaxRepeats."""
    return f"{depth}-{repeats}"


@dataclass(frozen=True, slots=True)
class Measured:
    """What one complexity gave.

    Attributes:
        sizes: Bytes of a message, by format.
        times: Microseconds of a message, by format and step; by `LXML` the reading alone.
    """

    sizes: dict[str, float]
    times: dict[tuple[str, str], Spread]

    def delay(self, format: str) -> Spread:
        """All steps of a format together."""
        found = [spread for (name, _), spread in self.times.items() if name == format]
        return Spread(
            *(sum(getattr(one, part) for one in found) for part in ("median", "least", "most"))
        )


@dataclass
class WireExperiment:
    """A run of the figures; each complexity is measured once for all of them.

    Attributes:
        definition: Seed and complexities.
        graph: Of the DTD.
        say: Takes progress.
        checks: Takes what was compared.
    """

    definition: WireFigures
    graph: ElementGraph
    say: Callable[[str], None]
    checks: list[str]
    _known: dict[tuple[int, int, int, int], Measured] = field(default_factory=dict)

    def run(self, figure: WireFigure, sizes: WireSet) -> Iterator[list[Value]]:
        """The values of a figure, place by place.

        Raises:
            WrongCountError: A format does not give back what went in.
        """
        if figure.kind == "connections":
            yield self._connections(figure, sizes)
            return
        for place, (depth, repeats) in enumerate(self.definition.complexities):
            measured = self.measured(depth, repeats, sizes)
            variant = label(depth, repeats)
            yield list(_values(figure, variant, place, measured))

    def measured(self, depth: int, repeats: int, sizes: WireSet) -> Measured:
        """One complexity."""
        key = (depth, repeats, sizes.messages, sizes.rounds)
        if key not in self._known:
            self.say(f"{label(depth, repeats)}: {sizes.messages} messages")
            parameters = DocumentParameters(
                count=sizes.messages,
                seed=self.definition.seed,
                depth_max=depth,
                repeats_max=repeats,
            )
            messages = list(generate_documents(self.graph, parameters))
            self._known[key] = self._measure(messages, label(depth, repeats), sizes.rounds)
        return self._known[key]

    def _measure(self, messages: Sequence[bytes], case: str, rounds: int) -> Measured:
        names = dictionary_of_schema(self.graph)
        known = Dictionaries([names])
        sizes: dict[str, float] = {}
        steps: dict[tuple[str, str], Callable[[], float]] = {}
        count = len(messages)
        for format in WireFormat:
            dictionary = names if format.encoding == "dictionary" else None
            packed = encode(messages, format, dictionary)
            found = decode(packed, format, known)
            if found.messages.to_pylist() != list(messages):
                raise _wrong(case, format.value, "other messages", "the messages")
            sizes[format.value] = statistics.fmean(len(each) for each in packed.to_pylist())
            plain = WireFormat(format.encoding)
            written = encode(messages, plain, dictionary)
            steps.update(_steps(format, messages, written, packed, dictionary, known))
        parse = yardstick(messages)
        steps[LXML, "read"] = lambda: elapsed_ns(parse)
        self.checks.append(
            f"{case}: {count} messages came back byte for byte from {len(sizes)} formats"
        )
        taken: dict[tuple[str, str], list[float]] = {key: [] for key in steps}
        with undisturbed():
            for _ in range(rounds):
                for key, step in steps.items():
                    taken[key].append(step() / 1e3 / count)
        return Measured(sizes, {key: Spread.of(times) for key, times in taken.items()})

    def _connections(self, figure: WireFigure, sizes: WireSet) -> list[Value]:
        depth, repeats = self.definition.complexities[-1]
        parameters = DocumentParameters(
            count=sizes.messages, seed=1, depth_max=depth, repeats_max=repeats
        )
        messages = list(generate_documents(self.graph, parameters))
        values = []
        for series, is_kept in (("kept", True), ("for each message", False)):
            times = [_sent_ns(messages, is_kept) / 1e3 / len(messages) for _ in range(sizes.rounds)]
            place = Place(figure.name, label(depth, repeats), series, 0, 0)
            values.append(place.value("time", "us", Spread.of(times)))
        self.checks.append(f"{len(messages)} messages arrived whole, {sizes.rounds} times each way")
        return values


def _steps(
    format: WireFormat,
    messages: Sequence[bytes],
    written: pa.Array,
    packed: pa.Array,
    dictionary: Dictionary | None,
    known: Dictionaries,
) -> dict[tuple[str, str], Callable[[], float]]:
    """What is timed of a format; each call gives nanoseconds."""
    name = format.value
    array = pa.array(messages, pa.large_binary())
    plain, arrived = written.to_pylist(), packed.to_pylist()
    bytes_max = max(map(len, messages)) + 1_000

    form = WireFormat(format.encoding)

    def read() -> object:
        return [parse(text, Limits()) for text in decode(written, form, known).messages.to_pylist()]

    steps: dict[tuple[str, str], Callable[[], float]] = {(name, "read"): lambda: elapsed_ns(read)}
    if format.encoding != "text":
        target = WireFormat(format.encoding)
        steps[name, "serialise"] = lambda: elapsed_ns(lambda: encode(array, target, dictionary))
    if format.compression != "none":
        steps[name, "compress"] = lambda: elapsed_ns(
            lambda: [compress(each, format) for each in plain]
        )
        steps[name, "decompress"] = lambda: elapsed_ns(
            lambda: [decompress(each, format, bytes_max) for each in arrived]
        )
    return steps


def _values(figure: WireFigure, variant: str, place: int, measured: Measured) -> Iterator[Value]:
    for name, size in measured.sizes.items():
        delay = measured.delay(name)
        if figure.kind == "size":
            yield Place(figure.name, variant, name, place, 0).value("size", "B", size)
        elif figure.kind == "delay":
            at = Place(figure.name, variant, name, place, 0)
            yield at.value("delay", "us", delay)
            for step in STEPS:
                if (name, step) in measured.times:
                    yield at.value(step, "us", measured.times[name, step])
        else:
            for bandwidth in figure.bandwidths:
                # Mb/s are bits a microsecond.
                total = Spread(
                    *(
                        8 * size / bandwidth + time
                        for time in (delay.median, delay.least, delay.most)
                    )
                )
                yield Place(figure.name, variant, name, bandwidth, 0).value("time", "us", total)
    if figure.kind == "delay":
        at = Place(figure.name, variant, LXML, place, 0)
        yield at.value("delay", "us", measured.times[LXML, "read"])


def _sent_ns(messages: Sequence[bytes], is_kept: bool) -> float:
    """Time until every message has been acknowledged by one byte, over loopback.

    Raises:
        WrongCountError: Not all of it has arrived.
    """
    arrived = 0

    def serve(listener: socket.socket, connections: int) -> None:
        nonlocal arrived
        for _ in range(connections):
            connection, _ = listener.accept()
            with connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while head := connection.recv(4, socket.MSG_WAITALL):
                    length = int.from_bytes(head, "little")
                    arrived += len(connection.recv(length, socket.MSG_WAITALL))
                    connection.sendall(b"+")

    def send(connection: socket.socket, message: bytes) -> None:
        connection.sendall(len(message).to_bytes(4, "little") + message)
        connection.recv(1)

    def connect(address: tuple[str, int]) -> socket.socket:
        connection = socket.create_connection(address)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def all_of_them(address: tuple[str, int]) -> None:
        if is_kept:
            with connect(address) as connection:
                for message in messages:
                    send(connection, message)
            return
        for message in messages:
            with connect(address) as connection:
                send(connection, message)

    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        server = threading.Thread(target=serve, args=(listener, 1 if is_kept else len(messages)))
        server.start()
        with undisturbed():
            taken = elapsed_ns(lambda: all_of_them(listener.getsockname()))
        server.join()
    if arrived != sum(map(len, messages)):
        raise _wrong("connections", "kept" if is_kept else "new", str(arrived), "all bytes")
    return taken


def _wrong(case: str, format: str, found: str, expected: str) -> WrongCountError:
    return WrongCountError(f"{case}, {format}", found, expected, "what was sent")
