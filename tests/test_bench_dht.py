"""`pathcast-lab bench dht-figures`: arithmetic over a trace counts what an execution does.

If these fail, figures show messages, hops and bytes of an execution that nobody does.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[bench]'")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from pathcast.dht.events import Events, EventTree
from pathcast.dht.fragment import Symbol
from pathcast.dht.gates import Path as StatePath
from pathcast.dht.gates import gates_of
from pathcast.dht.identifiers import identifier, state_key
from pathcast.dht.piece_finder import PieceFinder
from pathcast.dht.piece_records import NOTHING, PieceLink, PieceRecord, Reads, joined, read_behind
from pathcast.errors import UnsupportedQueryError
from pathcast.message import MessageTree
from pathcast.query import compile_query
from pathcast.schema import parse_dtd
from pathcast.workload import (
    DocumentParameters,
    QueryParameters,
    domain_graph,
    generate_documents,
    generate_queries,
)
from pathcast_lab.bench.dht.documents import Documents
from pathcast_lab.bench.dht.loads import filtering, states_held, storage
from pathcast_lab.bench.dht.pieces import TOP, Pieces, cut
from pathcast_lab.bench.dht.replay import Replay
from pathcast_lab.bench.dht.ring import Ring
from pathcast_lab.bench.dht.savings import (
    ENTRY_BYTES,
    in_batches,
    in_pieces,
    load_and_hits,
    with_cache,
)
from pathcast_lab.bench.dht.state_table import StateTable
from pathcast_lab.bench.dht.statements import STATEMENTS, judge
from pathcast_lab.bench.dht.trace import Trace
from pathcast_lab.bench.figures.output import read_run
from pathcast_lab.bench.figures.point import Place
from pathcast_lab.bench.figures.verdicts import Answer
from pathcast_lab.cli import build_app
from pathcast_papers.dht.automaton import DOCUMENT, Visit, held_until, visits
from pathcast_papers.filtering.nfa import CombinedNFA
from pathcast_papers.language import normalise
from pathcast_papers.message import parse_message

RECURSIVE = parse_dtd(
    "<!ELEMENT a (b|c)*><!ELEMENT b (a|b|c)*><!ELEMENT c (b*, d?)><!ELEMENT d (#PCDATA)>"
)


class Case:
    """Generated queries and documents, and every visit of them, one after another."""

    def __init__(self, seed: int, *, count: int = 120) -> None:
        graph = RECURSIVE if seed % 2 else domain_graph("news")
        queries = QueryParameters(
            count=count, seed=seed, depth_max=6, wildcard=0.3, descendant=0.4, distinct=False
        )
        documents = DocumentParameters(count=6, seed=seed, depth_max=4, repeats_max=2)
        self.queries = list(generate_queries(graph, queries))
        self.messages = list(generate_documents(graph, documents))
        self.trees = [parse_message(message) for message in self.messages]
        self.nfa = CombinedNFA()
        for text in self.queries:
            self.nfa.insert(normalise(text).steps)
        self.table = StateTable.of(self.queries)
        self.documents = Documents.of(self.messages, self.table.labels)
        self.numbers = {self.table.key(state): state for state in range(len(self.table))}

    def visits(self, document: int, length: int = 0) -> list[Visit]:
        return list(visits(self.nfa.initial, self.trees[document], length))

    def names(self, document: int, element: int) -> tuple[str, ...]:
        tree = self.trees[document]
        found: list[str] = []
        while element != DOCUMENT:
            found.append(tree.name[element][1])
            element = tree.parent[element]
        return tuple(reversed(found))

    def size(self, document: int, element: int) -> int:
        first = int(np.searchsorted(self.documents.document, document))
        if element == DOCUMENT:
            return len(self.messages[document])
        return int(self.documents.size[first + element])


SEEDS = range(4)


def paths_of(documents: Documents, labels: Mapping[Symbol, int]) -> list[tuple[str | None, ...]]:
    names = {number: label[1] for label, number in labels.items() if label}
    found: list[tuple[str | None, ...]] = [()]
    for node in range(1, len(documents.above)):
        name = names.get(int(documents.name[node]), "?")
        found.append((*found[documents.above[node]], name))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_states_are_those_of_the_automaton(seed: int) -> None:
    case = Case(seed)
    assert len(case.table) == case.nfa.state_count
    wanted = {
        state_key(visit)
        for text in case.queries
        for labels in [path_of(text)]
        for visit in itertools.accumulate(((label,) for label in labels), initial=())
    }
    assert set(case.numbers) == wanted
    for query, text in enumerate(case.queries):
        assert case.table.key(int(case.table.final[query])) == state_key(path_of(text))
        few = StateTable.of(case.queries[: query + 1]) if query % 50 == 0 else None
        assert few is None or len(few) == case.table.sizes[query + 1]
    places = case.table.places(np.arange(len(case.table)))
    assert all(identifier(key) >> 96 == places[state] for key, state in case.numbers.items())
    lengths = case.table.key_lengths()
    assert all(len(key.encode()) == lengths[state] for key, state in case.numbers.items())


def path_of(text: str) -> StatePath:
    [gate] = gates_of(compile_query(text))
    return gate.labels


def test_a_query_that_is_no_linear_path_is_refused() -> None:
    for text in ("a", "/a[b]/", "/a//", ""):
        with pytest.raises(UnsupportedQueryError, match="linear path"):
            StateTable.of([text])


@pytest.mark.parametrize("length", [0, 1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_visits_are_those_of_the_automaton(seed: int, length: int) -> None:
    """Each (source, state, element), over all documents and for the first queries too."""
    case = Case(seed)
    paths = paths_of(case.documents, case.table.labels)
    names = {path[-1] for path in paths if path}
    for queries in (len(case.queries), 20):
        trace = Trace.of(case.table, case.documents, length).first_queries(queries)
        part = CombinedNFA()
        for text in case.queries[:queries]:
            part.insert(normalise(text).steps)
        expected: Counter[object] = Counter()
        for document, tree in enumerate(case.trees):
            for visit in visits(part.initial, tree, length):
                where = case.names(document, visit.element)
                where = tuple(name if name in names else "?" for name in where)
                source = None if visit.source is None else state_key(visit.source)
                expected[source, state_key(visit.path), where] += 1
        occurs = case.documents.occurrences
        found: Counter[object] = Counter()
        for row in range(len(trace)):
            at = int(trace.source[row])
            key = None if at < 0 else case.table.key(int(trace.state[at]))
            state = case.table.key(int(trace.state[row]))
            found[key, state, paths[trace.node[row]]] += int(occurs[trace.node[row]])
        assert found == expected
        assert trace.is_done.sum() == len(
            {(n, s) for n, s in zip(trace.node, trace.state, strict=True)}
        )


@pytest.mark.parametrize("length", [0, 1])
@pytest.mark.parametrize("seed", SEEDS)
def test_recursive_traffic_is_that_of_the_visits(seed: int, length: int) -> None:
    case = Case(seed)
    ring = Ring.of(20, seed=seed)
    traffic = Replay(Trace.of(case.table, case.documents, length), ring, publishers=3).recursive()
    for document in range(len(case.messages)):
        hops: dict[tuple[StatePath, int], tuple[int, int]] = {}
        messages = looked_up = whole = subtree = 0
        longest = farthest = 0
        for visit in case.visits(document, length):
            key = np.array([identifier(state_key(visit.path)) >> 96], np.uint64)
            if visit.source is None:
                start, before = np.array([document % 3]), (0, 0)
            else:
                source = np.array([identifier(state_key(visit.source)) >> 96], np.uint64)
                start, before = ring.at(source), (0, 0)
                above = case.trees[document].parent
                element = visit.element
                for _ in range(length + 1):
                    element = above[element] if element != DOCUMENT else element
                before = hops[visit.source, element]
            steps = int(ring.hops(start, key)[0])
            here = before[0] + (steps > 0), before[1] + steps
            hops[visit.path, visit.element] = max(
                hops.get((visit.path, visit.element), (0, 0)), here
            )
            longest, farthest = max(longest, here[0]), max(farthest, here[1])
            messages += steps > 0
            looked_up += steps
            whole += (steps > 0) * len(case.messages[document])
            subtree += (steps > 0) * case.size(document, visit.element)
        assert traffic.messages[document] == messages
        assert traffic.looked_up[document] == looked_up
        assert traffic.whole[document] == whole
        assert traffic.subtree[document] == subtree
        assert traffic.chain[document] == longest
        assert traffic.chain_looked_up[document] == farthest


@pytest.mark.parametrize("seed", SEEDS)
def test_iterative_traffic_is_that_of_the_visits(seed: int) -> None:
    case = Case(seed)
    ring = Ring.of(20, seed=seed)
    traffic = Replay(Trace.of(case.table, case.documents), ring, publishers=3).iterative()
    for document, tree in enumerate(case.trees):
        done = {(visit.path, visit.element) for visit in case.visits(document)}
        asked: dict[int, list[int]] = {}
        size = 0
        for path, element in done:
            key = state_key(path)
            place = np.array([identifier(key) >> 96], np.uint64)
            far = int(ring.hops(np.array([document % 3]), place)[0])
            asked.setdefault(element, []).append(far)
            children = [child for child, above in enumerate(tree.parent) if above == element]
            names = sum(len(tree.name[child][1]) for child in children)
            size += (far > 0) * (len(key) + names) + (element != DOCUMENT) * len(key)
        every = [far for each in asked.values() for far in each]
        assert traffic.messages[document] == 2 * sum(far > 0 for far in every)
        assert traffic.looked_up[document] == sum(far + (far > 0) for far in every)
        assert traffic.chain[document] == 2 * sum(max(each) > 0 for each in asked.values())
        assert traffic.chain_looked_up[document] == sum(
            max(each) + (max(each) > 0) for each in asked.values()
        )
        assert traffic.whole[document] == size


def entered(case: Case, number: np.ndarray, document: int) -> tuple[dict[int, set[int]], set[int]]:
    """Elements at which each piece is entered, and what is visited of the top."""
    found: dict[int, set[int]] = {}
    top: set[int] = set()
    for visit in case.visits(document):
        state = case.numbers[state_key(visit.path)]
        if number[state] == TOP:
            top.add(state)
        elif visit.source is not None and number[case.numbers[state_key(visit.source)]] == TOP:
            found.setdefault(int(number[state]), set()).add(visit.element)
    return found, top


@pytest.mark.parametrize("seed", SEEDS)
def test_pieces_find_what_the_whole_automaton_finds(seed: int) -> None:
    """The top at the publisher, pieces where they are entered, with what is read and no more."""
    case = Case(seed)
    trace = Trace.of(case.table, case.documents)
    load, hit = load_and_hits(trace, range(3))
    loops = {case.numbers[k[:-2]]: n for k, n in case.numbers.items() if k.endswith("/$")}
    accepting = set(case.table.final.tolist())
    for count in (1, 4, 30):
        pieces = cut(case.table, load, hit, count)
        assert len(pieces.root) == pieces.number.max() + 1
        for document, tree in enumerate(case.trees):
            message = EventTree(Events.of(tree))
            expected = {
                (case.numbers[state_key(visit.path)], left_of(tree, visit.element))
                for visit in case.visits(document)
            }
            # A //-child is visited from the next element on, and is active where its source is.
            expected |= {(loops[state], e) for state, e in expected if state in loops}
            found, left = run_part(case, pieces, TOP, message, {"start": [0]})
            entries: dict[int, dict[str, list[int]]] = {}
            for state, element in left:
                inside = entries.setdefault(int(pieces.number[state]), {})
                inside.setdefault(case.table.key(state), []).append(element)
            assert TOP not in entries
            for piece, where in entries.items():
                reads = [(e, read_in(case, pieces, k)) for k, its in where.items() for e in its]
                part = EventTree(message.projected(reads))
                visited, rest = run_part(case, pieces, piece, part, where)
                assert not rest
                # Where nothing is read, a //-child only goes on to loop.
                of_piece = {each for each in expected if pieces.number[each[0]] == piece}
                assert visited == {each for each in of_piece if each[1] in part}
                assert all(state not in accepting for state, _ in of_piece - visited)
                found |= visited
            assert {each for each in expected if each[0] in accepting} <= found <= expected


def left_of(tree: MessageTree, element: int) -> int:
    return 0 if element == DOCUMENT else 2 * element - tree.depth[element] + 1


def read_in(case: Case, pieces: Pieces, root: str) -> Reads:
    piece = pieces.number[case.numbers[root]]
    found = NOTHING
    for key, state in case.numbers.items():
        if pieces.number[state] == piece and f"{key}/".startswith(f"{root}/"):
            found = joined(found, read_behind(root, key))
    return found


def run_part(
    case: Case, pieces: Pieces, piece: int, message: EventTree, entered: dict[str, list[int]]
) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """States of a piece that are active at elements, and the states of others that are entered."""
    table, held = case.table, pieces.number == piece
    outside = np.flatnonzero((table.parent >= 0) & ~held & held[table.parent])
    record = PieceRecord(
        entries={table.key(state): {} for state in np.flatnonzero(held).tolist()},
        links={table.key(state): PieceLink("", NOTHING) for state in outside.tolist()},
    )
    finder = PieceFinder()
    finder.follow(record)
    [ends] = finder.find([(message, entered)])
    found = {(case.numbers[key], element) for key, element in ends if key in record.entries}
    left = {(case.numbers[key], element) for key, element in ends if key in record.links}
    return found, left


@pytest.mark.parametrize("seed", SEEDS)
def test_traffic_of_pieces_is_that_of_where_they_are_entered(seed: int) -> None:
    case = Case(seed)
    trace = Trace.of(case.table, case.documents)
    load, hit = load_and_hits(trace, range(3))
    pieces = cut(case.table, load, hit, 12)
    ring = Ring.of(8, seed=seed)
    owner = ring.owners(case.table.places(pieces.root))
    final = set(case.table.final.tolist())
    messages, whole, below, work = [], [], [], Counter[int]()
    for document in range(3, len(case.messages)):
        where, top = entered(case, pieces.number, document)
        peers: dict[int, set[int]] = {}
        for piece, elements in where.items():
            peers.setdefault(int(owner[piece]), set()).update(elements)
        messages.append(len(peers) + bool(top & final))
        entries = sum(
            1
            for visit in case.visits(document)
            for state in [case.numbers[state_key(visit.path)]]
            if pieces.number[state] != TOP
            and visit.source is not None
            and pieces.number[case.numbers[state_key(visit.source)]] == TOP
        )
        whole.append(len(peers) * len(case.messages[document]) + ENTRY_BYTES * entries)
        ends = case.trees[document].element_end
        below.append(ENTRY_BYTES * entries)
        for elements in peers.values():
            outer = [e for e in elements if not any(o < e < ends[o] for o in elements)]
            below[-1] += sum(case.size(document, element) for element in outer)
        for visit in case.visits(document):
            work[int(pieces.number[case.numbers[state_key(visit.path)]])] += 1
    found = in_pieces(trace, pieces, ring, range(3, len(case.messages)))
    assert found.messages == pytest.approx(np.mean(messages))
    assert found.whole == pytest.approx(np.mean(whole))
    assert found.below == pytest.approx(np.mean(below))
    assert found.read <= found.below
    held = Counter(owner[number] for number in pieces.number.tolist() if number != TOP)
    assert found.peer_states == pytest.approx(max(held.values()) / len(case.table))
    assert found.top_work == pytest.approx(work[TOP] / work.total())
    by_peer = Counter[int]()
    for piece, visits_ in work.items():
        if piece != TOP:
            by_peer[int(owner[piece])] += visits_
    assert found.peer_work == pytest.approx(max(by_peer.values()) / work.total())


@pytest.mark.parametrize("seed", SEEDS)
def test_batches_and_copies_save_the_messages_that_they_should(seed: int) -> None:
    case = Case(seed)
    trace = Trace.of(case.table, case.documents)
    ring = Ring.of(20, seed=seed)
    sent = Replay(trace, ring).is_sent
    counted = range(1, 6)
    load, hit = load_and_hits(trace, counted)

    def owner(path: StatePath) -> int:
        return int(ring.owners(np.array([identifier(state_key(path)) >> 96], np.uint64))[0])

    asked, documents = Counter[int](), Counter[int]()
    for document in counted:
        every = case.visits(document)
        asked.update(case.numbers[state_key(visit.path)] for visit in every)
        documents.update({case.numbers[state_key(visit.path)] for visit in every})
    assert dict(asked) == {s: load[s] for s in np.flatnonzero(load)}
    assert dict(documents) == {s: hit[s] for s in np.flatnonzero(hit)}
    for batch in (1, 2, 5):
        total = 0
        for first in range(counted.start, counted.stop, batch):
            one = set()
            for document in range(first, min(first + batch, counted.stop)):
                for visit in case.visits(document):
                    level = case.documents.level[0] + len(case.names(document, visit.element))
                    is_sent = visit.source is None or owner(visit.source) != owner(visit.path)
                    if is_sent:
                        one.add((visit.source or visit.path, visit.path, level))
            total += len(one)
        assert in_batches(trace, sent, counted, batch) == pytest.approx(total / len(counted))
    everywhere = with_cache(trace, sent, counted, load, len(case.table))
    assert everywhere == 0
    assert with_cache(trace, sent, counted, load, 0) == in_each(trace, sent, counted)
    saved = [with_cache(trace, sent, counted, load, states) for states in (0, 40, 200)]
    assert saved[0] > saved[1] > saved[2]


def in_each(trace: Trace, sent: np.ndarray, documents: range) -> float:
    by_node = np.bincount(trace.node, sent, len(trace.documents.above))
    pairs = np.isin(trace.documents.pair_document, documents)
    counts = trace.documents.counts[pairs] * by_node[trace.documents.pair_node[pairs]]
    return float(counts.sum() / len(documents))


@pytest.mark.parametrize("seed", SEEDS)
def test_loads_are_of_the_states_that_peers_own(seed: int) -> None:
    case = Case(seed)
    trace = Trace.of(case.table, case.documents)
    ring = Ring.of(300, virtual=3, seed=seed)
    assert sorted(Counter(ring.peer.tolist()).values()) == [3] * 300
    place = Place("7", "", "", 0, 0)
    stored = {value.measure: value.spread.median for value in storage(case.table, ring, place)}
    assert stored["total"] == len(case.table) - 1
    owned = Counter[int]()
    for key, state in case.numbers.items():
        peer = int(ring.owners(np.array([identifier(key) >> 96], np.uint64))[0])
        owned[peer] += int((case.table.parent == state).sum())
    assert stored["first 200"] == sum(sorted(owned.values())[-200:])
    alone, shared = (
        {v.measure: v.spread.median for v in filtering(trace, ring, place, replicas, seed)}
        for replicas in (0, 10)
    )
    assert alone["total"] == pytest.approx(shared["total"])
    assert shared["most, share"] < alone["most, share"]
    # Peers with large parts of the circle get no more of the replicas than others.
    assert shared["last 200, share"] > alone["last 200, share"]
    assert shared["notices"] == shared["states with replicas"] * 299 > 0
    for length in (0, 1, 2):
        paths = [path_of(text) for text in dict.fromkeys(case.queries)]
        held = {
            (path[:depth], path[:until])
            for path in paths
            for depth in range(len(path) + 1)
            for until in range(depth, held_until(path, depth, length) + 1)
        }
        assert states_held(case.table, length) == len(held)


def test_statements_are_judged_by_values() -> None:
    def storages(first: float, second: float) -> list[object]:
        return [
            Place("7", "NITF, random", f"storage, {virtual} virtual", 1000, 0).value(
                "first 200, share", "%", share
            )
            for virtual, share in ((1, first), (3, second))
        ]

    good, bad = judge("7", storages(53.0, 38.0)), judge("7", storages(53.0, 53.0))  # type: ignore[arg-type]
    assert [verdict.answer for verdict in good[:3]] == [Answer.HOLDS] * 3
    assert bad[0].answer is bad[2].answer is Answer.FAILS
    assert good[3].answer is Answer.UNMEASURED
    assert {name for name in STATEMENTS if not judge(name, [])} == set()


def test_a_quick_run_writes_record_plots_and_page(tmp_path: Path) -> None:
    names = ("run", "3", "4", "5", "distinct", "6", "7", "lengths", "savings", "simulated")
    page = tmp_path / "page.md"
    page.write_text(
        "".join(f"<!-- figures:dht_{n} -->\n<!-- /figures:dht_{n} -->\n" for n in names)
    )
    options = ["--quick", "--out", str(tmp_path), "--page", str(page)]
    result = CliRunner().invoke(build_app(), ["bench", "dht-figures", *options])
    assert result.exit_code == 0, result.output
    [run] = tmp_path.glob("*-dht-figures-quick")
    record, values = read_run(run)
    assert [figure["name"] for figure in record["figures"]] == list(names[1:])
    assert all(figure["is_complete"] for figure in record["figures"])
    assert {value.figure for value in values} == set(names[1:])
    text = page.read_text(encoding="utf-8")
    headings = ("look-ups counted", "messages to index one", "first 200, share", "pieces")
    assert all(heading in text for heading in headings)
    assert all((run / f"dht-figure-{n}.png").is_file() for n in "34567")
