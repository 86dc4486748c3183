"""Keys of states: different paths have different keys, whatever the names are."""

from __future__ import annotations

import hashlib
import random

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pathcast.dht.fragment import EPSILON, Symbol
from pathcast.dht.identifiers import (
    identifier,
    is_between,
    is_in_range,
    state_key,
    state_path,
)
from pathcast.errors import PeerError
from pathcast_lab.sim.hops import Fingers, members

HOSTILE = st.text(st.sampled_from("ab/$*%{}2F5 ä\ud800\x1f"), max_size=4)
LABELS: st.SearchStrategy[Symbol] = st.one_of(
    st.just(EPSILON),
    st.tuples(st.none() | HOSTILE, st.none() | HOSTILE | st.text(max_size=4)),
)
PATHS = st.lists(LABELS, max_size=4).map(tuple)


@given(PATHS, PATHS)
@example((("", "a"), ("", "bc")), (("", "ab"), ("", "c")))
@example((("", "a/b"),), (("", "a"), ("", "b")))
@example((("", "$"),), (EPSILON,))
@example((("a", "b"),), (("", "{a}b"),))
@example((("", "%2F"),), (("", "/"),))
@example(((None, None),), (("", "*"),))
@example((("", None),), ((None, None),))
@example((("*", "a"),), ((None, "a"),))
@example((), (("", ""),))
def test_different_paths_have_different_keys(a: tuple[Symbol, ...], b: tuple[Symbol, ...]) -> None:
    assert (state_key(a) == state_key(b)) == (a == b)
    assert state_path(state_key(a)) == a


@pytest.mark.parametrize("key", ["", "stop/a", "start/$a", "start/{", "start/{}a", "start/{*}*"])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(PeerError) as refused:
        state_path(key)
    assert refused.value.code == "dht.key"


def test_many_short_paths_have_as_many_keys() -> None:
    """Pairs of random texts seldom come near each other; these all do."""
    names = [a + b for a in "a/$%{}" for b in ["", *"a/$2F{}"]]
    labels: list[Symbol] = [EPSILON, (None, None), *(("", n) for n in names), (None, "a")]
    labels += [(n, "a") for n in names if n] + [(n, None) for n in names]
    paths = [(a, b) for a in labels for b in labels] + [(a,) for a in labels] + [()]
    assert len({state_key(path) for path in paths}) == len(set(paths)) > 7000


def test_the_identifier_is_the_whole_sha1() -> None:
    assert identifier("start") == int(hashlib.sha1(b"start").hexdigest(), 16)


@given(st.integers(0, 15), st.integers(0, 15), st.integers(0, 15))
def test_intervals_are_what_one_meets_on_the_way(low: int, given_: int, high: int) -> None:
    way = []
    at = (low + 1) % 16
    while at != high:
        way.append(at)
        at = (at + 1) % 16
    assert is_between(low, given_, high) == (given_ in way)
    assert is_in_range(low, given_, high) == (given_ in [*way, high])


@pytest.mark.parametrize("count", [2, 5, 50, 400])
def test_hops_by_arithmetic_are_those_of_a_walk(count: int) -> None:
    places = members(count)
    circle = 2**64
    ring = [int(place) for place in places]
    fingers = Fingers(places, successors=3)
    draw = random.Random(count)
    start = np.array([draw.randrange(count) for _ in range(200)])
    keys = np.array([draw.randrange(circle) for _ in range(200)], np.uint64)
    hops = fingers.hops(start, keys)
    for begin, key, found in zip(start, map(int, keys), hops, strict=True):
        owner = next((n for n, place in enumerate(ring) if place >= key), 0)
        at, walked = int(begin), 0
        while at != owner:
            others = {(at + k) % count for k in (1, 2, 3)}
            for i in range(64):
                finger = (ring[at] + 2**i) % circle
                others.add(next((n for n, place in enumerate(ring) if place >= finger), 0))
            before = [n for n in others if is_between(ring[at], ring[n], key)]
            ahead = (owner - at) % count == 1
            at = owner if ahead else max(before, key=lambda n: (ring[n] - ring[at]) % circle)
            walked += 1
        assert walked == found
