"""Filtering schemes: which alternatives are evaluated on which chunk, and what each chunk carries.

A chunk is (P, F): the subtrees at a label path P, and F, what the conditions of its alternatives
look at beside them. An alternative goes to the chunk of the longest prefix of its path at which it
can be answered; where there is none, to the potpourri, which is evaluated on the whole message.

`Chunking` keeps a filtering scheme while queries come and go and weights change. What it hands out
does not change: a message is cut and evaluated by the scheme it began with, the next one by the
next.

Example:
    >>> from pathcast.chunking.names import path_text
    >>> chunking = Chunking(2)
    >>> for number, text in enumerate(["/a/b[c]/d/e", "/a/b/d/e", "/a/x/y", "//z"]):
    ...     _ = chunking.register(f"q{number}", text)
    >>> scheme = chunking.scheme()
    >>> for chunk in scheme.chunks:
    ...     print(path_text(chunk.prefix), [str(each) for each in chunk.filters])
    /a/b/d/e ['/a/b/c']
    /a/x/y []
    >>> scheme.potpourri.texts
    ('//z',)

It cuts nothing and evaluates nothing.

Source: Lehner and Irmert, BTW 2003, sections 3 ("incrementally adapted") and 4 ("Definition").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from pathcast.chunking.cleaning import CUT_DEPTH_MIN, Alternative, CleanQuery, clean
from pathcast.chunking.names import is_prefix
from pathcast.chunking.needs import Need
from pathcast.chunking.query_tree import QueryTree
from pathcast.chunking.scheme import generate_chunking_scheme
from pathcast.errors import ConfigError, DuplicateQueryError, UnknownQueryError
from pathcast.query.names import Namespaces
from pathcast.schema import ElementPaths, LabelPath

CHUNKS_MAX: Final = 64
"""Chunks of a scheme: a chunker keeps sets of them in a machine word."""

PrefixChoice: TypeAlias = Callable[[QueryTree, int], tuple[LabelPath, ...]]
"""Chooses the prefixes of so many chunks."""


@dataclass(frozen=True, slots=True)
class QuerySet:
    """Alternatives that are evaluated together.

    Attributes:
        queries: Text of each distinct alternative -> ids of the queries it is one of.
        version: Changes when they do.
    """

    queries: Mapping[str, tuple[str, ...]]
    version: int

    @property
    def texts(self) -> tuple[str, ...]:
        """The distinct texts, in the order in which they came."""
        return tuple(self.queries)

    def __len__(self) -> int:
        return len(self.queries)

    def __reduce__(self) -> tuple[object, ...]:
        return (_query_set, (dict(self.queries), self.version))


def _query_set(queries: dict[str, tuple[str, ...]], version: int) -> QuerySet:
    return QuerySet(MappingProxyType(queries), version)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk (P, F) with its alternatives.

    Attributes:
        prefix: P: the subtrees at this label path are in the chunk.
        filters: F: so are these nodes, with or without content. Ancestors of what is in it always
            are, as start tags with their attributes.
        queries: What is evaluated on it.
    """

    prefix: LabelPath
    filters: tuple[Need, ...]
    queries: QuerySet


@dataclass(frozen=True, slots=True)
class FilteringScheme:
    """A filtering scheme of degree `len(chunks)`.

    Attributes:
        version: Changes with every change.
        chunks: The chunks, by prefix.
        potpourri: What is evaluated on the whole message.
        whole: Every query as it stands, for messages that cannot be cut.
        paths: The schema that messages must be built after; None if nothing was taken from one.
    """

    version: int
    chunks: tuple[Chunk, ...]
    potpourri: QuerySet
    whole: QuerySet
    paths: ElementPaths | None


@dataclass(slots=True)
class _Members:
    """Alternatives of one chunk or of the potpourri."""

    alternatives: dict[tuple[str, str], Alternative] = field(default_factory=dict)
    filters: Counter[Need] = field(default_factory=Counter)
    version: int = 0


@dataclass(slots=True)
class _Entry:
    query: CleanQuery
    weight: int


class Chunking:
    """A filtering scheme that follows its queries.

    Args:
        chunks: Degree of the scheme: how many chunks there are at most, 1 to `CHUNKS_MAX`.
        paths: What the schema says, with its root; None if there is no schema.
        choose: Chooses prefixes from the query tree; the algorithm of the paper.
        tolerance: Prefixes are chosen anew when so much of the weight, as a share, has changed
            since they were chosen last; 0 means at every change.

    Raises:
        ConfigError: `chunks` or `tolerance` is out of range.
    """

    def __init__(
        self,
        chunks: int,
        paths: ElementPaths | None = None,
        *,
        choose: PrefixChoice = generate_chunking_scheme,
        tolerance: float = 0.0,
    ) -> None:
        if not 0 <= tolerance < 1:
            reason = f"{tolerance!r} is not a share from 0 to below 1"
            raise ConfigError("config.invalid", key="tolerance", reason=reason)
        self.tree = QueryTree()
        self._chunks = _checked_degree(chunks)
        self._paths = None if paths is None or paths.root is None else paths
        self._choose = choose
        self._tolerance = tolerance
        self._entries: dict[str, _Entry] = {}
        self._members: dict[LabelPath, _Members] = {(): _Members()}
        self._parts: dict[LabelPath, Chunk] = {}
        self._changed = 0
        self._version = 0
        self._made: FilteringScheme | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def register(
        self, query_id: str, text: str, namespaces: Namespaces | None = None, weight: int = 1
    ) -> CleanQuery:
        """Adds a query; it takes part in the next scheme.

        Args:
            query_id: Not in use.
            text: XPath 1.0.
            namespaces: Prefix -> namespace URI.
            weight: What it counts for: 1, or its measured cost in nanoseconds.

        Returns:
            What it was cleaned to.

        Raises:
            DuplicateQueryError: The id is in use.
            QuerySyntaxError: It is not XPath 1.0.
        """
        if query_id in self._entries:
            raise DuplicateQueryError("query.duplicate", id=query_id)
        query = clean(text, self._paths, namespaces)
        self._entries[query_id] = _Entry(query, weight)
        for alternative in query.alternatives:
            self._weigh(alternative, weight)
            self._place(query_id, alternative, self._chunk_of(alternative))
        self._touch()
        return query

    def remove(self, query_id: str) -> None:
        """Takes a query out.

        Raises:
            UnknownQueryError: There is none of this id.
        """
        entry = self._entry(query_id)
        del self._entries[query_id]
        for alternative in entry.query.alternatives:
            self._weigh(alternative, -entry.weight)
            self._take(query_id, alternative, self._chunk_of(alternative))
        self._touch()

    def weigh(self, weights: Mapping[str, int]) -> None:
        """Gives queries new weights: their measured cost in nanoseconds, say.

        Raises:
            UnknownQueryError: There is no query of such an id; nothing has changed then.
        """
        entries = [(self._entry(query_id), weight) for query_id, weight in weights.items()]
        for entry, weight in entries:
            if weight != entry.weight:
                for alternative in entry.query.alternatives:
                    self._weigh(alternative, weight - entry.weight)
                entry.weight = weight
                self._made = None

    def resize(self, chunks: int) -> None:
        """Changes the degree of the schemes to come.

        Raises:
            ConfigError: `chunks` is out of range.

        Cost: of the prefixes; of moving the alternatives whose chunk comes or goes.
        """
        self._chunks = _checked_degree(chunks)
        self._choose_again()
        self._made = None

    def query(self, query_id: str) -> CleanQuery:
        """A query after clean-up."""
        return self._entry(query_id).query

    def scheme(self) -> FilteringScheme:
        """The scheme for the next message; the same object if nothing has changed.

        Cost: of the prefixes, O(p (h + log N)), if the weights have changed enough; of the chunks,
        their alternatives where these have changed, nothing where they have not.
        """
        if self._made is None:
            if self._changed > self._tolerance * abs(self.tree.document.weight):
                self._choose_again()
            self._made = self._assembled()
        return self._made

    # Weights and places.

    def _entry(self, query_id: str) -> _Entry:
        try:
            return self._entries[query_id]
        except KeyError:
            raise UnknownQueryError("query.unknown", id=query_id) from None

    def _touch(self) -> None:
        self._version += 1
        self._made = None

    def _weigh(self, alternative: Alternative, weight: int) -> None:
        if alternative.depth >= CUT_DEPTH_MIN:
            self.tree.add(alternative.cut_path, weight)
            self._changed += abs(weight)

    def _chunk_of(self, alternative: Alternative) -> LabelPath:
        """The prefix of its chunk; empty for the potpourri."""
        path = alternative.cut_path
        for length in range(len(path), CUT_DEPTH_MIN - 1, -1):
            if path[:length] in self._members:
                return path[:length]
        return ()

    def _place(self, query_id: str, alternative: Alternative, prefix: LabelPath) -> None:
        members = self._members[prefix]
        members.alternatives[query_id, alternative.text] = alternative
        members.version += 1
        if prefix:
            members.filters.update(alternative.filters(prefix))

    def _take(self, query_id: str, alternative: Alternative, prefix: LabelPath) -> None:
        members = self._members[prefix]
        del members.alternatives[query_id, alternative.text]
        members.version += 1
        if prefix:
            members.filters.subtract(alternative.filters(prefix))

    # Prefixes.

    def _choose_again(self) -> None:
        """Chooses prefixes; moves the alternatives of chunks that come, go or give some away."""
        self._changed = 0
        chosen = set(self._choose(self.tree, self._chunks))
        present = self._members.keys() - {()}
        if chosen == present:
            return
        self._version += 1
        moving: list[tuple[str, Alternative]] = []
        for prefix in present - chosen:
            moving += _owned(self._members.pop(prefix))
            self._parts.pop(prefix, None)
        for prefix in sorted(chosen - present):
            source = self._members[self._above(prefix)]
            taken = [
                (query_id, each)
                for query_id, each in _owned(source)
                if each.depth >= len(prefix) and is_prefix(prefix, each.path)
            ]
            above = self._above(prefix)
            for query_id, each in taken:
                self._take(query_id, each, above)
            moving += taken
            self._members[prefix] = _Members()
        for query_id, each in moving:
            self._place(query_id, each, self._chunk_of(each))

    def _above(self, prefix: LabelPath) -> LabelPath:
        """The longest present prefix above one; empty for the potpourri."""
        for length in range(len(prefix) - 1, CUT_DEPTH_MIN - 1, -1):
            if prefix[:length] in self._members:
                return prefix[:length]
        return ()

    # What is handed out.

    def _assembled(self) -> FilteringScheme:
        chunks: list[Chunk] = []
        for prefix in sorted(self._members.keys() - {()}):
            members = self._members[prefix]
            part = self._parts.get(prefix)
            if part is None or part.queries.version != members.version:
                part = Chunk(prefix, _filters(members.filters), _queries(members))
                self._parts[prefix] = part
            chunks.append(part)
        whole: dict[str, list[str]] = {}
        for query_id, entry in self._entries.items():
            whole.setdefault(entry.query.text, []).append(query_id)
        return FilteringScheme(
            version=self._version,
            chunks=tuple(chunks),
            potpourri=_queries(self._members[()]),
            whole=QuerySet(_frozen(whole), self._version),
            paths=self._paths,
        )


def _checked_degree(chunks: int) -> int:
    if not isinstance(chunks, int) or not 1 <= chunks <= CHUNKS_MAX:
        reason = f"{chunks!r} is not a whole number from 1 to {CHUNKS_MAX}"
        raise ConfigError("config.invalid", key="chunks", reason=reason)
    return chunks


def _owned(members: _Members) -> list[tuple[str, Alternative]]:
    return [(query_id, each) for (query_id, _), each in members.alternatives.items()]


def _queries(members: _Members) -> QuerySet:
    ids: dict[str, list[str]] = {}
    for query_id, text in members.alternatives:
        ids.setdefault(text, []).append(query_id)
    return QuerySet(_frozen(ids), members.version)


def _frozen(ids: Mapping[str, Iterable[str]]) -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({text: tuple(each) for text, each in ids.items()})


def _filters(needs: Counter[Need]) -> tuple[Need, ...]:
    """Needs that are left, without nodes that are there with content or inside of such."""
    present = {need for need, count in needs.items() if count > 0}
    contents = {need.path for need in present if need.has_content}
    return tuple(
        sorted(
            need
            for need in present
            if not any(
                need.path[:length] in contents
                for length in range(len(need.path) + (0 if need.has_content else 1))
            )
        )
    )
