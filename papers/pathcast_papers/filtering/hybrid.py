"""Hybrid: substrings of paths shared in a trie, the operators between them checked query by query.

A query is split at `*` and `//` into substrings of names with `/` in between. All substrings of all
queries lie in one trie; the node where a substring ends has a candidate list, as a name has in
XFilter. Elements drive the navigation in the trie: each begins a search at the root and continues
those of its parent. A trie node that is reached checks the document level of its candidates, and a
candidate that passes puts its successor, with the level at which its end is expected, into the
candidate list where that substring ends.

Example:
    >>> from pathcast.limits import Limits
    >>> from pathcast_papers.language import normalise
    >>> from pathcast_papers import parse
    >>> hybrid = Hybrid()
    >>> plans = [QueryPlan(normalise(text)) for text in ("/a/b//c/d", "//a/b/*/d", "/c/d")]
    >>> for plan in plans:
    ...     hybrid.insert(plan)
    >>> hybrid.size      # trie nodes a, ab, c, cd, d, and five substrings
    10
    >>> satisfied = hybrid.match(parse(b"<a><b><c><d/></c></b></a>", Limits()))
    >>> [plan in satisfied for plan in plans]
    [True, True, False]

Fragment: linear paths (`pathcast_papers.filtering.linear_path`).

Cost: a look-up in the trie for each active node and element, and a level check for each candidate
of the nodes that are reached.

Source: Diao et al., TODS 2003, section 3.3.
Differs: a level after `//` is a least level, so that the occurrence of a substring cannot overlap
that of the one before (`/a//a/b` in `<a><b/></a>`), of which the paper does not speak; wildcards at
the end of a path are the empty substring, which ends at every element. A copy that could pass only
where one that is there already does is not made again: 4.5.2 says that levels are not remembered
by promoting a node several times.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

from pathcast.message import MessageTree
from pathcast_papers.evaluation.fragment import Symbol, matching_symbols
from pathcast_papers.filtering.linear_path import ANY, gaps
from pathcast_papers.filtering.query_plan import QueryPlan


class SubstringNode:
    """A substring of a query (section 3.3: the five data items of a node).

    Attributes:
        query: The query (QueryId).
        position: Number of the substring in the query, from 1 on (NodePosition).
        symbols: Its names; empty for wildcards at the end of a path.
        distance: Levels from the end of the substring before to its own end (RelativePos), from the
            document node for the first one.
        is_exact: No `//` lies in between; else `distance` is the least one.
        next_node: The substring after it.
        end: The trie node where it ends; given to it when the query is inserted.
    """

    __slots__ = ("distance", "end", "is_exact", "next_node", "position", "query", "symbols")

    end: TrieNode

    def __init__(
        self,
        query: QueryPlan,
        position: int,
        symbols: tuple[Symbol, ...],
        distance: int,
        *,
        is_exact: bool,
    ) -> None:
        self.query = query
        self.position = position
        self.symbols = symbols
        self.distance = distance
        self.is_exact = is_exact
        self.next_node: SubstringNode | None = None


Candidate: TypeAlias = tuple[SubstringNode, int]
"""A copy of a substring node in a candidate list: it and the level where it must, or may, end."""


class TrieNode:
    """A node of the substring trie.

    Attributes:
        children: Name -> node.
        parent: Node that it is a child of; None for the root.
        symbol: Name that leads to it.
        candidates: The candidate list; empty where no substring ends.
        users: Substrings that end here.
    """

    __slots__ = ("candidates", "children", "parent", "symbol", "users")

    def __init__(self, parent: TrieNode | None = None, symbol: Symbol = None) -> None:
        self.parent = parent
        self.symbol = symbol
        self.children: dict[Symbol, TrieNode] = {}
        self.candidates: list[Candidate] = []
        self.users = 0


class Hybrid:
    """The filter.

    Attributes:
        transitions: Level checks that passed, over all messages so far.
    """

    def __init__(self) -> None:
        self.transitions = 0
        self._root = TrieNode()
        self._first: dict[QueryPlan, SubstringNode] = {}
        self._trie_size = 0
        self._substrings = 0

    @property
    def size(self) -> int:
        """Nodes of the trie, the root left out, and substring nodes of all queries."""
        return self._trie_size + self._substrings

    def insert(self, plan: QueryPlan) -> None:
        """Adds the substrings of a query to the trie.

        Raises:
            UnsupportedQueryError: The query is no linear path.
        """
        nodes = substring_nodes(plan)
        for node in nodes:
            node.end = self._insert(node.symbols)
            node.end.users += 1
        nodes[0].end.candidates.append((nodes[0], nodes[0].distance))
        self._first[plan] = nodes[0]
        self._substrings += len(nodes)

    def delete(self, plan: QueryPlan) -> None:
        """Takes a query out, and the trie nodes that nothing else needs.

        Cost: in proportion to the candidate list that it begins in.
        """
        first = self._first.pop(plan)
        first.end.candidates.remove((first, first.distance))
        node: SubstringNode | None = first
        while node is not None:
            node.end.users -= 1
            self._prune(node.end)
            self._substrings -= 1
            node = node.next_node

    def match(self, tree: MessageTree) -> set[QueryPlan]:
        """The queries that a message satisfies."""
        run = _Run(self._root)
        for element in range(len(tree)):
            level = tree.depth[element] + 1
            while len(run.stack) > level:
                run.end_element()
            run.start_element(*tree.name[element])
        while len(run.stack) > 1:
            run.end_element()
        self.transitions += run.transitions
        return run.satisfied

    def _insert(self, symbols: tuple[Symbol, ...]) -> TrieNode:
        node = self._root
        for symbol in symbols:
            child = node.children.get(symbol)
            if child is None:
                child = node.children[symbol] = TrieNode(node, symbol)
                self._trie_size += 1
            node = child
        return node

    def _prune(self, node: TrieNode) -> None:
        while node.parent is not None and not node.users and not node.children:
            del node.parent.children[node.symbol]
            self._trie_size -= 1
            node = node.parent


class _Run:
    """The handlers, the run-time stack of active trie nodes, and the copies that are promoted."""

    def __init__(self, root: TrieNode) -> None:
        self.satisfied: set[QueryPlan] = set()
        self.stack: list[list[TrieNode]] = [[]]
        self.transitions = 0
        self._root = root
        self._promoted: list[list[Candidate]] = []
        self._present: set[Candidate] = set()
        self._symbols: dict[tuple[str, str], tuple[Symbol, ...]] = {}

    def start_element(self, uri: str, local: str) -> None:
        """Navigates in the trie, and checks the candidates of every node that is reached."""
        symbols = self._symbols.get((uri, local))
        if symbols is None:
            symbols = self._symbols[uri, local] = tuple(
                symbol for symbol in matching_symbols(uri, local) if symbol != ANY
            )
        reached = [
            child
            for node in (self._root, *self.stack[-1])
            for symbol in symbols
            if (child := node.children.get(symbol)) is not None
        ]
        self.stack.append(reached)
        level = len(self.stack) - 1
        promoted: list[Candidate] = []
        for node in (self._root, *reached):
            # Copies that this element promotes are for elements inside it.
            for candidate in node.candidates[:]:
                substring, expected = candidate
                if level == expected or (level > expected and not substring.is_exact):
                    self._pass(substring, level, promoted)
        self._promoted.append(promoted)

    def end_element(self) -> None:
        """Takes out the copies that the element has promoted; they are the last of their lists."""
        self.stack.pop()
        for candidate in reversed(self._promoted.pop()):
            candidate[0].end.candidates.pop()
            self._present.discard(_identity(*candidate))

    def _pass(self, substring: SubstringNode, level: int, promoted: list[Candidate]) -> None:
        self.transitions += 1
        following = substring.next_node
        if following is None:
            self.satisfied.add(substring.query)
            return
        candidate = (following, level + following.distance)
        identity = _identity(*candidate)
        if identity not in self._present:
            self._present.add(identity)
            following.end.candidates.append(candidate)
            promoted.append(candidate)


def substring_nodes(plan: QueryPlan) -> list[SubstringNode]:
    """The substrings of a query, each pointing to the next.

    Raises:
        UnsupportedQueryError: The query is no linear path.
    """
    nodes: list[SubstringNode] = []
    for gap in gaps(plan, "Hybrid"):
        symbols = () if gap.symbol == ANY else (gap.symbol,)
        if nodes and symbols and gap.is_exact and gap.levels == 1:
            nodes[-1].symbols += symbols
            nodes[-1].distance += 1
        else:
            nodes.append(
                SubstringNode(plan, len(nodes) + 1, symbols, gap.levels, is_exact=gap.is_exact)
            )
    for node, following in pairwise(nodes):
        node.next_node = following
    return nodes


def _identity(node: SubstringNode, level: int) -> Candidate:
    """Equal for copies of which the first, made by an outer element, passes wherever another does.

    The least level of a node after `//` grows with the element that promotes it, so while the first
    copy is there no further one is needed.
    """
    return (node, level) if node.is_exact else (node, 0)
