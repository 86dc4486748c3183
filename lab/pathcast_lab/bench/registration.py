"""`registration`: how long a text takes from the caller to a registered query.

Queries and subscriptions are held out: the registry holds others of the same kind already, and each
text is registered once in a registry. The yardstick is `lxml.etree.XPath(text)`, which compiles one
XPath and registers nothing, over XPath texts of the same workload. Each round takes new registries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Protocol

from pydantic import Field

from pathcast import Query, Registry, Subscription
from pathcast.cli.console import extra
from pathcast_lab.bench.checking import wrong_count
from pathcast_lab.bench.customise import customise_texts
from pathcast_lab.bench.definitions import BenchmarkDefinition, Strict
from pathcast_lab.bench.measures import Measure
from pathcast_lab.bench.mixed import mixed_subscriptions
from pathcast_lab.bench.timing import Spread, elapsed_ns, undisturbed


class RegistrationSet(Strict):
    """One set of `registration`.

    Attributes:
        registered: Texts that the registry holds before.
        held_out: Texts that are registered, and compiled by lxml.
        alternatives: Operands of `or` of the cases of one long text.
        rounds: Alternations with the yardstick.
    """

    registered: int = Field(ge=1)
    held_out: int = Field(ge=1)
    alternatives: tuple[int, ...]
    rounds: int = Field(ge=1)


class RegistrationDefinition(BenchmarkDefinition[RegistrationSet]):
    """`lab/benchmarks/registration.toml`."""


@dataclass(frozen=True)
class RegistrationResult:
    """One kind of text; the times of one place of all tuples were taken in one round.

    Attributes:
        case: Its name.
        texts: Texts that were registered.
        compiled: Texts that the yardstick compiled.
        lxml_ns: Of the yardstick.
        together_ns: Of one call with all texts.
        single_ns: Of a call for each text, by round and text.
        text_bytes: Bytes of each text.
    """

    case: str
    texts: int
    compiled: int
    lxml_ns: tuple[int, ...]
    together_ns: tuple[int, ...]
    single_ns: tuple[tuple[int, ...], ...]
    text_bytes: tuple[int, ...]

    def measures(self) -> Iterator[Measure]:
        """Its figures; "dearest" is of the text that takes most for its length (1 KiB at least)."""

        def figure(name: str, unit: str, value: Spread) -> Measure:
            return Measure("registration", self.case, name, unit, value)

        each = [ns / self.texts for ns in self.together_ns]
        one = [ns / self.compiled for ns in self.lxml_ns]
        singles = [sum(times) / self.texts for times in self.single_ns]
        yield figure("lxml, one XPath", "µs", Spread.of(one).scaled(1e-3))
        yield figure("together", "µs", Spread.of(each).scaled(1e-3))
        yield figure("one a call", "µs", Spread.of(singles).scaled(1e-3))
        ratios = [ns / lxml for ns, lxml in zip(each, one, strict=True)]
        yield figure("together by lxml", "x lxml", Spread.of(ratios))
        least = [min(times) / 1e3 for times in zip(*self.single_ns, strict=True)]
        dearest = max(
            us / max(1.0, size / 1024) for us, size in zip(least, self.text_bytes, strict=True)
        )
        yield figure("dearest", "µs/KiB", Spread.of([dearest]))


class TextRegistry(Protocol):
    """Takes texts, each under an id of its own."""

    def add(self, texts: Sequence[str]) -> object:
        """Registers texts in one call."""

    def __len__(self) -> int: ...


class Filters:
    """Texts as standing queries of a `Registry`."""

    def __init__(self) -> None:
        self._index = Registry()
        self._ids = count()

    def add(self, texts: Sequence[str]) -> object:
        """Registers texts in one call."""
        return self._index.add([Query(str(next(self._ids)), text) for text in texts])

    def __len__(self) -> int:
        return len(self._index)


class Subscriptions:
    """Texts as subscriptions of a `Registry`."""

    def __init__(self) -> None:
        self._registry = Registry()
        self._ids = count()

    def add(self, texts: Sequence[str]) -> object:
        """Registers texts in one call."""
        rows = [Subscription(str(next(self._ids)), "reader", text) for text in texts]
        return self._registry.add(rows)

    def __len__(self) -> int:
        return len(self._registry)


def run_registration(
    definition: RegistrationDefinition, chosen: RegistrationSet, say: Callable[[str], None]
) -> Iterator[RegistrationResult]:
    """Filter queries, FLWR subscriptions and long texts.

    Raises:
        WrongCountError: A text was refused.
        MissingDependencyError: lxml is not installed.
    """
    size, seed = chosen.registered + chosen.held_out, definition.seed
    paths = _distinct(mixed_subscriptions(4 * size, seed=seed), size)
    programs = _distinct(customise_texts(4 * size, seed=seed), size)
    cases: list[tuple[str, Callable[[], TextRegistry], list[str]]] = [
        ("XPath", Filters, paths),
        ("FLWR", Subscriptions, programs),
    ]
    for case, registry, texts in cases:
        say(case)
        held_out = texts[-chosen.held_out :]
        before = texts[: -chosen.held_out]
        yield _case(case, registry, before, held_out, paths[-chosen.held_out :], chosen.rounds)
    for operands in chosen.alternatives:
        case = f"{operands} alternatives"
        say(case)
        held_out = [_any_of(range(first, first + operands)) for first in range(8)]
        yield _case(case, Filters, paths[: chosen.registered], held_out, held_out, chosen.rounds)


def _any_of(symbols: range) -> str:
    """A query of one disjunct for each symbol."""
    conditions = " or ".join(f"@s='S{each}'" for each in symbols)
    return f"/quotes/quote[{conditions}]"


def _distinct(texts: Sequence[str], most: int) -> list[str]:
    """Different texts in the order of their first places."""
    return list(dict.fromkeys(texts))[:most]


def _case(
    case: str,
    registry: Callable[[], TextRegistry],
    before: Sequence[str],
    held_out: Sequence[str],
    compiled: Sequence[str],
    rounds: int,
) -> RegistrationResult:
    with extra("bench", "pathcast-lab bench"):
        from lxml.etree import XPath

    def yardstick() -> None:
        for text in compiled:
            XPath(text)

    lxml: list[int] = []
    together: list[int] = []
    single: list[tuple[int, ...]] = []
    with undisturbed():
        for _ in range(rounds):
            many, few = _filled(registry, before), _filled(registry, before)
            lxml.append(elapsed_ns(yardstick))
            together.append(elapsed_ns(partial(many.add, held_out)))
            single.append(tuple(elapsed_ns(partial(few.add, [text])) for text in held_out))
            for filled in (many, few):
                if len(filled) != len(before) + len(held_out):
                    expected = len(before) + len(held_out)
                    raise wrong_count(case, len(filled), expected, "texts registered")
    sizes = tuple(len(text.encode()) for text in held_out)
    return RegistrationResult(
        case=case,
        texts=len(held_out),
        compiled=len(compiled),
        lxml_ns=tuple(lxml),
        together_ns=tuple(together),
        single_ns=tuple(single),
        text_bytes=sizes,
    )


def _filled(registry: Callable[[], TextRegistry], texts: Sequence[str]) -> TextRegistry:
    """A registry that holds some texts."""
    filled = registry()
    filled.add(texts)
    return filled
