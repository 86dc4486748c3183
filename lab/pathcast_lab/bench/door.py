"""`door`: parsing alone, by kind of message.

What is timed is the door's own account (`parsing_ns`): well-formedness, namespaces, entities and
the message tree, for a matcher with one query that nothing satisfies. The yardstick parses the same
messages. A file that either of them refuses is left out and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathcast import Snapshot
from pathcast.cli.console import extra
from pathcast.model import Query
from pathcast.registry import Registry
from pathcast.workload import DOMAINS, domain_graph, generate_documents
from pathcast_lab.bench.checking import THREADS, Truth, wrong_count
from pathcast_lab.bench.definitions import DoorDefinition, DoorSet
from pathcast_lab.bench.inputs import Source, shared_data
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.one_call import CASE, OneCallResult, run_one_call
from pathcast_lab.bench.rounds import Part, Rounds, binary_array, spread, warm_rounds
from pathcast_lab.bench.timing import Spread, yardstick

NOTHING = Query("nothing", "/no-message-has-this-root/nor-this")
"""Keeps the engine awake and collects nothing."""


@dataclass(frozen=True)
class DoorResult:
    """One kind of message."""

    case: str
    messages: int
    message_bytes: float
    refused: int
    elements: int
    rounds: Rounds

    def measures(self) -> Iterator[Measure]:
        """Its figures."""

        def figure(name: str, unit: str, value: Spread) -> Measure:
            return Measure("door", self.case, name, unit, value)

        rounds = self.rounds
        parts: tuple[tuple[str, Part], ...] = (("speed", "parsing"), ("lxml speed", "yardstick"))
        for name, part in parts:
            speed = [one.megabytes_per_second(part) for one in rounds]
            yield figure(name, "MB/s", Spread.of(speed))
        yield figure("door by lxml", "x lxml", spread(rounds, lambda one: one.ratio_of("parsing")))
        yield figure("call by lxml", "x lxml", spread(rounds, lambda one: one.ratio))


def run_door(
    definition: DoorDefinition, chosen: DoorSet, source: Source, say: Callable[[str], None]
) -> Iterator[DoorResult | OneCallResult]:
    """The workload's messages, those of Pathcast's domains, and files of the shared data.

    The last case is calls with one message each.

    Raises:
        WrongCountError: The door found another number of elements than the yardstick.
    """
    yield _case(
        f"{source.name} generated",
        source.messages(chosen.generated, seed=definition.seed),
        chosen,
        say,
    )
    for name, domain in DOMAINS.items():
        if name != source.name:
            parameters = domain.documents(chosen.generated, definition.seed)
            messages = list(generate_documents(domain_graph(name), parameters))
            yield _case(f"{name} generated", messages, chosen, say)
    for name, messages in shared_messages(chosen.files_a_domain, say):
        yield _case(name, messages, chosen, say)
    say(CASE)
    yield run_one_call(chosen.rounds, chosen.calls)


def shared_messages(most: int, say: Callable[[str], None]) -> Iterator[tuple[str, list[bytes]]]:
    """The messages of each domain of the shared data, at most some of each; none without it."""
    shared = shared_data()
    if shared is None:
        say("no shared data: files of real domains are not measured")
        return
    published = sorted((shared / "workloads" / "yfilter" / "docs").glob("*.xml"))
    folders = [("yfilter published", published)]
    for folder in sorted((shared / "docs").iterdir()):
        if folder.is_dir():
            folders.append((folder.name, _files(folder)))
    for name, files in folders:
        if files:
            yield name, [path.read_bytes() for path in files[:most]]


def _files(folder: Path) -> list[Path]:
    """Messages of a domain: no schemas, and nothing that is broken on purpose."""
    return sorted(path for path in folder.rglob("*.xml") if "not-well-formed" not in path.parts)


def _case(
    case: str, messages: Sequence[bytes], chosen: DoorSet, say: Callable[[str], None]
) -> DoorResult:
    say(case)
    matcher = idle_matcher()
    taken = taken_by_both(messages, matcher)
    elements = _check_elements(case, taken)
    array = binary_array(taken)
    truth = Truth(case, [0] * len(taken))
    return DoorResult(
        case=case,
        messages=len(taken),
        message_bytes=sum(map(len, taken)) / max(1, len(taken)),
        refused=len(messages) - len(taken),
        elements=elements,
        rounds=warm_rounds(matcher, array, yardstick(taken), chosen.rounds, truth),
    )


def idle_matcher() -> Registry | Snapshot:
    """A matcher that reads messages and finds nothing in them."""
    index = Registry(threads=THREADS)
    index.add([NOTHING])
    return index.freeze()


def taken_by_both(messages: Sequence[bytes], matcher: Registry | Snapshot) -> list[bytes]:
    """The messages that neither the door nor lxml refuses."""
    with extra("bench", "pathcast-lab bench"):
        from lxml.etree import LxmlError, fromstring
    errors = matcher.match(binary_array(messages)).errors
    taken: list[bytes] = []
    for message, refusal in zip(messages, errors, strict=True):
        if not refusal.is_valid:
            try:
                fromstring(message)
            except LxmlError:
                continue
            taken.append(message)
    return taken


def _check_elements(case: str, messages: Sequence[bytes]) -> int:
    """Both trees have as many elements: else one of the two did other work.

    A query for each element would do; counting them in the door's tree is quicker.
    """
    from lxml.etree import fromstring

    from pathcast.kernel import parse
    from pathcast.limits import Limits

    total = 0
    for message in messages:
        tree = parse(message, Limits())
        found = len(tree)
        expected = sum(1 for _ in fromstring(message).iter("*"))
        if found != expected:
            raise wrong_count(case, found, expected, "lxml (elements)")
        total += found
    return total
