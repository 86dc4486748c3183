"""What linear paths lose against whole patterns: pairs of profile and message, and bytes on links.

A profile is wanted where an index says that it holds; an expression that no path can say is left to
the host by both forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pathcast.overlay.disjuncts import Form, disjuncts_of
from pathcast.overlay.generalisation import Sample, table_bytes
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.overlay.definition import OverlayFigure, OverlaySet
from pathcast_lab.bench.overlay.inputs import behind_links, messages_of, profiles_of
from pathcast_lab.bench.wrong_count import WrongCountError


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
        sample.read(profiles)
        links = behind_links(profiles, chosen.links, seed)
        wanted = [sample.union(texts) for texts in links]
        right = sum(sample.rows(text).bit_count() for text in profiles)
        say(f"{workload}: {len(profiles):,} profiles, {right:,} matches")
        for form in Form:
            entries = {text: disjuncts_of(text, deliver="ids", form=form) for text in profiles}
            sample.read(entry for each in entries.values() for entry in each)
            rows = {text: sample.union(each) for text, each in entries.items()}
            kept = sum((sample.rows(text) & found).bit_count() for text, found in rows.items())
            if kept != right:
                raise WrongCountError(
                    case=f"{workload}, {form.value}",
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
            place = Place(figure.name, workload, form.value, 0.0, len(profiles))
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
