"""Every figure of the README's tables is its record's: the median of the measure named here.

So are those of docs/pipeline.md, docs/subscriptions.md and, by a million messages, of
docs/operations.md.

If these fail, the README quotes a time that nobody measured, or that another call took.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

ROOT = Path(__file__).resolve().parent.parent

if not (ROOT / "README.md").is_file():
    pytest.skip("not in a clone: there is no README beside the tests", allow_module_level=True)

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")

Medians: TypeAlias = Mapping[tuple[str, str, str], float]
"""(benchmark, case, measure) -> median."""


class Figure(NamedTuple):
    """A measure of a case, and what it is multiplied with to be in the README's unit."""

    benchmark: str
    case: str
    measure: str
    scale: float = 1


def medians(*benchmarks: str) -> Medians:
    """Of the newest record that has all of these benchmarks."""
    found: list[dict[str, Any]] = []
    for path in sorted((ROOT / "lab" / "benchmarks" / "records").glob("*.json")):
        run = json.loads(path.read_text(encoding="utf-8"))
        if {one["name"] for one in run["benchmarks"]} >= set(benchmarks):
            found.append(run)
    return {
        (one["benchmark"], one["case"], one["name"]): one["spread"]["median"]
        for benchmark in found[-1]["benchmarks"]
        for one in benchmark["measures"]
    }


def rows_below(heading: str, text: str = TEXT) -> dict[str, list[str]]:
    """First cell -> other cells, of the table whose heading begins so."""
    start = text.index(f"| {heading} |")
    lines = text[start : text.index("\n\n", start)].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {first: rest for first, *rest in cells}


def is_rounded(printed: str, value: float) -> bool:
    """Whether a number may be printed so; zeros at the end of a large one may be rounding.

    Example:
        >>> is_rounded("86,000", 85_926.0), is_rounded("3.18", 3.1789), is_rounded("3.1", 3.18)
        (True, True, False)
    """
    digits = printed.replace(",", "")
    _, dot, after = digits.partition(".")
    zeros = len(digits) - len(digits.rstrip("0")) if not dot and len(digits) > 3 else 0
    return abs(float(digits) - value) <= 0.5001 * 10.0 ** (zeros - len(after))


def wrong(
    rows: Mapping[str, list[str]], expected: Mapping[str, list[list[Figure]]], known: Medians
) -> list[str]:
    """What differs; every row must be expected, and every number of its cells."""
    assert list(rows) == list(expected)
    faults = []
    for label, figures in expected.items():
        for cell, wanted in zip(rows[label], figures, strict=True):
            printed = NUMBER.findall(cell)
            values = [known[one[:3]] * one.scale for one in wanted]
            assert len(printed) == len(values), (label, cell)
            faults += [
                f"{label}: {number} for {value:.5g}"
                for number, value in zip(printed, values, strict=True)
                if not is_rounded(number, value)
            ]
    return faults


def test_filtering() -> None:
    cases = [f"nitf Q={size}" for size in ("100,000", "500,000", "1,000,000")]

    def row(*measures: str) -> list[list[Figure]]:
        return [[Figure("filter", case, measure) for measure in measures] for case in cases]

    expected = {
        "satisfied queries a message": row("matches"),
        "message whose label paths were seen before, by lxml's parse": row("warm by lxml"),
        "message not seen before, after 200 others, by lxml's parse": row("unseen by lxml"),
        "first 100 messages of a new process": row("cold pass"),
        "registering all, and freezing them": row("register", "freeze"),
        "snapshot file": row("snapshot size"),
        "opening it": row("open"),
        "registering one more": row("register later"),
    }
    heading = "standing queries | 100,000"
    assert not wrong(rows_below(heading), expected, medians("filter", "door"))


def test_a_label_path_that_was_never_seen() -> None:
    found = re.search(r"never seen costs about ([\d.]+) ms at half a million", TEXT)
    assert found
    cost_us = medians("filter", "door")["filter", "nitf Q=500,000", "cost of a miss"]
    assert is_rounded(found[1], cost_us / 1e3)


def test_the_door() -> None:
    found = re.search(r"takes ([\d.]+)x to ([\d.]+)x of lxml's parse", TEXT)
    assert found
    ratios = [
        value
        for (_, _, measure), value in medians("filter", "door").items()
        if measure == "door by lxml"
    ]
    assert len(ratios) > 20
    assert is_rounded(found[1], min(ratios))
    assert is_rounded(found[2], max(ratios))


def test_conditions() -> None:
    def row(benchmark: str, *cases: str, more: str | None = None) -> list[list[Figure]]:
        ratios = [Figure(benchmark, case, "warm by lxml") for case in cases]
        if more:
            ratios.append(Figure(benchmark, cases[0], more))
        return [
            [Figure(benchmark, case, "matches") for case in cases],
            ratios,
            [Figure(benchmark, case, "memory") for case in cases],
        ]

    expected = {
        "realistic subscriptions of three domains, 1 % need the exact evaluator": row(
            "mixed", "mixed Q=100,000", more="unseen by lxml"
        ),
        "one attribute condition each": row("conditions", "nitf P=1 Q=10,000"),
        "the same": row("conditions", "nitf P=1 Q=100,000"),
        "five / twenty attribute conditions each": row(
            "conditions", "nitf P=5 Q=100,000", "nitf P=20 Q=100,000"
        ),
        "one nested path each": row("conditions", "nitf NP=1 Q=50,000"),
        "three nested paths each": row("conditions", "nitf NP=3 Q=50,000"),
    }
    rows = rows_below("standing queries | number")
    sizes = {label: cells.pop(0) for label, cells in rows.items()}
    for label, figures in expected.items():
        assert all(f"Q={sizes[label]}" in one.case for one in figures[0])
    assert not wrong(rows, expected, medians("conditions", "mixed"))


def test_conditions_on_texts_times_and_lists() -> None:
    """Those of docs/subscriptions.md."""
    page = (ROOT / "docs" / "subscriptions.md").read_text(encoding="utf-8")
    known = medians("conditions")
    ratio = "warm by lxml"
    cases = (
        "numbers Q=100,000",
        "dates Q=100,000",
        "contains Q=100,000",
        "contains, lower case Q=100,000",
        "contains, collation Q=100,000",
        "equal, lower case Q=100,000",
        "ten keywords Q=100,000",
        "500 keywords Q=1",
        "1,000 patterns Q=100,000",
        "10,000 patterns Q=100,000",
        "list of one Q=10",
        "list of 10,000 Q=10",
    )
    rows = rows_below("asked | subscriptions", page)
    assert len(rows) == len(cases)
    for (label, (size, *cells)), case in zip(rows.items(), cases, strict=True):
        assert case.endswith(f"Q={size}"), label
        figures = [[Figure("conditions", f"stories {case}", one)] for one in ("matches", ratio)]
        assert not wrong({label: cells}, {label: figures}, known)


def test_capacity() -> None:
    """Those of docs/scaling.md."""
    page = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    sizes = ("100,000", "1,000,000", "10,000,000")
    measures = {
        "distinct texts": "distinct texts",
        "text, each": "text",
        "registering, each": "registering",
        "memory when all are registered, each": "memory",
        "freezing": "freezing",
        "saving": "saving",
        "memory at most, until they are saved": "memory at most",
        "the file, each": "file",
        "opening it, in another process": "opening",
        "its memory then": "memory, opened",
        "and after the messages": "memory, after the messages",
        "satisfied a message": "matches",
        "the first 100 messages, each": "first pass",
        "the same again, each": "warm",
        "that by lxml's parse": "warm by lxml",
    }
    expected = {
        label: [[Figure("capacity", f"{size} subscriptions", one)] for size in sizes]
        for label, one in measures.items()
    }
    rows = rows_below("subscriptions | 100,000 | 1,000,000 | 10,000,000", page)
    assert not wrong(rows, expected, medians("capacity"))


def test_customised_delivery() -> None:
    cases = ["book Q=100,000", "bib Q=100,000", "domains Q=10,000"]
    known = dict(medians("customise"))
    for case in cases:
        # KB a message in µs: MB a second, of the call that gives rows.
        rows_us = known["customise", case, "with delivery rows"]
        for output in ("output", "distinct output"):
            rate = known["customise", case, output] / rows_us * 1e3
            known["customise", case, f"{output}, with rows"] = rate

    def row(*measures: str, scale: float = 1) -> list[list[Figure]]:
        return [[Figure("customise", case, one, scale) for one in measures] for case in cases]

    def timed(measure: str) -> list[list[Figure]]:
        return [
            [
                Figure("customise", case, measure, 1e-3),
                Figure("customise", case, f"{measure} by lxml"),
            ]
            for case in cases
        ]

    expected = {
        "satisfied a message": row("results"),
        "what `Registry.deliver` gives: delivery rows with ids and results": row(
            "with delivery rows", scale=1e-3
        ),
        "bytes delivered so (written once where equal)": row(
            "output, with rows", "distinct output, with rows"
        ),
        "of that in the kernel: results as bytes, parsing included": timed("serialised"),
        "in the kernel alone: groups of node ids, every one read, parsing included": [
            *timed("groups")[:2],
            [],
        ],
        "entering a running registry, 10,000 in one call": row("entering"),
        "leaving it, 10,000 in one call, without a rebuild": row("leaving"),
        "memory": row("memory"),
    }
    assert not wrong(rows_below("subscriptions | Book, 100,000"), expected, known)


def test_pipeline() -> None:
    text = (ROOT / "docs" / "pipeline.md").read_text(encoding="utf-8")
    known = medians("pipeline")
    cases = {"matches": "deliveries", "results": "deliveries", "numbers": "matches"}

    def row(*measures: str) -> list[list[Figure]]:
        return [
            [Figure("pipeline", f"{case}, 2 cores", one.format(counted)) for one in measures]
            for case, counted in cases.items()
        ]

    expected = {
        "messages a second, the first micro-batch of a run": row("messages"),
        "deliveries, or matches, a message": row("{} a message"),
        "by the floor, the same tasks that only read": row("batch by floor"),
        "reading, answering and writing, µs of a core a message": row("read", "answer", "write"),
        "written, bytes a message": row("written"),
        "the command besides its micro-batches": row("command over batch"),
    }
    heading = "6,144 payments of 4.5 KB, two cores"
    assert not wrong(rows_below(heading, text), expected, known)
    said = {
        r"messages take ([\d.]+)x": ("2,000 files, 2 cores", "files by Parquet"),
        r"results take ([\d.]+)x": ("results, 2 cores", "batch by bound"),
        r"delivers within ([\d.]+) s": ("stream, 1,000 a second", "file to inbox, p99"),
    }
    for words, (case, measure) in said.items():
        found = re.search(words, text)
        assert found, words
        assert is_rounded(found[1], known["pipeline", case, measure])


def test_a_million_messages() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    known = medians("pipeline")
    rows = rows_below("a million messages", text)
    cases = [f"{case}, 2 cores" for case in ("matches", "results", "numbers")]
    stages = ("read", "answer", "write")
    expected = {
        # µs a message are seconds a million.
        "core-hours of workers: reading, answering and writing": [
            sum(known["pipeline", case, stage] for stage in stages) / 3600 for case in cases
        ],
        "written, GB": [known["pipeline", case, "written"] / 1e3 for case in cases],
    }
    assert list(rows) == list(expected)
    for label, values in expected.items():
        for printed, value in zip(rows[label], values, strict=True):
            assert is_rounded(printed, value), (label, printed, value)
