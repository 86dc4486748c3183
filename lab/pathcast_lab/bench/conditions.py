"""`conditions`: queries with value predicates or nested paths, cold and warm.

The same messages as `filter`, but each query asks for more than a path: P value predicates, all on
attributes, or NP nested paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pathcast_lab.bench.cases import CaseResult, run_case
from pathcast_lab.bench.definitions import ConditionsDefinition, SetName
from pathcast_lab.bench.inputs import Source


def run_conditions(
    definition: ConditionsDefinition,
    set_name: SetName,
    source: Source,
    say: Callable[[str], None],
) -> Iterator[CaseResult]:
    """The cases, kind by kind.

    Raises:
        WrongCountError: Engines disagree.
    """
    chosen = definition.sets[set_name]
    messages = source.messages(chosen.warm_up, seed=definition.seed)
    for condition in definition.conditions:
        for size in condition.queries.get(set_name, ()):
            case = f"{source.name} {condition.name} Q={size:,}"
            say(case)
            texts = source.queries(
                size,
                seed=definition.seed,
                wildcard=definition.wildcard,
                descendant=definition.descendant,
                predicates=condition.predicates,
                nested_paths=condition.nested_paths,
            )
            yield run_case("conditions", case, texts, messages, chosen, definition.expected)
