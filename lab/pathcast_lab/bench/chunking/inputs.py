"""A scenario with its queries, cut by a scheme of some degree.

Example:
    >>> prepared = Prepared.of("ejb", queries=50, chunks=2, seed=0)
    >>> [len(chunk.prefix) for chunk in prepared.scheme.chunks], prepared.cut.fault
    ([2, 2], '')
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from pathcast.chunking import Chunking, Cut, FilteringScheme, StreamingChunker
from pathcast.schema import LabelPath
from pathcast_lab.bench.chunking.optimal import Sizes
from pathcast_lab.workload.scenarios import SCENARIOS, Scenario
from pathcast_papers.message import parse_message


@dataclass(frozen=True)
class Prepared:
    """What the prepare phase makes, and a message cut by it.

    Attributes:
        scenario: Of the paper.
        message: Its message.
        queries: Id -> text as registered.
        chunking: The queries, cleaned, in their tree.
        scheme: The filtering scheme.
        cut: The message, cut.
    """

    scenario: Scenario
    message: bytes
    queries: dict[str, str]
    chunking: Chunking
    scheme: FilteringScheme
    cut: Cut

    @classmethod
    def of(cls, name: str, *, queries: int, chunks: int, seed: int) -> Self:
        """Prepares a scenario.

        Raises:
            MissingDependencyError: lxml is not installed.
            KernelMissingError: The kernel is not installed.
        """
        scenario = SCENARIOS[name]
        chunking = Chunking(chunks, scenario.paths())
        texts = {str(n): text for n, text in enumerate(scenario.queries(queries, seed))}
        for query_id, text in texts.items():
            chunking.register(query_id, text)
        scheme, message = chunking.scheme(), scenario.message(seed)
        cut = StreamingChunker(scheme).cut([message])
        return cls(scenario, message, texts, chunking, scheme, cut)

    def pieces(self) -> Iterator[tuple[str, dict[str, tuple[str, ...]], bytes]]:
        """Label, alternatives with their queries, and bytes of each chunk and the potpourri."""
        for number, (chunk, content) in enumerate(
            zip(self.scheme.chunks, self.cut.chunks, strict=True), start=1
        ):
            yield f"chunk {number}", dict(chunk.queries.queries), content
        if self.scheme.potpourri:
            yield "potpourri", dict(self.scheme.potpourri.queries), self.message


def element_sizes(message: bytes) -> Sizes:
    """How many elements the subtrees at each label path of a message have."""
    tree = parse_message(message)
    sizes: dict[LabelPath, int] = {}
    path: list[tuple[str, str]] = []
    for number, name in enumerate(tree.name):
        del path[tree.depth[number] :]
        path.append(name)
        key = tuple(path)
        # A subtree in a subtree of the same label path there is not: it is longer.
        sizes[key] = sizes.get(key, 0) + tree.element_end[number] - number
    return Sizes(len(tree), sizes)
