"""The algorithms of the papers behind Pathcast, in plain Python, structure by structure.

They are the oracle of the tests and the baseline of the figures. Together they answer what the
kernel answers, slowly and readably, and can be put in its place (`standing_in`).

- `language`, `evaluation`: the reader of queries and the evaluator of XPath 1.0, which the product
  does not use.
- `filtering`: XML filtering (XFilter, Hybrid, YFilter, NP-Filter), and an engine around it.
- `message_broker`: path sharing for message brokers, FLWR subscriptions evaluated exactly, and a
  broker around them.
- `onyx`: a message as an element stream.

Example:
    >>> from pathcast import Query, Registry
    >>> registry = answered(instead_of_the_kernel, Registry)
    >>> report = registry.add(Query("q1", "//b[. > 1]"))
    >>> list(registry.match(b"<a><b>2</b></a>").query_ids)
    ['q1']

It uses one thread, keeps no cache, and its snapshots hold the queries without an automaton.

Source: Diao, Altinel, Franklin, Zhang, Fischer: Path Sharing and Predicate Evaluation for
High-Performance XML Filtering, ACM TODS 28(4), 2003; Diao and Franklin: Query Processing for
High-Volume XML Message Brokering, VLDB 2003.
"""

from __future__ import annotations

from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast_papers.filtering.index import ReferenceIndex
from pathcast_papers.filtering.snapshot import ReferenceSnapshot
from pathcast_papers.filtering.yfilter import Selection
from pathcast_papers.message import parse_message
from pathcast_papers.standing_in import answered, instead_of_the_kernel, plain_nfa

__all__ = [
    "ReferenceIndex",
    "ReferenceSnapshot",
    "Selection",
    "answered",
    "instead_of_the_kernel",
    "parse",
    "plain_nfa",
]


def parse(message: bytes, limits: Limits, encoding: str | None = None) -> MessageTree:
    """The tree of one message.

    Raises:
        MessageError: The door refused the message.
    """
    return parse_message(message, limits, encoding)
