"""The shared path matching engine: YFilter, giving one stream of path tuples for each path.

All paths are in one automaton and share their prefixes. A path that several queries have, in any
role, is in it once and has one stream; the tuples of a stream come in the order of their last
field, as elements begin. Nothing is promised of their other fields.

Example:
    >>> from pathcast.limits import Limits
    >>> from pathcast_papers.message import parse_message
    >>> from pathcast_papers.message_broker.pathsharing.paths import navigation_path
    >>> engine = PathMatchingEngine()
    >>> path = engine.insert(navigation_path("//section//figure"))
    >>> tree = parse_message(b"<section><section><figure/></section><figure/></section>", Limits())
    >>> engine.run(tree)
    >>> engine.stream(path)
    [(1, 2), (0, 2), (0, 3)]

It knows no queries and no predicates.

Source: Diao and Franklin, VLDB 2003, section 2.3; the automaton: Diao et al., TODS 2003.
Differs: recursion can make path tuples exponentially many, so their number is bounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NewType

from pathcast.errors import EvaluationBudgetError
from pathcast.message import MessageTree
from pathcast_papers.filtering.execution import Execution, path_matches
from pathcast_papers.filtering.nfa import CombinedNFA, State
from pathcast_papers.message_broker.pathsharing.paths import NavigationPath, PathTuple

PathId = NewType("PathId", int)
"""Number of a distinct path, given when it is first inserted."""


class PathMatchingEngine:
    """The automaton, the paths in it, and the streams of the message that was run last.

    Args:
        tuples_max: Path tuples of all streams of one message together.

    Attributes:
        nfa: The automaton.
        tuples: Path tuples of the message that was run last.
    """

    def __init__(self, tuples_max: int = 1_000_000) -> None:
        self.nfa = CombinedNFA()
        self.tuples = 0
        self._tuples_max = tuples_max
        self._path_id: dict[NavigationPath, PathId] = {}
        self._path: dict[PathId, NavigationPath] = {}
        self._users: dict[PathId, int] = {}
        self._accepted: dict[State, PathId] = {}
        self._next = 0
        # tpLists: one for each stream, made when its first tuple comes.
        self._streams: dict[PathId, list[PathTuple]] = {}

    def __len__(self) -> int:
        """Distinct paths."""
        return len(self._path_id)

    def insert(self, path: NavigationPath) -> PathId:
        """The id of a path, which is put into the automaton if it is not there."""
        path_id = self._path_id.get(path)
        if path_id is None:
            path_id = PathId(self._next)
            self._next += 1
            state = self.nfa.insert(path)
            state.store_users += 1
            self._accepted[state] = path_id
            self._path_id[path] = path_id
            self._path[path_id] = path
            self._users[path_id] = 0
        self._users[path_id] += 1
        return path_id

    def release(self, path_id: PathId) -> None:
        """Takes back one insertion; the last one takes the path out of the automaton."""
        self._users[path_id] -= 1
        if self._users[path_id]:
            return
        path = self._path.pop(path_id)
        del self._users[path_id], self._path_id[path]
        state = self.nfa.states_on(path)[-1]
        del self._accepted[state]
        state.store_users -= 1
        self.nfa.prune(state)
        self._streams.pop(path_id, None)

    def run(self, tree: MessageTree) -> None:
        """Matches all paths against a message.

        Raises:
            EvaluationBudgetError: There are more path tuples than allowed.

        Cost: events times active states, and the path tuples.
        """
        self._streams = {}
        self.tuples = 0
        execution = Execution(self.nfa)
        for element in range(len(tree)):
            while len(execution.stack) - 1 > tree.depth[element]:
                execution.end_element()
            for entry in execution.start_element(element, *tree.name[element]):
                path_id = self._accepted.get(entry.state)
                if path_id is None:
                    continue
                stream = self._streams.setdefault(path_id, [])
                for path_tuple in path_matches(entry):
                    self.tuples += 1
                    if self.tuples > self._tuples_max:
                        raise EvaluationBudgetError(
                            "limit.evaluation_steps",
                            limit="evaluation_steps_max",
                            maximum=self._tuples_max,
                        )
                    stream.append(path_tuple)

    def stream(self, path_id: PathId) -> Sequence[PathTuple]:
        """The path tuples of a path in the message that was run last."""
        return self._streams.get(path_id, ())
