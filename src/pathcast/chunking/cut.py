"""A message in chunks, and the label paths that a chunker follows to cut it.

Example:
    >>> from pathcast.chunking.filtering_scheme import Chunking
    >>> chunking = Chunking(1)
    >>> _ = chunking.register("q", "/a/b[c]/d")
    >>> node = cut_tree(chunking.scheme()).below["", "a"].below["", "b"]
    >>> node.below["", "c"].single, node.below["", "d"].content
    (1, 1)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pathcast.chunking.filtering_scheme import FilteringScheme
from pathcast.schema import ExpandedName, LabelPath


@dataclass(frozen=True, slots=True)
class Cut:
    """A message in chunks.

    Attributes:
        chunks: Bytes of each chunk; empty if the message has nothing for it.
        elements: Elements of each chunk, ancestors and filter nodes counted.
        fault: Why the chunks must not be used, and the whole message be evaluated instead: it is
            not built as the schema says, or an element that it may be cut at comes from an entity.
            Empty as a rule.
    """

    chunks: tuple[bytes, ...]
    elements: tuple[int, ...]
    fault: str = ""


@dataclass(slots=True)
class CutNode:
    """A label path that some chunk asks for, or one above it.

    Attributes:
        below: Name -> node.
        single: Chunks that keep the nodes there, as a set of bits.
        content: Chunks that keep them with their content.
    """

    below: dict[ExpandedName, CutNode] = field(default_factory=dict)
    single: int = 0
    content: int = 0


def cut_tree(scheme: FilteringScheme) -> CutNode:
    """The label paths of a scheme; chunks are bits in their order."""
    document = CutNode()
    for number, chunk in enumerate(scheme.chunks):
        _node(document, chunk.prefix).content |= 1 << number
        for need in chunk.filters:
            node = _node(document, need.path)
            if need.has_content:
                node.content |= 1 << number
            else:
                node.single |= 1 << number
    return document


def _node(node: CutNode, path: LabelPath) -> CutNode:
    for name in path:
        node = node.below.setdefault(name, CutNode())
    return node
