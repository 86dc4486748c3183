"""Entries of routing tables: a profile as disjuncts, each a conjunction of absolute linear paths.

A message that satisfies a profile satisfies one of its disjuncts, so a table of disjuncts never
keeps a message from who wants it. The converse does not hold: linear paths say that a `b` and a `c`
are there, not that they are in the same `a`, and what no path can say (an expression, a program) is
left to the host. To a protocol an entry is its text, which is XPath and is read back by
`Disjunct.of`.

Example:
    >>> disjuncts_of("//order[item/@sku = 'A7'][to = 'Bern'] | //recall")
    ("//order/item[@sku='A7'] and //order/to[.='Bern']", '//recall')
    >>> disjuncts_of("//order[item/@sku = 'A7'][to = 'Bern']", form=Form.PATTERNS)
    ("//order[to[.='Bern']]/item[@sku='A7']",)

It neither matches nor generalises.

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1: the matching path of a query, which is
its `for` and `where` clauses as one path, and Map(), which puts "and" in the place of joins.
Differs: `Form.PATTERNS` keeps joins, the alternative that the paper leaves to later work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Final

from pathcast.customize.before_steps import paths_before
from pathcast.customize.steps import Steps
from pathcast.model import QueryLanguage
from pathcast.query import Namespaces, NormalQuery, canonical_text, compile_subscription
from pathcast.query.containment import COVERED_MAX
from pathcast.query.covering import Alternatives
from pathcast.query.normaliser import of_canonical
from pathcast.query.widening import linear_paths

AND: Final = " and "
"""What stands between the paths of an entry."""

_PARTS: Final = re.compile(r"'[^']*'|\"[^\"]*\"|Q\{[^}]*\}|[\[\]()]| and ")

_VALUE: Final = r"(?:'[^']*'|\"[^\"]*\")"
_LEAF: Final = (
    r"\[(?:(?:@[\w.-]+|\.)(?:(?:=|!=|<=|>=|<|>)(?:" + _VALUE + r"|-?[\d.]+))?"
    r"|(?:contains|starts-with)\((?:@[\w.-]+|\.)," + _VALUE + r"\))\]"
)
_LINEAR: Final = re.compile(r"(?://?(?:[\w.-]+|\*)(?:" + _LEAF + r")*)+")


class Form(Enum):
    """The forms in which an entry can state a profile."""

    LINEAR = "linear"
    """A conjunction of absolute linear paths: the paper's disjunctive normal form."""
    PATTERNS = "patterns"
    """One path with its nested paths: nothing of the structure is lost."""


@dataclass(frozen=True)
class Disjunct:
    """An entry: paths that must all be in a message.

    Attributes:
        paths: One or more, sorted by canonical text.
    """

    paths: tuple[NormalQuery, ...]

    @classmethod
    def of(cls, text: str) -> Disjunct:
        """Reads an entry.

        Raises:
            QuerySyntaxError: A part of it is no path.

        Example:
            >>> [canonical_text(path) for path in Disjunct.of("//b[.='x and y'] and /a").paths]
            ["//b[.='x and y']", '/a']

        Cost: 100 µs or more a path.
        """
        return cls.all_of(of_canonical(part) for part in paths_of(text))

    @classmethod
    def all_of(cls, paths: Iterable[NormalQuery]) -> Disjunct:
        """The entry that asks for some paths; one or more."""
        by_text = {canonical_text(path): path for path in paths}
        return cls(tuple(by_text[text] for text in sorted(by_text)))

    @cached_property
    def text(self) -> str:
        """The canonical text."""
        return AND.join(map(canonical_text, self.paths))

    @cached_property
    def parts(self) -> tuple[Alternatives, ...]:
        """The paths, made ready to be compared."""
        return tuple(Alternatives((path,)) for path in self.paths)

    def covers(self, special: Disjunct) -> bool:
        """Whether every message that satisfies another entry satisfies this one; sound.

        Example:
            >>> general, special = Disjunct.of("//a and //b"), Disjunct.of("/a/b[@x] and /a/c")
            >>> general.covers(special), special.covers(general)
            (True, False)

        Cost: a comparison for each path of the one and path of the other.
        """
        return all(
            any(mine.may_cover(theirs) and mine.covers(theirs) for theirs in special.parts)
            for mine in self.parts
        )

    def __str__(self) -> str:
        return self.text


def disjuncts_of(
    profile: str,
    namespaces: Namespaces | None = None,
    deliver: str = "fragment",
    language: QueryLanguage | None = None,
    *,
    form: Form = Form.LINEAR,
) -> tuple[str, ...]:
    """The entries of a profile: whatever message it delivers anything from satisfies one of them.

    Args:
        profile: A subscription in XPath 1.0 or XQuery.
        namespaces: Prefix -> namespace URI; the key "" is the default element namespace.
        deliver: As a broker delivers it: "fragment", "message" or "ids".
        language: As it was chosen.
        form: What an entry may say.

    Returns:
        Canonical texts, sorted, without duplicates; `/*`, any message, where nothing is known that
        must be there; none where the profile can never be satisfied. An entry for each disjunct
        of the profile, however many there are (512 at most).

    Raises:
        QuerySyntaxError: It is neither XPath nor XQuery.
        UnsupportedQueryError: It holds a construct that is refused.

    Cost: a compilation, a few 100 µs, and a comparison for each two nested paths.
    """
    compiled = compile_subscription(profile, namespaces, deliver, language)
    found = {}
    for paths in compiled.conjunctions:
        linear = (part for path in paths for part in linear_paths(path))
        entry = Disjunct.all_of(linear if form is Form.LINEAR else paths)
        found[entry.text] = entry
    return _general(found)


def _general(entries: Mapping[str, Disjunct]) -> tuple[str, ...]:
    """The texts of entries without those that another entry covers, sorted."""
    kept = dict(sorted(entries.items()))
    if len(kept) <= COVERED_MAX:
        for text, entry in list(kept.items()):
            if any(other is not entry and other.covers(entry) for other in kept.values()):
                del kept[text]
    return tuple(kept)


def before_steps(entry: str, steps: Steps) -> str:
    """An entry that a message satisfies if, some or all steps later, it satisfies another one.

    Args:
        entry: An entry.
        steps: Of the profile that it was made of.

    Example:
        >>> from pathcast.customize.steps import parse_steps
        >>> before_steps("/a/list[item='x']/@n", parse_steps(["rename //table list"]))
        "/a/*[@n]/item[.='x']"
        >>> before_steps("/a[b = 1]", ())
        '/a[b = 1]'

    Raises:
        QuerySyntaxError: It is no entry.

    Cost: 100 µs a path.
    """
    return Disjunct(paths_before(Disjunct.of(entry).paths, steps)).text if steps else entry


def is_linear(canonical: str) -> bool:
    """Whether a path in canonical text is an entry by itself, as far as a look at it tells.

    All its conditions are on attributes or on elements' own values. Conditions that exclude each
    other make an entry as well, which no message satisfies.

    Example:
        >>> [is_linear(text) for text in ("/a//b[.='x']", "/a[@n<3][@x]/*", "/a[b]", "/a[@x][2]")]
        [True, True, False, False]
    """
    return _LINEAR.fullmatch(canonical) is not None


def paths_of(text: str) -> tuple[str, ...]:
    """The texts of the paths of an entry: " and " in brackets, literals and URIs is theirs.

    Example:
        >>> paths_of("//b[.='x and y'] and /a")
        ("//b[.='x and y']", '/a')
    """
    if AND not in text:
        return (text,)
    parts, depth, start = [], 0, 0
    for found in _PARTS.finditer(text):
        match found[0]:
            case "[" | "(":
                depth += 1
            case "]" | ")":
                depth -= 1
            case " and " if depth == 0:
                parts.append(text[start : found.start()])
                start = found.end()
    return (*parts, text[start:])
