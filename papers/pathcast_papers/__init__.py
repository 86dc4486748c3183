"""The algorithms of the papers behind Pathcast, in plain Python, structure by structure.

They are the oracle of the tests and the baseline of the figures, and together an engine, named
"reference", that answers what the kernel answers, slowly and readably.

- `filtering`: XML filtering (XFilter, Hybrid, YFilter, NP-Filter), and an engine around it.
- `message_broker`: path sharing for message brokers, FLWR subscriptions evaluated exactly, and a
  broker around them.
- `onyx`: a message as an element stream; exclusiveness patterns by a schema.

Example:
    >>> from pathcast import Query, QueryIndex
    >>> index = QueryIndex(engine="reference")
    >>> report = index.register([Query("q1", "//b[. > 1]")])
    >>> list(index.matcher().match_batch([b"<a><b>2</b></a>"])[0].query_ids)
    ['q1']

It uses one thread, keeps no cache, and its snapshots hold the queries without an automaton.

Source: Diao, Altinel, Franklin, Zhang, Fischer: Path Sharing and Predicate Evaluation for
High-Performance XML Filtering, ACM TODS 28(4), 2003; Diao and Franklin: Query Processing for
High-Volume XML Message Brokering, VLDB 2003.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from pathcast.limits import Limits
from pathcast.message import MessageTree, parse_message
from pathcast.model import RoutingEntry
from pathcast_papers.filtering.index import ReferenceIndex
from pathcast_papers.filtering.path_finder import ReferencePathFinder
from pathcast_papers.filtering.routing import ReferenceRoutingTable
from pathcast_papers.filtering.snapshot import ReferenceSnapshot
from pathcast_papers.filtering.wire import decode_streams, encode_streams
from pathcast_papers.filtering.yfilter import Selection
from pathcast_papers.message_broker.dissemination import new_dissemination

__all__ = [
    "ReferenceIndex",
    "ReferenceSnapshot",
    "Selection",
    "decode_streams",
    "encode_streams",
    "new_dissemination",
    "new_index",
    "new_path_finder",
    "new_routing_table",
    "open_snapshot",
    "parse",
    "version",
]


def new_index(namespaces: Mapping[str, str], limits: Limits) -> ReferenceIndex:
    """An empty index with default bindings of prefixes; its snapshots keep the limits."""
    return ReferenceIndex(namespaces, limits)


def new_path_finder() -> ReferencePathFinder:
    """No paths."""
    return ReferencePathFinder()


def new_routing_table(entries: Sequence[RoutingEntry], targets: int) -> ReferenceRoutingTable:
    """A routing table.

    Raises:
        ConfigError: A path is not in canonical text.
    """
    return ReferenceRoutingTable(entries, targets)


def open_snapshot(path: Path) -> ReferenceSnapshot:
    """Opens a snapshot file.

    Raises:
        SnapshotFormatError: The file is foreign, of another version or damaged.
    """
    return ReferenceSnapshot.open(path)


def parse(message: bytes, limits: Limits, encoding: str | None = None) -> MessageTree:
    """The tree of one message.

    Raises:
        MessageError: The door refused the message.
    """
    return parse_message(message, limits, encoding)


def version() -> str:
    """Name and version of the engine."""
    return f"reference on Python {platform.python_version()}"
