"""Documents by a DTD, as the IBM XML Generator and the YFilter document generator made them.

Example:
    >>> from pathcast.schema import parse_dtd
    >>> graph = parse_dtd("<!ELEMENT a (b+)><!ELEMENT b (#PCDATA)><!ATTLIST b k CDATA #REQUIRED>")
    >>> first, second = generate_documents(graph, DocumentParameters(count=2, seed=1))
    >>> first.startswith(b'<?xml version="1.0" encoding="UTF-8"?>')
    True

A document follows the content models of the DTD. With `values="integers"` attribute values do not
follow their types, so such documents are well-formed but need not be valid.

Source: 003, 4.2.1. Differs: the IBM generator is closed; what it does below the maximum level and
how often it repeats choices was taken from documents that it made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias
from xml.sax.saxutils import escape, quoteattr

from pathcast.errors import SchemaError
from pathcast.schema import (
    Attribute,
    AttributeDefault,
    ChoiceParticle,
    ContentKind,
    ElementGraph,
    NameParticle,
    Occurrence,
    Particle,
    SequenceParticle,
    particle_height,
)
from pathcast.workload.faults import break_message
from pathcast.workload.parameters import DocumentParameters, Fault
from pathcast.workload.values import Draw, IntegerValues, Values, ValueSource

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'

_Emit: TypeAlias = Callable[[int], None]
"""Writes content whose elements lie at the given level."""


class GeneratedMessage(NamedTuple):
    """A generated document.

    Attributes:
        id: `prefix-` and its number, in at least six digits.
        message: The document.
        fault: How it was broken on purpose; None if it was not.
    """

    id: str
    message: bytes
    fault: Fault | None


def generate_documents(
    graph: ElementGraph, parameters: DocumentParameters, values: ValueSource | None = None
) -> Iterator[bytes]:
    """The documents, one after the other.

    Args:
        graph: The DTD.
        parameters: What they are like.
        values: Where values come from; None takes `default_values`.

    Raises:
        SchemaError: No document can be made of the DTD with this root.

    Cost: About 0.4 ms for 4 KB of NITF; memory for one document.
    """
    generator = DocumentGenerator(graph, parameters, values)
    return (generator.generate(number).message for number in range(parameters.count))


def generate_messages(
    graph: ElementGraph,
    parameters: DocumentParameters,
    values: ValueSource | None = None,
    *,
    prefix: str = "m",
) -> Iterator[GeneratedMessage]:
    """The documents with their ids and faults; otherwise as `generate_documents`."""
    generator = DocumentGenerator(graph, parameters, values, prefix=prefix)
    return (generator.generate(number) for number in range(parameters.count))


def default_values(graph: ElementGraph, parameters: DocumentParameters) -> ValueSource:
    """The source that the parameters ask for."""
    if parameters.values == "integers":
        return IntegerValues(graph, parameters.seed, parameters.values_max)
    from pathcast.workload.domains import plausible_values

    return plausible_values(graph)


class DocumentGenerator:
    """Makes documents by their number; the same number gives the same bytes in any order.

    Args:
        graph: The DTD.
        parameters: What documents are like; `count` is not used.
        values: Where values come from; None takes `default_values`.
        prefix: Begins every id.

    Not to be used from two threads at once.
    """

    def __init__(
        self,
        graph: ElementGraph,
        parameters: DocumentParameters,
        values: ValueSource | None = None,
        *,
        prefix: str = "m",
    ) -> None:
        self._graph = graph
        self._parameters = parameters
        self._values = default_values(graph, parameters) if values is None else values
        self._root = graph.root(parameters.root).name
        self._prefix = prefix
        self._draw = Draw(0)
        self._out: list[str] = []
        self._elements = 0
        self._emitters: dict[str, _Emit] = {}
        for name in graph.heights:
            self._emitters[name] = self._element(name)

    def generate(self, number: int) -> GeneratedMessage:
        """The document with this number, from 0 on."""
        parameters = self._parameters
        self._draw.restart(f"document/{parameters.seed}/{self._root}/{number}")
        self._out.clear()
        self._elements = 0
        self._out.append(DECLARATION)
        self._emitters[self._root](1)
        message = "".join(self._out).encode()
        fault = None
        if parameters.broken_ratio and self._draw.is_lucky(parameters.broken_ratio):
            fault = parameters.faults[int(self._draw.random() * len(parameters.faults))]
            message = break_message(message, fault, self._draw)
        return GeneratedMessage(f"{self._prefix}-{number:06d}", message, fault)

    # Everything below turns the DTD into functions, once, that write what they stand for.

    def _element(self, name: str) -> _Emit:
        element = self._graph[name]
        attributes = self._attributes(name)
        text = self._text(name) if element.kind.has_text else None
        content: _Emit | None = None
        if isinstance(element.content, ChoiceParticle) and element.kind is ContentKind.MIXED:
            content = self._mixed(element.content)
        elif element.content is not None:
            content = self._particle(element.content)
        write = self._out.append
        opening, closing = f"\n<{name}", f"</{name}>"

        def emit(level: int) -> None:
            self._elements += 1
            write(opening)
            if attributes is not None:
                attributes()
            write(">")
            if text is not None:
                text()
            if content is not None:
                content(level + 1)
            write(closing)

        return emit

    def _attributes(self, name: str) -> Callable[[], None] | None:
        declared = self._graph[name].attributes
        draw = self._draw
        random, write = draw.random, self._out.append
        written: list[tuple[float, tuple[str, ...], int, Callable[[Draw], str] | None]] = []
        for attribute in declared:
            odds = self._odds(name, attribute)
            values = self._values.attribute(name, attribute)
            if isinstance(values, tuple):
                choices = tuple(f" {attribute.name}={quoteattr(value)}" for value in values)
                written.append((odds, choices, len(choices), None))
            else:
                written.append((odds, (f" {attribute.name}=",), 1, values))
        if not written:
            return None

        def emit() -> None:
            for odds, choices, size, function in written:
                if odds == 1.0 or random() < odds:
                    if function is None:
                        write(choices[int(random() * size)])
                    else:
                        write(choices[0] + quoteattr(function(draw)))

        return emit

    def _odds(self, name: str, attribute: Attribute) -> float:
        chosen: float | None = None
        match attribute.default:
            case AttributeDefault.IMPLIED:
                chosen = self._parameters.implied_odds
            case AttributeDefault.VALUE:
                chosen = self._parameters.default_odds
            case AttributeDefault.FIXED:
                chosen = self._parameters.fixed_odds
            case AttributeDefault.REQUIRED:
                pass
        return self._values.attribute_odds(name, attribute) if chosen is None else chosen

    def _text(self, name: str) -> Callable[[], None]:
        odds, draw = self._parameters.text_odds, self._draw
        random, write = draw.random, self._out.append
        values: Values = self._values.text(name)
        if isinstance(values, tuple):
            choices = tuple(escape(value) for value in values)
            size = len(choices)

            def emit_choice() -> None:
                if odds == 1.0 or random() < odds:
                    write(choices[int(random() * size)])

            return emit_choice
        function = values

        def emit_made() -> None:
            if odds == 1.0 or random() < odds:
                write(escape(function(draw)))

        return emit_made

    def _particle(self, particle: Particle) -> _Emit:
        once = self._once(particle)
        if particle.occurrence is Occurrence.ONCE:
            return once
        parameters, random = self._parameters, self._draw.random
        depth_max, elements_max = parameters.depth_max, parameters.elements_max
        odds, occurrence = parameters.optional_odds, particle.occurrence
        repeats = parameters.repeats_max
        is_possible = particle_height(particle, self._graph.heights) is not None
        is_many, is_optional = occurrence is Occurrence.MANY, occurrence is Occurrence.OPTIONAL
        least = 1 if is_many else 0

        def emit(level: int) -> None:
            if level > depth_max + 1 or self._elements >= elements_max or not is_possible:
                count = least
            elif is_many:
                count = 1 + int(random() * repeats)
            elif is_optional:
                count = 1 if random() < odds else 0
            else:
                count = int(random() * (repeats + 1))
            for _ in range(count):
                once(level)

        return emit

    def _mixed(self, choice: ChoiceParticle) -> _Emit:
        """Mixed content; `#PCDATA` is one of the alternatives and writes nothing more."""
        parameters, random = self._parameters, self._draw.random
        depth_max, elements_max = parameters.depth_max, parameters.elements_max
        repeats = parameters.repeats_max
        heights = self._graph.heights
        parts = tuple(
            self._once(part)
            for part in choice.particles
            if particle_height(part, heights) is not None
        )
        size = len(parts) + 1

        def emit(level: int) -> None:
            if level > depth_max + 1 or self._elements >= elements_max:
                return
            for _ in range(int(random() * (repeats + 1))):
                chosen = int(random() * size)
                if chosen:
                    parts[chosen - 1](level)

        return emit

    def _once(self, particle: Particle) -> _Emit:
        if isinstance(particle, NameParticle):
            name, emitters = particle.name, self._emitters

            def emit_name(level: int) -> None:
                emitters[name](level)

            return emit_name
        if isinstance(particle, SequenceParticle):
            parts = tuple(self._particle(part) for part in particle.particles)

            def emit_parts(level: int) -> None:
                for part in parts:
                    part(level)

            return emit_parts
        return self._alternatives(particle)

    def _alternatives(self, particle: ChoiceParticle) -> _Emit:
        heights = {
            part: height
            for part in particle.particles
            if (height := particle_height(part, self._graph.heights)) is not None
        }
        if not heights:
            # Only reached through a particle that need not be there; nothing is written for it.
            return _refuse
        least = min(heights.values())
        free = tuple(self._particle(part) for part in heights)
        low = tuple(self._particle(part) for part, height in heights.items() if height == least)
        random, depth_max = self._draw.random, self._parameters.depth_max
        elements_max = self._parameters.elements_max

        def emit(level: int) -> None:
            if level > depth_max + 1 or self._elements >= elements_max:
                low[int(random() * len(low))](level)
            else:
                free[int(random() * len(free))](level)

        return emit


def _refuse(level: int) -> None:
    raise SchemaError("schema.unusable", reason="a choice of the DTD cannot be completed")
