"""The paper's algorithms agree with the oracle on all of their fragments, and are the paper's.

If the agreement fails, a figure compares algorithms that answer different questions. If the tests
of structure fail, it compares algorithms that are not the paper's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from generators import (
    ALPHABET,
    ALPHABET_WITH_NAMESPACES,
    LINEAR,
    VALUES,
    Alphabet,
    MessageShape,
    QueryShape,
    random_message,
    random_query,
)
from oracles.paths import of_papers
from pathcast import query as product
from pathcast.errors import UnsupportedQueryError
from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast_papers import parse
from pathcast_papers.filtering.algorithm import Algorithm, Filter
from pathcast_papers.filtering.hybrid import Hybrid, substring_nodes
from pathcast_papers.filtering.oracle import is_satisfied
from pathcast_papers.filtering.predicate_sorting import PredicateTable, StreamStatistics
from pathcast_papers.filtering.query_plan import QueryPlan
from pathcast_papers.filtering.selection_postponed import LISTED_MAX
from pathcast_papers.filtering.xfilter import UNRESTRICTED, XFilter, path_nodes
from pathcast_papers.filtering.yfilter import Selection, YFilter
from pathcast_papers.language import NormalQuery, normalise

WORKLOADS: dict[str, tuple[Alphabet, QueryShape, MessageShape]] = {
    "linear": (ALPHABET, LINEAR, MessageShape()),
    "long-linear": (
        ALPHABET,
        QueryShape(steps_max=8, predicate_odds=0, nesting_max=0),
        MessageShape(depth_max=8, children_max=2),
    ),
    "recursive": (
        Alphabet(elements=("a", "b")),
        QueryShape(steps_max=6, predicate_odds=0, nesting_max=0),
        MessageShape(depth_max=9, children_max=2),
    ),
    "linear-names": (
        ALPHABET_WITH_NAMESPACES,
        QueryShape(predicate_odds=0, nesting_max=0, has_extensions=True),
        MessageShape(),
    ),
    "values": (ALPHABET, VALUES, MessageShape()),
    "many-values": (
        ALPHABET,
        QueryShape(steps_max=3, nesting_max=0, predicate_odds=60),
        MessageShape(),
    ),
    "nested": (ALPHABET, QueryShape(nesting_max=1, predicate_odds=40), MessageShape()),
    "nested-deep": (
        ALPHABET,
        QueryShape(nesting_max=4, predicate_odds=40, steps_max=3),
        MessageShape(),
    ),
    "names": (ALPHABET_WITH_NAMESPACES, QueryShape(has_extensions=True), MessageShape()),
}

algorithms = pytest.mark.parametrize("algorithm", list(Algorithm), ids=lambda a: a.value)
workloads = pytest.mark.parametrize("workload", sorted(WORKLOADS))


class Generated:
    """Queries and messages from one seed."""

    def __init__(self, workload: str, seed: int) -> None:
        alphabet, shape, message_shape = WORKLOADS[workload]
        generator = random.Random(f"{workload} {seed}")
        texts = [random_query(generator, alphabet, shape) for _ in range(20)]
        namespaces = dict(alphabet.namespaces)
        self.normal = {text: of_papers(product.normalise(text, namespaces)) for text in texts}
        self.messages = [random_message(generator, alphabet, message_shape) for _ in range(4)]

    def trees(self) -> Iterator[tuple[bytes, MessageTree]]:
        for message in self.messages:
            yield message, parse(message, Limits())


def is_linear(query: NormalQuery) -> bool:
    return not any(step.stages for step in query.steps)


def is_match(filter_: Filter, query: str, message: str) -> bool:
    plan = QueryPlan(normalise(query))
    filter_.insert(plan)
    return plan in filter_.match(parse(message.encode(), Limits()))


@algorithms
@workloads
def test_algorithm_agrees_with_the_oracle(algorithm: Algorithm, workload: str) -> None:
    """Every query of the fragment is answered as by the oracle; every other one is refused."""
    pairs = matches = 0
    for seed in range(8):
        generated = Generated(workload, seed)
        filter_ = algorithm.new()
        plans: dict[str, QueryPlan] = {}
        for text, normal in generated.normal.items():
            plan = QueryPlan(normal)
            if algorithm.takes_predicates or is_linear(normal):
                filter_.insert(plan)
                plans[text] = plan
            else:
                with pytest.raises(UnsupportedQueryError, match="linear paths only"):
                    filter_.insert(plan)
        for message, tree in generated.trees():
            satisfied = filter_.match(tree)
            for text, plan in plans.items():
                expected = is_satisfied(generated.normal[text], tree)
                assert (plan in satisfied) == expected, (algorithm.value, text, message)
                pairs += 1
                matches += expected
    if workload in ("linear", "values", "nested", "recursive") and plans:
        assert pairs > 20, "the workload compares too little to prove anything"
        assert matches > 0


@pytest.mark.parametrize("workload", ["linear", "long-linear", "recursive", "linear-names"])
def test_yfilter_of_bare_paths_agrees_with_the_oracle(workload: str) -> None:
    """3.2.4: without a single condition no path matches are kept, which is another execution."""
    matches = 0
    for seed in range(12):
        generated = Generated(workload, seed)
        yfilter = YFilter()
        plans = {
            text: QueryPlan(normal)
            for text, normal in generated.normal.items()
            if is_linear(normal)
        }
        for plan in plans.values():
            yfilter.insert(plan)
        for message, tree in generated.trees():
            satisfied = yfilter.match(tree)
            for text, plan in plans.items():
                expected = is_satisfied(generated.normal[text], tree)
                assert (plan in satisfied) == expected, (text, message)
                matches += expected
    assert matches > 50


def test_enough_pairs_are_compared() -> None:
    """Hundreds of pairs for each algorithm, some of them matches."""
    generated = [Generated("linear", seed) for seed in range(12)]
    pairs = sum(len(one.normal) * len(one.messages) for one in generated)
    linear = sum(is_linear(normal) for one in generated for normal in one.normal.values())
    matches = sum(
        is_satisfied(normal, tree)
        for one in generated
        for _, tree in one.trees()
        for normal in one.normal.values()
        if is_linear(normal)
    )
    assert pairs > 500
    assert linear > 100
    assert matches > 100


@algorithms
def test_deletion_leaves_the_other_queries(algorithm: Algorithm) -> None:
    """Section 4.6: after a deletion the filter answers as if the query had never been there."""
    workload = "many-values" if algorithm.takes_predicates else "long-linear"
    for seed in range(8):
        generated = Generated(workload, seed)
        plans = {
            text: QueryPlan(normal)
            for text, normal in generated.normal.items()
            if algorithm.takes_predicates or is_linear(normal)
        }
        filter_, fresh = algorithm.new(), algorithm.new()
        empty = filter_.size
        for plan in plans.values():
            filter_.insert(plan)
        for number, (text, plan) in enumerate(list(plans.items())):
            if number % 2:
                filter_.delete(plan)
                del plans[text]
        for plan in plans.values():
            fresh.insert(plan)
        assert filter_.size == fresh.size
        for message, tree in generated.trees():
            assert filter_.match(tree) == fresh.match(tree), message
        for plan in plans.values():
            filter_.delete(plan)
        assert filter_.size == empty


def test_path_nodes_of_a_query() -> None:
    """Figure 5a: position, relative position, level; no nodes for wildcards."""
    nodes = path_nodes(QueryPlan(normalise("/a/*/b//c/d")))
    found = [(n.position, n.symbol and n.symbol[1], n.relative_position, n.level) for n in nodes]
    assert found == [
        (1, "a", 0, 1),
        (2, "b", 2, 0),
        (3, "c", UNRESTRICTED, UNRESTRICTED),
        (4, "d", 1, 0),
    ]
    assert [n.next_node for n in nodes] == [*nodes[1:], None]
    (first,) = path_nodes(QueryPlan(normalise("/*/*/b")))
    assert (first.relative_position, first.level) == (0, 3)


def test_list_balance_evens_out_the_candidate_lists() -> None:
    """Figures 5b and 6: the basic algorithm puts all queries under their first name."""
    texts = ["/a/b/c", "/a/b/d", "/a/c/d", "/a/c/b", "/a/d/c", "/a/d/b"]
    basic, balanced = XFilter(), XFilter(balances_lists=True)
    for text in texts:
        basic.insert(QueryPlan(normalise(text)))
        balanced.insert(QueryPlan(normalise(text)))
    assert list(basic.list_lengths().values()) == [6]
    assert max(balanced.list_lengths().values()) <= 2
    assert sum(balanced.list_lengths().values()) == 6


@pytest.mark.parametrize(
    ("query", "message", "expected"),
    [
        ("/a/b/c", "<a><b><c/></b></a>", True),
        ("/a/b/c", "<a><x><c/></x><b/></a>", False),
        ("/a/b/c", "<r><a><b><c/></b></a></r>", False),
        ("//b/c", "<r><b><x/><c/></b></r>", True),
        ("//a/*/c", "<r><a><a><x><c/></x></a></a></r>", True),
        ("//a/*//c", "<a><c/></a>", False),
        ("//a/*//c", "<a><x><c/></x></a>", True),
        ("//a//b/c", "<a><b><a><c/></a></b></a>", False),
        ("//a//b/c", "<a><b><x><b><c/></b></x></b></a>", True),
    ],
)
def test_prefix_is_run_over_the_open_elements(query: str, message: str, expected: bool) -> None:
    """3.1.2: the pivot's prefix is a precondition; `c` is the pivot because its list is empty."""
    xfilter = XFilter(balances_lists=True)
    for text in ("/a", "/b", "//a", "//b"):
        xfilter.insert(QueryPlan(normalise(text)))
    assert is_match(xfilter, query, message) is expected
    assert xfilter.list_lengths()["", "c"] == 1


def test_wildcards_between_descendants_are_not_forgotten() -> None:
    """With a relative position of -1 alone, `/a/*//b` would be `/a//b`."""
    for algorithm in Algorithm:
        assert not is_match(algorithm.new(), "/a/*//b", "<a><b/></a>"), algorithm
        assert is_match(algorithm.new(), "/a/*//b", "<a><x><b/></x></a>"), algorithm


def test_promoted_nodes_are_taken_back() -> None:
    """3.1.3: the end of an element restores the lists; siblings must not add up."""
    for algorithm in Algorithm:
        assert not is_match(algorithm.new(), "/a/b/c", "<a><b/><x><c/></x></a>"), algorithm
        filter_ = algorithm.new()
        plan = QueryPlan(normalise("//b//c"))
        filter_.insert(plan)
        assert filter_.match(parse(b"<a><b/></a>", Limits())) == set()
        assert filter_.match(parse(b"<a><c/></a>", Limits())) == set(), algorithm


def test_xfilter_promotes_once_for_every_recursive_element() -> None:
    """4.5.2: the reason for the bell in figure 18. Hybrid does not, and has none."""
    message = b"<a>" * 6 + b"<b><c/></b>" + b"</a>" * 6
    xfilter, hybrid = XFilter(), Hybrid()
    for filter_ in (xfilter, hybrid):
        filter_.insert(QueryPlan(normalise("//a//b/c")))
        filter_.match(parse(message, Limits()))
    assert xfilter.transitions == 6 + 6 + 6
    assert hybrid.transitions == 6 + 1


def test_substrings_of_a_query() -> None:
    """3.3: split at `*` and `//`; the distance is to the end of the substring."""
    nodes = substring_nodes(QueryPlan(normalise("/a/b/*/c//d/e/f")))
    found = [("".join(str(s and s[1]) for s in n.symbols), n.distance, n.is_exact) for n in nodes]
    assert found == [("ab", 2, True), ("c", 2, True), ("def", 3, False)]


def test_substrings_are_shared_in_the_trie() -> None:
    """Two queries with the substrings ab and cd in another order: four trie nodes, not eight."""
    hybrid = Hybrid()
    hybrid.insert(QueryPlan(normalise("//a/b//c/d")))
    before = hybrid.size
    hybrid.insert(QueryPlan(normalise("//c/d//a/b")))
    assert before == 4 + 2
    assert hybrid.size == 4 + 4


def test_substrings_do_not_overlap() -> None:
    """`a/b` after `//` must begin below the `a` before it."""
    assert not is_match(Hybrid(), "/a//a/b", "<a><b/></a>")
    assert is_match(Hybrid(), "/a//a/b", "<a><a><b/></a></a>")


def statistics_of(*messages: str) -> StreamStatistics:
    statistics = StreamStatistics()
    for message in messages:
        statistics.observe(parse(message.encode(), Limits()))
    return statistics


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("//a[@x]", 0.5),
        ("//a[@x='1']", 0.25),
        ("//a[@x!='1']", 0.25),
        ("//a[@x<3]", 0.5 / 3),
        ("//a[@z]", 0.0),
        ("//nowhere[@x]", 0.0),
        ("//*[@x]", 2 / 5),
        ("//a[text()]", 0.25),
        ("//a[2]", 0.25),
    ],
)
def test_selectivity_estimates(query: str, expected: float) -> None:
    """5.3: [@attr] is how often it occurs, [@attr='v'] that by the number of its values."""
    statistics = statistics_of("<r><a x='1'/><a x='2'/><a/><a>t</a></r>")
    table = PredicateTable()
    table.insert(plan := QueryPlan(normalise(query)))
    [predicate] = table.of(plan)
    assert statistics.selectivity(predicate) == pytest.approx(expected)


def test_sorting_tries_the_selective_predicate_first() -> None:
    """Figure 24: fewer predicates are tried for the same answer."""
    message = "<r>" + "".join(f"<a x='1' y='{number}'/>" for number in range(20)) + "</r>"
    tree = parse(message.encode(), Limits())
    tried: dict[Selection, int] = {}
    for selection in (Selection.POSTPONED, Selection.SORTED):
        yfilter = YFilter(selection)
        plan = QueryPlan(normalise("/r/a[@x=1][@y=99]"))
        yfilter.insert(plan)
        yfilter.match(tree)  # After the first message there are statistics to sort by.
        before = yfilter.predicates_tried
        assert plan not in yfilter.match(tree)
        tried[selection] = yfilter.predicates_tried - before
    assert tried == {Selection.POSTPONED: 40, Selection.SORTED: 20}


def test_predicates_inserted_later_are_sorted_too() -> None:
    yfilter = YFilter(Selection.SORTED)
    tree = parse(b"<r><a x='1' y='2'/><a x='1' y='3'/></r>", Limits())
    yfilter.match(tree)
    plan = QueryPlan(normalise("/r/a[@x=1][@y=9]"))
    yfilter.insert(plan)
    yfilter.match(tree)
    assert yfilter.predicates_tried == 2


@pytest.mark.parametrize("selection", [Selection.POSTPONED, Selection.SORTED])
def test_listed_and_walked_path_matches_agree(selection: Selection) -> None:
    """Up to LISTED_MAX path matches are listed; both sides of the border give the same."""
    for depth in (LISTED_MAX - 1, LISTED_MAX, LISTED_MAX + 1, 40):
        for chosen in (0, depth // 2, depth - 1, None):
            tags = "".join(f"<a x='{int(level == chosen)}'>" for level in range(depth))
            message = f"{tags}<b y='1'/>{'</a>' * depth}"
            found = is_match(YFilter(selection), "//a[@x=1]//b[@y=1]", message)
            assert found is (chosen is not None)
