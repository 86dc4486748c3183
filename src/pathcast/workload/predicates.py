"""Value predicates for generated queries.

Example:
    >>> from pathcast.schema import parse_dtd
    >>> from pathcast.workload.values import IntegerValues
    >>> graph = parse_dtd("<!ELEMENT a EMPTY><!ATTLIST a k CDATA #REQUIRED>")
    >>> values = IntegerValues(graph, 0, values_max=1)
    >>> mix = PredicateMix(text=0, position=0)
    >>> writer = PredicateWriter(graph, QueryParameters(predicates=1, mix=mix), values, Draw(1))
    >>> writer.write([0], ["a"])
    [['[@k=1]']]

For each attribute of a step one value is kept in mind while a query is made, and every predicate is
true of it; so the predicates of a query do not contradict each other.

Source: 003, Table 2 (P) and 5.3: predicates are spread over the steps uniformly.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import fields
from itertools import accumulate

from pathcast.schema import Attribute, ElementGraph
from pathcast.workload.parameters import PredicateMix, QueryParameters
from pathcast.workload.values import Draw, ValueSource

_KINDS = tuple(item.name for item in fields(PredicateMix))
_TRIES = 20


class PredicateWriter:
    """Writes the value predicates of one query after the other.

    Args:
        graph: The DTD.
        parameters: How many predicates, and of which kinds.
        values: What they compare with.
        draw: Random choices.
    """

    def __init__(
        self,
        graph: ElementGraph,
        parameters: QueryParameters,
        values: ValueSource,
        draw: Draw,
    ) -> None:
        self._graph = graph
        self._count = parameters.predicates
        self._repeats_max = parameters.repeats_max
        self._values = values
        self._draw = draw
        mix = parameters.mix
        self._weights = [(kind, getattr(mix, kind)) for kind in _KINDS if getattr(mix, kind)]
        self._choices: dict[tuple[str, bool], tuple[list[str], list[float]]] = {}
        self._repeatable = {
            (element.name, child.name)
            for element in graph
            for child in element.children
            if child.repeatable
        }
        self._in_mind: dict[tuple[int, str], str] = {}

    def write(self, levels: Sequence[int], walk: Sequence[str]) -> list[list[str]] | None:
        """The predicates of each step, brackets included; None if no step can have one.

        Args:
            levels: Of each step of the path, its place in the walk.
            walk: Names of the elements that it was made from.
        """
        written: list[list[str]] = [[] for _ in levels]
        self._in_mind.clear()
        for _ in range(self._count):
            for _ in range(_TRIES):
                place = int(self._draw.random() * len(levels))
                predicate = self._predicate(levels[place], walk)
                if predicate is not None:
                    written[place].append(predicate)
                    break
            else:
                return None
        return written

    def is_possible(self, names: Iterable[str]) -> bool:
        """Some of these elements can have a predicate of a kind that is asked for."""
        return not self._count or any(self._kinds_of(name, may_count=True) for name in names)

    def _kinds_of(self, name: str, *, may_count: bool) -> list[tuple[str, float]]:
        element = self._graph[name]
        possible = {
            "attribute_equal": bool(element.attributes),
            "attribute_compare": bool(element.attributes),
            "attribute_exists": bool(element.attributes),
            "text": element.kind.has_text,
            "position": may_count,
        }
        return [(kind, weight) for kind, weight in self._weights if possible[kind]]

    def _predicate(self, level: int, walk: Sequence[str]) -> str | None:
        key = (walk[level], (level, "") not in self._in_mind)
        if key not in self._choices:
            kinds = self._kinds_of(key[0], may_count=key[1])
            self._choices[key] = (
                [kind for kind, _ in kinds],
                list(accumulate(weight for _, weight in kinds)),
            )
        kinds_here, cumulated = self._choices[key]
        if not kinds_here:
            return None
        lot = self._draw.random() * cumulated[-1]
        kind = kinds_here[min(bisect_right(cumulated, lot), len(kinds_here) - 1)]
        if kind == "position":
            return self._position(level, walk)
        if kind == "text":
            return f"[text()={self._literal(self._value(level, walk, None))}]"
        attributes = self._graph[walk[level]].attributes
        chosen = attributes[int(self._draw.random() * len(attributes))]
        return self._attribute(kind, level, walk, chosen)

    def _position(self, level: int, walk: Sequence[str]) -> str:
        may_repeat = level > 0 and (walk[level - 1], walk[level]) in self._repeatable
        highest = self._repeats_max if may_repeat else 1
        position = str(self._draw.whole(1, highest))
        self._in_mind[level, ""] = position
        return f"[{position}]"

    def _attribute(self, kind: str, level: int, walk: Sequence[str], attribute: Attribute) -> str:
        name = attribute.name
        if kind == "attribute_exists":
            return f"[@{name}]"
        value = self._value(level, walk, attribute)
        if kind == "attribute_compare":
            return f"[@{name}{self._comparison(value)}]"
        return f"[@{name}={self._literal(value)}]"

    def _value(self, level: int, walk: Sequence[str], attribute: Attribute | None) -> str:
        key = (level, "text()" if attribute is None else f"@{attribute.name}")
        if key not in self._in_mind:
            if attribute is None:
                values = self._values.text(walk[level])
            else:
                values = self._values.attribute(walk[level], attribute)
            drawn = self._draw.pick(values) if isinstance(values, tuple) else values(self._draw)
            self._in_mind[key] = drawn
        return self._in_mind[key]

    def _comparison(self, value: str) -> str:
        """An operator and a constant that are true of the value."""
        number = _number(value)
        if number is None:
            return f"!={self._literal(value + 'x')}"
        away = self._draw.whole(0, 4)
        match self._draw.whole(0, 4):
            case 0:
                return f"<{_text(number + away + 1)}"
            case 1:
                return f"<={_text(number + away)}"
            case 2:
                return f">{_text(number - away - 1)}"
            case 3:
                return f">={_text(number - away)}"
            case _:
                return f"!={_text(number + away + 1)}"

    @staticmethod
    def _literal(value: str) -> str:
        number = _number(value)
        if number is not None and _text(number) == value:
            return value
        if "'" not in value:
            return f"'{value}'"
        return '"' + value.replace('"', "'") + '"'


def _number(value: str) -> float | None:
    digits = value.removeprefix("-")
    if not digits.replace(".", "", 1).isdecimal() or not value.isascii() or len(value) > 15:
        return None
    return float(value)


def _text(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(number)
