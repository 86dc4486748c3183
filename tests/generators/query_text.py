"""Random queries of the evaluated language, and other notations for the same query.

Example:
    >>> import random
    >>> from pathcast.query import canonical_form
    >>> from pathcast_papers.language import normalise
    >>> text = random_query(random.Random(1))
    >>> other = rewritten(random.Random(2), normalise(text))
    >>> canonical_form(other) == canonical_form(text)
    True

Every random choice comes from the given generator, so a seed, or Hypothesis, replays it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import pathcast.query
from generators.alphabet import ALPHABET, Alphabet
from generators.string_text import written_string
from pathcast_papers.language import (
    AttributeCondition,
    Axis,
    Comparison,
    Condition,
    NestedCondition,
    NormalQuery,
    Operator,
    Stage,
    Step,
    TextCondition,
    ValueCondition,
    normalise,
)
from pathcast_papers.language.canonical import name_test_text, number_text

_OPERATORS = ("=", "=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryShape:
    """What a random query may look like.

    Attributes:
        steps_max: Location steps of the main path.
        nesting_max: Levels of nested paths.
        predicate_odds: Predicates are this probable at a step, of 100.
        has_extensions: Whether notations beyond XPath 1.0 occur: `*:name`, `Q{uri}name`,
            `$msg/...`.
    """

    steps_max: int = 5
    nesting_max: int = 2
    predicate_odds: int = 30
    has_extensions: bool = False


LINEAR = QueryShape(predicate_odds=0, nesting_max=0)
"""Location paths without predicates."""

VALUES = QueryShape(nesting_max=0, predicate_odds=50)
"""Value-based predicates, no nested paths."""


def random_query(
    random: Random, alphabet: Alphabet = ALPHABET, shape: QueryShape | None = None
) -> str:
    """The text of one query that every engine accepts."""
    return _Writer(random, alphabet, shape or QueryShape()).query()


class _Writer:
    def __init__(self, random: Random, alphabet: Alphabet, shape: QueryShape) -> None:
        self.random = random
        self.alphabet = alphabet
        self.shape = shape

    def query(self) -> str:
        random = self.random
        start = random.choice(("/", "/", "//", "//", "", ".//", "./"))
        if self.shape.has_extensions and start.startswith("/") and random.randrange(5) == 0:
            start = random.choice(("$msg", 'doc("d")', 'document("d")')) + start
        if random.randrange(30) == 0 and start.endswith("//"):
            return start + random.choice(("@x", "text()", "@*"))
        return start + self.path(self.shape.steps_max, self.shape.nesting_max) + self.end()

    def path(self, steps_max: int, nesting: int) -> str:
        random = self.random
        text = self.step(nesting)
        for _ in range(random.randrange(steps_max)):
            text += random.choice(("/", "/", "/", "//")) + self.step(nesting)
        return text

    def end(self) -> str:
        if self.random.randrange(8):
            return ""
        separator = self.random.choice(("/", "/", "//"))
        return separator + self.random.choice(("text()", f"@{self.attribute()}"))

    def step(self, nesting: int) -> str:
        random = self.random
        text = self.name_test()
        # Not more than a step may have, however the random numbers fall.
        for _ in range(8):
            if random.randrange(100) >= self.shape.predicate_odds:
                break
            text += f"[{self.predicate(nesting)}]"
        return text

    def name_test(self) -> str:
        random, alphabet = self.random, self.alphabet
        if random.randrange(5) == 0:
            return "*"
        local = random.choice(alphabet.elements)
        if not alphabet.namespaces:
            return local
        prefix = random.choice(tuple(alphabet.namespaces))
        options = [local, f"{prefix}:{local}", f"{prefix}:*"]
        if self.shape.has_extensions:
            uri = alphabet.namespaces[prefix]
            options += [f"*:{local}", f"Q{{{uri}}}{local}", f"Q{{{uri}}}*", f"Q{{}}{local}"]
        return random.choice(options)

    def attribute(self) -> str:
        random, alphabet = self.random, self.alphabet
        if random.randrange(8) == 0:
            return "*"
        local = random.choice(alphabet.attributes)
        if not alphabet.namespaces or random.randrange(2):
            return local
        prefix = random.choice(tuple(alphabet.namespaces))
        options = [f"{prefix}:{local}", f"{prefix}:*"]
        if self.shape.has_extensions:
            options += [f"*:{local}", f"Q{{{alphabet.namespaces[prefix]}}}{local}"]
        return random.choice(options)

    def predicate(self, nesting: int) -> str:
        random = self.random
        match random.randrange(10):
            case 0 | 1:
                return self.position()
            case 2:
                return f"{self.condition(nesting)} and {self.condition(nesting)}"
            case 3:
                return f"{self.position(is_long=True)} and {self.condition(nesting)}"
            case _:
                return self.condition(nesting)

    def position(self, *, is_long: bool = False) -> str:
        number = self.random.choice(("1", "2", "2", "3", "0", "1.5"))
        if not is_long and self.random.randrange(2):
            return number
        return f"position() {self.random.choice(_OPERATORS)} {number}"

    def condition(self, nesting: int) -> str:
        random = self.random
        match random.randrange(9 if nesting else 6):
            case 0:
                return f"@{self.attribute()}"
            case 1 | 2:
                return self.compared(f"@{self.attribute()}")
            case 3:
                return "text()"
            case 4:
                return self.compared("text()")
            case 5:
                return self.compared(".")
            case _:
                start = random.choice(("", "", "", ".//", "./"))
                path = start + self.path(3, nesting - 1) + self.end()
                return self.compared(path) if random.randrange(3) == 0 else path

    def compared(self, left: str) -> str:
        random = self.random
        operator = random.choice(_OPERATORS)
        if random.randrange(2):
            right = random.choice(self.alphabet.numbers)
        else:
            right = written_string(random, random.choice(self.alphabet.values))
        if random.randrange(6) == 0:
            return f"{right} {operator} {left}"
        return f"{left} {operator} {right}"


def tree_of(text: str, namespaces: Mapping[str, str] | None = None) -> NormalQuery:
    """The path of a query, whose constants may be computed, as the papers' normal form."""
    return normalise(pathcast.query.normalise(text, namespaces).text)


def rewritten(random: Random, query: NormalQuery) -> str:
    """Another notation of a query: axes in full, blanks, order, `and`, sides of comparisons."""
    return "".join(
        _rewritten_step(random, step, number == 0) for number, step in enumerate(query.steps)
    )


_FLIPPED = {
    Operator.EQ: "=",
    Operator.NE: "!=",
    Operator.LT: ">",
    Operator.LE: ">=",
    Operator.GT: "<",
    Operator.GE: "<=",
}


def _rewritten_step(random: Random, step: Step, is_start: bool) -> str:
    blank = random.choice(("", "", " "))
    if step.axis is Axis.DESCENDANT_OR_SELF:
        return f"//.{blank}" + "".join(_rewritten_stage(random, stage) for stage in step.stages)
    has_positions = any(stage.positions for stage in step.stages)
    separators = {
        Axis.CHILD: ["/", "/child::", "/ ", "/./"],
        Axis.DESCENDANT: ["//", "/descendant-or-self::node()/", "//child::", " // "],
    }[step.axis]
    if step.axis is Axis.DESCENDANT and not has_positions:
        separators.append("/descendant::")
    if is_start and step.axis is Axis.CHILD:
        separators += ["", "child::", "./"]
    text = random.choice(separators) + name_test_text(step.test) + blank
    return text + "".join(_rewritten_stage(random, stage) for stage in step.stages)


def _rewritten_stage(random: Random, stage: Stage) -> str:
    positions = [f"position(){at.operator.value}{number_text(at.number)}" for at in stage.positions]
    random.shuffle(positions)
    conditions = [_rewritten_condition(random, condition) for condition in stage.conditions]
    random.shuffle(conditions)
    if conditions and random.randrange(4) == 0:
        conditions.append(random.choice(conditions))
    if positions and conditions and random.randrange(3) == 0:
        positions.append(conditions.pop())
    predicates = [" and ".join(positions)] if positions else []
    if len(conditions) > 1 and random.randrange(2):
        predicates.append(f"({conditions[0]}) and {' and '.join(conditions[1:])}")
    else:
        predicates += conditions
    return "".join(f"[{predicate}]" for predicate in predicates)


def _rewritten_condition(random: Random, condition: Condition) -> str:
    match condition:
        case AttributeCondition(test, compare):
            axis = random.choice(("@", "attribute::", "./@", "@ "))
            return _rewritten_comparison(random, axis + name_test_text(test), compare)
        case TextCondition(compare):
            path = random.choice(("text()", "./text()", "child::text( )"))
            return _rewritten_comparison(random, path, compare)
        case ValueCondition(compare):
            return _rewritten_comparison(random, random.choice((".", "self::node()")), compare)
        case NestedCondition(steps):
            first, *others = steps
            start = _rewritten_step(random, first, False)
            start = start.lstrip(" ")
            start = "." + start if first.axis is not Axis.CHILD else start.removeprefix("/")
            return start + "".join(_rewritten_step(random, step, False) for step in others)


def _rewritten_comparison(random: Random, left: str, compare: Comparison | None) -> str:
    if compare is None:
        return left
    constant = compare.constant
    assert isinstance(constant, float | str), "XPath 1.0 has no cast and no list"
    if isinstance(constant, float):
        right = number_text(constant)
    else:
        right = written_string(random, constant)
    blank = random.choice(("", " "))
    if random.randrange(3) == 0:
        return f"{right}{blank}{_FLIPPED[compare.operator]}{blank}{left}"
    return f"{left}{blank or ' '}{compare.operator.value}{blank}{right}"
