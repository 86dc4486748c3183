"""Documents by a DTD with a repetition bound of its own for each element.

What `documents` makes follows one bound for all elements; here each element that may repeat has its
own, and the depth bounds only elements that can stand in themselves.

Example:
    >>> from pathcast.schema import parse_dtd
    >>> graph = parse_dtd("<!ELEMENT a (b+)><!ELEMENT b (#PCDATA)>")
    >>> parameters = RepeatParameters(count=1, repeats={"b": Repeats(2, 2)}, values_max=1)
    >>> next(generate_repeating(graph, parameters)).decode().split()
    ['<?xml', 'version="1.0"', 'encoding="UTF-8"?>', '<a>', '<b>1</b>', '<b>1</b></a>']

Every text and attribute is a whole number from 1 to a maximum. Documents follow their DTD where its
attributes take numbers (`CDATA`, `NMTOKEN`).

Source: 002, 6.1: DocDepth, MaxRepeats "varied on an individual element basis", MaxValue. Differs:
the paper's averages do not follow from a uniform choice up to MaxRepeats, so the odds of one more
repetition are a parameter too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.sax.saxutils import quoteattr

from pathcast.errors import ConfigError, SchemaError
from pathcast.schema import (
    Attribute,
    AttributeDefault,
    ChoiceParticle,
    ContentKind,
    ElementGraph,
    NameParticle,
    Occurrence,
    Particle,
)
from pathcast.schema.graph import particle_height
from pathcast.workload.documents import DECLARATION
from pathcast.workload.parameters import check_whole
from pathcast.workload.values import Draw

LEVELS_MAX = 64
"""Levels of a document: below, a DTD that demands itself is refused."""


@dataclass(frozen=True, slots=True)
class Repeats:
    """How often an element repeats under one parent, where its content model lets it.

    Attributes:
        least: So many at least.
        most: MaxRepeats, so many at most.
        odds: Probability that one more follows while there are fewer than `most`; None chooses
            uniformly from `least` to `most`.
    """

    least: int = 0
    most: int = 4
    odds: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.least <= self.most <= 100_000:
            raise ConfigError(
                "config.invalid",
                key="repeats",
                reason=f"{self.least} to {self.most} is no range from 0 to 100000",
            )
        if self.odds is not None and not 0 <= self.odds <= 1:
            raise ConfigError(
                "config.invalid", key="repeats", reason=f"{self.odds!r} is no probability"
            )

    def draw(self, draw: Draw) -> int:
        """How often this time."""
        if self.odds is None:
            return draw.whole(self.least, self.most)
        count = self.least
        while count < self.most and draw.is_lucky(self.odds):
            count += 1
        return count


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatParameters:
    """How the documents are generated.

    Attributes:
        count: Documents.
        seed: Any whole number; the same seed gives the same bytes everywhere.
        depth_max: DocDepth: an element that can stand in itself is on this level at most, the root
            being on level 1; 1 to 64. Others follow their content model.
        repeats: MaxRepeats by element, or by parent and element (`book/section`), which goes
            first; an element that is not named takes `others`.
        others: See `repeats`.
        choices: Odds of an alternative, by the name of its first element, where a choice of the
            DTD is not repeated itself; 1 if not named.
        values_max: MaxValue: texts and attributes are whole numbers from 1 to this.
        root: Root element; None takes the best candidate of the DTD.
    """

    count: int = 200
    seed: int = 0
    depth_max: int = 5
    repeats: Mapping[str, Repeats] = field(default_factory=dict)
    others: Repeats = Repeats()
    choices: Mapping[str, float] = field(default_factory=dict)
    values_max: int = 10
    root: str | None = None

    def __post_init__(self) -> None:
        check_whole(self, "count", 0, 100_000_000)
        check_whole(self, "seed", None, None)
        check_whole(self, "depth_max", 1, LEVELS_MAX)
        check_whole(self, "values_max", 1, 1_000_000_000)
        for name, odds in self.choices.items():
            if odds < 0:
                raise ConfigError("config.invalid", key="choices", reason=f"{name}: {odds!r} < 0")


def generate_repeating(graph: ElementGraph, parameters: RepeatParameters) -> Iterator[bytes]:
    """The documents, one after the other.

    Args:
        graph: The DTD.
        parameters: What they are like.

    Raises:
        SchemaError: No document can be made of the DTD with this root.

    Cost: About 0.3 ms for 80 elements; memory for one document.
    """
    root = graph.root(parameters.root).name
    for number in range(parameters.count):
        draw = Draw(f"repeating/{parameters.seed}/{root}/{number}")
        writer = _Writer(graph, parameters, draw)
        yield writer.document(root)


class _Writer:
    """Writes one document."""

    def __init__(self, graph: ElementGraph, parameters: RepeatParameters, draw: Draw) -> None:
        self._graph = graph
        self._parameters = parameters
        self._draw = draw
        self._out: list[str] = [DECLARATION]

    def document(self, root: str) -> bytes:
        self._element(root, 1)
        return "".join(self._out).encode()

    def _element(self, name: str, level: int) -> None:
        if level > LEVELS_MAX:
            raise SchemaError(
                "schema.unusable", reason=f"element {name} leads below level {LEVELS_MAX}"
            )
        element = self._graph[name]
        self._out.append(f"\n<{name}")
        for attribute in element.attributes:
            if self._has(attribute):
                self._out.append(f" {attribute.name}={quoteattr(self._attribute(attribute))}")
        self._out.append(">")
        if element.kind.has_text:
            self._out.append(self._value())
        if element.content is not None:
            if element.kind is ContentKind.MIXED and isinstance(element.content, ChoiceParticle):
                self._shuffled(element.content, name, level + 1)
            else:
                self._particle(element.content, name, level + 1)
        self._out.append(f"</{name}>")

    def _has(self, attribute: Attribute) -> bool:
        if attribute.default in (AttributeDefault.REQUIRED, AttributeDefault.FIXED):
            return True
        return self._draw.is_lucky(0.5)

    def _attribute(self, attribute: Attribute) -> str:
        if attribute.default is AttributeDefault.FIXED and attribute.value is not None:
            return attribute.value
        return self._draw.pick(attribute.enumeration) if attribute.enumeration else self._value()

    def _value(self) -> str:
        return str(self._draw.whole(1, self._parameters.values_max))

    def _is_possible(self, particle: Particle, level: int) -> bool:
        """Whether it can be completed, and DocDepth allows what it begins with."""
        if particle_height(particle, self._graph.heights) is None:
            return False
        return not (
            isinstance(particle, NameParticle)
            and particle.name in self._graph.recursive_elements
            and level > self._parameters.depth_max
        )

    def _particle(self, particle: Particle, parent: str, level: int) -> None:
        if particle.occurrence is Occurrence.ONCE:
            self._once(particle, parent, level)
        elif not particle.occurrence.is_required and not self._is_possible(particle, level):
            return
        elif isinstance(particle, NameParticle):
            for _ in range(self._count(particle, parent, level)):
                self._element(particle.name, level)
        elif isinstance(particle, ChoiceParticle) and particle.occurrence.is_repeatable:
            self._shuffled(particle, parent, level)
        else:
            for _ in range(self._group_count(particle.occurrence)):
                self._once(particle, parent, level)

    def _group_count(self, occurrence: Occurrence) -> int:
        """How often a group of the content model is written."""
        if occurrence is Occurrence.OPTIONAL:
            return self._draw.whole(0, 1)
        drawn = self._parameters.others.draw(self._draw)
        return max(1, drawn) if occurrence.is_required else drawn

    def _count(self, particle: NameParticle, parent: str, level: int) -> int:
        """How often a name that may be missing or repeat is written."""
        least = 1 if particle.occurrence.is_required else 0
        if level > self._parameters.depth_max and particle.name in self._graph.recursive_elements:
            return least
        count = max(least, self._repeats(parent, particle.name).draw(self._draw))
        return count if particle.occurrence.is_repeatable else min(count, 1)

    def _repeats(self, parent: str, name: str) -> Repeats:
        named = self._parameters.repeats
        return named.get(f"{parent}/{name}", named.get(name, self._parameters.others))

    def _once(self, particle: Particle, parent: str, level: int) -> None:
        if isinstance(particle, NameParticle):
            self._element(particle.name, level)
        elif isinstance(particle, ChoiceParticle):
            self._alternative(particle, parent, level)
        else:
            for part in particle.particles:
                self._particle(part, parent, level)

    def _alternative(self, particle: ChoiceParticle, parent: str, level: int) -> None:
        possible = [part for part in particle.particles if self._is_possible(part, level)]
        if not possible:
            # Only DocDepth stands against it; the content model comes first.
            possible = [
                part
                for part in particle.particles
                if particle_height(part, self._graph.heights) is not None
            ]
        odds = [self._parameters.choices.get(_first_name(part), 1.0) for part in possible]
        lot = self._draw.random() * sum(odds)
        chosen = 0
        while chosen < len(odds) - 1 and lot >= odds[chosen]:
            lot -= odds[chosen]
            chosen += 1
        self._particle(possible[chosen], parent, level)

    def _shuffled(self, particle: ChoiceParticle, parent: str, level: int) -> None:
        """A choice that repeats: each alternative as often as its bound says, in any order."""
        parts: list[Particle] = []
        for part in particle.particles:
            if self._is_possible(part, level):
                parts += [part] * self._repeats(parent, _first_name(part)).draw(self._draw)
        if not parts and particle.occurrence is Occurrence.MANY:
            self._alternative(particle, parent, level)
        while parts:
            self._once(parts.pop(int(self._draw.random() * len(parts))), parent, level)


def _first_name(particle: Particle) -> str:
    while not isinstance(particle, NameParticle):
        particle = particle.particles[0]
    return particle.name
