"""Entries of routing tables: a profile as disjuncts, each a conjunction of absolute paths.

A message that satisfies a profile satisfies one of its disjuncts, so a table of disjuncts never
keeps a message from who wants it. The converse does not hold: what no path can say (an expression,
a program) is left to the host. To a protocol an entry is its text, which is XPath and is read back
by `pathcast.query.conjunction_of`.

Example:
    >>> disjuncts_of("//order[item/@sku = 'A7'][to = 'Bern'] | //recall")
    ("//order[to[.='Bern']]/item[@sku='A7']", '//recall')

It neither matches nor generalises.

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1: the matching path of a query, which is
its `for` and `where` clauses as one path. Differs: Map() puts "and" between linear paths in the
place of joins, which makes tables larger and lets ten times as many bytes pass that nobody wants
(docs/figures.md, "Forms"); joins stay here, the alternative that the paper leaves to later work.
Generalisation (`pathcast.overlay.generalisation`) begins with Map().
"""

from __future__ import annotations

from pathcast.boundary import native
from pathcast.model import QueryLanguage, Subscription
from pathcast.query import Namespaces, compile_subscription, conjunction_of
from pathcast.registry.before_steps import paths_before
from pathcast.registry.steps import parse_steps


def disjuncts_of(
    profile: str,
    namespaces: Namespaces | None = None,
    deliver: str = "fragment",
    language: QueryLanguage | None = None,
) -> tuple[str, ...]:
    """The entries of a profile: whatever message it delivers anything from satisfies one of them.

    Args:
        profile: A subscription in XPath 1.0 or XQuery.
        namespaces: Prefix -> namespace URI; the key "" is the default element namespace.
        deliver: As a broker delivers it: "fragment", "message" or "ids".
        language: As it was chosen.

    Returns:
        Canonical texts, sorted, without duplicates; `/*`, any message, where nothing is known that
        must be there; none where the profile can never be satisfied. An entry for each disjunct
        of the profile, however many there are (512 at most).

    Raises:
        QuerySyntaxError: It is neither XPath nor XQuery.
        UnsupportedQueryError: It holds a construct that is refused.

    Cost: a compilation, and a comparison for each two disjuncts.
    """
    compiled = compile_subscription(profile, namespaces, deliver, language)
    return tuple(each.text for each in native.Conjunction.uncovered(list(compiled.conjunctions)))


def entries_of(asked: Subscription) -> tuple[str, ...]:
    """The entries of a subscription: as `disjuncts_of`, of messages before its steps.

    Whatever message satisfies its query after some or all of the steps satisfies an entry.

    Raises:
        QuerySyntaxError: Its query or a step is none.
        UnsupportedQueryError: It holds a construct that is refused.

    Example:
        >>> renamed = ("rename //table list",)
        >>> entries_of(Subscription("s", "s", "/a/list[item='x']/@n", steps=renamed))
        ("/a/*[@n]/item[.='x']",)
        >>> entries_of(Subscription("s", "s", "/a[b = 1]"))
        ('/a/b[.=1]',)

    Cost: as `disjuncts_of`, and a reading of each entry where there are steps.
    """
    found = disjuncts_of(asked.query, asked.namespaces, asked.deliver, asked.language)
    steps = parse_steps(asked.steps, asked.namespaces)
    if not steps:
        return found
    before = (paths_before(conjunction_of(entry), steps).text for entry in found)
    return tuple(dict.fromkeys(before))
