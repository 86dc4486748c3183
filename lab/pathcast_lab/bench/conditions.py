"""`conditions`: queries with value predicates or nested paths, cold and warm.

The same messages as `filter`, but each query asks for more than a path: P value predicates, all on
attributes, or NP nested paths. Other rows ask for dates, texts, lists and patterns in stories of
18 KB, whatever the workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pathcast_lab.bench.cases import CaseResult, run_case
from pathcast_lab.bench.definitions import ConditionsDefinition, SetName
from pathcast_lab.bench.inputs import Source
from pathcast_lab.bench.stories import asked, language_of, stories


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
    told = stories(chosen.warm_up, seed=definition.seed)
    for condition in definition.conditions:
        for size in condition.queries.get(set_name, ()) if condition.asks else ():
            case = f"stories {condition.name} Q={size:,}"
            say(case)
            texts = asked(condition.asks, size, seed=definition.seed)
            language = language_of(condition.asks)
            yield run_case("conditions", case, texts, told, chosen, definition.expected, language)
        for size in condition.queries.get(set_name, ()) if not condition.asks else ():
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
