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
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pathcast.engine.matcher import matcher_options
from pathcast.engine.messages import Messages, message_column
from pathcast.errors import PathcastError, UnsupportedQueryError
from pathcast.kernel.registry import KernelRegistry
from pathcast.limits import Limits
from pathcast.model import CACHE_BYTES_MAX, Subscription
from pathcast.query.syntax import LocationPath, PathExpr, VariableReference
from pathcast.query.xquery import Target, is_xquery, paper_form, parse

_SPAN: Final = np.dtype([("start", "<u4"), ("end", "<u4")])
_NOWHERE: Final = 0xFFFF_FFFF


class Select(NamedTuple):
    """A query that selects elements.

    Attributes:
        query: A bare XPath, or a FLWR expression that returns elements of the message as they are.
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
        UnsupportedQueryError: It makes something of its own instead of selecting elements.
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
        self._native = KernelRegistry(
            options.limits, options.threads, options.cache_bytes_max, spans=True
        )
        # Number that the kernel gave a query -> its own.
        self._numbers: npt.NDArray[np.uint32] | None = None
        self.add(dict(enumerate(queries)))

    def add(self, queries: Mapping[int, Select]) -> None:
        """Select this as well from now on: all of it, or nothing if one cannot be used.

        Args:
            queries: Number that is free -> what is selected.

        Raises:
            QuerySyntaxError: A query cannot be used.
            UnsupportedQueryError: It makes something of its own instead of selecting elements.

        Cost: 5 µs each, and 0.3 ms to check one that was not seen lately.
        """
        rows = []
        for number, select in queries.items():
            _check_selects(select)
            namespaces = dict(select.namespaces) or None
            rows.append(Subscription(str(number), "", select.query, "fragment", namespaces))
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
        places = np.frombuffer(_bytes_of(answer.fragments), _SPAN)
        table = answer.rows
        places = places[table.column("fragment").to_numpy(zero_copy_only=False)]
        rows = table.column("message").to_numpy()
        for row in np.unique(rows[places["start"] == _NOWHERE]).tolist():
            unknown.setdefault(row, None)
        if self._numbers is None:
            ids = answer.subscription_ids
            self._numbers = np.array([int(each) for each in ids[:]], np.uint32)
        queries = self._numbers[table.column("subscription").to_numpy()]
        order = np.lexsort((places["start"], queries, rows))
        places = places[order]
        return Spans(rows[order], queries[order], places["start"], places["end"], unknown)


def _bytes_of(fragments: pa.LargeBinaryArray) -> bytes:
    """All fragments, one after the other."""
    _, offsets, values = fragments.buffers()
    ends = np.frombuffer(offsets, np.int64, len(fragments) + 1, 8 * fragments.offset)
    return values[int(ends[0]) : int(ends[-1])] if values is not None else b""


@lru_cache(maxsize=65_536)
def _check_selects(select: Select) -> None:
    """Raises what is wrong with a query that does not select elements of the message."""
    if not is_xquery(select.query):
        return
    form = paper_form(parse(select.query, dict(select.namespaces)))
    if (
        form is None
        or form.outer is not None
        or not isinstance(form.template, LocationPath | PathExpr | VariableReference)
        or form.returns[0].target is not Target.ELEMENT
    ):
        raise UnsupportedQueryError(
            "query.unsupported",
            query=select.query,
            offset=0,
            construct="a query that makes something of its own",
        )
