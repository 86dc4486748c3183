"""Random queries over the whole grammar of XPath 1.0: axes, functions, operators, types.

`random_query` stays within what is indexed; here is everything else, too: reverse and sibling axes,
unions, filter expressions, positions at any place, arithmetic, the core library, and conversions
between the four types wherever the grammar allows an expression of another type.

Example:
    >>> import random
    >>> random_expression(random.Random(30))
    '//b[../child::a[position() > last()]]'

Every random choice comes from the given generator, so a seed, or Hypothesis, replays it. Numbers
have few digits, so that every implementation writes them alike where they become strings; what else
libxml2 does in its own way is named in `oracles.lxml_differences`, not avoided here.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from generators.alphabet import ALPHABET, Alphabet
from generators.string_text import joined_string

_FORWARD: Final = ("child", "descendant", "descendant-or-self", "following", "following-sibling")
_REVERSE: Final = ("parent", "ancestor", "ancestor-or-self", "preceding", "preceding-sibling")
_COMPARING: Final = ("=", "=", "=", "!=", "<", "<=", ">", ">=")
_NUMBERS: Final = ("0", "1", "1", "2", "2", "3", "-1", "1.5", ".5", "2.", "10")
_STRINGS: Final = ("", "1", "2", "u", "v", "v w", " 2 ", "é", "a", "b", "p", "en", "'\"")
_FACTORS: Final = ("0", "1", "2", "-1", "0.5", "4")
"""What is multiplied and divided by: results have few digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionShape:
    """What a random expression may look like.

    Attributes:
        depth_max: Levels of expressions in expressions.
        steps_max: Location steps of one path.
        has_namespace_axis: Whether `namespace::` occurs, with names only: the order of namespace
            nodes is up to the implementation.
    """

    depth_max: int = 4
    steps_max: int = 4
    has_namespace_axis: bool = True


def random_expression(
    random: Random, alphabet: Alphabet = ALPHABET, shape: ExpressionShape | None = None
) -> str:
    """The text of one query: an XPath 1.0 expression of any type, read from the document node."""
    return _Writer(random, alphabet, shape or ExpressionShape()).query()


class _Writer:
    def __init__(self, random: Random, alphabet: Alphabet, shape: ExpressionShape) -> None:
        self.random = random
        self.alphabet = alphabet
        self.shape = shape

    def query(self) -> str:
        depth = self.shape.depth_max
        match self.random.randrange(20):
            case 0 | 1 | 2 | 3 | 4:
                return self.boolean(depth)
            case 5 | 6:
                return f"{self.top_path(depth)} | {self.top_path(depth)}"
            case 7:
                return self.number(depth)
            case 8:
                return self.string(depth)
            case _:
                return self.top_path(depth)

    def top_path(self, depth: int) -> str:
        """A path that has a chance to select something from the document node."""
        random = self.random
        if random.randrange(12) == 0:
            return self.node_set(depth)
        start = random.choice(("//", "//", "//", "/*/", "/*//", "/", ".//", "descendant::"))
        is_bare = start == "descendant::" or random.randrange(10) > 0
        return start + self.steps(depth, has_bare_start=is_bare)

    # --- Node-sets ---------------------------------------------------------------------------

    def node_set(self, depth: int) -> str:
        random = self.random
        match random.randrange(12):
            case 0 if depth > 0:
                return f"({self.node_set(depth - 1)} | {self.node_set(depth - 1)})"
            case 1 if depth > 0:
                inner = f"({self.node_set(depth - 1)})[{self.predicate(depth - 1)}]"
                if random.randrange(2):
                    return inner
                return inner + random.choice(("/", "/", "//")) + self.steps(depth - 1)
            case 2:
                return "//" + self.steps(depth)
            case 3:
                return "/" + self.steps(depth)
            case 4:
                return random.choice((".", "..", "(/)", ".//.", "@*", "*", "node()"))
            case 5:
                return random.choice(
                    ("id('i1')", "id('i2 i1')", "id(//@i)", "id(@x)", "id('i3')/..")
                )
            case _:
                return random.choice(("", "", "", ".//", "./", "../")) + self.steps(depth)

    def steps(self, depth: int, *, has_bare_start: bool = False) -> str:
        """One step or more; after an attribute or a text node, few axes make sense."""
        random = self.random
        text, kind = self.step(depth, "element", is_bare=has_bare_start)
        for _ in range(random.randrange(self.shape.steps_max)):
            if kind != "element" and random.randrange(3):
                break
            separator = random.choice(("/", "/", "/", "//"))
            following, kind = self.step(depth, kind)
            text += separator + following
        return text

    def step(self, depth: int, context: str, *, is_bare: bool = False) -> tuple[str, str]:
        """A step and what it selects: "element", "attribute" (namespaces, too) or "other"."""
        random = self.random
        if not is_bare and random.randrange(14) == 0:
            return random.choice(((".", context), ("..", "element"), ("..", "element")))
        axis, kind = ("", "element") if is_bare else self.axis(context)
        test, is_other = self.node_test(axis, kind)
        if is_other and kind == "element":
            kind = "other"
        text = axis + test
        odds = 30 if depth > 1 else 15
        # Not more than a step may have, however the random numbers fall.
        for _ in range(8 if depth > 0 else 0):
            if random.randrange(100) >= odds:
                break
            text += f"[{self.predicate(depth - 1)}]"
        return text, kind

    def axis(self, context: str) -> tuple[str, str]:
        """An axis as it is written before a node test, and the principal kind of its nodes."""
        random = self.random
        if context == "attribute":
            choice = random.choice(
                ("parent", "ancestor", "self", "ancestor-or-self", "preceding", "following")
            )
            kind = "attribute" if choice in ("self", "ancestor-or-self") else "element"
            return choice + "::", kind
        if context == "other":
            choice = random.choice(("parent", "following", "self", *_REVERSE, "following-sibling"))
            return choice + "::", "element"
        match random.randrange(16):
            case 0 | 1:
                return random.choice(("@", "@", "attribute::")), "attribute"
            case 2 if self.shape.has_namespace_axis and random.randrange(4) == 0:
                return "namespace::", "attribute"
            case 2 | 3:
                return random.choice(_FORWARD) + "::", "element"
            case 4 | 5:
                return random.choice(_REVERSE) + "::", "element"
            case 6:
                return "self::", "element"
            case 7:
                return random.choice(("following-sibling::", "preceding-sibling::")), "element"
            case _:
                return random.choice(("", "", "", "child::")), "element"

    def node_test(self, axis: str, kind: str) -> tuple[str, bool]:
        """A node test, and whether it selects something else than the principal kind."""
        random, alphabet = self.random, self.alphabet
        if axis == "namespace::":
            return random.choice(("p", "q", "xml")), False
        if random.randrange(6) == 0:
            return "*", False
        if random.randrange(8) == 0:
            test = random.choice(
                (
                    *("node()", "node()", "text()", "text()", "text()", "comment()"),
                    *("processing-instruction()", "processing-instruction('p')"),
                )
            )
            return test, True
        if kind == "attribute" and axis not in ("self::", "ancestor-or-self::"):
            return self.qualified(random.choice((*alphabet.attributes, "*"))), False
        return self.qualified(random.choice(alphabet.elements)), False

    def qualified(self, local: str) -> str:
        random, alphabet = self.random, self.alphabet
        if not alphabet.namespaces or random.randrange(2) or local == "*":
            return local
        prefix = random.choice(tuple(alphabet.namespaces))
        return f"{prefix}:{random.choice((local, local, '*'))}"

    def predicate(self, depth: int) -> str:
        """What stands in brackets: often a position, often of another type than boolean."""
        random = self.random
        match random.randrange(10):
            case 0 | 1:
                return random.choice(("1", "2", "last()", "1", "last() - 1", "1.5", "position()"))
            case 2:
                operator = random.choice(_COMPARING)
                right = random.choice(("1", "2", "last()", "last() - 1", "last() div 2"))
                return f"position() {operator} {right}"
            case 3:
                return f"position() mod 2 = {random.randrange(2)}"
            case 4 if depth > 0:
                return random.choice((self.number, self.string))(depth - 1)
            case 5 | 6:
                return self.node_set(depth - 1)
            case _:
                return self.boolean(depth - 1)

    # --- Booleans ----------------------------------------------------------------------------

    def boolean(self, depth: int) -> str:
        random = self.random
        if depth <= 0:
            return random.choice(
                ("true()", "false()", "@x", "b", "@y", "*", "text()", "@x = 1", "b != 2", ". = 'u'")
            )
        match random.randrange(15):
            case 0 | 1:
                operator = random.choice(("and", "or", "or"))
                left = self.boolean(depth - 1)
                return f"{self.grouped(left)} {operator} {self.grouped(self.boolean(depth - 1))}"
            case 2:
                return f"not({self.anything(depth - 1)})"
            case 3:
                return f"boolean({self.anything(depth - 1)})"
            case 4:
                language = random.choice(("'en'", "'EN'", "'en-us'", "'de'", "string(@x)"))
                return f"lang({language})"
            case 5 | 6:
                function = random.choice(("starts-with", "contains"))
                first = random.choice((self.node_set, self.string, self.node_set))(depth - 1)
                return f"{function}({first}, {self.string(depth - 1)})"
            case 7:
                return self.node_set(depth - 1)
            case _:
                return self.comparison(depth - 1)

    def comparison(self, depth: int) -> str:
        random = self.random
        writers = (self.node_set, self.node_set, self.node_set, self.number, self.string)
        left = random.choice(writers)(depth)
        right = random.choice((*writers, self.literal, self.literal, self.figure))(depth)
        if random.randrange(14) == 0:
            right = self.boolean(depth)
        if random.randrange(3) == 0:
            left, right = right, left
        return f"{self.grouped(left)} {random.choice(_COMPARING)} {self.grouped(right)}"

    def anything(self, depth: int) -> str:
        writers = (self.node_set, self.node_set, self.boolean, self.number, self.string)
        return self.random.choice(writers)(depth)

    def grouped(self, text: str) -> str:
        """In parentheses where an operator might reach in, and sometimes elsewhere."""
        is_plain = text.isalnum() or (
            text.endswith(")") and text.count("(") == 1 and " " not in text
        )
        if is_plain and self.random.randrange(4):
            return text
        return f"({text})" if self.random.randrange(8) or " " in text else text

    # --- Numbers -----------------------------------------------------------------------------

    def figure(self, depth: int = 0) -> str:
        return self.random.choice(_NUMBERS)

    def number(self, depth: int) -> str:
        random = self.random
        if depth <= 0:
            return random.choice((*_NUMBERS, "position()", "last()", "count(*)", "count(@*)"))
        match random.randrange(14):
            case 0 | 1 | 2:
                return f"count({self.node_set(depth - 1)})"
            case 3:
                return f"sum({self.node_set(depth - 1)})"
            case 4:
                return f"string-length({self.string(depth - 1)})"
            case 5:
                return f"number({self.anything(depth - 1)})"
            case 6:
                function = random.choice(("floor", "ceiling", "round"))
                return f"{function}({self.number(depth - 1)})"
            case 7:
                return f"-{self.grouped(self.number(depth - 1))}"
            case 8:
                operator = random.choice(("+", "-"))
                right = self.grouped(self.number(depth - 1))
                return f"{self.grouped(self.number(depth - 1))} {operator} {right}"
            case 9:
                operator = random.choice(("*", "div", "mod"))
                return (
                    f"{self.grouped(self.number(depth - 1))} {operator} {random.choice(_FACTORS)}"
                )
            case 10:
                return random.choice(("string-length()", "number()", "position()", "last()"))
            case _:
                return self.figure()

    # --- Strings -----------------------------------------------------------------------------

    def literal(self, depth: int = 0) -> str:
        return joined_string(self.random, self.random.choice(_STRINGS))

    def string(self, depth: int) -> str:
        random = self.random
        if depth <= 0:
            return self.literal()
        match random.randrange(16):
            case 0 | 1:
                return f"string({self.anything(depth - 1)})"
            case 2 | 3:
                function = random.choice(("name", "local-name", "namespace-uri"))
                return f"{function}({random.choice(('', '', '.', '..', '@*', '*', 'ancestor::*'))})"
            case 4:
                function = random.choice(("name", "local-name", "namespace-uri"))
                return f"{function}({self.node_set(depth - 1)})"
            case 5:
                parts = [self.anything(depth - 1) for _ in range(random.randrange(2, 4))]
                return f"concat({', '.join(parts)})"
            case 6:
                function = random.choice(("substring-before", "substring-after"))
                return f"{function}({self.string(depth - 1)}, {self.string(depth - 1)})"
            case 7 | 8:
                figures = [
                    random.choice((self.figure(), self.figure(), self.number(depth - 1)))
                    for _ in range(random.randrange(1, 3))
                ]
                return f"substring({self.anything(depth - 1)}, {', '.join(figures)})"
            case 9:
                return f"normalize-space({random.choice(('', self.anything(depth - 1)))})"
            case 10:
                pairs = random.choice(("'u1', 'ab'", "'12', '2'", "'vé', 'éé'", "' ', ''"))
                return f"translate({self.string(depth - 1)}, {pairs})"
            case _:
                return self.literal()
