"""Which elements of a message queries select, as places in its bytes.

A `Selector` runs queries as a broker does, all of them together, and gives of each selected element
where it begins and ends, instead of its text: what is wanted of a message is cut out of it, or
what is not wanted, without anything being written anew.

Example:
    >>> message = b"<log><e n='1'/><e n='2'><f/></e></log>"
    >>> with_f = Select("for $e in /log/e where $e/f return $e")
    >>> spans = Selector([Select("/log/e"), with_f]).spans([message, b"<log", b"<l/>"])
    >>> spans.of(0, 0), spans.of(0, 1), sorted(spans.unknown)
    ([(5, 15), (15, 32)], [(15, 32)], [1])
    >>> message[15:32]
    b"<e n='2'><f/></e>"
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from pathcast.engine.matcher import matcher_options
from pathcast.engine.messages import Messages, message_column
from pathcast.errors import PathcastError
from pathcast.kernel.registry import KernelRegistry
from pathcast.limits import Limits
from pathcast.model import CACHE_BYTES_MAX, Subscription


class Select(NamedTuple):
    """A query that selects elements.

    Attributes:
        query: A bare XPath, or a FLWR expression that returns nodes of the message as they are.
        namespaces: Its bindings, as (prefix, URI).
    """

    query: str
    namespaces: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Spans:
    """Selected elements of a batch, by message, then query, then place.

    Attributes:
        rows: Message of each, by its place in the batch.
        queries: Query of each, by its number.
        starts: Byte at which it begins.
        ends: One past its last byte.
        unknown: Messages of which places are not known or not all of them, and why: refused ones,
            queries that took more than they may, and None for those that are not made of the bytes
            that came (another encoding than UTF-8, elements out of entities) or gave a node that
            is no element.
    """

    rows: npt.NDArray[np.uint32]
    queries: npt.NDArray[np.uint32]
    starts: npt.NDArray[np.uint32]
    ends: npt.NDArray[np.uint32]
    unknown: Mapping[int, PathcastError | None]

    def of(self, row: int, query: int) -> list[tuple[int, int]]:
        """The nodes that one query selects of one message. Cost: proportional to the nodes."""
        first, end = np.searchsorted(self.rows, [row, row + 1])
        here = np.flatnonzero(self.queries[first:end] == query) + first
        return list(zip(self.starts[here].tolist(), self.ends[here].tolist(), strict=True))


class Selector:
    """Queries that select elements, numbered; they come and go while messages flow.

    Args:
        queries: What is selected, numbered from 0.
        limits: What one message may cost.
        threads: Threads of one batch; None for all processors.

    Raises:
        QuerySyntaxError: A query cannot be used.
        UnsupportedQueryError: It makes something of its own instead of selecting nodes.
        KernelMissingError: The kernel is not installed.

    Cost: as subscribing; see `pathcast.Registry`.
    """

    def __init__(
        self,
        queries: Iterable[Select],
        limits: Limits | None = None,
        threads: int | None = None,
    ) -> None:
        options = matcher_options(limits or Limits(), threads, CACHE_BYTES_MAX)
        self._native = KernelRegistry(options.limits, options.threads, options.cache_bytes_max)
        # Number that the kernel gave a query -> its own.
        self._numbers: npt.NDArray[np.uint32] | None = None
        self.add(dict(enumerate(queries)))

    def add(self, queries: Mapping[int, Select]) -> None:
        """Select this as well from now on: all of it, or nothing if one cannot be used.

        Args:
            queries: Number that is free -> what is selected.

        Raises:
            QuerySyntaxError: A query cannot be used.
            UnsupportedQueryError: It makes something of its own instead of selecting nodes.

        Cost: 5 µs each.
        """
        rows = [
            Subscription(str(number), "", select.query, "nodes", dict(select.namespaces) or None)
            for number, select in queries.items()
        ]
        if not rows:
            return
        self._numbers = None
        rejected = self._native.subscribe(rows, {}).rejected
        for error in rejected.values():
            self._native.unsubscribe([row.id for row in rows if row.id not in rejected])
            raise error

    def remove(self, numbers: Iterable[int]) -> None:
        """Select this no longer."""
        self._native.unsubscribe([str(number) for number in numbers])
        self._numbers = None

    def spans(
        self,
        messages: Messages,
        encoding: str | None = None,
    ) -> Spans:
        """Where the selected elements are.

        Args:
            messages: As for `pathcast.Registry.deliver`; a missing one has none.
            encoding: Of all messages, where it is known better than they say.

        Raises:
            TypeError: `messages` is nothing of this kind.
        """
        column = message_column(messages)
        answer = self._native.process(column.whole, encoding=encoding or column.encoding)
        unknown: dict[int, PathcastError | None] = dict(answer.refusals)
        unknown |= column.refusals
        for row, _, verdict in answer.verdicts:
            unknown.setdefault(row, verdict)
        table, nodes = answer.rows, answer.nodes
        rows = table.column("message").to_numpy()
        is_known = pc.and_(pc.equal(nodes["kind"], "element"), nodes["start"].is_valid())
        is_known = is_known.to_numpy(zero_copy_only=False)
        for row in np.unique(rows[~is_known]).tolist():
            unknown.setdefault(row, None)
        if self._numbers is None:
            ids = answer.subscription_ids
            self._numbers = np.array([int(each) for each in ids[:]], np.uint32)
        queries = self._numbers[table.column("subscription").to_numpy()]
        starts, ends = (nodes[name].fill_null(0).to_numpy() for name in ("start", "end"))
        order = np.lexsort((starts, queries, rows))
        order = order[is_known[order]]
        return Spans(rows[order], queries[order], starts[order], ends[order], unknown)
