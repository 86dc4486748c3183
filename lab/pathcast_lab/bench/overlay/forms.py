"""What linear paths lose against whole patterns: pairs of profile and message, and bytes on links.

A profile is wanted where an index says that it holds; an expression that no path can say is left to
the host by both forms.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pathcast import Query, Registry
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.overlay.generalisation import Sample
from pathcast.query import conjunction_of
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.overlay.byte_budgets import table_bytes
from pathcast_lab.bench.overlay.definition import OverlayFigure, OverlaySet
from pathcast_lab.bench.overlay.inputs import behind_links, messages_of, profiles_of
from pathcast_lab.bench.wrong_count import WrongCountError


def patterns_of(profile: str) -> tuple[str, ...]:
    """The entries of a profile as brokers have them: nothing of the structure is lost."""
    return disjuncts_of(profile, deliver="ids")


def linear_of(profile: str) -> tuple[str, ...]:
    """The entries of a profile in the paper's form: conjunctions of absolute linear paths."""
    linear = (conjunction_of(entry).linear().text for entry in patterns_of(profile))
    return tuple(dict.fromkeys(linear))


def rows_of(profiles: Sequence[str], messages: Sequence[bytes]) -> dict[str, int]:
    """Profile -> the messages that it holds of, a bit each."""
    index = Registry()
    index.add(Query(text, text) for text in profiles)
    found = dict.fromkeys(profiles, 0)
    for at, result in enumerate(index.match(messages)):
        for text in result.query_ids:
            found[text] |= 1 << at
    return found


FORMS: Final[Mapping[str, Callable[[str], tuple[str, ...]]]] = MappingProxyType(
    {"linear": linear_of, "patterns": patterns_of}
)
"""The forms in which an entry can state a profile."""


def run_forms(
    figure: OverlayFigure, chosen: OverlaySet, seed: int, say: Callable[[str], None]
) -> Iterator[list[Value]]:
    """Every workload, a list of values for each form.

    Raises:
        WrongCountError: A profile holds of a message, and none of its entries does.
        ConfigError: The DTD of NITF is not at hand.
    """
    for workload in figure.workloads:
        profiles = sorted(set(profiles_of(workload, chosen.profiles, seed)))
        messages = messages_of(workload, chosen.messages, seed)
        sample = Sample(messages)
        held = rows_of(profiles, messages)
        links = behind_links(profiles, chosen.links, seed)
        wanted = [
            functools.reduce(operator.or_, map(held.__getitem__, texts), 0) for texts in links
        ]
        right = sum(found.bit_count() for found in held.values())
        say(f"{workload}: {len(profiles):,} profiles, {right:,} matches")
        for form, entries_of in FORMS.items():
            entries = {text: entries_of(text) for text in profiles}
            sample.read(entry for each in entries.values() for entry in each)
            rows = {text: sample.union(each) for text, each in entries.items()}
            kept = sum((held[text] & found).bit_count() for text, found in rows.items())
            if kept != right:
                raise WrongCountError(
                    case=f"{workload}, {form}",
                    found=kept,
                    expected=right,
                    oracle="profiles",
                )
            extra = sum(found.bit_count() for found in rows.values()) - right
            wrong = sum(
                sample.size(sample.union(e for text in texts for e in entries[text]) & ~own)
                for texts, own in zip(links, wanted, strict=True)
            )
            distinct = {entry for each in entries.values() for entry in each}
            place = Place(figure.name, workload, form, 0.0, len(profiles))
            yield [
                place.value("entries", "", float(len(distinct))),
                place.value("table", "KiB", table_bytes(distinct) / 1024),
                place.value("matches", "", float(right)),
                place.value("pairs wrongly held", "", float(extra)),
                place.value(
                    "bytes wrongly forwarded",
                    "%",
                    100 * wrong / (chosen.links * sum(map(len, messages))),
                ),
            ]
