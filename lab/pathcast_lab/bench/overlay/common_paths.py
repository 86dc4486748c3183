"""Content generalisation by the paths that all disjuncts have in common.

Example:
    >>> common_entry([Disjunct.of(entry) for entry in ("/a/b and /c[@x]", "/a/b and /d")]).text
    '/a/b'

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1, Figure 6 (d).
"""

from __future__ import annotations

from collections.abc import Iterable

from pathcast.overlay.disjuncts import Disjunct
from pathcast.query import NormalQuery
from pathcast.query.normal import ANY_MESSAGE


def common_entry(disjuncts: Iterable[Disjunct]) -> Disjunct:
    """The paths that all disjuncts have, which is the paper's method; any message, if none."""
    paths = [frozenset(each.paths) for each in disjuncts]
    shared = frozenset.intersection(*paths) if paths else frozenset()
    return Disjunct.all_of(shared or (NormalQuery(ANY_MESSAGE),))
