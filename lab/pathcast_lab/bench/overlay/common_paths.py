"""Content generalisation by the paths that all disjuncts have in common.

Example:
    >>> from pathcast.query import conjunction_of
    >>> common_entry([conjunction_of(entry) for entry in ("/a/b and /c[@x]", "/a/b and /d")]).text
    '/a/b'

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1, Figure 6 (d).
"""

from __future__ import annotations

from collections.abc import Iterable

from pathcast.boundary import native


def common_entry(disjuncts: Iterable[native.Conjunction]) -> native.Conjunction:
    """The linear paths that all disjuncts have, the paper's method; any message, if none."""
    paths = [frozenset(each.linear().paths) for each in disjuncts]
    return native.Conjunction(list(frozenset.intersection(*paths) if paths else ()))
