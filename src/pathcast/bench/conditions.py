"""`conditions`: queries with value predicates or nested paths, warm.

The same messages as `filter`, but each query asks for more than a path. There is no aim yet: the
figures say what predicates cost beside linear paths of the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pathcast.bench.checking import THREADS, Checks
from pathcast.bench.definitions import ConditionsDefinition, SetName
from pathcast.bench.filtering import ENGINE, build_index, check_case, warm_measures
from pathcast.bench.inputs import Source, standing_queries
from pathcast.bench.measures import Measure
from pathcast.bench.rounds import Rounds, binary_array, warm_rounds
from pathcast.bench.timing import Spread, yardstick
from pathcast.engine import Snapshot


@dataclass(frozen=True)
class ConditionsResult:
    """One kind of query, one number of them."""

    case: str
    queries: int
    predicates: int
    nested_paths: int
    message_bytes: float
    matches_a_message: float
    checks: Checks
    register_ns: tuple[int, ...]
    freeze_ns: tuple[int, ...]
    warm: Rounds

    def measures(self) -> Iterator[Measure]:
        """Its figures."""

        def figure(name: str, unit: str, value: Spread) -> Measure:
            return Measure("conditions", self.case, name, unit, value, self.queries)

        matches = self.matches_a_message
        yield figure("matches", "1/message", Spread(matches, matches, matches))
        yield figure("register", "s", Spread.of(self.register_ns).scaled(1e-9))
        yield figure("freeze", "s", Spread.of(self.freeze_ns).scaled(1e-9))
        yield from warm_measures(figure, self.warm)


def run_conditions(
    definition: ConditionsDefinition,
    set_name: SetName,
    source: Source,
    say: Callable[[str], None],
) -> Iterator[ConditionsResult]:
    """The cases, kind by kind.

    Raises:
        WrongCountError: Engines disagree.
    """
    chosen = definition.sets[set_name]
    messages = source.messages(chosen.warm_up, seed=definition.seed)
    parse = yardstick(messages)
    for condition in definition.conditions:
        for size in condition.queries[set_name]:
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
            queries = standing_queries(texts)
            with TemporaryDirectory(prefix="pathcast-bench-") as directory:
                file = Path(directory) / "queries.snapshot"
                _, build = build_index(queries, file, chosen.builds)
                checks, truth = check_case(
                    case, file, queries, messages, chosen, definition.expected
                )
                matcher = Snapshot.open(file, engine=ENGINE).matcher(threads=THREADS)
                warm = warm_rounds(matcher, binary_array(messages), parse, chosen.rounds, truth)
            yield ConditionsResult(
                case=case,
                queries=size,
                predicates=condition.predicates,
                nested_paths=condition.nested_paths,
                message_bytes=sum(map(len, messages)) / len(messages),
                matches_a_message=checks.matches / len(messages),
                checks=checks,
                register_ns=build.register_ns,
                freeze_ns=build.freeze_ns,
                warm=warm,
            )
