"""Regular expressions of XPath, by backtracking: what `matches`, `replace` and `tokenize` mean.

A pattern becomes functions that give, one after the other, the ends of its matches from a place.

Example:
    >>> pattern = read_pattern("(a|b)+c", "")
    >>> pattern.is_match("xxabc"), pattern.replaced("abc-ac", read_replacement("[$1]", 1))
    (True, '[b]-[a]')
    >>> pattern.split("1bc2ac")
    ['1', '2', '']

Source: XQuery and XPath Functions and Operators 3.1, section 5.6; XML Schema 1.1, part 2, G.
Differs: no back references, and no blocks of Unicode; with the flag `m`, `^` matches after a
newline that ends the text, too.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias

Groups: TypeAlias = tuple[tuple[int, int] | None, ...]
"""Where each group matched last."""

State: TypeAlias = tuple[int, Groups]
"""A place in a text, and the groups on the way there."""

Matcher: TypeAlias = Callable[[str, int, Groups], Iterator[State]]
"""The ends of what matches from a place, in the order of preference."""

Replacement: TypeAlias = tuple[str | int, ...]
"""Texts, and numbers of groups."""

CharacterTest: TypeAlias = Callable[[str], bool]
"""Whether a character is in a class."""

_ESCAPED: Final = "\\|.-^?*+{}()[]$"
_CATEGORIES: Final = frozenset(
    {major + minor for major, minors in (
        ("C", "cfno"), ("L", "lmotu"), ("M", "cen"), ("N", "dlo"), ("P", "cdefios"),
        ("S", "ckmo"), ("Z", "lps"),
    ) for minor in ("", *minors)}
)  # fmt: skip
_NAME_START: Final = (
    "::", "AZ", "__", "az", "\xc0\xd6", "\xd8\xf6", "\xf8\u02ff", "\u0370\u037d", "\u037f\u1fff",
    "\u200c\u200d", "\u2070\u218f", "\u2c00\u2fef", "\u3001\ud7ff", "\uf900\ufdcf", "\ufdf0\ufffd",
    "\U00010000\U000effff",
)  # fmt: skip
_NAME_OTHER: Final = ("--", "..", "09", "\xb7\xb7", "\u0300\u036f", "\u203f\u2040")
_CASED_END: Final = 0x20000
"""No character from here on has another case."""
PATTERN_BYTES_MAX: Final = 1024
"""Bytes of a pattern."""


class PatternError(Exception):
    """A text is no pattern.

    Attributes:
        kind: Why: syntax, flags, back reference, block, too large, empty, replacement.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


@dataclass(frozen=True, slots=True)
class RegularExpression:
    """A pattern.

    Attributes:
        matcher: How it matches.
        groups: Number of its groups.
    """

    matcher: Matcher
    groups: int

    def found(self, text: str, start: int = 0) -> Iterator[tuple[int, int, Groups]]:
        """The matches one after the other: begin, end, groups."""
        at = start
        while at <= len(text):
            match = next(self.matcher(text, at, (None,) * self.groups), None)
            if match is None:
                at += 1
                continue
            yield at, match[0], match[1]
            at = max(match[0], at + 1)

    def is_match(self, text: str) -> bool:
        """Whether a part of a text matches."""
        return next(self.found(text), None) is not None

    def split(self, text: str) -> list[str]:
        """What stands between the matches."""
        parts, end = [], 0
        for start, after, _ in self.found(text):
            parts.append(text[end:start])
            end = after
        return [*parts, text[end:]]

    def replaced(self, text: str, replacement: tuple[str | int, ...]) -> str:
        """A text with each match replaced."""
        parts, end = [], 0
        for start, after, groups in self.found(text):
            parts.append(text[end:start])
            all_groups = ((start, after), *groups)
            for piece in replacement:
                if isinstance(piece, str):
                    parts.append(piece)
                elif piece < len(all_groups) and (group := all_groups[piece]) is not None:
                    parts.append(text[group[0] : group[1]])
            end = after
        return "".join((*parts, text[end:]))


def read_pattern(text: str, flags: str) -> RegularExpression:
    """A pattern with its flags.

    Raises:
        PatternError: It is none.
    """
    if set(flags) - set("smixq"):
        raise PatternError("flags")
    if len(text.encode()) > PATTERN_BYTES_MAX:
        raise PatternError("too large")
    return _Reader(text, flags).read()


def read_replacement(text: str, groups: int) -> tuple[str | int, ...]:
    r"""What matches are replaced by, in pieces: `$1`, `\$`, `\\` and text.

    Raises:
        PatternError: A `$` or a backslash refers to nothing.
    """
    pieces: list[str | int] = []
    at = 0
    while at < len(text):
        one = text[at]
        at += 1
        if one == "\\":
            if text[at : at + 1] not in ("\\", "$"):
                raise PatternError("replacement")
            one = text[at]
            at += 1
        elif one == "$":
            start = at
            while text[at : at + 1] in tuple("0123456789") and (
                at == start or int(text[start : at + 1]) <= groups
            ):
                at += 1
            if at == start:
                raise PatternError("replacement")
            pieces.append(int(text[start:at]))
            continue
        pieces.append(one)
    return tuple(pieces)


def read_call(function: str, pattern: str, *others: str) -> tuple[RegularExpression, Replacement]:
    """The pattern of `matches`, `replace` or `tokenize`, and what its matches are replaced by.

    Args:
        function: Which of them.
        pattern: Its second argument.
        others: Those after it: for `replace` the replacement first; flags.

    Raises:
        PatternError: An argument is none, or matches would be empty that are replaced or split at.
    """
    written, flags = "", others[-1] if others else ""
    if function == "replace":
        written, flags = others[0], others[1] if len(others) > 1 else ""
    found = read_pattern(pattern, flags)
    if function != "matches" and found.is_match(""):
        raise PatternError("empty")
    if "q" in flags:
        return found, (written,)
    return found, read_replacement(written, found.groups)


class _Reader:
    def __init__(self, text: str, flags: str) -> None:
        self.flags = flags
        is_spaced = "x" in flags and "q" not in flags
        self.text = _without_spaces(text) if is_spaced else text
        self.at = 0
        self.groups = 0

    def read(self) -> RegularExpression:
        if "q" in self.flags:
            matcher = _sequence([self.one(character) for character in self.text])
            return RegularExpression(matcher, 0)
        matcher = self.alternatives()
        if self.at < len(self.text):
            raise PatternError("syntax")
        return RegularExpression(matcher, self.groups)

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, wanted: str) -> bool:
        is_next = self.peek() == wanted
        self.at += is_next
        return is_next

    def next(self) -> str:
        found = self.peek()
        if not found:
            raise PatternError("syntax")
        self.at += 1
        return found

    def one(self, character: str) -> Matcher:
        return _character(_is_among(character, character, is_blind="i" in self.flags))

    def alternatives(self) -> Matcher:
        branches = [self.branch()]
        while self.take("|"):
            branches.append(self.branch())
        return branches[0] if len(branches) == 1 else _choice(branches)

    def branch(self) -> Matcher:
        pieces = []
        while self.peek() not in ("", "|", ")"):
            pieces.append(self.quantified(self.atom()))
        return _sequence(pieces)

    def atom(self) -> Matcher:
        match self.next():
            case "\\":
                found = self.escape()
                return self.one(found) if isinstance(found, str) else _character(found)
            case "(":
                return self.group()
            case "[":
                return _character(self.bracket())
            case "." if "s" in self.flags:
                return _character(lambda _: True)
            case ".":
                return _character(lambda character: character not in "\n\r")
            case "^":
                return _place(_is_line_start if "m" in self.flags else _is_start)
            case "$":
                return _place(_is_line_end if "m" in self.flags else _is_end)
            case "?" | "*" | "+" | "{" | "}" | "]":
                raise PatternError("syntax")
            case other:
                return self.one(other)

    def group(self) -> Matcher:
        number = None
        if self.take("?"):
            if not self.take(":"):
                raise PatternError("syntax")
        else:
            number, self.groups = self.groups, self.groups + 1
        inner = self.alternatives()
        if not self.take(")"):
            raise PatternError("syntax")
        return inner if number is None else _group(inner, number)

    def quantified(self, inner: Matcher) -> Matcher:
        most: int | None
        match self.peek():
            case "?":
                fewest, most = 0, 1
            case "*":
                fewest, most = 0, None
            case "+":
                fewest, most = 1, None
            case "{":
                self.at += 1
                fewest = self.count(None)
                most = self.count(-1) if self.take(",") else fewest
                if self.peek() != "}" or -1 < most < fewest:
                    raise PatternError("syntax")
                most = None if most < 0 else most
            case _:
                return inner
        self.at += 1
        is_greedy = not self.take("?")
        if self.peek() in tuple("?*+{"):
            raise PatternError("syntax")
        return _repeated(inner, fewest, most, is_greedy=is_greedy)

    def count(self, default: int | None) -> int:
        start = self.at
        while self.peek() in tuple("0123456789"):
            self.at += 1
        if start == self.at:
            if default is None:
                raise PatternError("syntax")
            return default
        return int(self.text[start : self.at])

    def escape(self) -> str | CharacterTest:
        letter = self.next()
        if letter in _ESCAPED:
            return letter
        match letter:
            case "n" | "r" | "t":
                return {"n": "\n", "r": "\r", "t": "\t"}[letter]
            case "p" | "P":
                name, closed, _ = self.text[self.at :].removeprefix("{").partition("}")
                if self.peek() != "{" or not closed:
                    raise PatternError("syntax")
                if name.startswith("Is"):
                    raise PatternError("block")
                if name not in _CATEGORIES:
                    raise PatternError("syntax")
                self.at += len(name) + 2
                return _positive(_in_category(name), letter == "p")
        test = _CLASSES.get(letter.lower())
        if test is not None:
            return _positive(test, letter.islower())
        raise PatternError("back reference" if letter in "123456789" else "syntax")

    def bracket(self) -> CharacterTest:
        """A class, after its first bracket."""
        is_positive = not self.take("^")
        tests: list[CharacterTest] = []
        while True:
            one = self.next()
            if one == "]" and tests:
                return _positive(_any(tests), is_positive)
            if one in "[]":
                raise PatternError("syntax")
            if one == "-" and tests:
                if self.take("["):
                    whole = _positive(_any(tests), is_positive)
                    taken = self.bracket()
                    if not self.take("]"):
                        raise PatternError("syntax")
                    return _difference(whole, taken)
                if self.peek() != "]":
                    raise PatternError("syntax")
            found = self.escape() if one == "\\" else one
            tests.append(self.range(found) if isinstance(found, str) else found)

    def range(self, first: str) -> CharacterTest:
        last = first
        after = self.text[self.at + 1 : self.at + 2]
        if self.peek() == "-" and after not in ("", "[", "]"):
            self.at += 1
            last = self.next()
            if last == "-" != first:
                raise PatternError("syntax")
            if last == "\\":
                escaped = self.escape()
                if not isinstance(escaped, str):
                    raise PatternError("syntax")
                last = escaped
            if last < first:
                raise PatternError("syntax")
        return _is_among(first, last, is_blind="i" in self.flags)


def _without_spaces(text: str) -> str:
    kept, depth, is_escaped = "", 0, False
    for one in text:
        if one in "\t\n\r " and depth == 0:
            is_escaped = False
            continue
        if not is_escaped:
            depth = max(depth + {"[": 1, "]": -1}.get(one, 0), 0)
        is_escaped = one == "\\" and not is_escaped
        kept += one
    return kept


# Characters.


@cache
def _by_case() -> tuple[dict[str, str], dict[str, str]]:
    """Characters by their lower case, and by their upper case."""
    lower: dict[str, str] = {}
    upper: dict[str, str] = {}
    for one in map(chr, range(_CASED_END)):
        lower[one.lower()] = lower.get(one.lower(), "") + one
        upper[one.upper()] = upper.get(one.upper(), "") + one
    return lower, upper


def _variants(character: str) -> str:
    """The characters of the same lower case or the same upper case."""
    lower, upper = _by_case()
    return lower.get(character.lower(), character) + upper.get(character.upper(), "")


def _is_among(first: str, last: str, *, is_blind: bool) -> CharacterTest:
    if not is_blind:
        return lambda character: first <= character <= last

    def test(character: str) -> bool:
        return any(first <= each <= last for each in _variants(character))

    return test


def _in_category(name: str) -> CharacterTest:
    return lambda character: unicodedata.category(character).startswith(name)


def _in_ranges(*ranges: str) -> CharacterTest:
    return lambda character: any(each[0] <= character <= each[1] for each in ranges)


def _any(tests: list[CharacterTest]) -> CharacterTest:
    return lambda character: any(test(character) for test in tests)


def _positive(test: CharacterTest, is_positive: bool) -> CharacterTest:
    return test if is_positive else lambda character: not test(character)


def _difference(whole: CharacterTest, taken: CharacterTest) -> CharacterTest:
    return lambda character: whole(character) and not taken(character)


_CLASSES: Final[dict[str, CharacterTest]] = {
    "d": _in_category("Nd"),
    "s": lambda character: character in " \t\n\r",
    "w": lambda character: unicodedata.category(character)[0] not in "PZC",
    "i": _in_ranges(*_NAME_START),
    "c": _in_ranges(*_NAME_START, *_NAME_OTHER),
}


# Matchers.


def _character(test: CharacterTest) -> Matcher:
    def match(text: str, at: int, groups: Groups) -> Iterator[State]:
        if at < len(text) and test(text[at]):
            yield at + 1, groups

    return match


def _is_start(text: str, at: int) -> bool:
    return at == 0


def _is_end(text: str, at: int) -> bool:
    return at == len(text)


def _is_line_start(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"


def _is_line_end(text: str, at: int) -> bool:
    return at == len(text) or text[at] == "\n"


def _place(is_there: Callable[[str, int], bool]) -> Matcher:
    def match(text: str, at: int, groups: Groups) -> Iterator[State]:
        if is_there(text, at):
            yield at, groups

    return match


def _sequence(pieces: list[Matcher]) -> Matcher:
    def match(text: str, at: int, groups: Groups, done: int = 0) -> Iterator[State]:
        if done == len(pieces):
            yield at, groups
            return
        for end, inner in pieces[done](text, at, groups):
            yield from match(text, end, inner, done + 1)

    return match


def _choice(branches: list[Matcher]) -> Matcher:
    def match(text: str, at: int, groups: Groups) -> Iterator[State]:
        for branch in branches:
            yield from branch(text, at, groups)

    return match


def _group(inner: Matcher, number: int) -> Matcher:
    def match(text: str, at: int, groups: Groups) -> Iterator[State]:
        for end, found in inner(text, at, groups):
            yield end, (*found[:number], (at, end), *found[number + 1 :])

    return match


def _repeated(inner: Matcher, fewest: int, most: int | None, *, is_greedy: bool) -> Matcher:
    def more(text: str, at: int, groups: Groups, count: int) -> Iterator[State]:
        if most is None or count < most:
            for end, found in inner(text, at, groups):
                if end > at or count < fewest:
                    yield from match(text, end, found, count + 1)
                else:
                    # What matches nothing does not do so again.
                    yield end, found

    def match(text: str, at: int, groups: Groups, count: int = 0) -> Iterator[State]:
        if is_greedy:
            yield from more(text, at, groups, count)
        if count >= fewest:
            yield at, groups
        if not is_greedy:
            yield from more(text, at, groups, count)

    return match
