"""Guesses at the meaning of a broken query.

Pure functions from what was found to a sentence, or None. They look at slips that are common in
practice: operators of other languages, capitals, typographic quotes, escaped XML.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

_WORDS: Final = MappingProxyType(
    {
        "eq": "=",
        "ne": "!=",
        "lt": "<",
        "le": "<=",
        "gt": ">",
        "ge": ">=",
        "is": "=",
        "like": "=",
        "equals": "=",
        "not": "!=",
    }
)

_CHARACTERS: Final = MappingProxyType(
    {
        "&": "write `and` for &&",
        "!": "write != for `is not`; there is no ! alone",
        "\\": "steps are separated by /",
        "%": "write `mod` for the remainder",
        "`": "strings stand in straight quotes: 'x' or \"x\"",
        "{": "braces stand only in Q{uri}name",
        ";": "a query is one expression, without a semicolon",
        "≤": "write <=",
        "≥": "write >=",
        "≠": "write !=",
    }
)

_ENTITIES: Final = MappingProxyType(
    {"&lt;": "<", "&gt;": ">", "&amp;&amp;": "and", "&quot;": '"', "&apos;": "'"}
)

_QUOTES: Final = "‘’‚‛“”„‟«»′″"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like a given one, if one is.

    Example:
        >>> nearest("decendant", ["descendant", "child"])
        'descendant'
        >>> nearest("Position", ["position"])
        'position'
    """
    candidates = sorted(known)
    if word.lower() in candidates:
        return word.lower()
    found = difflib.get_close_matches(word.lower(), candidates, n=1, cutoff=0.7)
    return found[0] if found else None


def for_character(text: str, offset: int) -> str | None:
    """For a character that begins no token."""
    for entity, meant in _ENTITIES.items():
        if text.startswith(entity, offset):
            return f"write {meant} for {entity}: a query is not escaped as XML is"
    character = text[offset]
    if character in _QUOTES:
        return "strings stand in straight quotes: 'x' or \"x\""
    return _CHARACTERS.get(character)


def for_word_after_operand(word: str) -> str | None:
    """For a name where only an operator can follow."""
    lower = word.lower()
    if lower in _WORDS:
        return f"write {_WORDS[lower]} for {word}"
    meant = nearest(word, ("and", "or", "div", "mod"))
    if meant is not None:
        return f"did you mean `{meant}`?"
    return "steps are separated by /, conditions by `and`"


def for_operand(text: str, offset: int) -> str | None:
    """For a place where an expression should begin and does not."""
    found, before = text[offset : offset + 2], text[:offset].rstrip()
    if not found:
        if before.endswith("//"):
            return "leave out the // at the end, or write //* for any element"
        if before.endswith("/"):
            return "leave out the / at the end, or write /* for any child element"
        if before.endswith("["):
            return "write a condition and ] after it, or leave out the ["
        return None
    if before.endswith("="):
        if found[0] in "<>":
            return f"write {found[0]}= for ={found[0]}"
        if found[0] == "=":
            return "write one = for equality"
    if before.endswith("|") and found[0] == "|":
        return "write `or` for ||"
    if before.endswith("[") and found[0] == "]":
        return "write a condition between the brackets, or leave them out"
    if before.endswith("//") and found[0] == "[":
        return "write //*[...] for any element"
    if found[0] == "[":
        return "a predicate follows a step: *[...]"
    if found == "//" or (found[0] == "/" and before.endswith("/")):
        return "write at most two slashes between steps"
    return None


def for_operator(text: str, offset: int, *, bracket: str) -> str | None:
    """For a place where an operator, a closing bracket or the end should stand and does not.

    Args:
        text: The query.
        offset: The place.
        bracket: The innermost bracket that is open there, or "".
    """
    found = text[offset : offset + 1]
    if bracket == "[" and not found:
        return "close the predicate with ]"
    if bracket == "(" and found in ("", "]"):
        return "close the parenthesis with )"
    if found == "@":
        return "join conditions with `and`; an attribute step follows a slash: /@name"
    if found == "]":
        return "this ] closes nothing; is a [ missing?"
    if found == ")":
        return "this ) closes nothing; is a ( missing?"
    if found == "[":
        return "a predicate follows a step or a parenthesis"
    if found in "'\"$" or found.isdigit():
        return "is an operator missing before it?"
    return None


def for_node_set_function(name: str, *, is_string: bool) -> str | None:
    """For an argument that is no node-set where one is needed."""
    if name == "count" and is_string:
        return "string-length() tells how long a string is"
    return None


def for_function_as_step(name: str) -> str:
    """For a call after a slash."""
    meant = nearest(name, ("text", "node", "comment", "processing-instruction"))
    return f"did you mean {meant}()?" if meant else "a function is no step; call it in a predicate"
