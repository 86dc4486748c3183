"""Claims 1 to 5: whatever a claim says of a path and a DTD is true of the path-tuple stream.

On random element graphs, with loops and elements declared ANY, messages that conform and paths with
wildcards. If these fail, a plan leaves out work that it needs, and subscribers get nodes twice or
lose some.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from random import Random

import pytest

from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast.schema import parse_dtd
from pathcast_papers.language import AnyName, AnyNamespace, Axis, Name
from pathcast_papers.message import parse_message
from pathcast_papers.message_broker.pathsharing.claims import (
    claim_1,
    claim_2,
    claim_3,
    claim_4,
    claim_5,
    has_no_duplicates,
    is_ordered,
)
from pathcast_papers.message_broker.pathsharing.matching_engine import PathMatchingEngine
from pathcast_papers.message_broker.pathsharing.paths import (
    NavigationPath,
    PathStep,
    PathTuple,
    navigation_path,
    path_text,
)
from pathcast_papers.message_broker.pathsharing.schema_paths import SchemaPaths

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")

LIMITS = Limits()
NAMES = ("a", "b", "c", "d")


def has_duplicates(stream: Sequence[PathTuple], *fields: int) -> bool:
    keys = [tuple(path_tuple[field - 1] for field in fields) for path_tuple in stream]
    return len(set(keys)) < len(keys)


def is_increasing(stream: Sequence[PathTuple], field: int) -> bool:
    return all(before[field - 1] <= after[field - 1] for before, after in pairwise(stream))


def streams(tree: MessageTree, paths: Sequence[NavigationPath]) -> list[Sequence[PathTuple]]:
    engine = PathMatchingEngine()
    ids = [engine.insert(path) for path in paths]
    engine.run(tree)
    return [engine.stream(path_id) for path_id in ids]


def random_children(random: Random) -> dict[str, tuple[str, ...]]:
    """An element graph: loops are frequent, but so are elements on none."""
    density = random.choice((0.2, 0.35, 0.5))
    return {name: tuple(child for child in NAMES if random.random() < density) for name in NAMES}


def dtd_text(children: dict[str, tuple[str, ...]], any_names: frozenset[str] = frozenset()) -> str:
    return "".join(
        f"<!ELEMENT {name} {_content(name, names, any_names)}>" for name, names in children.items()
    )


def _content(name: str, names: Sequence[str], any_names: frozenset[str]) -> str:
    if name in any_names:
        return "ANY"
    return f"({'|'.join(names)})*" if names else "EMPTY"


def random_tree(random: Random, children: dict[str, tuple[str, ...]], root: str) -> MessageTree:
    left = random.choice((8, 25))

    def element(name: str, level: int) -> str:
        nonlocal left
        left -= 1
        inner = []
        for _ in range(random.randrange(1, 4)):
            if left > 0 and level < 9 and children[name]:
                inner.append(element(random.choice(children[name]), level + 1))
        return f"<{name}>{''.join(inner)}</{name}>"

    return parse_message(element(root, 1).encode(), LIMITS)


def random_path(random: Random, children: dict[str, tuple[str, ...]]) -> NavigationPath:
    """A path that goes down the graph, or any path."""
    is_walk = random.random() < 0.7
    here = random.choice(("a", *NAMES))
    steps: list[PathStep] = []
    for _ in range(random.randrange(1, 6)):
        axis = random.choice((Axis.CHILD, Axis.DESCENDANT))
        steps.append(PathStep(axis, _test(random, here)))
        for _ in range(random.choice((1, 1, 2)) if axis is Axis.DESCENDANT else 1):
            here = random.choice((is_walk and children[here]) or NAMES)
    return tuple(steps)


def _test(random: Random, name: str) -> Name | AnyName | AnyNamespace:
    return random.choice((Name("", name),) * 8 + (AnyName(), AnyNamespace(name)))


def claims_hold(
    path: NavigationPath, stream: Sequence[PathTuple], elements: SchemaPaths, seen: Counter[str]
) -> None:
    """Every claim that says yes is true; counts how often one says so, and what no says."""
    last = len(path)
    for number, yes in ((1, claim_1(path)), (2, claim_2(path, elements))):
        _check(f"claim {number}", yes, not has_duplicates(stream, last), stream, seen)
    for field in range(1, last):
        unique = not has_duplicates(stream, field, last)
        _check("claim 3", claim_3(path, field, elements), unique, stream, seen)
        _check("claim 3 without DTD", claim_3(path, field, None), unique, stream, seen)
        increasing = is_increasing(stream, field)
        _check("claim 4", claim_4(path, field), increasing, stream, seen)
        _check("claim 5", claim_5(path, field, elements), increasing, stream, seen)
    assert is_increasing(stream, last), "what the engine guarantees"
    assert not has_no_duplicates(path, elements) or not has_duplicates(stream, last)


def _check(
    claim: str, says_yes: bool, is_true: bool, stream: Sequence[PathTuple], seen: Counter[str]
) -> None:
    assert is_true or not says_yes, claim
    if len(stream) > 1 and says_yes:
        seen[f"{claim} says yes"] += 1
    if not says_yes and not is_true:
        seen[f"{claim} says no and is right"] += 1


CLAIMS = ("claim 1", "claim 2", "claim 3", "claim 3 without DTD", "claim 4", "claim 5")


def run_random(seeds: range) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        random = Random(seed)
        children = random_children(random)
        any_names = frozenset(name for name in NAMES if random.random() < 0.08)
        root = random.choice((None, "a"))
        elements = SchemaPaths(parse_dtd(dtd_text(children, any_names)), root=root)
        allowed = {name: NAMES if name in any_names else names for name, names in children.items()}
        paths = sorted({random_path(random, allowed) for _ in range(25)}, key=path_text)
        for _ in range(3):
            tree = random_tree(random, allowed, root or random.choice(NAMES))
            assert elements.conforms(tree.name, tree.parent)
            for path, stream in zip(paths, streams(tree, paths), strict=True):
                claims_hold(path, stream, elements, seen)
    return seen


def test_claims_hold_on_random_graphs_messages_and_paths() -> None:
    seen = run_random(range(250))
    for claim in CLAIMS:
        assert seen[f"{claim} says yes"] >= 20, f"{claim} must not be vacuous: {seen}"
        assert seen[f"{claim} says no and is right"] >= 5, f"{claim} must be needed: {seen}"


@pytest.mark.nightly
def test_claims_hold_on_many_random_graphs_messages_and_paths() -> None:
    run_random(range(1000, 13_000))


def full_tree(children: dict[str, tuple[str, ...]], root: str, depth: int) -> MessageTree:
    """Every child that may stand in an element, twice, down to a depth."""

    def element(name: str, level: int) -> str:
        inner = (element(child, level + 1) for child in children[name] * 2 if level < depth)
        return f"<{name}>{''.join(inner)}</{name}>"

    return parse_message(element(root, 1).encode(), LIMITS)


def every_graph() -> Iterator[dict[str, tuple[str, ...]]]:
    edges = tuple(product("ab", "ab"))
    for chosen in product((False, True), repeat=len(edges)):
        picked = [edge for edge, is_in in zip(edges, chosen, strict=True) if is_in]
        yield {name: tuple(below for above, below in picked if above == name) for name in "ab"}


def every_path(length: int) -> Iterator[NavigationPath]:
    tests: tuple[Name | AnyName, ...] = (Name("", "a"), Name("", "b"), AnyName())
    steps = [PathStep(axis, test) for axis in (Axis.CHILD, Axis.DESCENDANT) for test in tests]
    for number in range(1, length + 1):
        yield from product(steps, repeat=number)


@pytest.mark.parametrize(
    ("depth", "length"), [(4, 2), pytest.param(5, 4, marks=pytest.mark.nightly)]
)
def test_claims_hold_on_all_graphs_of_two_names(depth: int, length: int) -> None:
    seen: Counter[str] = Counter()
    paths = list(every_path(length))
    for children in every_graph():
        elements = SchemaPaths(parse_dtd(dtd_text(children)))
        tree = full_tree(children, "a", depth)
        for path, stream in zip(paths, streams(tree, paths), strict=True):
            claims_hold(path, stream, elements, seen)
    assert all(seen[f"{claim} says yes"] for claim in CLAIMS)


def elements_of(text: str) -> SchemaPaths:
    return SchemaPaths(parse_dtd(text))


LOOPED_SECTION = elements_of(
    "<!ELEMENT book (section*)><!ELEMENT section (title|section|figure)*>"
    "<!ELEMENT figure (title, image)><!ELEMENT title (#PCDATA)><!ELEMENT image EMPTY>"
)


def test_query_2_of_the_paper() -> None:
    # Section 4: claims 1 to 4 fail, claim 5 succeeds, since figure is on no loop with section.
    binding = navigation_path("//section//figure")
    extended = navigation_path("//section//figure/title")
    assert not claim_1(binding)
    assert not claim_2(binding, LOOPED_SECTION)
    assert not claim_3(extended, 2, LOOPED_SECTION)
    assert not claim_4(extended, 2)
    assert claim_5(extended, 2, LOOPED_SECTION)


def test_query_3_of_the_paper() -> None:
    # Section 4: only the return path //section//title still needs DupElim.
    binding = navigation_path("//section")
    assert claim_1(binding)
    assert claim_3(navigation_path("//section/figure"), 1, None)
    several = navigation_path("//section//section//title")
    assert not claim_3(several, 1, LOOPED_SECTION)
    assert not is_ordered(several, 1, LOOPED_SECTION)


def test_a_wildcard_can_be_bound_to_nested_elements_of_different_names() -> None:
    # No element is on a loop, yet x stands below two elements.
    elements = elements_of("<!ELEMENT a (b)><!ELEMENT b (x)><!ELEMENT x EMPTY>")
    path = navigation_path("//*//x")
    (stream,) = streams(parse_message(b"<a><b><x/></b></a>", LIMITS), [path])
    assert has_duplicates(stream, 2)
    assert not claim_2(path, elements)
    assert not claim_5(navigation_path("//*//x"), 1, elements)


def test_a_wildcard_before_the_bound_step_breaks_claim_5() -> None:
    # a and b are on loops of their own, not on one loop; the claim by its letter would say yes.
    elements = elements_of("<!ELEMENT a (a|b)*><!ELEMENT b (b|c)*><!ELEMENT c EMPTY>")
    assert not elements.is_on_same_loop(("", "a"), ("", "b"))
    path = navigation_path("//a/*/b/c")
    message = b"<a><a><b><b><c/></b><c/></b></a></a>"
    (stream,) = streams(parse_message(message, LIMITS), [path])
    assert not is_increasing(stream, 3)
    assert not claim_5(path, 3, elements)
    assert claim_5(navigation_path("//a/b/c"), 2, elements)


def test_a_loop_may_pass_an_element_twice() -> None:
    # No loop that passes each element once goes through a and c, but a, c, a, c is possible.
    elements = elements_of(
        "<!ELEMENT a (b)*><!ELEMENT b (a|c)*><!ELEMENT c (b|d)*><!ELEMENT d EMPTY>"
    )
    path = navigation_path("//a/b/c/d")
    message = b"<a><b><c><b><a><b><c><d/></c></b></a></b><d/></c></b></a>"
    (stream,) = streams(parse_message(message, LIMITS), [path])
    assert not is_increasing(stream, 3)
    assert not claim_5(path, 3, elements)


def test_any_content_closes_loops() -> None:
    elements = elements_of("<!ELEMENT a (b)*><!ELEMENT b ANY><!ELEMENT c EMPTY>")
    assert elements.looped == {("", "a"), ("", "b")}
    assert not claim_2(navigation_path("//a//c"), elements) or claim_1(navigation_path("//a//c"))
    assert claim_2(navigation_path("//c//b"), elements)
