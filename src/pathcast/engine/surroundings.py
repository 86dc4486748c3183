"""Steps in a message, and why one leads nowhere.

Example:
    >>> from pathcast.limits import Limits
    >>> from pathcast.query import parse
    >>> surroundings = Surroundings(MessageNodes(b"<a x='1'/>", Limits()), {})
    >>> [step] = parse("/@x").steps
    >>> surroundings.nowhere(step, "/", [DOCUMENT_NODE]).seen
    ()

It looks at names only; values are the walk's matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pathcast.engine.explanation import Failure
from pathcast.engine.near_miss import SEEN_MAX
from pathcast.engine.node_path import node_path
from pathcast.kernel.message_nodes import DOCUMENT_NODE, Context, MessageNodes, Node
from pathcast.query import binding, usual_prefix
from pathcast.query.names import Namespaces
from pathcast.query.near_names import near
from pathcast.query.notation import Notation
from pathcast.query.syntax import Axis, NameTest, Step

RESOLVED: Final = Notation()
"""Writes resolved parts of queries as the kernel reads them."""


_REVERSE: Final = frozenset(
    {Axis.ANCESTOR, Axis.ANCESTOR_OR_SELF, Axis.PRECEDING, Axis.PRECEDING_SIBLING}
)
"""Axes that lead away from a node against document order."""


class Surroundings:
    """The nodes around a node, by name.

    Args:
        nodes: The message.
        namespaces: The prefixes of the query.
    """

    def __init__(self, nodes: MessageNodes, namespaces: Namespaces) -> None:
        self._nodes = nodes
        self._notation = Notation(namespaces)
        self._bound = namespaces
        # Whether of attributes -> the names of the message.
        self._names: dict[bool, dict[tuple[str, str], Node]] = {}

    def along(self, step: Step, starts: Sequence[Node]) -> list[list[Node]]:
        """The nodes on the axis of a step that pass its node test, from each of some nodes.

        Returns:
            A list for each start, in the order of the axis.

        Raises:
            OverBudgetError: There are no steps left for it.
        """
        contexts = [Context(node) for node in starts]
        found = self._nodes.values(RESOLVED.step(step, with_predicates=False), contexts)
        lists = [list(each) for each in found if isinstance(each, tuple)]
        if step.axis in _REVERSE:
            for each in lists:
                each.reverse()
        return lists

    def united(self, step: Step, starts: Sequence[Node]) -> list[Node]:
        """The nodes of `along` from all of them together, in document order."""
        return sorted({node for nodes in self.along(step, starts) for node in nodes})

    def nowhere(self, step: Step, slash: str, before: Sequence[Node]) -> Failure:
        """Why no node passes the node test of a step."""
        text = slash + self._notation.step(step, with_predicates=False)
        anything = Step(step.axis, NameTest(None, None, offset=step.offset), (), step.offset)
        starts = list(before)
        if slash.endswith("//") and step.axis is Axis.CHILD:
            anything = Step(Axis.DESCENDANT, anything.test, (), step.offset)
        here = self.united(anything, starts)
        is_attribute = step.axis is Axis.ATTRIBUTE
        names = list(dict.fromkeys(self._names_of(here)))
        written = [self._written(name, is_attribute) for name in names]
        test = step.test
        if not isinstance(test, NameTest) or test.local is None:
            return Failure("name", text, step.offset, tuple(written[:SEEN_MAX]))
        same = [name for name in names if name[1] == test.local]
        if same:
            meant = [self._written(name, is_attribute) for name in same]
            return Failure(
                "name",
                text,
                step.offset,
                tuple(written[:SEEN_MAX]),
                near_names=tuple(meant),
                hint=self._prefix_hint(same[0], is_attribute),
            )
        alike = near(test.local, [local for _, local in names])
        meant = [
            self._written(name, is_attribute) for each in alike for name in names if name[1] == each
        ]
        hint = f"did you mean {' or '.join(meant)}?" if meant else self._elsewhere(step, starts)
        if hint is None:
            meant, hint = self._near_anywhere(test.local, is_attribute)
        return Failure(
            "name",
            text,
            step.offset,
            tuple(written[:SEEN_MAX]),
            near_names=tuple(meant),
            hint=hint,
        )

    def _elsewhere(self, step: Step, starts: Sequence[Node]) -> str | None:
        """Where the name does occur: the other kind of node, or another place."""
        other = Axis.CHILD if step.axis is Axis.ATTRIBUTE else Axis.ATTRIBUTE
        if step.axis in (Axis.CHILD, Axis.ATTRIBUTE) and any(
            self.along(Step(other, step.test, (), step.offset), starts)
        ):
            shown_name = self._notation.step(Step(other, step.test, (), step.offset))
            kind = "an attribute" if other is Axis.ATTRIBUTE else "an element"
            return f"there is {kind} of that name: {shown_name}"
        if step.axis is Axis.ATTRIBUTE:
            return None
        anywhere = self.united(Step(Axis.DESCENDANT, step.test, (), step.offset), [DOCUMENT_NODE])
        if anywhere:
            return f"it occurs elsewhere: {self._path(anywhere[0])}"
        return None

    def _near_anywhere(self, local: str, is_attribute: bool) -> tuple[list[str], str | None]:
        """Names of the message that are near one that it does not have, and where the first is."""
        names = self._all_names(is_attribute)
        if any(name == local for _, name in names):
            return [], None
        alike = near(local, [name for _, name in names])
        found = [each for word in alike for each in names if each[1] == word]
        if not found:
            return [], None
        meant = [self._written(each, is_attribute) for each in found]
        return meant, f"did you mean {meant[0]}? It occurs at {self._path(names[found[0]])}"

    def _all_names(self, is_attribute: bool) -> dict[tuple[str, str], Node]:
        """The names of all elements, or of all attributes, each with its first node."""
        if is_attribute not in self._names:
            anything = NameTest(None, None)
            nodes = self.united(Step(Axis.DESCENDANT, anything, (), 0), [DOCUMENT_NODE])
            if is_attribute:
                nodes = self.united(Step(Axis.ATTRIBUTE, anything, (), 0), nodes)
            first: dict[tuple[str, str], Node] = {}
            for name, node in zip(self._names_of(nodes), nodes, strict=True):
                first.setdefault(name, node)
            self._names[is_attribute] = first
        return self._names[is_attribute]

    def _prefix_hint(self, name: tuple[str, str], is_attribute: bool) -> str:
        """How to write a name in its namespace."""
        uri, local = name
        written = self._written(name, is_attribute)
        if not uri:
            return f"`{local}` is in no namespace: write {written}"
        if written.startswith("Q{"):
            prefix = self._free_prefix(name, is_attribute)
            bound = binding(prefix, uri)
            return f"`{local}` is in namespace {uri}: write {prefix}:{local} with {bound}"
        return f"`{local}` is in namespace {uri}: write {written}"

    def _free_prefix(self, name: tuple[str, str], is_attribute: bool) -> str:
        """A prefix for the namespace of a name: that of the message, the usual one, or another."""
        uri, _ = name
        node = self._all_names(is_attribute)[name]
        own, colon, _ = str(self._nodes.value("name()", Context(node))).partition(":")
        others = ("p", *(f"p{number}" for number in range(2, 99)))
        wanted = (own if colon else None, usual_prefix(uri), *others)
        return next(each for each in wanted if each and each not in self._bound)

    def _written(self, name: tuple[str, str], is_attribute: bool) -> str:
        text = self._notation.name(*name, has_default=not is_attribute)
        return f"@{text}" if is_attribute else text

    def _path(self, node: Node) -> str:
        return node_path(self._nodes, node, self._notation)

    def _names_of(self, nodes: Sequence[Node]) -> list[tuple[str, str]]:
        contexts = [Context(node) for node in nodes]
        uris = self._nodes.values("namespace-uri()", contexts)
        locals_ = self._nodes.values("local-name()", contexts)
        return [(str(uri), str(local)) for uri, local in zip(uris, locals_, strict=True)]
