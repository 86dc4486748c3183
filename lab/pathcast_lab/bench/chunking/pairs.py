"""Chunks and partitions chosen together: one large message, more queries than a worker holds.

A *pair* is a chunk of the message and those queries of one partition that are answered on it: a
worker holds both and nothing else. The queries of a partition rarely need every chunk, and a chunk
rarely has a value for every partition; what is left of all combinations is chosen so that the
largest pair fits into a worker, at the least work and the fewest bytes moved.

    queries -> placement: a partition each -> chunking: a chunk for each alternative -> pairs
    message -> chunks -> for each, the partitions that its values can match -> its pairs

Example:
    >>> from pathcast import Query
    >>> from pathcast.chunking.cut import Cut
    >>> from pathcast.chunking.evaluation import ChunkEvaluator, merged
    >>> from pathcast.chunking.streaming import StreamingChunker
    >>> from pathcast_lab.bench.placement.hashed import HashPlacement
    >>> queries = [Query("q1", "/a/b/x[@v = 1]"), Query("q2", "/a/c/x[@v = 2]"), Query("q3", "/a")]
    >>> placed = PlacedChunking([HashPlacement(2)], chunks_max=2)
    >>> placed.register(queries)
    >>> sizes = Sizes(40, {(("", "a"), ("", "b")): 20, (("", "a"), ("", "c")): 20})
    >>> plan = placed.plan(sizes, bytes_max=1 << 20)
    >>> message = b"<a><b><x v='1'/></b><c><x v='2'/></c></a>"
    >>> cut = StreamingChunker(plan.scheme).cut([message])
    >>> tasks = pair_tasks(plan, message, cut)
    >>> evaluator = ChunkEvaluator()
    >>> placed.ids_of(merged(map(evaluator.evaluate, tasks)).query_ids)
    ['q1', 'q2', 'q3']

It runs no workers.

Source: beyond Lehner and Irmert, BTW 2003, and Diao, Rizvi and Franklin, VLDB 2004, section 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from pathcast.chunking.cut import Cut
from pathcast.chunking.evaluation import ChunkTask
from pathcast.chunking.filtering_scheme import Chunking, FilteringScheme, QuerySet
from pathcast.chunking.query_tree import QueryTree
from pathcast.chunking.scheme import generate_chunking_scheme
from pathcast.errors import ConfigError
from pathcast.model import Query
from pathcast.query.names import Namespaces
from pathcast.registry import Registry
from pathcast.schema import ElementPaths, LabelPath
from pathcast_lab.bench.chunking.optimal import Goal, Sizes, by_size
from pathcast_lab.bench.placement.placing import Placement

TREE_BYTES: Final = 5
"""Bytes of memory for each byte of a message that is matched: the bytes, and its tree."""

QUERY_BYTES: Final = 450
"""Bytes of memory for each query while its index is built."""

WORK_BYTES: Final = 200
"""Bytes of a message that are parsed and matched in the time in which a query is registered."""

MOVED_SHARE: Final = 0.4
"""What it costs to move a byte, as a share of parsing it."""

CHUNKS_TRIED_MAX: Final = 16
"""Degrees of schemes that are tried, each of which moves alternatives between chunks."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A chunk, and what one partition asks of it.

    Attributes:
        prefix: Of the chunk; empty for the whole message.
        partition: Number of the partition.
        queries: Alternatives of its queries that are answered there.
        message_bytes: Size of the chunk, by the sizes that were planned with.
    """

    prefix: LabelPath
    partition: int
    queries: QuerySet
    message_bytes: int

    @property
    def memory(self) -> int:
        """Bytes that a worker needs for it, about."""
        return TREE_BYTES * self.message_bytes + QUERY_BYTES * len(self.queries)

    @property
    def work(self) -> float:
        """The cost of answering the pair, in bytes parsed."""
        return self.message_bytes + WORK_BYTES * len(self.queries)

    @property
    def moved(self) -> float:
        """The cost of moving the pair's chunk to a worker, in bytes parsed."""
        return MOVED_SHARE * self.message_bytes


@dataclass(frozen=True, slots=True)
class PairCost:
    """The cost of a plan.

    Attributes:
        work: Of all pairs, in bytes parsed.
        moved: Of the chunks on their way there, in the same.
        memory: Bytes of the largest pair.
        slowest: Work of the dearest pair.
    """

    work: float
    moved: float
    memory: int
    slowest: float

    @property
    def total(self) -> float:
        """Work and moving together."""
        return self.work + self.moved

    @classmethod
    def of(cls, pairs: Sequence[Pair]) -> PairCost:
        """The cost of some pairs."""
        return cls(
            sum(pair.work for pair in pairs),
            sum(pair.moved for pair in pairs),
            max((pair.memory for pair in pairs), default=0),
            max((pair.work for pair in pairs), default=0.0),
        )


@dataclass(frozen=True, slots=True)
class PairPlan:
    """Which pairs there are.

    Attributes:
        scheme: What the message is cut by.
        placement: What the queries were placed by.
        pairs: The pairs, of chunks first.
        whole: For messages that cannot be cut, the queries of each partition as they stand.
        cost: What they cost if every chunk has something for every partition.
    """

    scheme: FilteringScheme
    placement: Placement
    pairs: tuple[Pair, ...]
    whole: tuple[Pair, ...]
    cost: PairCost


class PlacedChunking:
    """Queries that are placed in partitions and cut into chunks.

    Args:
        placements: Where queries may go: one that is right for them, or several to choose from.
        paths: What the schema says; None if there is no schema.
        chunks_max: Chunks of a scheme at most.
        namespaces: Prefix -> namespace URI for all queries.

    Raises:
        ConfigError: There is no placement, or `chunks_max` is out of range.
    """

    def __init__(
        self,
        placements: Sequence[Placement],
        paths: ElementPaths | None = None,
        *,
        chunks_max: int = CHUNKS_TRIED_MAX,
        namespaces: Namespaces | None = None,
    ) -> None:
        if not placements:
            raise ConfigError("config.invalid", key="placements", reason="there is none")
        self._sizes = Sizes(0, {})
        self._chunking = Chunking(chunks_max, paths, choose=self._prefixes)
        self._placements = tuple(placements)
        self._chunks_max = chunks_max
        self._namespaces = dict(namespaces or {})
        self._ids: dict[str, list[str]] = {}
        self._partitions: list[dict[str, int]] = [{} for _ in placements]

    def register(self, queries: Iterable[Query]) -> None:
        """Adds queries; equal texts are one query that has several ids.

        Args:
            queries: XPath, with ids that are not in use.

        Raises:
            PathcastError: One of them cannot be registered; those before it in the call are.

        Cost: of each distinct text, that of cleaning it, 0.2 ms and more, and of registering it.
        """
        fresh: list[str] = []
        for query in queries:
            if query.text not in self._ids:
                fresh.append(query.text)
            self._ids.setdefault(query.text, []).append(query.id)
        registry = Registry(namespaces=self._namespaces)
        for error in registry.add(Query(text, text) for text in fresh).rejected.values():
            raise error
        for text in fresh:
            self._chunking.register(text, text, self._namespaces)
        population = registry.population()
        for placement, partition_of in zip(self._placements, self._partitions, strict=True):
            placed = placement.place(population).tolist()
            partition_of.update(zip(population.query_ids, placed, strict=True))

    def ids_of(self, texts: Iterable[str]) -> list[str]:
        """The ids of queries by their texts, which is what answers name; sorted."""
        return sorted(name for text in texts for name in self._ids[text])

    def plan(self, sizes: Sizes, *, bytes_max: int) -> PairPlan:
        """The cheapest pairs of which each fits into a worker.

        Args:
            sizes: Of messages like the one to come.
            bytes_max: Memory of a worker.

        Returns:
            The plan; where none fits, the one that needs least memory.

        Cost: for each number of chunks and each placement, a pass over the alternatives.
        """
        self._sizes = sizes
        best: PairPlan | None = None
        for chunks in range(1, self._chunks_max + 1):
            self._chunking.resize(chunks)
            scheme = self._chunking.scheme()
            for placement, partition_of in zip(self._placements, self._partitions, strict=True):
                found = _plan(scheme, placement, partition_of, sizes)
                if best is None or _rank(found, bytes_max) < _rank(best, bytes_max):
                    best = found
            if len(scheme.chunks) < chunks:
                break
        assert best is not None
        return best

    def _prefixes(self, tree: QueryTree, chunks: int) -> tuple[LabelPath, ...]:
        """By sizes once they are known; the greedy choice until then."""
        if not self._sizes.whole:
            return generate_chunking_scheme(tree, chunks)
        return by_size(self._sizes, Goal.TOTAL)(tree, chunks)


def pair_tasks(plan: PairPlan, message: bytes, cut: Cut) -> Iterator[ChunkTask]:
    """The pairs of a message that can have an answer, as tasks.

    Args:
        plan: The plan.
        message: All of it.
        cut: Its chunks; with a fault, every query is evaluated on the whole message.

    Cost: a pass over each chunk, to see which partitions its values can match.
    """
    contents: dict[LabelPath, bytes] = {(): message}
    pairs = plan.pairs
    if cut.fault:
        pairs = plan.whole
    else:
        chunks = zip(plan.scheme.chunks, cut.chunks, strict=True)
        contents |= {chunk.prefix: content for chunk, content in chunks}
    touched: dict[LabelPath, set[int] | None] = {}
    for pair in pairs:
        content = contents[pair.prefix]
        if not content:
            continue
        if pair.prefix not in touched:
            touched[pair.prefix] = _touched(plan.placement, content)
        wanted = touched[pair.prefix]
        if wanted is None or pair.partition in wanted:
            yield ChunkTask(pair.prefix, pair.queries, content)


def _touched(placement: Placement, content: bytes) -> set[int] | None:
    """The partitions that a chunk can match; None for all, so that a refusal is told by each."""
    found = placement.touched([content])
    return None if found.errors else set(found.partitions[0].as_py())


def _plan(
    scheme: FilteringScheme, placement: Placement, partition_of: Mapping[str, int], sizes: Sizes
) -> PairPlan:
    pairs: list[Pair] = []
    for chunk in scheme.chunks:
        pairs += _pairs(chunk.prefix, chunk.queries, partition_of, sizes.of(chunk.prefix))
    pairs += _pairs((), scheme.potpourri, partition_of, sizes.whole)
    whole = _pairs((), scheme.whole, partition_of, sizes.whole)
    return PairPlan(scheme, placement, tuple(pairs), tuple(whole), PairCost.of(pairs))


def _pairs(
    prefix: LabelPath, queries: QuerySet, partition_of: Mapping[str, int], size: int
) -> list[Pair]:
    """The chunks that each partition needs."""
    parts: dict[int, dict[str, list[str]]] = {}
    for text, names in queries.queries.items():
        for name in names:
            parts.setdefault(partition_of[name], {}).setdefault(text, []).append(name)
    found = []
    for partition, asked in sorted(parts.items()):
        frozen = {text: tuple(names) for text, names in asked.items()}
        found.append(
            Pair(prefix, partition, QuerySet(MappingProxyType(frozen), queries.version), size)
        )
    return found


def _rank(plan: PairPlan, bytes_max: int) -> tuple[int, float]:
    """Plans that fit first, by cost; then by memory."""
    if plan.cost.memory <= bytes_max:
        return 0, plan.cost.total
    return 1, plan.cost.memory
