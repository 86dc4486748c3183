"""The index: a set of standing queries that changes while messages flow.

Example:
    >>> from pathcast import Query, QueryIndex
    >>> index = QueryIndex()
    >>> report = index.register([Query("q1", "/nitf//tobject[@type='news']"), Query("q2", "/a[")])
    >>> report.accepted, list(report.rejected)
    (1, ['q2'])
    >>> len(index), "q1" in index
    (1, True)
    >>> index.remove(["q1"])
    >>> len(index)
    0

It holds no automaton; the kernel does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NoReturn

from pathcast.engine.explanation import Explanation
from pathcast.engine.matcher import Matcher, matcher_options
from pathcast.engine.rows import (
    one_or_many,
    report_on,
    usable_ids,
    usable_language,
    usable_namespaces,
    usable_queries,
    usable_query,
    with_language,
)
from pathcast.engine.snapshot import Snapshot, plan_of
from pathcast.errors import NotPicklableError, UnsupportedQueryError
from pathcast.kernel import KernelIndex
from pathcast.limits import Limits
from pathcast.model import CACHE_BYTES_MAX, MessageBytes, Query, QueryLanguage, RegisterReport
from pathcast.query import CompiledQuery, Population
from pathcast.query.names import is_text


class QueryIndex:
    """Standing queries, registered and removed at any time.

    Args:
        limits: What one message may cost.
        namespaces: Prefix -> namespace URI for all queries; the key "" is the default element
            namespace. A query's own bindings come first.
        language: "xpath1" says that XPath 1.0 is meant by queries that choose none, so that no
            warning asks which language; matching does not change.

    Raises:
        ConfigError: `namespaces` are no bindings of prefixes.
        UnsupportedQueryError: `language` does not exist, or is "xquery", which a `Registry` reads.
        KernelMissingError: The kernel is not installed.
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        namespaces: Mapping[str, str] | None = None,
        language: QueryLanguage | None = None,
    ) -> None:
        self._limits = limits or Limits()
        self._namespaces = usable_namespaces(namespaces)
        self._language = usable_language(language)
        if self._language == "xquery":
            raise UnsupportedQueryError("query.index_language")
        self._backend = KernelIndex(self._limits)

    def register(self, queries: Query | Iterable[Query]) -> RegisterReport:
        """Adds queries; they count from the next batch on.

        Args:
            queries: One query or many, with ids that are not taken.

        Returns:
            How many were accepted, and of many id -> error for those that were not. A rejected
            query leaves no trace and disturbs no other. So does a row that is no `Query`, or one
            whose id or text is not text, whose namespaces are no mapping, or which is in XQuery:
            `RegisterReport.errors` has its place in the call.

        Raises:
            QuerySyntaxError: One query was given by itself, and cannot be used.
            DuplicateQueryError: Likewise, and its id is taken.
            UnusableRowError: Likewise, and a field is not what it has to be.
            TypeError: `queries` are neither one nor many: a text, a number.

        Cost: a parse and a walk down the automaton, a query. When more than 16,384 have come, and
        more than half as many as there were, the next batch begins to merge them on a thread of its
        own, about 1.5 µs for each query of the index; until that is done there are two of it.

        Example:
            >>> index = QueryIndex()
            >>> index.register(Query("q1", "/a/"))
            Traceback (most recent call last):
            ...
            pathcast.errors.QuerySyntaxError: XPST0003: found the end where a location step is \
expected
              /a/
                 ^
              leave out the / at the end, or write /* for any child element
        """
        rows, is_one = one_or_many(queries)
        rows = with_language(rows, self._language)
        usable, errors = usable_queries(rows)
        taken = self._backend.register(usable, self._namespaces)
        return report_on(rows, errors, taken, self._namespaces, is_one=is_one)

    def register_gates(self, texts: Iterable[str]) -> None:
        """Adds gates that the product has written; each has its text as its id.

        A gate is paths in canonical text, which may cast a value as XQuery does, with " and "
        between them. Where they cannot be told together, messages that have not all pass too.

        Args:
            texts: Gates that are not there.

        Raises:
            DuplicateQueryError: One is there.
            QuerySyntaxError: One is no canonical text.
        """
        for error in self._backend.register_gates(list(texts)).errors.values():
            raise error

    def remove(self, ids: Iterable[str]) -> None:
        """Takes queries out; from the next batch on they are not reported.

        What they occupied is given back by `compact`, or in the background when more than 16,384
        are removed, and more than half as many as stay. Cost: a bit each.

        Args:
            ids: Ids of registered queries; all are removed or, if one is unknown, none.

        Raises:
            UnknownQueryError: No query has one of the ids.
            TypeError: `ids` are not many: a single text, a number.
        """
        if isinstance(ids, str):
            raise TypeError("ids must be many: put a single id into a list")
        self._backend.remove(usable_ids(list(ids)))

    def query(self, query_id: str) -> Query:
        """The text and the namespaces that were registered with an id.

        Raises:
            UnknownQueryError: No query has this id.
        """
        return self._backend.query(*usable_ids([query_id]))

    def plan(self, query_id: str) -> CompiledQuery:
        """The compiled form of a query: its indexed paths, its expression, its cost and why.

        Raises:
            UnknownQueryError: No query has this id.

        Example:
            >>> index = QueryIndex()
            >>> report = index.register([Query("q1", "/a[1 = c]")])
            >>> plan = index.plan("q1")
            >>> plan.texts, plan.expression, plan.cost.value
            (['/a/c[.=1]'], None, 'indexed')
        """
        return plan_of(self.query(query_id))

    def explain(
        self, query: str | Query, message: MessageBytes | str, *, limits: Limits | None = None
    ) -> Explanation:
        """Why a message satisfies a query, or at which step and condition it first fails.

        Args:
            query: Id of a query, which is asked among the others; or any query, registered or not,
                which is asked alone. Prefixes that it does not bind are those of the index.
            message: The message; a refusal by the door is explained, not raised.
            limits: What the message may cost; None for those of the index.

        Raises:
            UnknownQueryError: No query has this id.
            QuerySyntaxError: A query that is not registered cannot be read.
            UnusableRowError: It has a field that is not what it has to be.

        Example:
            >>> from pathcast import Query, QueryIndex
            >>> index = QueryIndex()
            >>> found = index.explain(Query("q1", "/a[@b='x']"), b"<a b='y'/>")
            >>> found.is_match, found.failure.near_misses
            (False, ("`@b` is 'y', the query wants 'x'",))
        """
        if isinstance(query, str):
            asked = self.query(query)
        else:
            found = usable_query(query)
            asked = found._replace(namespaces={**self._namespaces, **(found.namespaces or {})})
        options = matcher_options(limits or self._limits, 1, CACHE_BYTES_MAX)
        queries = self._backend if isinstance(query, str) else None
        from pathcast.engine.explain import explain_query  # takes as long to import as the engine

        return explain_query(asked, message, options, queries)

    def compact(self) -> None:
        """Gives back what removed queries occupy. The numbers of queries may change."""
        self._backend.compact()

    def freeze(self) -> Snapshot:
        """The queries as they are now, as an immutable snapshot."""
        return Snapshot(self._backend.freeze())

    def population(self) -> Population:
        """Describe the queries as columns (`Snapshot.population`).

        Cost: that of `freeze` as well, so that the numbers of queries may change.
        """
        return self.freeze().population()

    def matcher(
        self,
        *,
        threads: int | None = None,
        cache_bytes_max: int = CACHE_BYTES_MAX,
    ) -> Matcher:
        """A matcher that sees every change of the index from its next batch on.

        Args:
            threads: Threads of one batch call; None for all processors.
            cache_bytes_max: Bytes that compiled label paths may take.

        Raises:
            ConfigError: A value cannot be used.
        """
        options = matcher_options(self._limits, threads, cache_bytes_max)
        return Matcher(self._backend.matcher(options), options, is_live=True)

    def __reduce__(self) -> NoReturn:
        raise NotPicklableError(
            "pickle.refused",
            kind="QueryIndex",
            instead="send index.freeze(), a Snapshot, which pickles",
        )

    def __len__(self) -> int:
        return len(self._backend)

    def __contains__(self, query_id: object) -> bool:
        return is_text(query_id) and query_id in self._backend

    def __repr__(self) -> str:
        return f"QueryIndex({len(self)} queries)"
