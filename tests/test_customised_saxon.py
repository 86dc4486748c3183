"""The reference interpreter == Saxon, on generated subscriptions and messages.

If one of these fails, the language means something else than XQuery: the parser, the evaluator or
the serialiser of the reference is at fault, and every engine is held to it. Seeds are fixed, so a
failure replays; PATHCAST_NIGHTLY=<examples> makes the nightly run longer.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from customised_cases import agree, by_reference, by_saxon, pairs
from generators import VOCABULARIES, FlwrWidth
from oracles import SaxonOracle, saxon_missing_reason

pytestmark = pytest.mark.skipif(
    saxon_missing_reason() is not None, reason=str(saxon_missing_reason())
)

NIGHTLY_EXAMPLES = int(os.environ.get("PATHCAST_NIGHTLY", "20000"))

HOSTILITIES = (0.0, 0.3)

widths = pytest.mark.parametrize("width", list(FlwrWidth), ids=[it.value for it in FlwrWidth])
vocabularies = pytest.mark.parametrize("vocabulary", sorted(VOCABULARIES))

SKIPPED_SHARE_MAX = 0.1
"""Of all pairs: where Saxon has no value, or one that is known to differ."""


def check(width: FlwrWidth, vocabulary: str, seeds: range) -> Counter[str]:
    """Asks both of every pair and counts: "pairs", "delivered", and differences by name."""
    counted: Counter[str] = Counter()
    for pair in pairs(width, vocabulary, seeds, HOSTILITIES):
        flwr = pair.flwr
        ours = by_reference(flwr.text, pair.message, flwr.namespaces)
        saxons = by_saxon(flwr.text, pair.message, flwr.namespaces, flwr.delivered)
        difference = agree(ours, saxons)
        assert difference is not None, f"{pair}\nSaxon {saxons!r}\nours {ours!r}"
        counted["pairs"] += 1
        counted["delivered"] += ours is not None
        counted[difference] += 1
    assert counted["pairs"] == len(seeds) * len(HOSTILITIES)
    return counted


def check_shares(counted: Counter[str], skipped_max: float) -> None:
    """Most pairs were compared, and delivered often enough to prove something."""
    pairs = counted["pairs"]
    assert pairs - counted[""] <= pairs * skipped_max, counted
    by_comparison = ("what-nobody-asks-for", "carriage-return-alone", "prefix-of-an-attribute")
    for difference in (*by_comparison, "undeclared-default", "digits-of-decimals"):
        assert counted[difference] <= pairs * 0.02, counted
    assert counted["delivered"] >= pairs // 10, counted


@widths
def test_the_reference_agrees(width: FlwrWidth) -> None:
    counted: Counter[str] = Counter()
    for vocabulary in VOCABULARIES:
        counted += check(width, vocabulary, range(25))
    assert counted["pairs"] >= 250
    check_shares(counted, SKIPPED_SHARE_MAX)


@pytest.mark.nightly
@vocabularies
@widths
def test_the_reference_agrees_at_length(width: FlwrWidth, vocabulary: str) -> None:
    """More than ten thousand pairs over all widths and vocabularies."""
    combinations = len(FlwrWidth) * len(VOCABULARIES)
    seeds = max(10_000, NIGHTLY_EXAMPLES) // (combinations * len(HOSTILITIES)) + 1
    counted = check(width, vocabulary, range(1000, 1000 + seeds))
    # Where anything stands anywhere, words are compared with numbers more often.
    check_shares(counted, 2 * SKIPPED_SHARE_MAX if vocabulary == "small" else SKIPPED_SHARE_MAX)


def test_results_tell_messages_and_subscriptions_apart() -> None:
    """Equal results everywhere would hide an engine that mixes them up."""
    seen: Counter[object] = Counter()
    delivered = 0
    oracle = SaxonOracle.shared()
    for vocabulary in VOCABULARIES:
        for pair in pairs(FlwrWidth.WHOLE, vocabulary, range(500, 520)):
            said = by_saxon(pair.flwr.text, pair.message, pair.flwr.namespaces, pair.flwr.delivered)
            if isinstance(said, tuple):
                delivered += 1
                seen[said] += 1
    assert oracle is SaxonOracle.shared()
    assert delivered > 50
    assert len(seen) > delivered * 0.8
