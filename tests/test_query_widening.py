"""Every generalisation of a path is satisfied by whatever satisfies the path.

If one of these fails, a message is kept from a partition that holds a query it satisfies: it is
lost to a subscriber without a word.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from generators import (
    FamilyShape,
    random_family,
    random_message,
    random_query,
    random_valued_message,
)
from oracles.paths import is_found
from pathcast.boundary import native
from pathcast.limits import Limits
from pathcast.query import compile_query, normalise
from pathcast_papers import parse

POPULATIONS = 24


def widened(path: native.NormalPath) -> Iterator[tuple[str, native.NormalPath]]:
    """Everything that is made of one path, by name."""
    for part in native.Conjunction([path]).linear().paths:
        yield "linear_paths", part
        yield "in_powers", part.in_powers()
    yield "structure", path.structure()
    yield "existing", path.existing()
    yield "last_name", path.last_name()
    yield "any_parent", path.any_parent()
    yield "without_parents", path.without_parents()
    for length in (1, 2, 5):
        yield "begun", path.begun(length)
    for at in range(len(path.steps())):
        yield "cut", path.cut(at)


def population(seed: int) -> list[native.NormalPath]:
    """Paths of one structure and of many."""
    chosen = random.Random(seed)
    shape = FamilyShape(has_alternatives=seed % 2 == 0)
    texts = random_family(chosen, 12, shape) + [random_query(chosen) for _ in range(8)]
    paths = [path for text in texts for path in compile_query(text).alternatives]
    return list(dict.fromkeys(paths))


@pytest.mark.parametrize("part", range(3))
def test_what_satisfies_a_path_satisfies_what_is_made_of_it(part: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(part, POPULATIONS, 3):
        chosen = random.Random(1000 + seed)
        trees = [parse(random_valued_message(chosen), Limits()) for _ in range(12)]
        trees += [parse(random_message(chosen), Limits()) for _ in range(12)]
        for path in population(seed):
            satisfying = [tree for tree in trees if is_found(path, tree)]
            for name, general in widened(path):
                told = f"{name}: {path.text} -> {general.text}"
                assert normalise(general.text) == general, told
                assert general.covers(path), told
                assert all(is_found(general, tree) for tree in satisfying), told
                seen[name] += len(satisfying)
    assert len(seen) == 9
    assert min(seen.values()) > 40, seen


def test_a_number_lies_within_its_powers_of_two() -> None:
    """Also next to a power, where the logarithm is rounded."""
    chosen = random.Random(3)
    numbers = [2.0**each * (1 + nudge) for each in range(-9, 50, 4) for nudge in (0, 1e-15, -1e-15)]
    numbers += [chosen.uniform(-(10**9), 10**9) for _ in range(10)]
    for number in [*numbers, *(-number for number in numbers), 0.0]:
        for operator in ("=", "<", "<=", ">", ">="):
            path = normalise(f"//a[@x {operator} {number:.40f}]")
            assert path.in_powers().covers(path), (number, operator)
            assert path.in_powers().in_powers() == path.in_powers()


def test_a_position_that_counts_what_is_dropped_is_dropped() -> None:
    assert normalise("//a[@x = 1][2]").existing().text == "//a[@x]"
    assert normalise("/a/b[2]/c").any_parent().text == "/a/*/c"
    # It counts what is left as it was.
    assert normalise("/a/b[2]").without_parents().text == "//a/b[position()=2]"
