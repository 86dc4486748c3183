"""Bytes of tables against bytes that are forwarded and nobody wants.

Every link has a table of its own. Levels are chosen on one part of the stream and counted on
another. Beside the optimiser stand what the paper describes in full (the paths common to all
disjuncts), covering removal, and each level for all entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from pathcast.overlay.content import LOCAL
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.overlay.generalisation import (
    LEVELS,
    Optimiser,
    Sample,
    at_level,
)
from pathcast.overlay.interest import Interests
from pathcast.query import conjunction_of
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.overlay.byte_budgets import ENTRY_BYTES, table_bytes, within
from pathcast_lab.bench.overlay.common_paths import common_entry
from pathcast_lab.bench.overlay.definition import OverlayFigure, OverlaySet
from pathcast_lab.bench.overlay.inputs import behind_links, messages_of, profiles_of
from pathcast_lab.bench.wrong_count import WrongCountError

OPTIMISED = "optimiser"
COMMON = "common paths"
COVERING = "covering removal"
TABLES = "table bytes"
WRONG = "wrongly forwarded"
FORWARDED = "forwarded"


def run_budgets(
    figure: OverlayFigure, chosen: OverlaySet, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    """Every workload, a list of values each.

    Raises:
        WrongCountError: A table does not forward what somebody wants.
        ConfigError: The DTD of NITF is not at hand.
    """
    for workload in figure.workloads:
        profiles = profiles_of(workload, chosen.profiles, seed)
        links = [
            sorted({entry for text in behind for entry in disjuncts_of(text, deliver="ids")})
            for behind in behind_links(profiles, chosen.links, seed)
        ]
        stream = messages_of(workload, chosen.sample + chosen.messages, seed)
        learnt, counted = Sample(stream[: chosen.sample]), Sample(stream[chosen.sample :])
        exact = [table_bytes(entries) for entries in links]
        say(f"{workload}: {sum(map(len, links)):,} entries, {sum(exact):,} bytes")
        tables: dict[tuple[str, float], list[set[str]]] = {}
        for at, entries in enumerate(links):
            budgets = [int(exact[at] * share / 100) for share in chosen.budgets]
            optimiser = Optimiser([entries], learnt, ENTRY_BYTES)
            for share, made in zip(chosen.budgets, within(optimiser, *budgets), strict=True):
                tables.setdefault((OPTIMISED, share), []).append(set(map(made, entries)))
            common = common_entry(map(conjunction_of, entries)).text
            tables.setdefault((COMMON, 0.0), []).append({common})
            tables.setdefault((COVERING, 0.0), []).append(_uncovered(entries))
            for level in LEVELS:
                at_it = {at_level(entry, level) for entry in entries}
                tables.setdefault((level, 0.0), []).append(at_it)
        bytes_in_all = len(links) * sum(map(len, stream[chosen.sample :]))
        measured: list[tuple[tuple[str, float], Sequence[Iterable[str]]]]
        measured = [(("exact", 100.0), links), *tables.items()]
        for _, made_of in measured:
            counted.read(entry for each in made_of for entry in each)
        wanted = [counted.union(entries) for entries in links]
        for (series, share), made_of in measured:
            reached = [counted.union(entries) for entries in made_of]
            pairs = list(zip(wanted, reached, strict=True))
            kept = sum((rows & more).bit_count() for rows, more in pairs)
            if kept != (right := sum(rows.bit_count() for rows in wanted)):
                raise WrongCountError(
                    case=f"{workload}, {series}",
                    found=kept,
                    expected=right,
                    oracle="the exact table",
                )
            wrong = sum(counted.size(more & ~rows) for rows, more in pairs)
            sent = sum(map(counted.size, reached))
            size = sum(map(table_bytes, made_of))
            place = Place(figure.name, workload, series, share, chosen.profiles)
            yield [
                place.value("entries", "", float(sum(len(set(each)) for each in made_of))),
                place.value(TABLES, "%", 100 * size / sum(exact)),
                place.value(WRONG, "%", 100 * wrong / bytes_in_all),
                place.value(FORWARDED, "%", 100 * sent / bytes_in_all),
            ]


def _uncovered(entries: Sequence[str]) -> set[str]:
    interests = Interests(covering=True)
    interests.set_neighbours(["up"])
    interests.update(LOCAL, entries, [])
    return set(interests.told("up"))
