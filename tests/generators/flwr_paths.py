"""Random paths, predicates and constants over a vocabulary: the leaves of generated subscriptions.

Example:
    >>> import random
    >>> from generators.flwr_vocabulary import BIB
    >>> PathWriter(random.Random(7), BIB, FlwrWidth.PAPER).path("book", "$b").text
    '$b/title'

A path knows what it selects as far as the vocabulary says, so that a comparison can fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import Final

from generators.flwr_vocabulary import Vocabulary


class FlwrWidth(Enum):
    """How much of the language a subscription uses.

    PAPER: one `for` over a path with simple predicates, a conjunction of comparisons with
    constants, a template with relative paths. SIMPLE: several predicates, attributes, `text()`,
    wildcards, positions, attribute value templates, `or`, `not`, several results. WHOLE: all.
    """

    PAPER = "paper"
    SIMPLE = "simple"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Selected:
    """A path and what it selects.

    Attributes:
        text: The path.
        name: Element name, `@name`, `text()`; "" for anything.
        is_number: Whether the values are numbers, as far as the vocabulary says.
    """

    text: str
    name: str
    is_number: bool


_OPERATORS: Final = ("=", "=", "=", "!=", "<", "<=", ">", ">=")
_NUMBERS: Final = ("0", "1", "2", "3", "4", "10", "25", "1994", "2.5", "0.5", "1e1", "2.0", "007")
_ODD_NUMBERS: Final = (
    ".5",
    "5.",
    "1e-7",
    "1.5E6",
    "123456789012",
    "1E0",
    "0.0",
    "0.000001",
    "1e21",
)
_FORWARD: Final = ("child", "descendant", "descendant-or-self", "following", "following-sibling")
_REVERSE: Final = ("parent", "ancestor", "ancestor-or-self", "preceding", "preceding-sibling")
_KINDS: Final = ("node()", "text()", "comment()", "processing-instruction()", "element()")
_DOCUMENTS: Final = ('doc("doc.xml")', "document('doc.xml')", 'document("a.xml")', "fn:doc('x')")
_STARTS: Final = ("$msg", "$msg", *_DOCUMENTS, "", "")


class PathWriter:
    """Writes paths.

    Attributes:
        random: Where every choice comes from.
        vocabulary: Names and values.
        width: How much of the language.
        is_binding: Whether a binding path is being written: the paper allows simple predicates
            there alone.
        starts: What a path from the message begins with; ("()",) for expressions of which nothing
            is of the message.
        message_uses: How often the message has been reached for, so that who writes an expression
            knows whether it depends on the message.
    """

    def __init__(self, random: Random, vocabulary: Vocabulary, width: FlwrWidth) -> None:
        self.random = random
        self.vocabulary = vocabulary
        self.width = width
        self.is_binding = False
        self.starts: tuple[str, ...] = _STARTS
        self.message_uses = 0

    def one_in(self, number: int) -> bool:
        """Whether something happens that happens once in so many times."""
        return self.random.randrange(number) == 0

    # --- Constants -------------------------------------------------------------------------------

    def number(self) -> str:
        """A number literal: integer, decimal or double."""
        if self.width is FlwrWidth.WHOLE and self.one_in(10):
            return self.random.choice(_ODD_NUMBERS)
        return self.random.choice(_NUMBERS)

    def string(self, value: str | None = None) -> str:
        """A string literal, in one of its notations."""
        if value is None:
            texts = self.vocabulary.texts
            value = self.random.choice(texts if self.one_in(2) else texts[:2])
        value = value.replace("&", "&amp;")
        if self.one_in(6):
            value = value.replace("<", "&lt;").replace("X", "&#x58;").replace("'", "&apos;")
        quote = self.random.choice('""\'')
        return quote + value.replace(quote, quote * 2) + quote

    def constant(self, *, is_number: bool) -> str:
        """A literal to compare with, of the kind that fits most of the time."""
        if self.one_in(30):
            is_number = not is_number
        return self.number() if is_number else self.string()

    def operator(self) -> str:
        """A general comparison."""
        return self.random.choice(_OPERATORS)

    def compared(self, selected: Selected) -> str:
        """A path compared with a constant."""
        constant = self.constant(is_number=selected.is_number)
        if self.width is not FlwrWidth.PAPER and self.one_in(8):
            return f"{constant} {self.operator()} {selected.text}"
        blank = "" if self.one_in(5) else " "
        return f"{selected.text}{blank}{self.operator()}{blank}{constant}"

    # --- Paths -----------------------------------------------------------------------------------

    def binding_path(self, depth: int) -> Selected:
        """A path from the message."""
        before, self.is_binding = self.is_binding, True
        try:
            return self._from_message(depth)
        finally:
            self.is_binding = before

    def message(self) -> str:
        """What a path from the message begins with."""
        self.message_uses += self.starts is _STARTS
        return self.random.choice(self.starts)

    def _from_message(self, depth: int) -> Selected:
        start = self.message()
        vocabulary = self.vocabulary
        names = sorted(vocabulary.elements)
        if self.one_in(3):
            name = vocabulary.root if not self.one_in(15) else self.random.choice(names)
            first = f"{start}/{name}{self.predicates(name, depth, '/')}"
            if self.one_in(3):
                return self._selected(first, name)
            return self.path(name, first, depth=depth, has_values=False)
        name = self.random.choice(names)
        first = f"{start}//{name}{self.predicates(name, depth, '//')}"
        if self.one_in(2):
            return self._selected(first, name)
        return self.path(name, first, depth=depth, has_values=False)

    def path(self, origin: str, start: str, *, depth: int = 0, has_values: bool = True) -> Selected:
        """A path relative to something.

        Args:
            origin: Name of the element that it starts at; "" for anything.
            start: Text that it starts with; "" for a path in a predicate.
            depth: Levels of expressions in its predicates.
            has_values: Whether it may end in an attribute or in text nodes.
        """
        random = self.random
        text, name = start, origin
        for number in range(random.choice((1, 1, 1, 2, 2, 3))):
            separator, name = self.step(name)
            if number == 0 and not start:
                separator = ".//" if separator == "//" else ""
            if self.width is FlwrWidth.WHOLE and self.one_in(12) and separator in ("/", ""):
                return self.odd_step(text, separator, depth)
            test = name or "*"
            is_prefixed = ":" in test
            if self.width is not FlwrWidth.PAPER and self.one_in(12):
                test = random.choice(("*", f"*:{test.rpartition(':')[2]}"))
                if is_prefixed and self.one_in(3):
                    test = name.partition(":")[0] + ":*"
            text += f"{separator}{test}{self.predicates(name, depth, separator)}"
        if has_values and self.width is not FlwrWidth.PAPER and self.one_in(3):
            return self.value_step(text, name)
        return self._selected(text, name)

    def step(self, origin: str) -> tuple[str, str]:
        """A separator and the name of a child or descendant, as the vocabulary has it or not."""
        random, vocabulary = self.random, self.vocabulary
        kind = vocabulary.elements.get(origin)
        if kind is None or not kind.children or self.one_in(20):
            return random.choice(("/", "//")), random.choice(sorted(vocabulary.elements))
        if self.one_in(3):
            return "//", random.choice(vocabulary.below(origin))
        return "/", random.choice(kind.children)

    def value_step(self, text: str, name: str) -> Selected:
        """An attribute or text nodes at the end of a path; `text` may be empty."""
        random, vocabulary = self.random, self.vocabulary
        kind = vocabulary.elements.get(name)
        is_paper = self.width is FlwrWidth.PAPER
        separator = "" if not text else "/" if is_paper else random.choice(("/", "/", "/", "//"))
        if kind is not None and kind.attributes and not self.one_in(4):
            attribute = random.choice(kind.attributes)
            written = "attribute::" if self.one_in(10) else "@"
            test = "*" if self.one_in(12) and not is_paper else attribute
            is_number = vocabulary.is_number("@" + attribute) and test != "*"
            return Selected(f"{text}{separator}{written}{test}", "@" + attribute, is_number)
        if self.one_in(6):
            every = sorted({it for each in vocabulary.elements.values() for it in each.attributes})
            attribute = random.choice(every)
            is_number = vocabulary.is_number("@" + attribute)
            return Selected(f"{text}{separator}@{attribute}", "@" + attribute, is_number)
        return Selected(f"{text}{separator}text()", "text()", vocabulary.is_number(name))

    def odd_step(self, text: str, separator: str, depth: int) -> Selected:
        """A step on any axis, with any node test; nothing is known of what it selects."""
        random = self.random
        name = random.choice(sorted(self.vocabulary.elements))
        match random.randrange(5):
            case 0:
                return Selected(f"{text}{separator}..", "", False)
            case 1:
                return Selected(f"{text}{separator}{random.choice(_KINDS)}", "", False)
            case _:
                axis = random.choice((*_FORWARD, *_REVERSE, *_REVERSE, "self"))
                test = random.choice((name, name, "*", "node()"))
                predicate = self.predicates(test, depth, "/")
                selected = "" if test in ("*", "node()") else name
                return self._selected(f"{text}{separator}{axis}::{test}{predicate}", selected)

    def _selected(self, text: str, name: str) -> Selected:
        return Selected(text, name, self.vocabulary.is_number(name))

    # --- Predicates ------------------------------------------------------------------------------

    def predicates(self, name: str, depth: int, separator: str) -> str:
        """None, one or several predicates on an element."""
        text = ""
        if self.width is FlwrWidth.PAPER and not self.is_binding:
            return text
        odds = {FlwrWidth.PAPER: 5, FlwrWidth.SIMPLE: 4, FlwrWidth.WHOLE: 4}[self.width]
        while self.one_in(odds) and len(text) < 200:
            text += f"[{self.predicate(name, depth)}]"
            if self.width is FlwrWidth.PAPER and self.one_in(2):
                break
        return text

    def predicate(self, name: str, depth: int) -> str:
        """What stands in brackets; subclasses know more expressions."""
        random = self.random
        if self.width is FlwrWidth.PAPER or self.one_in(2):
            return self.compared(self.value_step("", name))
        match random.randrange(8):
            case 0:
                return random.choice(("1", "2", "last()", "position() < 3", "position() = last()"))
            case 1:
                return self.value_step("", name).text
            case 2:
                return f"not({self.path(name, '').text})"
            case 3:
                return self.path(name, "").text
            case 4:
                left, right = (self.compared(self.value_step("", name)) for _ in range(2))
                return f"{left} {random.choice(('and', 'or'))} {right}"
            case 5:
                constant = self.constant(is_number=self.vocabulary.is_number(name))
                return f". {self.operator()} {constant}"
            case _:
                return self.compared(self.path(name, ""))
