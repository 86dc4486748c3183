"""What a plan believes of a DTD, and whether it is true of a message.

The claims and the canonical form of paths ask three things of an element graph: that an element is
on no loop, that two are not on the same one, that there is a single path between two. The answers
that a plan has relied on are its facts. A message that does not conform to the DTD, but for which
the facts are true, is as good as one that does: the graph of its own parents and children is the
element graph then.

Example:
    >>> from pathcast.schema import parse_dtd
    >>> recorder = Recorder(SchemaPaths(parse_dtd("<!ELEMENT a (b)><!ELEMENT b EMPTY>")))
    >>> recorder.is_on_loop(("", "a"))
    False
    >>> [fact.holds(SchemaPaths.of_message([("", "a"), ("", "x"), ("", "a")], [-1, 0, 1]))
    ...  for fact in recorder.facts]
    [False]

Source: Diao and Franklin, VLDB 2003, section 2: messages need not conform to DTDs. How such ones
are processed under Opt(q+dtd) the paper does not say.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol, TypeAlias

from pathcast.message import ExpandedName
from pathcast_papers.message_broker.pathsharing.schema_paths import SchemaPaths

Way: TypeAlias = tuple[ExpandedName, ...]
"""Names from below an element down to another one."""


class Elements(Protocol):
    """What is asked of an element graph."""

    def is_on_loop(self, name: ExpandedName) -> bool:
        """Whether an element can stand in itself, at any distance."""

    def is_on_same_loop(self, name: ExpandedName, other: ExpandedName) -> bool:
        """Whether each of two elements can stand in the other."""

    def single_path(self, above: ExpandedName | None, below: ExpandedName) -> Way | None:
        """The names from an element down to another one, if there is but one way."""


class NoLoop(NamedTuple):
    """An element is on no loop."""

    name: ExpandedName

    def holds(self, message: SchemaPaths) -> bool:
        """Whether it is true of a message."""
        return not message.is_on_loop(self.name)


class Apart(NamedTuple):
    """Two elements are not on the same loop."""

    name: ExpandedName
    other: ExpandedName

    def holds(self, message: SchemaPaths) -> bool:
        """Whether it is true of a message."""
        return not message.is_on_same_loop(self.name, self.other)


class OnlyWay(NamedTuple):
    """There is no other way from an element, or the document node, down to another one."""

    above: ExpandedName | None
    below: ExpandedName
    way: Way

    def holds(self, message: SchemaPaths) -> bool:
        """Whether it is true of a message."""
        return message.has_no_other_way(self.above, self.below, self.way)


Fact: TypeAlias = NoLoop | Apart | OnlyWay
"""Something that is true of an element graph and that a plan relies on."""


class Recorder:
    """An element graph that notes which of its answers can be relied on.

    Attributes:
        facts: What was noted.
    """

    def __init__(self, elements: Elements) -> None:
        self.facts: set[Fact] = set()
        self._elements = elements

    def is_on_loop(self, name: ExpandedName) -> bool:
        """As the graph says."""
        answer = self._elements.is_on_loop(name)
        if not answer:
            self.facts.add(NoLoop(name))
        return answer

    def is_on_same_loop(self, name: ExpandedName, other: ExpandedName) -> bool:
        """As the graph says."""
        answer = self._elements.is_on_same_loop(name, other)
        if not answer:
            self.facts.add(Apart(name, other))
        return answer

    def single_path(self, above: ExpandedName | None, below: ExpandedName) -> Way | None:
        """As the graph says."""
        answer = self._elements.single_path(above, below)
        if answer is not None:
            self.facts.add(OnlyWay(above, below, answer))
        return answer
