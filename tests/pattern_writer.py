"""Random regular expressions of XPath, subscriptions that use them, and texts that they match."""

from __future__ import annotations

import random
from typing import Final

from pathcast_papers.language.regular_expressions import read_pattern
from xquery_writer import Writer

_DASH: Final = ", '-'"

TEXTS: Final = (
    *("", "a", "abc", "ABC", "a1b2", "aab-ab", "  a  b ", "a.b", "a-b", "line\none", "one\r\ntwo"),
    *(
        "\u00e9t\u00e9",
        "\u00c9T\u00c9",
        "stra\u00dfe",
        "STRASSE",
        "\u0130stanbul",
        "\u0131I",
        "e\u0301",
        "\u017f",
    ),
    *("\u212a", "\u03a3\u03c2\u03c3", "1\u0663", "x_y", "price: 12.50", "tcp-ip", "aaaaaaaaaaaa"),
)
"""Texts with line ends, marks that combine, letters whose other case is not one letter."""


def pattern(draw: random.Random, depth: int = 2) -> str:
    """A pattern, which matches the empty text or not."""

    def atom(depth: int) -> str:
        match draw.randrange(9):
            case 0 if depth:
                return f"({draw.choice(('', '?:'))}{branches(depth - 1)})"
            case 1:
                return bracket()
            case 2:
                return draw.choice((".", "^", "$"))
            case 3:
                return draw.choice(("\\d", "\\s", "\\w", "\\S", "\\W", "\\p{L}", "\\P{Lu}", "\\c"))
            case 4:
                return draw.choice(("\\.", "\\-", "\\n", "\\\\", "\u00e9", "\u00df", "i", "\u0131"))
            case _:
                return draw.choice("abcAB1 -")

    def bracket() -> str:
        parts = [
            draw.choice(("a", "b-c", "A-B", "\\d", "\\s", "1", "\\-", "\u00e9", "\\n", "\\p{Lu}"))
        ]
        parts += [
            draw.choice(("c", "\\w", ".", "$", "x-z", "\\P{Lu}")) for _ in range(draw.randrange(3))
        ]
        taken = draw.choice(("", "", "", "-[ab]"))
        return f"[{draw.choice(('', '', '^'))}{''.join(parts)}{taken}]"

    def branch(depth: int) -> str:
        found = ""
        for _ in range(draw.randrange(1, 4)):
            sign = draw.choice(
                ("", "", "", "?", "*", "+", "{2}", "{1,3}", "{2,}", "+?", "*?", "??")
            )
            piece = atom(depth)
            found += piece if piece in "^$" and draw.randrange(3) else piece + sign
        return found

    def branches(depth: int) -> str:
        return "|".join(branch(depth) for _ in range(draw.choice((1, 1, 1, 2))))

    return branches(depth)


class PatternWriter(Writer):
    """Writes subscriptions that match, replace, split and compare texts."""

    values = (
        *(text.replace("\n", "&#10;").replace("\r", "&#13;") for text in TEXTS),
        *Writer.values,
    )

    def element(self, depth: int) -> str:
        return super().element(max(depth, 2))

    def pattern(self, *, is_empty_allowed: bool) -> str:
        """A pattern as a literal."""
        while True:
            found = pattern(self.random)
            if is_empty_allowed or not read_pattern(found, "").is_match(""):
                return f"'{found}'"

    def text(self, depth: int) -> str:
        """An expression that is a text."""
        whole = self.nodes(0)
        match self.random.randrange(6):
            case 0:
                replacement = self.one("'-'", "'[$0]'", "''", "'\\$\\\\'")
                pattern_ = self.pattern(is_empty_allowed=False)
                return f"replace({whole}, {pattern_}, {replacement}{self.flags()})"
            case 1:
                split = self.one(
                    "", f", {self.pattern(is_empty_allowed=False)}{self.flags()}", ", '[ \\-.]'"
                )
                return f"tokenize({whole}{split})"
            case 2:
                return f"string-join({whole}{self.one('', _DASH)})"
            case 3:
                return f"compare({whole}, {self.literal()}{self.collation()})"
            case _:
                return f"{self.one('lower-case', 'upper-case', 'string')}({whole})"

    def flags(self) -> str:
        return self.one("", "", "", ", 'i'", ", 's'", ", 'si'")

    def literal(self) -> str:
        return f"'{self.one('a', 'b', 'AB', 'a1', 'ABC', '1', '')}'"

    def collation(self) -> str:
        base = "http://www.w3.org/2005/xpath-functions/collation/"
        return self.one("", f", '{base}codepoint'", f", '{base}html-ascii-case-insensitive'")

    def items(self, depth: int) -> str:
        if self.chance(3):
            return f"(<v>{{{self.text(0)}}}</v>, {self.nodes(0)})"
        return super().items(depth)

    def condition(self, depth: int) -> str:
        whole = self.nodes(0)
        match self.random.randrange(6):
            case 0 | 1:
                flags = self.flags()
                return f"matches({whole}, {self.pattern(is_empty_allowed=True)}{flags})"
            case 2:
                function = self.one("contains", "starts-with", "ends-with")
                return f"{function}({whole}, {self.literal()}{self.collation()})"
            case 3:
                return f"{self.text(0)} = {self.literal()}"
            case _:
                return super().condition(depth)
