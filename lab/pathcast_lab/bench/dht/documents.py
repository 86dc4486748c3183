"""Documents as arrays: elements, and the label paths that they lie at.

Which states are active at an element depends on the names from the root down to it and on nothing
else, so the automaton is run over the distinct label paths of all documents, and what comes of it
is multiplied by how often each occurs.

Example:
    >>> found = Documents.of([b"<a><b>x</b><b/></a>"], {})
    >>> found.level.tolist(), found.node.tolist(), found.end.tolist()
    ([0, 1, 2], [1, 2, 2], [3, 2, 3])
    >>> found.size.tolist(), found.counts.tolist()
    ([19, 8, 4], [1, 1, 2])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from pathcast.dht.fragment import Symbol

__all__ = ["Documents", "totals"]


@dataclass(frozen=True, eq=False)
class Documents:
    """Elements in document order, one document after another, and label paths.

    Attributes:
        length: Bytes of each document.
        above: Label path -> the one above it; path 0 is that of the document itself.
        name: Label path -> number of its last name.
        name_bytes: Label path -> bytes of its last name.
        level: Label path -> its length.
        document: Element -> its document.
        node: Element -> its label path.
        end: Element -> the element after all that it holds.
        size: Element -> bytes from its start tag to its end tag.
        pair_document: Each distinct pair of document and label path, path 0 too.
        pair_node: Likewise.
        counts: How many elements each pair has; 1 for path 0.
        sizes: Bytes of all elements of each pair; those of the document for path 0.
    """

    length: NDArray[np.int64]
    above: NDArray[np.int32]
    name: NDArray[np.int32]
    name_bytes: NDArray[np.int64]
    level: NDArray[np.int32]
    document: NDArray[np.int32]
    node: NDArray[np.int32]
    end: NDArray[np.int32]
    size: NDArray[np.int64]
    pair_document: NDArray[np.int32]
    pair_node: NDArray[np.int32]
    counts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, messages: Sequence[bytes], labels: Mapping[Symbol, int]) -> Documents:
        """Reads documents.

        Args:
            messages: Well-formed, without prefixes and `>` in attributes.
            labels: Numbers of names; others get numbers of their own.

        Cost: About 3 µs an element.
        """
        reading = _Reading(dict(labels))
        for number, message in enumerate(messages):
            reading.read(number, message)
        document = np.array(reading.document, np.int32)
        node = np.array(reading.node, np.int32)
        size = np.array(reading.last, np.int64) - np.array(reading.first, np.int64)
        length = np.array([len(message) for message in messages], np.int64)
        nodes = len(reading.above)
        whole = np.arange(len(messages), dtype=np.int64) * nodes
        pairs, place, counts = np.unique(
            np.concatenate([whole, document.astype(np.int64) * nodes + node]),
            return_inverse=True,
            return_counts=True,
        )
        return cls(
            length=length,
            above=np.array(reading.above, np.int32),
            name=np.array(reading.name, np.int32),
            name_bytes=np.array(reading.name_bytes, np.int64),
            level=np.array(reading.level, np.int32),
            document=document,
            node=node,
            end=np.array(reading.end, np.int32),
            size=size,
            pair_document=(pairs // nodes).astype(np.int32),
            pair_node=(pairs % nodes).astype(np.int32),
            counts=counts.astype(np.int64),
            sizes=np.bincount(place, np.concatenate([length, size])).astype(np.int64),
        )

    def __len__(self) -> int:
        return len(self.length)

    def sums(self, by_pair: NDArray[Any]) -> NDArray[np.float64]:
        """Sums of a value of pairs, for each document."""
        return totals(self.pair_document, by_pair, len(self))

    @property
    def occurrences(self) -> NDArray[np.float64]:
        """How often each label path occurs."""
        return totals(self.pair_node, self.counts, len(self.above))


def totals(places: NDArray[Any], values: NDArray[Any], count: int) -> NDArray[np.float64]:
    """For each of so many places the sum of the values that belong there."""
    return np.bincount(places, values, count).astype(np.float64, copy=False)


class _Reading:
    def __init__(self, labels: dict[Symbol, int]) -> None:
        self._labels = {
            label[1]: at for label, at in labels.items() if label and label[1] is not None
        }
        self._unused = len(labels)
        self._below: dict[tuple[int, str], int] = {}
        self.above, self.name, self.level, self.name_bytes = [-1], [-1], [0], [0]
        self.document: list[int] = []
        self.node: list[int] = []
        self.end: list[int] = []
        self.first: list[int] = []
        self.last: list[int] = []

    def read(self, number: int, message: bytes) -> None:
        parser = expat.ParserCreate()
        parser.buffer_text = True
        opened: list[int] = []

        def start(name: str, attributes: object) -> None:
            above = self.node[opened[-1]] if opened else 0
            node = self._below.get((above, name))
            if node is None:
                node = self._below[above, name] = self._new(above, name)
            opened.append(len(self.node))
            self.document.append(number)
            self.node.append(node)
            self.first.append(parser.CurrentByteIndex)
            self.end.append(0)
            self.last.append(0)

        def end(name: str) -> None:
            at = opened.pop()
            self.end[at] = len(self.node)
            index = parser.CurrentByteIndex
            # Of an empty-element tag the parser gives the end, of an end tag the beginning.
            is_empty = message[index - 2 : index] == b"/>"
            if not is_empty or message.index(b">", self.first[at]) != index - 1:
                index = message.index(b">", index) + 1
            self.last[at] = index

        parser.StartElementHandler = start
        parser.EndElementHandler = end
        parser.Parse(message, True)

    def _new(self, above: int, name: str) -> int:
        label = self._labels.get(name)
        if label is None:
            label = self._labels[name] = self._unused
            self._unused += 1
        self.above.append(above)
        self.name.append(label)
        self.name_bytes.append(len(name.encode()))
        self.level.append(self.level[above] + 1)
        return len(self.above) - 1
