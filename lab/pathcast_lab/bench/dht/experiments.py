"""What is measured for each figure of the paper on the automaton on a ring.

Source: 000, section 6.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from pathcast.dht.piece_cutting import PieceSettings
from pathcast_lab.bench.dht.definition import DhtFigure, DhtSet, QueryKind
from pathcast_lab.bench.dht.inputs import Inputs
from pathcast_lab.bench.dht.loads import filtering, in_shared_pieces, states_held, storage
from pathcast_lab.bench.dht.peer_cuts import cut_by_peers
from pathcast_lab.bench.dht.pieces import cut
from pathcast_lab.bench.dht.replay import Replay, Traffic
from pathcast_lab.bench.dht.ring import Ring
from pathcast_lab.bench.dht.savings import (
    in_batches,
    in_pieces,
    load_and_hits,
    with_cache,
)
from pathcast_lab.bench.dht.simulated import Sent, of_states, simulated
from pathcast_lab.bench.dht.state_table import StateTable
from pathcast_lab.bench.dht.trace import Trace
from pathcast_lab.bench.figures.point import Place, Value

__all__ = ["DhtExperiment"]

MESSAGES, LOOKED_UP = "messages", "messages, look-ups counted"
HOPS, CHAIN = "longest chain of messages", "longest chain of hops"
WHOLE, SUBTREE = "MB", "MB, subtrees"
SIBLINGS = "messages, siblings in one"
RECURSIVE, ITERATIVE = "recursive", "iterative"
PIECES, BATCHES = "pieces", "siblings and documents in one"
STATES, KINDS = "states", "different queries"


@dataclass(frozen=True)
class DhtExperiment:
    """A figure and one of its sets.

    Attributes:
        figure: Its definition.
        chosen: Sizes.
        inputs: Of the run.
        say: Takes one line on what is being done.
    """

    figure: DhtFigure
    chosen: DhtSet
    inputs: Inputs
    say: Callable[[str], None]

    def run(self) -> Iterator[list[Value]]:
        """The values, a point at a time."""
        if self.figure.kind == "states":
            yield from self._states()
            return
        measured = {
            "methods": self._methods,
            "queries": self._queries,
            "peers": self._peers,
            "loads": self._loads,
            "lengths": self._lengths,
            "savings": self._savings,
            "simulated": self._simulated,
        }[self.figure.kind]
        for workload in self.figure.workloads:
            for kind in self.figure.query_kinds:
                self.say(f"{self.figure.caption}: {workload}, {kind} queries")
                yield from measured(workload, kind)

    def _place(self, variant: str, series: str, x: float, queries: int) -> Place:
        return Place(self.figure.name, variant, series, x, queries)

    def _variant(self, workload: str, kind: QueryKind) -> str:
        return f"{workload}, {kind}"

    def _traces(self, workload: str, kind: QueryKind) -> Iterator[tuple[int, Trace]]:
        """For each number of queries."""
        most = self.chosen.queries[-1]
        whole = self.inputs.trace(workload, kind, most, self.chosen.documents)
        for queries in self.chosen.queries:
            yield queries, whole if queries == most else whole.first_queries(queries)

    def _largest(self, workload: str, kind: QueryKind, length: int = 0) -> Trace:
        chosen = self.chosen
        return self.inputs.trace(workload, kind, chosen.queries[-1], chosen.documents, length)

    def _methods(self, workload: str, kind: QueryKind) -> Iterator[list[Value]]:
        """Figure 3."""
        for queries, trace in self._traces(workload, kind):
            replay = Replay(trace, Ring.of(self.chosen.peers[0]))
            for series, traffic in (
                (RECURSIVE, replay.recursive()),
                (ITERATIVE, replay.iterative()),
            ):
                place = self._place(self._variant(workload, kind), series, queries, queries)
                found = traffic_values(place, traffic)
                if series == RECURSIVE:
                    every = range(len(trace.documents))
                    siblings = in_batches(trace, replay.is_sent, every, 1)
                    found.append(place.value(SIBLINGS, "1", siblings))
                yield found

    def _states(self) -> Iterator[list[Value]]:
        """Figure 4."""
        for name in self.figure.workloads:
            graph = self.inputs.graph(name)
            if graph is None:
                continue
            self.say(f"{self.figure.caption}: {name}")
            most = self.chosen.queries[-1]
            table = StateTable.of(self.inputs.queries(graph, "random", most))
            depth = np.zeros(len(table))
            for level, states in enumerate(table.levels()):
                depth[states] = level
            for queries in self.chosen.queries:
                final = table.final[:queries]
                place = self._place(name, "", queries, queries)
                yield [
                    place.value(STATES, "1", int(table.sizes[queries])),
                    place.value(KINDS, "1", len(np.unique(final))),
                    place.value("messages to index one", "1", float(depth[final].mean() + 1)),
                ]

    def _queries(self, workload: str, kind: QueryKind) -> Iterator[list[Value]]:
        """Figure 5."""
        for queries, trace in self._traces(workload, kind):
            replay = Replay(trace, Ring.of(self.chosen.peers[0]))
            place = self._place("", self._variant(workload, kind), queries, queries)
            table = trace.table
            siblings = in_batches(trace, replay.is_sent, range(len(trace.documents)), 1)
            yield [
                *traffic_values(place, replay.recursive()),
                place.value(SIBLINGS, "1", siblings),
                place.value(STATES, "1", int(table.sizes[queries])),
                place.value(KINDS, "1", len(np.unique(table.final[:queries]))),
            ]

    def _peers(self, workload: str, kind: QueryKind) -> Iterator[list[Value]]:
        """Figure 6."""
        trace = self._largest(workload, kind)
        for peers in self.chosen.peers:
            place = self._place("", self._variant(workload, kind), peers, self.chosen.queries[-1])
            yield traffic_values(place, Replay(trace, Ring.of(peers)).recursive())

    def _loads(self, workload: str, kind: QueryKind) -> Iterator[list[Value]]:
        """Figure 7."""
        trace = self._largest(workload, kind)
        variant, queries = self._variant(workload, kind), self.chosen.queries[-1]
        peers = self.chosen.peers[0]
        for virtual in (1, 3):
            place = self._place(variant, f"storage, {virtual} virtual", peers, queries)
            yield storage(trace.table, Ring.of(peers, virtual), place)
        for name, virtual, replicas in (
            ("filtering, 1 virtual", 1, 0),
            ("filtering", 3, 0),
            ("filtering, replicas", 3, 10),
        ):
            place = self._place(variant, name, peers, queries)
            ring = Ring.of(peers, virtual)
            yield filtering(trace, ring, place, replicas, self.inputs.definition.seed)
        # As the product has it, which is not the paper's.
        pieces = cut_by_peers(trace.table, self.chosen.queries_max)
        for name, most in (
            ("pieces", float("inf")),
            ("pieces, shared from an average peer's work on", 1.0),
            ("pieces, shared from half of it on", 0.5),
            ("pieces, shared from a quarter of it on", 0.25),
        ):
            place = self._place(variant, name, peers, queries)
            ring = Ring.of(peers, 3)
            seed = self.inputs.definition.seed
            yield in_shared_pieces(trace, pieces, ring, place, most, seed)

    def _lengths(self, workload: str, kind: QueryKind) -> Iterator[list[Value]]:
        """What l does; the paper leaves it to an extended version."""
        for length in self.chosen.lengths:
            trace = self._largest(workload, kind, length)
            replay = Replay(trace, Ring.of(self.chosen.peers[0]))
            variant = self._variant(workload, kind)
            place = self._place(variant, f"l = {length}", 0, self.chosen.queries[-1])
            held = states_held(trace.table, length) / len(trace.table)
            yield [
                *traffic_values(place, replay.recursive()),
                place.value("copies of a state", "1", held),
            ]

    def _savings(self, workload: str, kind: QueryKind) -> Iterator[list[Value]]:
        """Caches, batches and pieces against the paper's method, over the same documents."""
        chosen, variant = self.chosen, self._variant(workload, kind)
        trace = self._largest(workload, kind)
        ring = Ring.of(chosen.peers[0])
        replay = Replay(trace, ring)
        counted = range(chosen.sample, chosen.documents)
        load, hit = load_and_hits(trace, range(chosen.sample))

        def place(series: str, x: float = 0) -> Place:
            return self._place(variant, series, x, chosen.queries[-1])

        traffic = replay.recursive()
        base = float(traffic.messages[chosen.sample :].mean())
        yield [
            place(RECURSIVE).value(MESSAGES, "1", base),
            place(RECURSIVE).value("fewer", "x", 1.0),
            place(RECURSIVE).value(CHAIN, "1", traffic.chain_looked_up[chosen.sample :].mean()),
            place(RECURSIVE).value(WHOLE, "MB", traffic.whole[chosen.sample :].mean() / 1e6),
            place(RECURSIVE).value(SUBTREE, "MB", traffic.subtree[chosen.sample :].mean() / 1e6),
        ]
        for states in chosen.caches:
            messages = with_cache(trace, replay.is_sent, counted, load, states)
            yield fewer(place("states at every peer", states), messages, base)
        for batch in chosen.batches:
            messages = in_batches(trace, replay.is_sent, counted, batch)
            yield fewer(place(BATCHES, batch), messages, base)
        for count in chosen.pieces:
            pieces = cut(trace.table, load, hit, count)
            found = in_pieces(trace, pieces, ring, counted)
            here = place(PIECES, count)
            yield [
                *fewer(here, found.messages, base),
                # The publisher has the top, and looks the pieces up at once.
                here.value(CHAIN, "1", found.hops),
                here.value(WHOLE, "MB", found.whole / 1e6),
                here.value(SUBTREE, "MB", found.below / 1e6),
                here.value("MB, what is read", "MB", found.read / 1e6),
                here.value("states of the top", "1", float((pieces.number < 0).sum())),
                here.value("visits by publishers", "%", 100 * found.top_work),
                here.value("visits by one peer", "%", 100 * found.peer_work),
                here.value("states of one peer", "%", 100 * found.peer_states),
                here.value("messages to one peer", "%", 100 * found.peer_messages),
            ]

    def _simulated(self, workload: str, kind: QueryKind) -> Iterator[list[Value]]:
        """Both protocols in the simulator, and pieces cut beforehand or by their peers."""
        chosen, variant = self.chosen, self._variant(workload, kind)
        peers, queries = chosen.peers[0], chosen.queries[-1]
        documents = self.inputs.messages(workload, chosen.documents)
        texts = list(self.inputs.texts(workload, kind, queries))
        trace = self._largest(workload, kind)
        load, hit = load_and_hits(trace, range(chosen.sample))
        never = PieceSettings(queries_max=2**31, found_max=float("inf"))
        by_peers = replace(never, queries_max=chosen.queries_max)
        # Pieces are cut by what the sample finds; states are what they are.
        states = of_states(texts, documents[chosen.sample :], peers)

        def pieces(settings: PieceSettings, count: int = 0) -> Sent:
            records = cut(trace.table, load, hit, count).records() if count else None
            return simulated(texts, documents, peers, settings, records, chosen.sample)

        runs: list[tuple[str, float, Callable[[], Sent]]] = [
            (RECURSIVE, 0, lambda: states),
            *((PIECES, count, partial(pieces, never, count)) for count in chosen.pieces),
            ("pieces, cut by peers", 0, partial(pieces, by_peers)),
        ]
        base = states.entering
        for series, x, run in runs:
            sent = run()
            place = self._place(variant, series, x, queries)
            yield [
                *fewer(place, sent.entering, base),
                place.value("all questions", "1", sent.questions),
                place.value("MB, all", "MB", sent.megabytes),
                place.value(HOPS, "1", sent.chain),
                place.value(CHAIN, "1", sent.chain_looked_up),
                place.value("cuts", "1", float(sent.cuts)),
            ]


def fewer(place: Place, messages: float, base: float) -> list[Value]:
    """Messages a document, and how many times fewer they are."""
    ratio = base / messages if messages else float("inf")
    return [place.value(MESSAGES, "1", messages), place.value("fewer", "x", ratio)]


def traffic_values(place: Place, traffic: Traffic) -> list[Value]:
    """Means over documents."""
    return [
        place.value(MESSAGES, "1", float(traffic.messages.mean())),
        place.value(LOOKED_UP, "1", float(traffic.looked_up.mean())),
        place.value(HOPS, "1", float(traffic.chain.mean())),
        place.value(CHAIN, "1", float(traffic.chain_looked_up.mean())),
        place.value(WHOLE, "MB", float(traffic.whole.mean()) / 1e6),
        place.value(SUBTREE, "MB", float(traffic.subtree.mean()) / 1e6),
    ]
