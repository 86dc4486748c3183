"""Which prefixes a message is cut at: the paper's traces and tables, and the best there are.

If these fail, chunks are cut that no query needs, or queries wait for a chunk that is too large.
"""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from pathcast.chunking.query_tree import QueryTree
from pathcast.chunking.scheme import generate_chunking_scheme, picks
from pathcast.schema import LabelPath
from pathcast_lab.bench.chunking.optimal import Goal, Sizes, cost, optimal_scheme


def label_path(text: str) -> LabelPath:
    return tuple(("", name) for name in text.strip("/").split("/"))


def tree_of(weights: dict[str, int]) -> QueryTree:
    tree = QueryTree()
    for text, weight in weights.items():
        tree.add(label_path(text), weight)
    return tree


DESCRIPTOR = "/ejb-jar/assembly-descriptor"
BEANS = "/ejb-jar/enterprise-beans"
EJB_QUERIES = {
    # Shares of A3 in thousandths: 54 % are of the descriptor, 46 % of the beans.
    f"{DESCRIPTOR}/container-transaction": 191,
    f"{DESCRIPTOR}/method-permission": 180,
    f"{DESCRIPTOR}/security-role": 170,
    f"{BEANS}/session": 163,
    f"{BEANS}/message-driven": 152,
    f"{BEANS}/entity": 144,
}
EJB_PREFIXES = {
    # 004, appendix A3.
    2: [DESCRIPTOR, BEANS],
    3: [f"{DESCRIPTOR}/container-transaction", DESCRIPTOR, BEANS],
    4: [*list(EJB_QUERIES)[:3], BEANS],
    5: [*list(EJB_QUERIES)[:4], BEANS],
    6: list(EJB_QUERIES),
}


def test_trace_of_figures_5_and_7() -> None:
    tree = tree_of({"/a/b/c": 2, "/a/b/d": 1})
    assert [(node.text, node.weight) for node in tree.nodes()] == [
        ("/a", 3),
        ("/a/b", 3),
        ("/a/b/c", 2),
        ("/a/b/d", 1),
    ]
    trace = [(pick.node.text, [each.text for each in pick.dropped]) for pick in picks(tree, 2)]
    assert trace == [("/a/b", []), ("/a/b/c", ["/a/b"]), ("/a/b/d", [])]
    assert generate_chunking_scheme(tree, 2) == (label_path("/a/b/c"), label_path("/a/b/d"))


@pytest.mark.parametrize("chunks", sorted(EJB_PREFIXES))
def test_prefixes_of_scenario_2(chunks: int) -> None:
    found = generate_chunking_scheme(tree_of(EJB_QUERIES), chunks)
    assert found == tuple(sorted(label_path(text) for text in EJB_PREFIXES[chunks]))


def test_the_heaviest_is_descended_from_again_and_again() -> None:
    # By the letter of Figure 6 one level is descended, and /a/b/c would be cut.
    assert generate_chunking_scheme(tree_of({"/a/b/c/d/e": 2}), 1) == (label_path("/a/b/c/d/e"),)


def test_a_grandparent_gives_up_the_weight_too() -> None:
    # Were the parent alone reduced, /a/b would be chosen second and cover what is cut already.
    tree = tree_of({"/a/b/c/d": 5, "/a/x": 4})
    assert generate_chunking_scheme(tree, 2) == (label_path("/a/b/c/d"), label_path("/a/x"))


def test_it_ends_when_nothing_with_a_weight_is_left() -> None:
    # By the letter, the loop goes on for ever where fewer chunks can be cut than are wanted.
    assert generate_chunking_scheme(tree_of({"/a/b": 1, "/a/c": 1}), 9) == (
        label_path("/a/b"),
        label_path("/a/c"),
    )
    assert generate_chunking_scheme(QueryTree(), 3) == ()
    assert generate_chunking_scheme(tree_of({"/a": 7}), 3) == ()


def test_weights_that_are_taken_away_leave_no_node() -> None:
    tree = tree_of({"/a/b/c": 2, "/a/d": 3})
    tree.add(label_path("/a/b/c"), -2)
    assert [node.text for node in tree.nodes()] == ["/a", "/a/d"]


def random_tree(random: Random) -> tuple[QueryTree, Sizes]:
    tree = QueryTree()
    paths: list[LabelPath] = [(("", "r"),)]
    sizes = {paths[0]: 1_000}
    for number in range(random.randrange(1, 8)):
        above = random.choice(paths)
        paths.append((*above, ("", f"n{number}")))
        sizes[paths[-1]] = random.randrange(sizes[above] + 1)
    for path in paths:
        if random.randrange(3):
            tree.add(path, random.randrange(1, 9))
    return tree, Sizes(1_000, sizes)


@pytest.mark.parametrize("seed", range(150))
def test_no_scheme_is_better_than_the_optimal_one(seed: int) -> None:
    random = Random(seed)
    tree, sizes = random_tree(random)
    candidates = [node.path for node in tree.candidates()]
    for chunks, goal in ((1, Goal.TOTAL), (2, Goal.SLOWEST), (3, Goal.TOTAL), (3, Goal.SLOWEST)):
        every = (
            cost(tree, sizes, chosen).by(goal)
            for count in range(min(chunks, len(candidates)) + 1)
            for chosen in combinations(candidates, count)
        )
        found = optimal_scheme(tree, sizes, chunks, goal)
        assert len(found) <= chunks
        assert cost(tree, sizes, found).by(goal) == min(every)
        greedy = generate_chunking_scheme(tree, chunks)
        assert cost(tree, sizes, greedy).by(goal) >= cost(tree, sizes, found).by(goal)


@pytest.mark.parametrize("seed", range(60))
def test_the_greedy_one_ends_with_as_many_chunks_as_can_be_cut(seed: int) -> None:
    tree, _ = random_tree(Random(seed))
    for chunks in range(1, 6):
        found = generate_chunking_scheme(tree, chunks)
        assert len(found) <= chunks
        assert len(set(found)) == len(found)
        if tree.candidates():
            assert found, "something could be cut and nothing was"
