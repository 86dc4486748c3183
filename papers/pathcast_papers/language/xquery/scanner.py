"""The words of XQuery: one token ahead, and raw text where a constructor is read.

XQuery has no reserved words and no single way to split a text: what stands between tags is text,
what stands in braces is tokens again. So the scanner holds one token only, and whoever reads a
constructor takes over at a place in the text and gives another place back.

It also keeps count: of syntax nodes and of nesting, for every part of the parser.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import Final

from pathcast.errors import Param, QuerySyntaxError, UnsupportedQueryError
from pathcast_papers.language.names import NCNAME
from pathcast_papers.language.patterns import LazyPattern

TEXT_BYTES_MAX: Final = 32 * 1024
"""Bytes (UTF-8) of a FLWR subscription: a template may be a page, where a path is a line."""

VALUE_BYTES_MAX: Final = 1 << 20
"""Bytes of the values of its lists, which count beside them."""

VALUES_MAX: Final = 100_000
"""Values of its lists; but for the first of each they are no syntax nodes."""

NODES_MAX: Final = 2048
"""Syntax nodes of a FLWR subscription."""

DEPTH_MAX: Final = 64
"""How deep parentheses, predicates, calls, constructors, FLWORs, conditionals and quantifiers may
nest, each counting as one; bounds every recursion over a query."""

TREE_DEPTH_MAX: Final = 128
"""How deep the syntax tree may be, operators counted too."""

PREDICATES_MAX: Final = 64
"""Predicates of one step or one filter."""

INTEGER_DIGITS_MAX: Final = 18
"""Digits of an integer literal, as many as XQuery 1.0 asks for at least."""


class Kind(Enum):
    """Kinds of tokens."""

    NAME = auto()
    VARIABLE = auto()
    STRING = auto()
    INTEGER = auto()
    DECIMAL = auto()
    DOUBLE = auto()
    SYMBOL = auto()
    END = auto()


_TOKEN: Final = LazyPattern(
    rf"""
    (?P<name> Q\{{[^{{}}]*\}}(?:{NCNAME}|\*) | {NCNAME}(?: :(?!:)(?:{NCNAME}|\*) )? )
  | \$[ \t\r\n]*(?P<variable> {NCNAME}(?: :{NCNAME} )? )
  | (?P<string> "(?:[^"]|"")*" | '(?:[^']|'')*' )
  | (?P<double> (?: \.[0-9]+ | [0-9]+(?:\.[0-9]*)? )[eE][+-]?[0-9]+ )
  | (?P<decimal> \.[0-9]+ | [0-9]+\.[0-9]* )
  | (?P<integer> [0-9]+ )
  | (?P<symbol> := | :: | // | \.\. | << | >> | <= | >= | != | \|\| | => | \(\# |
      [()\[\]{{}}.,@/<>=+\-*|!;?:] )
    """,
    re.VERBOSE,
)
_KINDS: Final = {
    "name": Kind.NAME,
    "variable": Kind.VARIABLE,
    "string": Kind.STRING,
    "double": Kind.DOUBLE,
    "decimal": Kind.DECIMAL,
    "integer": Kind.INTEGER,
    "symbol": Kind.SYMBOL,
}
_NUMBERS: Final = frozenset({"double", "decimal", "integer"})
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_COMMENT_EDGE: Final = re.compile(r"\(:|:\)")
_NAME_START: Final = LazyPattern(NCNAME)
_REFERENCE: Final = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#([0-9]+)|#x([0-9A-Fa-f]+));")
_ENTITIES: Final = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_NO_CHARACTER: Final = LazyPattern("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Scanner:
    """One token of a text at a time.

    Attributes:
        text: The subscription.
        kind: Kind of the token to look at next.
        value: Its text; without quotes and references for a string, without `$` for a variable.
        start: Where it begins.
        end: Where it ends.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.nodes = 0
        self.values = 0
        self.depth = 0
        self.kind = Kind.END
        self.value = ""
        self.start = 0
        self.end = 0
        bad = _NO_CHARACTER.search(text)
        if bad is not None:
            shown = ascii(bad[0])[1:-1]
            raise self.error("XPST0003", bad.start(), f"{shown} is no character of XML")
        self.advance()

    # Errors.

    def error(
        self,
        code: str,
        offset: int,
        reason: str,
        suggestion: str | None = None,
        **params: Param,
    ) -> QuerySyntaxError:
        """A fault of the text at a place in it."""
        return QuerySyntaxError(
            code,
            query=self.text,
            offset=offset,
            line=self.text.count("\n", 0, offset) + 1,
            column=offset - self.text.rfind("\n", 0, offset),
            reason=reason,
            suggestion=suggestion,
            **params,
        )

    def unsupported(
        self, construct: str, offset: int, suggestion: str | None = None
    ) -> UnsupportedQueryError:
        """The refusal of a construct by its name."""
        return self.refusal("query.unsupported", construct, offset, suggestion)

    def refusal(
        self,
        code: str,
        construct: str,
        offset: int,
        suggestion: str | None = None,
        **params: Param,
    ) -> UnsupportedQueryError:
        """The refusal of what XQuery allows, with a code of its own."""
        return UnsupportedQueryError(
            code,
            query=self.text,
            offset=offset,
            line=self.text.count("\n", 0, offset) + 1,
            column=offset - self.text.rfind("\n", 0, offset),
            construct=construct,
            reason=f"{construct} is not supported",
            suggestion=suggestion,
            **params,
        )

    def unexpected(self, expected: str, suggestion: str | None = None) -> QuerySyntaxError:
        """The error of the token that is there."""
        if self.kind is Kind.END:
            found = "the end"
        else:
            found = ascii(self.text[self.start : min(self.end, self.start + 40)])[1:-1]
        return self.error(
            "XPST0003", self.start, f"found {found} where {expected} is expected", suggestion
        )

    # Limits.

    def count(self, offset: int) -> None:
        """Counts a syntax node."""
        self.nodes += 1
        if self.nodes > NODES_MAX:
            raise self.error(
                "query.too_large", offset, "has too many syntax nodes", maximum=NODES_MAX
            )

    def count_value(self, offset: int) -> None:
        """Counts a literal of a list."""
        self.values += 1
        if self.values > VALUES_MAX:
            reason = "has too many values in its lists"
            raise self.error("query.too_many_values", offset, reason, maximum=VALUES_MAX)

    def enter(self, offset: int) -> None:
        """Goes one level of nesting down; `leave` comes back."""
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise self.error("query.too_deep", offset, "nests too deep", maximum=DEPTH_MAX)

    def leave(self) -> None:
        """Comes back from a level of nesting."""
        self.depth -= 1

    # Tokens.

    def advance(self) -> None:
        """Goes to the next token."""
        self.move(self.end)

    def move(self, place: int) -> None:
        """Goes to the first token at or after a place in the text."""
        text = self.text
        start = self.after_blanks(place)
        match = _TOKEN.match(text, start)
        self.start = start
        if match is None:
            if start == len(text):
                self.kind, self.value, self.end = Kind.END, "", start
                return
            raise self._no_token(start)
        group = match.lastgroup or ""
        self.kind = _KINDS[group]
        self.end = match.end()
        value = match[group]
        if group == "string":
            quote = value[0]
            value = self.plain(value[1:-1].replace(quote + quote, quote), start + 1)
        elif group in _NUMBERS and _NAME_START.match(text, self.end):
            raise self.error(
                "XPST0003", self.end, "a number runs into a name", "put a blank between them"
            )
        self.value = value

    def _no_token(self, start: int) -> QuerySyntaxError:
        character = self.text[start]
        if character in "'\"":
            return self.error(
                "XPST0003",
                start,
                "the string that begins here does not end",
                f"close it with {character}",
            )
        if character == "$":
            return self.error("XPST0003", start, "a name is expected after $")
        shown = character if character.isprintable() else ascii(character)[1:-1]
        return self.error("XPST0003", start, f"found {shown}, which begins no token")

    def after_blanks(self, place: int) -> int:
        """The first place at or after another that is neither white space nor comment."""
        text = self.text
        while True:
            match = _SPACE.match(text, place)
            place = place if match is None else match.end()
            if not text.startswith("(:", place):
                return place
            place = self._after_comment(place)

    def _after_comment(self, start: int) -> int:
        level, place = 0, start
        while True:
            edge = _COMMENT_EDGE.search(self.text, place)
            if edge is None:
                raise self.error(
                    "XPST0003",
                    start,
                    "the comment that begins here does not end",
                    "close it with :)",
                )
            level += 1 if edge[0] == "(:" else -1
            place = edge.end()
            if level == 0:
                return place

    def is_end(self) -> bool:
        """Whether no token is left."""
        return self.kind is Kind.END

    def is_symbol(self, value: str) -> bool:
        """Whether the token is this symbol."""
        return self.kind is Kind.SYMBOL and self.value == value

    def take(self, symbol: str) -> bool:
        """Goes on if the token is this symbol."""
        if self.kind is Kind.SYMBOL and self.value == symbol:
            self.advance()
            return True
        return False

    def expect(self, symbol: str, where: str) -> None:
        """Goes on if the token is this symbol, and raises otherwise."""
        if not self.take(symbol):
            raise self.unexpected(f"{symbol} {where}".rstrip())

    def is_word(self, word: str) -> bool:
        """Whether the token is this name."""
        return self.kind is Kind.NAME and self.value == word

    def take_word(self, word: str) -> bool:
        """Goes on if the token is this name."""
        if self.kind is Kind.NAME and self.value == word:
            self.advance()
            return True
        return False

    def expect_word(self, word: str, where: str) -> None:
        """Goes on if the token is this name, and raises otherwise."""
        if not self.take_word(word):
            raise self.unexpected(f"{word} {where}".rstrip())

    def comes(self, symbols: str) -> bool:
        """Whether, after the token, one of these characters comes next."""
        place = self.after_blanks(self.end)
        return place < len(self.text) and self.text[place] in symbols

    # Characters.

    def plain(self, raw: str, offset: int) -> str:
        """Characters with references replaced and line ends as XML has them.

        Args:
            raw: Characters of a literal or of content.
            offset: Where they stand, for errors; after a doubled quote it may be a little off.
        """
        if "\r" in raw:
            raw = raw.replace("\r\n", "\n").replace("\r", "\n")
        if "&" not in raw:
            return raw
        pieces: list[str] = []
        place = 0
        while (mark := raw.find("&", place)) >= 0:
            pieces.append(raw[place:mark])
            match = _REFERENCE.match(raw, mark)
            if match is None:
                raise self.error(
                    "XPST0003", offset + mark, "this & begins no reference", "write &amp;"
                )
            pieces.append(self._referred(match, offset + mark))
            place = match.end()
        pieces.append(raw[place:])
        return "".join(pieces)

    def _referred(self, match: re.Match[str], offset: int) -> str:
        """What a reference stands for."""
        if match[1]:
            return _ENTITIES[match[1]]
        digits = (match[2] or match[3]).lstrip("0")[:8] or "0"
        number = int(digits, 16 if match[3] else 10)
        character = chr(number) if number < 0x110000 else "\0"
        if _NO_CHARACTER.match(character):
            raise self.error("XQST0090", offset, f"{match[0][:40]} is no character of XML")
        return character
