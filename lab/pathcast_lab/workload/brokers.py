"""The two workloads of the paper on message brokers: bibliographies, and books in sections.

Example:
    >>> message = next(BOOK.messages(count=1))
    >>> b"<section " in message
    True
    >>> next(BIB.queries(FlwrParameters(count=1, binding_depth_max=2))).binding[-4:]
    'book'

The DTDs are Pathcast's own, after the paper's description of those of the XQuery use cases: four
levels without recursion (`bib`), and sections that hold sections (`book`).

Source: 002, 6.1 to 6.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType

from pathcast.schema import ElementGraph, parse_dtd
from pathcast_lab.workload.flwr import FlwrParameters, FlwrQuery, generate_flwrs
from pathcast_lab.workload.repeats import RepeatParameters, Repeats, generate_repeating


@dataclass(frozen=True)
class BrokerWorkload:
    """Messages and FLWR queries of one DTD.

    Attributes:
        name: Also the name of its DTD.
        depth_max: DocDepth.
        repeats: MaxRepeats by element.
        choices: Odds of the alternatives of a choice.
        binding_depth_max: D1 of the paper's experiments.
    """

    name: str
    depth_max: int
    repeats: Mapping[str, Repeats]
    choices: Mapping[str, float] = field(default_factory=dict)
    binding_depth_max: int = 2

    def dtd(self) -> str:
        """The text of its DTD."""
        return files("pathcast.workload").joinpath(f"dtd/{self.name}.dtd").read_text("utf-8")

    def graph(self) -> ElementGraph:
        """The element graph of its DTD; needs lxml."""
        return parse_dtd(self.dtd(), name=f"{self.name}.dtd")

    def documents(self, count: int, seed: int = 0, values_max: int = 10) -> RepeatParameters:
        """Parameters of its messages."""
        return RepeatParameters(
            count=count,
            seed=seed,
            depth_max=self.depth_max,
            repeats=self.repeats,
            choices=self.choices,
            values_max=values_max,
            root=self.name,
        )

    def messages(self, count: int, seed: int = 0, values_max: int = 10) -> Iterator[bytes]:
        """Its messages, one after the other; needs lxml."""
        return generate_repeating(self.graph(), self.documents(count, seed, values_max))

    def queries(self, parameters: FlwrParameters) -> Iterator[FlwrQuery]:
        """Distinct queries, one after the other; needs lxml."""
        return generate_flwrs(self.graph(), parameters)


BIB = BrokerWorkload(
    name="bib",
    depth_max=4,
    repeats=MappingProxyType(
        {"book": Repeats(20, 20), "author": Repeats(1, 5, 0.345), "editor": Repeats(1, 5, 0.345)}
    ),
    choices=MappingProxyType({"author": 3.0, "editor": 1.0}),
)
"""20 books with up to five authors or editors each; 149 elements on average (002, 6.2)."""

BOOK = BrokerWorkload(
    name="book",
    depth_max=5,
    repeats=MappingProxyType(
        {
            "author": Repeats(1, 4, 0.3),
            "book/section": Repeats(12, 12),
            "section": Repeats(0, 4, 0.31),
            "p": Repeats(0, 4, 0.31),
            "figure": Repeats(0, 4, 0.31),
            "cite": Repeats(0, 4, 0.1),
        }
    ),
    binding_depth_max=3,
)
"""12 sections with up to four levels of sections in all, and up to four paragraphs, figures and
sections in each; 83 elements on average (002, 6.3)."""

BROKER_WORKLOADS: Mapping[str, BrokerWorkload] = MappingProxyType(
    {workload.name: workload for workload in (BIB, BOOK)}
)
"""Name -> workload."""
