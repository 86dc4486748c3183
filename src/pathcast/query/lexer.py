"""Query text -> tokens.

The lexer applies the disambiguation rules of XPath 1.0 (section 3.7): after an operand `*` is the
multiplication sign and a name an operator; a name before `(` is a function or node type, before
`::` an axis. Beyond XPath 1.0 it knows `<>`, `*:name` and `Q{uri}name`.

A fault becomes a token too, which the parser raises when it gets there: so the first fault from the
left is the one that is reported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from pathcast.errors import QuerySyntaxError
from pathcast.query import suggestions
from pathcast.query.names import NCNAME
from pathcast.query.syntax import NodeType


class TokenKind(Enum):
    """Kinds of tokens (XPath 1.0, production 28)."""

    SYMBOL = auto()
    OPERATOR = auto()
    NAME_TEST = auto()
    AXIS = auto()
    NODE_TYPE = auto()
    FUNCTION = auto()
    VARIABLE = auto()
    LITERAL = auto()
    NUMBER = auto()
    FAULT = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """A token.

    Attributes:
        kind: Its kind.
        text: The symbol, operator, name or number as written; for a literal, the string in it.
        offset: Where it begins.
        prefix: Prefix of a name test ("*" in `*:name`).
        uri: Namespace URI of `Q{uri}name`.
        fault: The error, in a fault.
    """

    kind: TokenKind
    text: str
    offset: int
    prefix: str | None = None
    uri: str | None = None
    fault: QuerySyntaxError | None = None


_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_LITERAL: Final = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_SYMBOL: Final = re.compile(r"\.\.|::|[()\[\].@,]")
_OPERATOR: Final = re.compile(r"//|!=|<>|<=|>=|[/|+\-=<>]")
_WORD: Final = re.compile(NCNAME)
_NAME: Final = re.compile(f"({NCNAME})(?::(?!:)({NCNAME}|\\*)?)?")
_STAR: Final = re.compile(f"\\*(?::(?!:)({NCNAME})?)?")
_BRACED: Final = re.compile(f"Q{{([^{{}}]*)}}({NCNAME}|\\*)")
_VARIABLE: Final = re.compile(f"\\$({NCNAME}(?::{NCNAME})?)")

_OPERATOR_WORDS: Final = frozenset({"and", "or", "mod", "div"})
_NODE_TYPES: Final = frozenset(type_.value for type_ in NodeType)


def tokenize(text: str) -> list[Token]:
    """The tokens of a query; the last is the end or a fault.

    Cost: linear in the text.

    Example:
        >>> [token.text for token in tokenize("a[@b <> 2]")]
        ['a', '[', '@', 'b', '!=', '2', ']', '']
    """
    tokens: list[Token] = []
    offset = 0
    while True:
        blanks = _BLANKS.match(text, offset)
        offset = blanks.end() if blanks else offset
        if offset == len(text):
            tokens.append(Token(TokenKind.END, "", offset))
            return tokens
        if _is_operand_end(tokens[-1] if tokens else None):
            token, offset = _after_operand(text, offset)
        else:
            token, offset = _operand(text, offset)
        tokens.append(token)
        if token.kind is TokenKind.FAULT:
            return tokens


def _is_operand_end(token: Token | None) -> bool:
    """Whether an operator must follow (3.7: there is a token before, and it is none of these)."""
    if token is None or token.kind in (TokenKind.OPERATOR, TokenKind.AXIS):
        return False
    return token.kind is not TokenKind.SYMBOL or token.text not in ("@", "::", "(", "[", ",")


def _after_operand(text: str, offset: int) -> tuple[Token, int]:
    word = _WORD.match(text, offset)
    if word:
        if word[0] in _OPERATOR_WORDS:
            return Token(TokenKind.OPERATOR, word[0], offset), word.end()
        reason = f"found {_shown(word[0])} where an operator is expected"
        hint = suggestions.for_word_after_operand(word[0])
        return _fault(text, offset, reason, hint)
    if text[offset] == "*":
        return Token(TokenKind.OPERATOR, "*", offset), offset + 1
    return _anywhere(text, offset)


def _operand(text: str, offset: int) -> tuple[Token, int]:
    braced = _BRACED.match(text, offset)
    if braced:
        return Token(TokenKind.NAME_TEST, braced[2], offset, uri=braced[1]), braced.end()
    if text.startswith("Q{", offset):
        return _fault(text, offset, "found Q{ without }name after it", "write Q{uri}name")
    name = _NAME.match(text, offset)
    if name:
        return _name(text, name)
    star = _STAR.match(text, offset)
    if star:
        if star[0].endswith(":"):
            return _fault(text, star.end(), "a local name is expected after *:", None)
        if star[1]:
            return Token(TokenKind.NAME_TEST, star[1], offset, prefix="*"), star.end()
        return Token(TokenKind.NAME_TEST, "*", offset), star.end()
    return _anywhere(text, offset)


def _name(text: str, match: re.Match[str]) -> tuple[Token, int]:
    """A name where an operand may begin: axis, node type, function or name test."""
    offset, end = match.span()
    first, second = match[1], match[2]
    if second is None and match[0] != first:
        return _fault(text, end, f"a local name is expected after {_shown(first)}:", None)
    blanks = _BLANKS.match(text, end)
    following = blanks.end() if blanks else end
    if second is None and text.startswith("::", following):
        return Token(TokenKind.AXIS, first, offset), following + 2
    if second != "*" and text.startswith("(", following):
        kind = TokenKind.NODE_TYPE if match[0] in _NODE_TYPES else TokenKind.FUNCTION
        return Token(kind, match[0], offset), end
    if second is None:
        return Token(TokenKind.NAME_TEST, first, offset), end
    return Token(TokenKind.NAME_TEST, second, offset, prefix=first), end


def _anywhere(text: str, offset: int) -> tuple[Token, int]:
    """Tokens that are the same after an operand and before one."""
    number = _NUMBER.match(text, offset)
    if number:
        return Token(TokenKind.NUMBER, number[0], offset), number.end()
    literal = _LITERAL.match(text, offset)
    if literal:
        value = literal[1] if literal[1] is not None else literal[2]
        return Token(TokenKind.LITERAL, value, offset), literal.end()
    symbol = _SYMBOL.match(text, offset)
    if symbol:
        return Token(TokenKind.SYMBOL, symbol[0], offset), symbol.end()
    operator = _OPERATOR.match(text, offset)
    if operator:
        written = "!=" if operator[0] == "<>" else operator[0]
        return Token(TokenKind.OPERATOR, written, offset), operator.end()
    variable = _VARIABLE.match(text, offset)
    if variable:
        return Token(TokenKind.VARIABLE, variable[1], offset), variable.end()
    character = text[offset]
    if character in "'\"":
        return _fault(
            text, offset, "the string that begins here does not end", f"close it with {character}"
        )
    if character == "$":
        return _fault(text, offset, "a name is expected directly after $", None)
    return _fault(
        text,
        offset,
        f"found {_shown(character)}, which begins no token",
        suggestions.for_character(text, offset),
    )


def _shown(text: str) -> str:
    return text if text.isprintable() else ascii(text)[1:-1]


def _fault(text: str, offset: int, reason: str, suggestion: str | None) -> tuple[Token, int]:
    error = QuerySyntaxError(
        "XPST0003", query=text, offset=offset, reason=reason, suggestion=suggestion
    )
    return Token(TokenKind.FAULT, "", offset, fault=error), offset
