"""`mixed`: realistic subscriptions over a stream of several domains.

Subscriptions and messages are those of the demonstration (`pathcast.workload`): structure,
equality, ranges, beginnings, substrings, nested paths, alternatives, and one in a hundred that only
exact evaluation decides. Everything that `filter` measures is measured, whatever the workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pathcast.workload import (
    DemoParameters,
    SubscriptionParameters,
    demo_messages,
    generate_subscriptions,
)
from pathcast_lab.bench.definitions import FilterSet, MixedDefinition
from pathcast_lab.bench.filtering import FilterCase, FilterResult
from pathcast_lab.bench.inputs import standing_queries


def run_mixed(
    definition: MixedDefinition, chosen: FilterSet, say: Callable[[str], None]
) -> Iterator[FilterResult]:
    """The cases, from few subscriptions to many.

    Args:
        definition: What is measured.
        chosen: How much of it.
        say: Takes progress.

    Raises:
        WrongCountError: Engines disagree.
    """
    messages = mixed_messages(chosen.warm_up + chosen.unseen, seed=definition.seed)
    later = mixed_subscriptions(chosen.later, seed=definition.seed + 1)
    for size in sorted(chosen.queries):
        case = f"mixed Q={size:,}"
        say(case)
        texts = mixed_subscriptions(size, seed=definition.seed)
        yield FilterCase(
            case,
            standing_queries(texts),
            standing_queries(later, first=size),
            messages,
            chosen,
            definition.expected,
            benchmark="mixed",
        ).run()


def mixed_subscriptions(count: int, *, seed: int) -> list[str]:
    """Texts of subscriptions; popular ones occur several times, and about half of all differ."""
    parameters = SubscriptionParameters(queries=count, seed=seed, distinct_share=1.0)
    return [row.query for row in generate_subscriptions(parameters)]


def mixed_messages(count: int, *, seed: int) -> list[bytes]:
    """Messages of the domains in turn, none of them broken.

    Raises:
        MissingDependencyError: lxml, which reads the domains' DTDs, is not installed.
    """
    parameters = DemoParameters(messages=count, seed=seed, broken_ratio=0)
    return [message.message for message in demo_messages(parameters)]
