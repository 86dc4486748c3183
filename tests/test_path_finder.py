"""Paths found in parts of messages: what a run of all of the message has below the entries.

If the engines differ, or a part is run otherwise than the whole, peers of pieces lose matches.
"""

from __future__ import annotations

import random

import pytest

from oracles.engines import made_by
from pathcast.dht.fragment import EPSILON, Symbol, matching_symbols
from pathcast.engine import PathFinder
from pathcast.errors import KernelMissingError

NAMES = [("", "a"), ("", "b"), ("urn:p", "a"), ("urn:p", "c")]
TESTS: list[Symbol] = [*NAMES, (None, None), ("urn:p", None), (None, "a")]


def finder_of(engine: str) -> PathFinder:
    try:
        return made_by(engine, PathFinder)
    except KernelMissingError as error:
        pytest.skip(str(error))


def random_path(draw: random.Random) -> tuple[Symbol, ...]:
    path: list[Symbol] = []
    for _ in range(draw.randint(0, 4)):
        if draw.random() < 0.3:
            path.append(EPSILON)
        path.append(draw.choice(TESTS))
    return (*path, EPSILON) if draw.random() < 0.1 else tuple(path)


def random_part(draw: random.Random) -> tuple[list[int], list[int]]:
    """Names and depths of a message."""
    depth = [1]
    while len(depth) < draw.randint(1, 25):
        depth.append(draw.randint(2, depth[-1] + 1))
    return [draw.randrange(len(NAMES)) for _ in depth], depth


def ends_by_definition(
    paths: list[tuple[Symbol, ...]],
    name: list[int],
    depth: list[int],
    entries: list[tuple[int, int]],
) -> set[tuple[int, int]]:
    """Path by path, entry by entry: an end is an entry, or what leads on from one to it."""
    found = set()
    for path, at in entries:
        above = depth[at] if at >= 0 else 0
        for other, longer in enumerate(paths):
            rest = longer[len(paths[path]) :]
            if longer[: len(paths[path])] != paths[path]:
                continue
            # Where in the rest one can be, at each open level; at 0 an epsilon is behind.
            open_ = {above: closed(paths[path], rest, {0})}
            if len(rest) in open_[above]:
                found.add((other, at))
            for place in range(at + 1, len(name)):
                if depth[place] <= above:
                    break
                before = open_[depth[place] - 1]
                symbols = matching_symbols(*NAMES[name[place]])
                after = {n + 1 for n in before if n < len(rest) and rest[n] in symbols}
                after |= {n for n in before if loops(paths[path], rest, n)}
                open_[depth[place]] = closed(paths[path], rest, after)
                if len(rest) in open_[depth[place]]:
                    found.add((other, place))
    return found


def loops(path: tuple[Symbol, ...], rest: tuple[Symbol, ...], n: int) -> bool:
    labels = (*path, *rest[:n])
    return bool(labels) and labels[-1] is EPSILON


def closed(path: tuple[Symbol, ...], rest: tuple[Symbol, ...], places: set[int]) -> set[int]:
    return places | {n + 1 for n in places if n < len(rest) and rest[n] is EPSILON}


@pytest.mark.parametrize("engine", ["reference", "kernel"])
def test_paths_end_where_their_definition_says(engine: str) -> None:
    """300 sets of paths, five messages each, entered at random; they grow in between."""
    ends = 0
    for seed in range(300):
        draw = random.Random(seed)
        finder, paths = finder_of(engine), list[tuple[Symbol, ...]]()
        for _ in range(5):
            for path in [random_path(draw) for _ in range(draw.randint(1, 6))]:
                number = finder.number(path)
                assert number == (paths.index(path) if path in paths else len(paths))
                if number == len(paths):
                    paths.append(path)
            name, depth = random_part(draw)
            entries = [
                (draw.randrange(len(paths)), draw.randrange(-1, len(name)))
                for _ in range(draw.randint(0, 4))
            ]
            found = finder.find(NAMES, name, depth, entries)
            assert len(set(found.ends)) == len(found.ends)
            assert found.ends == sorted(found.ends, key=lambda end: (end[1], end[0]))
            assert set(found.ends) == ends_by_definition(paths, name, depth, entries)
            assert found.steps >= len({place for _, place in found.ends})
            ends += len(found.ends)
    assert ends > 2_000


def test_engines_agree_on_steps() -> None:
    kernel, reference = finder_of("kernel"), finder_of("reference")
    draw = random.Random(1)
    for path in [random_path(draw) for _ in range(40)]:
        assert kernel.number(path) == reference.number(path)
    for _ in range(300):
        name, depth = random_part(draw)
        entries = [(draw.randrange(len(kernel)), draw.randrange(-1, len(name)))]
        found = kernel.find(NAMES, name, depth, entries)
        assert found == reference.find(NAMES, name, depth, entries)
    assert len(kernel) == len(reference)


@pytest.mark.parametrize(
    ("name", "depth", "entry", "reason"),
    [
        ([0], [], (0, 0), "different lengths"),
        ([9], [1], (0, 0), "not among the names"),
        ([0, 0], [1, 3], (0, 0), "parent is not there"),
        ([0], [1], (5, 0), "of no path"),
        ([0], [1], (0, 1), "at no element"),
    ],
)
def test_the_kernel_refuses_what_is_no_part(
    name: list[int], depth: list[int], entry: tuple[int, int], reason: str
) -> None:
    finder = finder_of("kernel")
    finder.number([("", "a")])
    with pytest.raises(ValueError, match=reason):
        finder.find(NAMES, name, depth, [entry])
