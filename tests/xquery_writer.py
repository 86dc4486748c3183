"""Random FLWR subscriptions and messages that a gate must not be wrong about.

Unlike `generators.random_flwr`, this writes what XQuery has a dynamic error for, too: values
that are no numbers or numbers in every notation, several items where one is wanted, positions that
are computed. The alphabet is small, so that much is found.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

NAMES = ("a", "b", "c", "*")
ATTRIBUTES = ("x", "y")
VALUES = (
    *("1", "2", "3", "1e0", "+2", "INF", "-INF", " 3 ", "NaN", "20E-1", "k", "key", "", "0"),
    "'&quot;",
)
CONSTANTS = (
    *("1", "2", "3.0", "0", "-1", "2e0", "'k'", "'1'", "'key'", "''", "'INF'", "-2.5"),
    "''''",
    '"\'"""',
)
OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "eq", "ne", "lt", "le", "gt", "ge")
NOW = "current-dateTime()"
FORMS = ("", ", //@x", ", 'NFKD'")


class Writer:
    """Writes one subscription after the other.

    Attributes:
        values: Texts of messages.
    """

    values: Sequence[str] = VALUES

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.nodes_bound: list[str] = []
        self.values_bound: list[str] = []
        self.count = 0

    def one(self, *options: str) -> str:
        return self.random.choice(options)

    def chance(self, of: int) -> bool:
        return self.random.randrange(of) == 0

    # Messages.

    def message(self) -> bytes:
        return self.element(0).encode()

    def element(self, depth: int) -> str:
        name = self.one("a", "b", "c")
        attributes = "".join(
            f' {attribute}="{self.one(*self.values)}"' for attribute in ATTRIBUTES if self.chance(2)
        )
        content = self.one(*self.values) if self.chance(2) else ""
        if depth < 4:
            content += "".join(self.element(depth + 1) for _ in range(self.random.randrange(4)))
        if self.chance(6):
            content += self.one(*self.values, "<!--c-->", "<?p i?>")
        return f"<{name}{attributes}>{content}</{name}>"

    # Subscriptions.

    def subscription(self) -> str:
        self.nodes_bound, self.values_bound = [], []
        match self.random.randrange(4):
            case 0:
                return self.flwor(2)
            case 1:
                return f"<r>{{{self.items(2)}}}</r>"
            case 2:
                return f"<r><h>{{{self.items(1)}}}</h>{{{self.items(1)}}}</r>"
            case _:
                return f"{self.items(2)}, ()"

    def notice(self) -> str:
        """A subscription that is asked whether it is true."""
        match self.random.randrange(5):
            case 0:
                return self.subscription()
            case 1:
                return f"({self.condition(1)}, {self.items(1)})"
            case 2:
                return self.items(2)
            case _:
                while True:
                    condition = self.condition(2)
                    # Two constants say nothing of a message.
                    if "/" in condition:
                        return condition

    def items(self, depth: int) -> str:
        if depth == 0:
            return self.nodes(0)
        match self.random.randrange(11):
            case 9:
                first, last = self.nodes(0), self.one("3", self.nodes(0))
                # The context item is a number here, at which no path begins.
                mapped = self.one(". + last()", "<e>{.}</e>", self.nodes(0))
                return self.one(f"({first} to {last})", f"((-1 to {first}) ! ({mapped}))")
            case 10:
                inner = self.mapped(self.items, "position()", "<e>{.}{last()}</e>", "(@x, b)")
                return f"{self.nodes(depth - 1)} ! {inner}"
            case 0 | 1 | 2:
                return self.flwor(depth)
            case 3:
                then, otherwise = self.items(depth - 1), self.one("()", self.items(depth - 1))
                return f"if ({self.condition(depth - 1)}) then {then} else {otherwise}"
            case 4:
                return f"({self.items(depth - 1)}, {self.items(depth - 1)})"
            case 5:
                return f"<e>{{{self.items(depth - 1)}}}</e>"
            case 6:
                function = self.one("max", "min", "avg", "data", "distinct-values", "abs", "round")
                return f"{function}({self.nodes(depth - 1)})"
            case 7:
                left, right = self.nodes(depth - 1), self.number(depth - 1)
                return f"({left} {self.one('+', '*', 'eq', 'lt', 'div')} {right})"
            case _:
                return self.nodes(depth)

    def mapped(self, write: Callable[[int], str], *others: str) -> str:
        """What is found for each item, which is its context item."""
        bound = self.nodes_bound
        self.nodes_bound = [*bound, ".", "."]
        found = self.one(f"({write(0)})", ".", *others)
        self.nodes_bound = bound
        return found

    def item_type(self) -> str:
        item = self.one(
            "item()", "node()", "element()", "element(a)", "element(*)", "attribute()", "text()",
            "attribute(x)", "document-node()", "comment()", "xs:string", "xs:double", "xs:integer",
            "xs:decimal", "xs:anyAtomicType", "xs:untypedAtomic", "xs:boolean", "xs:date",
        )  # fmt: skip
        return self.one(item + self.one("", "?", "*", "+"), item + "*", "empty-sequence()")

    def bind(self, bound: list[str]) -> str:
        self.count += 1
        bound.append(f"$v{self.count}")
        return bound[-1]

    def flwor(self, depth: int) -> str:
        nodes, values = list(self.nodes_bound), list(self.values_bound)
        text = ""
        for _ in range(self.random.randint(1, 2)):
            match self.random.randrange(6):
                case 0:
                    source = self.nodes(depth - 1)
                    text += f"let {self.bind(self.nodes_bound)} := {source} "
                case 1:
                    source = f"distinct-values({self.nodes(depth - 1)})"
                    text += f"for {self.bind(self.values_bound)} in {source} "
                case 2:
                    source = self.nodes(depth - 1)
                    position = self.bind(self.values_bound)
                    text += f"for {self.bind(self.nodes_bound)} at {position} in {source} "
                case _:
                    source = self.nodes(depth - 1)
                    text += f"for {self.bind(self.nodes_bound)} in {source} "
        if not self.chance(3):
            text += f"where {self.condition(depth)} "
        if self.chance(4):
            text += f"order by {self.value(0)} "
        text += f"return {self.items(depth - 1)}"
        self.nodes_bound, self.values_bound = nodes, values
        return text

    def nodes(self, depth: int) -> str:
        """An expression that gives nodes."""
        if depth > 0 and self.chance(5):
            one, other = self.nodes(depth - 1), self.nodes(depth - 1)
            return self.one(
                f"({one} | {other})",
                f"({one}, {other})",
                f"({one})[{self.predicate(0)}]",
                f"(if ({self.condition(0)}) then {one} else {other})",
                f"({one} {self.one('intersect', 'except')} {other})",
                f"({one} ! {self.mapped(self.nodes, '@x', '(b, ..)')})",
                f"({one} treat as {self.item_type()})",
                f"{self.one('head', 'tail', 'reverse')}({one})",
                f"subsequence({one}, {self.one('2', '0', '1.5', '//@x')}, {self.one('1', '//@y')})",
                f"remove({one}, {self.one('1', '2', '//@x')})",
                f"insert-before({one}, {self.one('1', '2', '//@x', '9')}, {other})",
            )
        start = self.one("/", "//", "/a/", *(f"{name}/" for name in self.nodes_bound * 2))
        if start.startswith("$") and self.chance(4):
            return start[:-1]
        return start + self.steps(depth)

    def steps(self, depth: int) -> str:
        count = self.random.randint(1, 2)
        return self.one("/", "/", "//").join(self.step(depth) for _ in range(count))

    def step(self, depth: int) -> str:
        text = self.one(
            *NAMES, *NAMES, "@x", "@*", "text()", "..", "node()", "following-sibling::b",
            "preceding::*", "ancestor::a", "self::c", "descendant::b",
        )  # fmt: skip
        while depth > 0 and self.chance(3):
            text += f"[{self.predicate(depth - 1)}]"
        return text

    def predicate(self, depth: int) -> str:
        match self.random.randrange(6):
            case 0:
                return self.one("1", "2", "last()", "position() < 3", "position() = last()", "1.5")
            case 1:
                return self.one("count(b)", "last() - 1", "@x + 1", "not(position() = 1)", "0")
            case _:
                nodes, values = self.nodes_bound, self.values_bound
                self.nodes_bound = [*nodes, "."]
                found = self.condition(depth)
                self.nodes_bound, self.values_bound = nodes, values
                return found

    def value(self, depth: int) -> str:
        """An expression whose value is compared."""
        match self.random.randrange(12):
            case 11:
                nodes = self.nodes(0)
                return self.one(
                    f"index-of({nodes}, {self.one(*CONSTANTS)})",
                    f"string-to-codepoints({nodes})",
                    f"codepoints-to-string(({nodes}, 107))",
                    f"encode-for-uri({nodes})",
                    f"normalize-unicode({nodes}{self.one(*FORMS)})",
                    f"round-half-to-even({nodes}, {self.one('0', '1', '-1')})",
                    f"year-from-{self.one('date', 'dateTime')}({self.one(nodes, NOW)})",
                    f"{self.one('hours', 'timezone')}-from-time({self.one(nodes, NOW)})",
                    f"{self.one('days', 'seconds', 'months')}-from-duration({nodes})",
                    f"dateTime({self.one(nodes, NOW)}, {self.one(nodes, NOW)})",
                    NOW,
                    "current-time()",
                )
            case 9:
                left, right = self.one(*CONSTANTS), self.nodes(0)
                return self.one(
                    f"({left} || {right})",
                    f"({left} to {right})",
                    f"({left} to 3)",
                    f"({right} => {self.one('string', 'count', 'data', 'max')}())",
                )
            case 10:
                return f"({self.nodes(0)} ! {self.mapped(self.value, 'position()', 'name()')})"
            case 0 | 1 | 2:
                return self.one(*CONSTANTS)
            case 3:
                return f"({self.one(*CONSTANTS)}, {self.one(*CONSTANTS)})"
            case 4 if self.values_bound:
                return self.one(*self.values_bound)
            case 5:
                function = self.one("count", "string", "normalize-space", "name", "sum", "number")
                return f"{function}({self.nodes(0)})"
            case 6:
                return f"substring(string({self.nodes(0)}), 1, 1)"
            case _:
                return self.nodes(depth)

    def number(self, depth: int) -> str:
        """An expression whose value is computed with."""
        return self.value(depth)

    def condition(self, depth: int) -> str:
        if depth > 0 and self.chance(2):
            one, other = self.condition(depth - 1), self.condition(depth - 1)
            nodes = self.nodes(depth - 1)
            self.count += 1
            name = f"$v{self.count}"
            self.nodes_bound = [*self.nodes_bound, name]
            inner = self.condition(depth - 1)
            self.nodes_bound = self.nodes_bound[:-1]
            return self.one(
                f"({one} and {other})",
                f"({one} or {other})",
                f"not({one})",
                f"(some {name} in {nodes} satisfies {inner})",
                f"(every {name} in {nodes} satisfies {inner})",
                f"boolean({one})",
            )
        match self.random.randrange(8):
            case 7:
                return f"{self.value(depth)} instance of {self.item_type()}"
            case 0:
                return self.nodes(depth)
            case 1:
                return f"{self.one('empty', 'exists', 'not', 'boolean')}({self.nodes(depth)})"
            case 2:
                function = self.one("contains", "starts-with", "ends-with")
                return (
                    f"{function}({self.nodes(0)}, {self.one(chr(39) * 2, chr(39) + 'k' + chr(39))})"
                )
            case 3:
                count = f"count({self.nodes(depth)})"
                return f"{count} {self.one(*OPERATORS)} {self.one('0', '1', '2')}"
            case _:
                left, right = self.value(depth), self.value(depth)
                return f"{left} {self.one(*OPERATORS)} {right}"
