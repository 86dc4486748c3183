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
from pathcast_papers.language import suggestions
from pathcast_papers.language.names import NCNAME, uri_of
from pathcast_papers.language.patterns import LazyPattern
from pathcast_papers.language.syntax import NodeType


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


_BLANKS_PATTERN: Final = r"[ \t\r\n]*"

# Tokens that are the same before an operand and after one.
_ANYWHERE: Final = rf"""
    (?P<number> [0-9]+ (?: \.[0-9]* )? | \.[0-9]+ )
  | (?P<literal> '[^']*' | "[^"]*" )
  | (?P<symbol> \.\. | :: | [()\[\].@,] )
  | (?P<operator> // | != | <> | <= | >= | [/|+\-=<>] )
  | (?P<variable> \${NCNAME} (?: :{NCNAME} )? )
"""

_OPERAND: Final = LazyPattern(
    rf"""{_BLANKS_PATTERN} (?:
    (?P<braced> Q\{{[^{{}}]*\}} (?: {NCNAME} | \* ) )
  | (?P<name> {NCNAME} (?: :(?!:) (?: {NCNAME} | \* )? )? )
  | (?P<star> \* (?: :(?!:) (?: {NCNAME} )? )? )
  | {_ANYWHERE} )""",
    re.VERBOSE,
)

_AFTER_OPERAND: Final = LazyPattern(
    rf"{_BLANKS_PATTERN} (?: (?P<word> {NCNAME} ) | (?P<times> \* ) | {_ANYWHERE} )", re.VERBOSE
)

_BLANKS: Final = re.compile(_BLANKS_PATTERN)
_OPERATOR_WORDS: Final = frozenset({"and", "or", "mod", "div"})
_NODE_TYPES: Final = frozenset(type_.value for type_ in NodeType)
_SIMPLE: Final = {
    "number": TokenKind.NUMBER,
    "symbol": TokenKind.SYMBOL,
    "operator": TokenKind.OPERATOR,
    "times": TokenKind.OPERATOR,
}


def tokenize(text: str) -> list[Token]:
    """The tokens of a query; the last is the end or a fault.

    Cost: linear in the text.

    Example:
        >>> [token.text for token in tokenize("a[@b <> 2]")]
        ['a', '[', '@', 'b', '!=', '2', ']', '']
    """
    tokens: list[Token] = []
    offset = 0
    is_after_operand = False
    while True:
        match = (_AFTER_OPERAND if is_after_operand else _OPERAND).match(text, offset)
        if match is None:
            offset = _after_blanks(text, offset)
            is_end = offset == len(text)
            tokens.append(Token(TokenKind.END, "", offset) if is_end else _no_token(text, offset))
            return tokens
        token, offset = _token(text, match)
        tokens.append(token)
        if token.kind is TokenKind.FAULT:
            return tokens
        is_after_operand = _ends_operand(token)


def _ends_operand(token: Token) -> bool:
    """Whether an operator must follow (3.7: the token before is none of these)."""
    if token.kind is TokenKind.OPERATOR or token.kind is TokenKind.AXIS:
        return False
    return token.kind is not TokenKind.SYMBOL or token.text not in ("@", "::", "(", "[", ",")


def _after_blanks(text: str, offset: int) -> int:
    blanks = _BLANKS.match(text, offset)
    return blanks.end() if blanks else offset


def _token(text: str, match: re.Match[str]) -> tuple[Token, int]:
    """The token that a pattern found, and where it ends."""
    group = match.lastgroup or ""
    found, offset, end = match[group], match.start(group), match.end()
    if group == "name":
        return _name(text, found, offset, end)
    if group in _SIMPLE:
        written = "!=" if found == "<>" else found
        return Token(_SIMPLE[group], written, offset), end
    if group == "literal":
        return Token(TokenKind.LITERAL, found[1:-1], offset), end
    if group == "variable":
        return Token(TokenKind.VARIABLE, found[1:], offset), end
    if group == "word":
        if found in _OPERATOR_WORDS:
            return Token(TokenKind.OPERATOR, found, offset), end
        reason = f"found {_shown(found)} where an operator is expected"
        hint = suggestions.for_word_after_operand(found)
        return _fault(text, offset, reason, hint), end
    if group == "braced":
        uri, _, local = found[2:].partition("}")
        return Token(TokenKind.NAME_TEST, local, offset, uri=uri_of(uri)), end
    if found == "*":
        return Token(TokenKind.NAME_TEST, "*", offset), end
    if found == "*:":
        return _fault(text, end, "a local name is expected after *:", None), end
    return Token(TokenKind.NAME_TEST, found[2:], offset, prefix="*"), end


def _name(text: str, found: str, offset: int, end: int) -> tuple[Token, int]:
    """A name where an operand may begin: axis, node type, function or name test."""
    prefix, colon, local = found.partition(":")
    if colon and not local:
        return _fault(text, end, f"a local name is expected after {_shown(found)}", None), end
    if found == "Q" and text.startswith("{", end):
        return _fault(text, offset, "found Q{ without }name after it", "write Q{uri}name"), end
    following = _after_blanks(text, end)
    if not colon and text.startswith("::", following):
        return Token(TokenKind.AXIS, found, offset), following + 2
    if local != "*" and text.startswith("(", following):
        kind = TokenKind.NODE_TYPE if found in _NODE_TYPES else TokenKind.FUNCTION
        return Token(kind, found, offset), end
    if colon:
        return Token(TokenKind.NAME_TEST, local, offset, prefix=prefix), end
    return Token(TokenKind.NAME_TEST, found, offset), end


def _no_token(text: str, offset: int) -> Token:
    """The fault of a place where no token begins."""
    character = text[offset]
    if character in "'\"":
        reason = "the string that begins here does not end"
        return _fault(text, offset, reason, f"close it with {character}")
    if character == "$":
        return _fault(text, offset, "a name is expected directly after $", None)
    reason = f"found {_shown(character)}, which begins no token"
    return _fault(text, offset, reason, suggestions.for_character(text, offset))


def _shown(text: str) -> str:
    return text if text.isprintable() else ascii(text)[1:-1]


def _fault(text: str, offset: int, reason: str, suggestion: str | None) -> Token:
    error = QuerySyntaxError(
        "XPST0003", query=text, offset=offset, reason=reason, suggestion=suggestion
    )
    return Token(TokenKind.FAULT, "", offset, fault=error)
