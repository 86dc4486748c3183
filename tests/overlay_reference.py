"""The paper's operator network, literally: selections, joins, ands and targets over an NFA.

`Network.of` is what a host has for its users' queries: an NFA over location steps, a selection for
each linear path below its accepting state, a join where several linear paths must meet in one
element, a transformation where something is returned, and the query's identifier where it ends.
`map` puts "and" in the place of joins, `collect` merges networks, `aggregate` changes all
identifiers to a broker's own, `common` keeps what is common to all disjuncts. A run can leave aside
what leads only to targets that are reached.

It is the oracle of the tables that brokers run, and hurries nowhere.

Example:
    >>> host = Network.of({"Q1": "/a[c]/b", "Q2": "/a[b]/d[@x = 1]"})
    >>> host.describe()
    ['join /a[b]/d[@x=1] -> Q2', 'join /a[c]/b -> Q1']
    >>> told = host.map().aggregate("Broker5")
    >>> told.describe()
    ['/a/b and /a/c -> Broker5', '/a/b and /a/d[@x=1] -> Broker5']
    >>> told.common().describe()
    ['/a/b -> Broker5']

Source: Diao, Rizvi and Franklin, VLDB 2004, sections 4.1 and 4.2.1, figures 5 and 6.
Differs: a join, once its inputs have held, asks whether the path holds as a whole; a nested path's
selections repeat the predicates of the steps above it. The paper names "a dynamic analysis of the
operator network" and does not describe it: here every state and operator knows which targets it
leads to.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from oracles.paths import is_found, of_papers
from pathcast.boundary import native
from pathcast.message import MessageTree
from pathcast.query import compile_subscription
from pathcast_papers.filtering.execution import Execution, StackEntry, exists_path_match
from pathcast_papers.filtering.nfa import CombinedNFA, State
from pathcast_papers.filtering.predicate import ElementTests
from pathcast_papers.filtering.query_plan import QueryPlan


@dataclass(frozen=True)
class Select:
    """A linear path: an accepting state, and the selection below it for its predicates."""

    path: native.NormalPath

    def __str__(self) -> str:
        return self.path.text


@dataclass(frozen=True)
class And:
    """Holds once all selections above it have held, wherever in the message."""

    inputs: tuple[Select, ...]

    def __str__(self) -> str:
        return " and ".join(map(str, self.inputs))


@dataclass(frozen=True)
class Join:
    """Holds if its inputs hold in the same elements: if the path with its nested paths holds."""

    path: native.NormalPath
    inputs: tuple[Select, ...]

    def __str__(self) -> str:
        return f"join {self.path.text}"


@dataclass(frozen=True)
class Transform:
    """The box for the return clause; what it makes is no matter of routing."""

    input: Select | Join
    query: str

    def __str__(self) -> str:
        return f"transform {self.input}"


Operator: TypeAlias = Select | And | Join | Transform


@dataclass(frozen=True)
class Routed:
    """What a run gave.

    Attributes:
        targets: The targets that were reached.
        entered: States that were entered, over all elements.
        tried: Selections that were evaluated.
    """

    targets: frozenset[str]
    entered: int
    tried: int


@dataclass(frozen=True)
class Network:
    """An operator network.

    Attributes:
        targets: Operators with identifiers -> the queries or brokers that they are of.
    """

    targets: Mapping[Operator, frozenset[str]]

    @classmethod
    def of(cls, profiles: Mapping[str, str], deliver: str = "fragment") -> Network:
        """The network of users' queries.

        Args:
            profiles: Identifier -> a subscription in XPath or XQuery.
            deliver: As they are delivered.

        Raises:
            QuerySyntaxError: One is neither.
        """
        found: dict[Operator, frozenset[str]] = {}
        for name, profile in profiles.items():
            compiled = compile_subscription(profile, None, deliver)
            for path in compiled.paths:
                if path.text == "/*[position()=2]":
                    continue
                matching = _matching(path)
                is_returned = compiled.program is not None
                operator = Transform(matching, profile) if is_returned else matching
                found[operator] = found.get(operator, frozenset()) | {name}
        return cls(found)

    def map(self) -> Network:
        """Map(): joins become ands; transformations go."""
        return collect(Network({_mapped(each): of}) for each, of in self.targets.items())

    def aggregate(self, broker: str) -> Network:
        """Aggregate(): all identifiers become the broker's own."""
        return Network(dict.fromkeys(self.targets, frozenset({broker})))

    def common(self) -> Network:
        """Content generalisation: of each target, the paths that all of its disjuncts have.

        Any message, where they have none in common.
        """
        paths: dict[str, set[Select]] = {}
        for operator, targets in self.targets.items():
            for target in targets:
                paths.setdefault(target, set(inputs_of(operator))).intersection_update(
                    inputs_of(operator)
                )
        anything = Select(native.NormalPath("/*"))
        return collect(
            Network({_all_of(found or {anything}): frozenset({target})})
            for target, found in paths.items()
        )

    @property
    def state_count(self) -> int:
        """States of the NFA, the initial one and those of `//` included."""
        return self._plan.nfa.state_count

    @property
    def selections(self) -> frozenset[Select]:
        """The selections; those of the same path are one."""
        return frozenset(self._plan.select_targets)

    def describe(self) -> list[str]:
        """A line for each operator with identifiers."""
        return sorted(f"{each} -> {' '.join(sorted(of))}" for each, of in self.targets.items())

    def route(self, tree: MessageTree, *, prunes: bool = True) -> Routed:
        """Runs a message.

        Args:
            tree: The message.
            prunes: Whether what leads only to targets that are reached is left aside.
        """
        return _Run(self, self._plan, tree, prunes=prunes).result()

    @functools.cached_property
    def _plan(self) -> _Plan:
        return _Plan(self.targets)


def collect(networks: Iterable[Network]) -> Network:
    """Collect(): networks merged; what several have is there once, with the targets of all.

    Example:
        >>> one, two = (Network.of({q: "//a"}).aggregate(q) for q in ("B1", "B2"))
        >>> collect([one, two]).describe()
        ['//a -> B1 B2']
    """
    found: dict[Operator, frozenset[str]] = {}
    for network in networks:
        for operator, targets in network.targets.items():
            found[operator] = found.get(operator, frozenset()) | targets
    return Network(found)


def inputs_of(operator: Operator) -> tuple[Select, ...]:
    """The selections that an operator waits for."""
    match operator:
        case Select():
            return (operator,)
        case Transform(before):
            return inputs_of(before)
        case And(inputs) | Join(inputs=inputs):
            return inputs


def _matching(path: native.NormalPath) -> Select | Join:
    inputs = tuple(Select(each) for each in native.Conjunction([path]).linear().paths)
    return Select(path) if inputs == (Select(path),) else Join(path, inputs)


def _mapped(operator: Operator) -> Operator:
    match operator:
        case Join(inputs=inputs):
            return _all_of(inputs)
        case Transform(before):
            return _mapped(before)
        case _:
            return operator


def _all_of(inputs: Iterable[Select]) -> Select | And:
    first, *others = sorted(inputs, key=str)
    return And((first, *others)) if others else first


class _Plan:
    """The NFA of a network, and what each of its parts leads to."""

    def __init__(self, targets: Mapping[Operator, frozenset[str]]) -> None:
        self.nfa = CombinedNFA()
        self.all_targets = frozenset().union(*targets.values())
        self.waiting: dict[Select, list[Operator]] = {}
        self.select_targets: dict[Select, frozenset[str]] = {}
        self.at_state: dict[State, list[Select]] = {}
        self.plans: dict[Select, QueryPlan] = {}
        self.leads_to: dict[State, frozenset[str]] = {}
        for operator, of in targets.items():
            for select in inputs_of(operator):
                self.waiting.setdefault(select, []).append(operator)
                before = self.select_targets.get(select, frozenset())
                self.select_targets[select] = before | of
        for select, of in self.select_targets.items():
            plan = self.plans[select] = QueryPlan(of_papers(select.path))
            state = self.nfa.insert(plan.steps)
            # An Execution reports a //-child state of its own accord only if it accepts.
            state.store_users += 1
            self.at_state.setdefault(state, []).append(select)
            above: State | None = state
            while above is not None:
                self.leads_to[above] = self.leads_to.get(above, frozenset()) | of
                above = above.parent


class _Run:
    """One message through a network."""

    def __init__(self, network: Network, plan: _Plan, tree: MessageTree, *, prunes: bool) -> None:
        self._network, self._plan, self._tree, self._prunes = network, plan, tree, prunes
        self._tests = ElementTests(tree)
        self._held: set[Select] = set()
        self._reached: frozenset[str] = frozenset()
        self._failed: dict[Select, set[StackEntry]] = {}
        self._entered = self._tried = 0

    def result(self) -> Routed:
        tree, run = self._tree, Execution(self._plan.nfa)
        open_ends: list[int] = []
        for element in range(len(tree)):
            if self._prunes and self._reached == self._plan.all_targets:
                break
            while open_ends and open_ends[-1] <= element:
                run.end_element()
                open_ends.pop()
            entries = run.start_element(element, *tree.name[element])
            open_ends.append(tree.element_end[element])
            self._entered += len(run.stack[-1])
            for entry in entries:
                for select in self._plan.at_state.get(entry.state, ()):
                    self._try(select, entry)
            if self._prunes:
                active = run.stack[-1].items()
                run.stack[-1] = {at: entry for at, entry in active if self._is_open(at)}
        return Routed(self._reached, self._entered, self._tried)

    def _is_open(self, state: State) -> bool:
        return not self._plan.leads_to[state] <= self._reached

    def _try(self, select: Select, entry: StackEntry) -> None:
        """Evaluates a selection on an element, and what waits for it if it holds."""
        is_closed = self._prunes and self._plan.select_targets[select] <= self._reached
        if select in self._held or is_closed:
            return
        self._tried += 1
        steps = self._plan.plans[select].steps
        holds = exists_path_match(
            entry,
            lambda step, element: self._tests.passes(steps[step - 1], element),
            self._failed.setdefault(select, set()),
        )
        if holds:
            self._held.add(select)
            for operator in self._plan.waiting[select]:
                if self._holds(operator):
                    self._reached |= self._network.targets[operator]

    def _holds(self, operator: Operator) -> bool:
        match operator:
            case Select():
                return True
            case And(inputs):
                return self._held.issuperset(inputs)
            case Join(path, inputs):
                return self._held.issuperset(inputs) and is_found(path, self._tree)
            case Transform(before):
                return self._holds(before)
