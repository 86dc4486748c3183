"""`adversarial`: families of queries that leave an engine little to share.

For each family of `pathcast_lab.workload.adversarial` time and memory at several numbers of queries
over the same messages, so that one sees what grows with the number and what does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pathcast.errors import ConfigError
from pathcast_lab.bench.cases import CaseResult, run_case
from pathcast_lab.bench.definitions import AdversarialDefinition, FilterSet
from pathcast_lab.workload import ADVERSARIES


def run_adversarial(
    definition: AdversarialDefinition, chosen: FilterSet, say: Callable[[str], None]
) -> Iterator[CaseResult]:
    """The cases, family by family, from few queries to many.

    Args:
        definition: What is measured.
        chosen: How much of it.
        say: Takes progress.

    Raises:
        ConfigError: The definition names a family that there is not.
        WrongCountError: Engines disagree.
    """
    for name in definition.families:
        if name not in ADVERSARIES:
            reason = f"{name!r} is none of {', '.join(ADVERSARIES)}"
            raise ConfigError("config.invalid", key="families", reason=reason)
    for family in (ADVERSARIES[name] for name in definition.families):
        messages = family.messages(chosen.warm_up, seed=definition.seed)
        for size in chosen.queries:
            case = f"{family.name} Q={size:,}"
            say(f"{case}: {family.title}")
            texts = list(family.queries(size))
            yield run_case("adversarial", case, texts, messages, chosen, definition.expected)
