"""XFilter: one finite state machine a query, all of them driven by an index over element names.

The states of a query are its path nodes. For every name the query index has a candidate list, the
nodes that the machines are waiting to match now, and a wait list, the nodes that come later. A
start of an element looks up its name and checks the level of each candidate; a node that passes
promotes its successor, that is, puts a copy with the level at which it is expected into the
candidate list of its name; the end of the element takes the copies out again.

Basic XFilter begins with the first node of a query. List Balance begins with the node whose
candidate list is shortest when the query is inserted (its pivot); the nodes before are its prefix,
which is run over the open elements when the pivot is met.

Example:
    >>> from pathcast.limits import Limits
    >>> from pathcast_papers.language import normalise
    >>> from pathcast_papers import parse
    >>> xfilter = XFilter(balances_lists=True)
    >>> plans = [QueryPlan(normalise(text)) for text in ("/a/b", "/a//c", "/a/*/c")]
    >>> for plan in plans:
    ...     xfilter.insert(plan)
    >>> xfilter.list_lengths()
    {('', 'a'): 2, ('', 'c'): 1}
    >>> satisfied = xfilter.match(parse(b"<a><b/><c/></a>", Limits()))
    >>> [plan in satisfied for plan in plans]
    [True, True, False]

Fragment: linear paths (`pathcast_papers.filtering.linear_path`). It shares nothing between queries
that are not equal.

Cost: one level check for each candidate under an element's name. In messages where elements of one
name lie inside one another, a `//` step promotes its successor once for each of them, as in the
paper, so copies can be exponentially many in the `//` steps of a query.

Source: Diao et al., TODS 2003, section 3.1, figures 5 and 6.
Differs: see `pathcast_papers.filtering.linear_path` for distances; `Q{uri}*`, `*:name` and a final
`*` are entries of the index beside the names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from pathcast.message import MessageTree
from pathcast_papers.evaluation.fragment import Symbol, matching_symbols
from pathcast_papers.filtering.linear_path import ANY, gaps
from pathcast_papers.filtering.query_plan import QueryPlan

UNRESTRICTED: Final = -1
"""Relative position and level of a node after `//`."""

UNKNOWN: Final = 0
"""Level of a node that gets it when it is promoted."""


class PathNode:
    """A state of a query's machine (figure 5a).

    Attributes:
        query: The query (QueryId).
        position: Number of the node in the query, from 1 on.
        relative_position: Levels from the node before; 0 for the first node without a `//`,
            `UNRESTRICTED` after a `//`.
        level: Level where it is expected (the root element has 1), `UNRESTRICTED` or `UNKNOWN`.
        symbol: Name of the element.
        distance: Levels from the node before, at least so many after a `//`.
        next_node: The node to be evaluated next (NextPathNodeSet).
        instance: The copy of a node right after `//`: as it is expected at every level inside the
            element that promotes it, it needs no level of its own, and is "simply added to the
            candidate list multiple times" (4.5.2). None for other nodes.
    """

    __slots__ = (
        "distance",
        "instance",
        "level",
        "next_node",
        "position",
        "query",
        "relative_position",
        "symbol",
    )

    def __init__(
        self, query: QueryPlan, position: int, symbol: Symbol, distance: int, *, is_exact: bool
    ) -> None:
        self.query = query
        self.position = position
        self.symbol = symbol
        self.distance = distance
        self.next_node: PathNode | None = None
        self.instance: Candidate | None = None
        if not is_exact:
            self.relative_position = self.level = UNRESTRICTED
            if distance == 1:
                self.instance = Candidate(self, UNRESTRICTED, 0)
        elif position == 1:
            self.relative_position, self.level = 0, distance
        else:
            self.relative_position, self.level = distance, UNKNOWN


class Candidate:
    """A copy of a path node in a candidate list.

    Attributes:
        node: The node.
        level: Level where the element must be; `UNRESTRICTED` for any from `least_level` on.
        least_level: See `level`.
        prefix: The nodes before a pivot, to be run when it is met; empty for other nodes.
    """

    __slots__ = ("least_level", "level", "node", "prefix")

    def __init__(
        self, node: PathNode, level: int, least_level: int, prefix: tuple[PathNode, ...] = ()
    ) -> None:
        self.node = node
        self.level = level
        self.least_level = least_level
        self.prefix = prefix


class IndexEntry:
    """What the query index holds for one name.

    Attributes:
        candidates: The candidate list.
        waiting: The wait list; nodes in it are copied, not moved.
    """

    __slots__ = ("candidates", "waiting")

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.waiting: dict[PathNode, None] = {}


class XFilter:
    """The filter.

    Args:
        balances_lists: List Balance instead of the basic algorithm.

    Attributes:
        size: Path nodes of all queries.
        transitions: Level checks that passed, over all messages so far.
    """

    def __init__(self, *, balances_lists: bool = False) -> None:
        self.size = 0
        self.transitions = 0
        self._balances_lists = balances_lists
        self._index: dict[Symbol, IndexEntry] = {}
        self._initial: dict[QueryPlan, Candidate] = {}

    def insert(self, plan: QueryPlan) -> None:
        """Adds the machine of a query (section 3.1.2).

        Raises:
            UnsupportedQueryError: The query is no linear path.
        """
        nodes = path_nodes(plan)
        entries = [self._index.setdefault(node.symbol, IndexEntry()) for node in nodes]
        start = _pivot(nodes, entries) if self._balances_lists else 0
        pivot, prefix = nodes[start], tuple(nodes[:start])
        levels = sum(node.distance for node in nodes[: start + 1])
        is_exact = all(node.level != UNRESTRICTED for node in nodes[: start + 1])
        initial = Candidate(pivot, levels if is_exact else UNRESTRICTED, levels, prefix)
        entries[start].candidates.append(initial)
        for node, entry in zip(nodes[start + 1 :], entries[start + 1 :], strict=True):
            entry.waiting[node] = None
        self._initial[plan] = initial
        self.size += len(nodes)

    def delete(self, plan: QueryPlan) -> None:
        """Takes the machine of a query out; names stay in the index.

        Cost: in proportion to the candidate list that it begins in.
        """
        initial = self._initial.pop(plan)
        self._index[initial.node.symbol].candidates.remove(initial)
        self.size -= len(initial.prefix) + 1
        waiting = initial.node.next_node
        while waiting is not None:
            del self._index[waiting.symbol].waiting[waiting]
            self.size -= 1
            waiting = waiting.next_node

    def list_lengths(self) -> dict[Symbol, int]:
        """Lengths of the candidate lists as they are before a message, empty ones left out."""
        return {
            symbol: len(entry.candidates)
            for symbol, entry in self._index.items()
            if entry.candidates
        }

    def match(self, tree: MessageTree) -> set[QueryPlan]:
        """The queries that a message satisfies."""
        run = _Run(self._index)
        for element in range(len(tree)):
            level = tree.depth[element] + 1
            while len(run.open_elements) >= level:
                run.end_element()
            run.start_element(*tree.name[element])
        while run.open_elements:
            run.end_element()
        self.transitions += run.transitions
        return run.satisfied


class _Run:
    """The handlers of section 3.1.3, and what they keep of the open elements."""

    def __init__(self, index: dict[Symbol, IndexEntry]) -> None:
        self.satisfied: set[QueryPlan] = set()
        self.open_elements: list[tuple[Symbol, ...]] = []
        self.transitions = 0
        self._index = index
        self._promoted: list[list[IndexEntry]] = []
        self._symbols: dict[tuple[str, str], tuple[Symbol, ...]] = {}

    def start_element(self, uri: str, local: str) -> None:
        """Checks every candidate under the element's name."""
        symbols = self._symbols.get((uri, local))
        if symbols is None:
            symbols = self._symbols[uri, local] = matching_symbols(uri, local)
        self.open_elements.append(symbols)
        level = len(self.open_elements)
        promoted: list[IndexEntry] = []
        lists = [
            entry.candidates for symbol in symbols if (entry := self._index.get(symbol)) is not None
        ]
        # Copies that this element promotes, into any of the lists, are for elements inside it.
        for candidates, length in [(one, len(one)) for one in lists]:
            for candidate in candidates[:length]:
                if candidate.level == level or (
                    candidate.level == UNRESTRICTED and level >= candidate.least_level
                ):
                    self._pass(candidate, level, promoted)
        self._promoted.append(promoted)

    def end_element(self) -> None:
        """Takes out the copies that the element has promoted; they are the last of their lists."""
        self.open_elements.pop()
        for entry in self._promoted.pop():
            entry.candidates.pop()

    def _pass(self, candidate: Candidate, level: int, promoted: list[IndexEntry]) -> None:
        node = candidate.node
        if candidate.prefix and not _prefix_holds(
            candidate.prefix, node, self.open_elements, level
        ):
            return
        self.transitions += 1
        following = node.next_node
        if following is None:
            self.satisfied.add(node.query)
            return
        copy = following.instance
        if copy is None:
            least = level + following.distance
            expected = UNRESTRICTED if following.relative_position == UNRESTRICTED else least
            copy = Candidate(following, expected, least)
        entry = self._index[following.symbol]
        entry.candidates.append(copy)
        promoted.append(entry)


def path_nodes(plan: QueryPlan) -> list[PathNode]:
    """The path nodes of a query, each pointing to the next.

    Raises:
        UnsupportedQueryError: The query is no linear path.
    """
    nodes = [
        PathNode(plan, position, gap.symbol, gap.levels, is_exact=gap.is_exact)
        for position, gap in enumerate(gaps(plan, "XFilter"), start=1)
    ]
    for node, following in pairwise(nodes):
        node.next_node = following
    return nodes


def _pivot(nodes: Sequence[PathNode], entries: Sequence[IndexEntry]) -> int:
    """The node with the shortest candidate list; a final wildcard only if there is nothing else."""
    named = [place for place, node in enumerate(nodes) if node.symbol != ANY] or [0]
    return min(named, key=lambda place: len(entries[place].candidates))


def _prefix_holds(
    prefix: Sequence[PathNode],
    pivot: PathNode,
    open_elements: Sequence[tuple[Symbol, ...]],
    level: int,
) -> bool:
    """Whether the open elements above a pivot's element take a machine to the pivot.

    The machine is run forward over the stack: each node of the prefix in turn, with all levels at
    which it can be matched.
    """
    reached: list[int] = [0]
    for node in prefix:
        levels: Iterable[int] = (before + node.distance for before in reached)
        if node.relative_position == UNRESTRICTED:
            levels = range(reached[0] + node.distance, level)
        reached = [at for at in levels if at < level and node.symbol in open_elements[at - 1]]
        if not reached:
            return False
    if pivot.relative_position == UNRESTRICTED:
        return reached[0] + pivot.distance <= level
    return level - pivot.distance in reached
