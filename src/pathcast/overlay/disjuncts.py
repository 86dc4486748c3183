"""Entries of routing tables: a profile as disjuncts, each a conjunction of absolute linear paths.

A message that satisfies a profile satisfies one of its disjuncts, so a table of disjuncts never
keeps a message from who wants it. The converse does not hold: linear paths say that a `b` and a `c`
are there, not that they are in the same `a`, and what no path can say (an expression, a program) is
left to the host. To a protocol an entry is its text, which is XPath and is read back by
`pathcast.query.conjunction_of`.

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

from enum import Enum

from pathcast.boundary import native
from pathcast.customize.before_steps import paths_before
from pathcast.customize.steps import Steps
from pathcast.model import QueryLanguage
from pathcast.query import Namespaces, compile_subscription, conjunction_of


class Form(Enum):
    """The forms in which an entry can state a profile."""

    LINEAR = "linear"
    """A conjunction of absolute linear paths: the paper's disjunctive normal form."""
    PATTERNS = "patterns"
    """One path with its nested paths: nothing of the structure is lost."""


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

    Cost: a compilation, some 10 µs, and a comparison for each two nested paths.
    """
    compiled = compile_subscription(profile, namespaces, deliver, language)
    found = compiled.conjunctions
    if form is Form.LINEAR:
        found = tuple(paths.linear() for paths in found)
    return tuple(entry.text for entry in native.Conjunction.uncovered(list(found)))


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

    Cost: some microseconds a path.
    """
    return paths_before(conjunction_of(entry), steps).text if steps else entry
