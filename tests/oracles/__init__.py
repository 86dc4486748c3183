"""Opinions that are not Pathcast's own, and what engines are compared with.

- `lxml_matches`, `SaxonOracle` (needs `saxonche`): other implementations;
  `oracles.lxml_differences` and `oracles.saxon_differences` name where they are not followed.
- `oracle_matches`: the reference evaluator's.
- `assert_same_matches`: fails with what differs.
- `ENGINES`, `missing_reason`: which engines can be tested here.

Example:
    >>> import random
    >>> from generators import random_message, random_query
    >>> seed = random.Random(7)
    >>> query, message = Query("q1", random_query(seed)), random_message(seed)
    >>> oracle_matches(query, message) == lxml_matches(query, message)
    True
"""

from __future__ import annotations

from oracles.asserts import assert_same_matches
from oracles.engines import ENGINES, missing_reason
from oracles.lxml_oracle import LxmlQuery, lxml_matches, lxml_tree, number_differs
from oracles.saxon import SaxonError, SaxonOracle, saxon_missing_reason
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast_papers.filtering.oracle import holds
from pathcast_papers.language import compile_query
from pathcast_papers.message import parse_message

__all__ = [
    "ENGINES",
    "LxmlQuery",
    "SaxonError",
    "SaxonOracle",
    "assert_same_matches",
    "lxml_matches",
    "lxml_tree",
    "missing_reason",
    "number_differs",
    "oracle_matches",
    "saxon_missing_reason",
]


def oracle_matches(query: Query, message: bytes) -> bool:
    """Whether a message satisfies a query, by the oracle.

    Raises:
        QuerySyntaxError: The query cannot be read.
        MessageError: The door refuses the message.
    """
    tree = parse_message(message, Limits())
    return holds(compile_query(query.text, query.namespaces), tree)
