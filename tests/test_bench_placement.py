"""`pathcast-lab bench placement-figures`: what it measures, keeps and writes.

If these fail, Figure 9 is drawn from something else than the engine's answers, or a page shows
what no run has given.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from random import Random

import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[bench]'")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from oracles import missing_reason
from pathcast_lab.bench.definitions import default_directory, read_definition
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.figures.verdicts import Answer
from pathcast_lab.bench.placement.definition import (
    PatternParameters,
    PlacementFigures,
    PlacementSet,
)
from pathcast_lab.bench.placement.pattern_queries import (
    PEP,
    RANDOM,
    pattern_message,
    run_patterns,
)
from pathcast_lab.bench.placement.statements import MATCHED, SENT, judge

if missing_reason("kernel") is not None:
    pytest.skip(str(missing_reason("kernel")), allow_module_level=True)


@pytest.fixture
def definition() -> PlacementFigures:
    return read_definition(default_directory(), "placement-figures", PlacementFigures)


def bench(tmp_path: Path, *arguments: str | Path) -> Result:
    """Runs the quick set, in this process."""
    from pathcast_lab.cli import build_app

    fixed = ["bench", "placement-figures", "--quick", "--out", tmp_path / "out"]
    result = CliRunner().invoke(build_app(), [str(each) for each in (*fixed, *arguments)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_figures_are_those_of_the_paper_and_beyond(definition: PlacementFigures) -> None:
    by_name = {figure.name: figure for figure in definition.figures}
    assert by_name.keys() == {"9", "realistic", "visits"}
    paper = by_name["9"].sets["short"]
    assert paper.queries == 1_000_000
    assert {min(paper.repeats), max(paper.repeats)} == {0, 40}
    parameters = PatternParameters(queries=1)
    assert (parameters.partitions, parameters.patterns, parameters.of_each) == (200, 10, 2)
    assert by_name["visits"].sets["full"].queries == 10_000_000


def test_repeated_elements() -> None:
    parameters = PatternParameters(queries=1)
    for repeats in (0, 3):
        each = pattern_message(parameters, Random(1), repeats=repeats, is_each=True)
        assert [each.count(b"<p%d " % at) for at in range(10)] == [1 + repeats] * 10
        in_all = pattern_message(parameters, Random(1), repeats=repeats, is_each=False)
        assert in_all.count(b"<p") == 10 + repeats


def test_a_quick_run_writes_record_plot_and_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    names = ("run", "9", "realistic", "visits")
    marks = (
        f"<!-- figures:placement_{each} --><!-- /figures:placement_{each} -->" for each in names
    )
    page.write_text("\n".join(marks), encoding="utf-8")
    result = bench(tmp_path, "--page", page)
    assert result.exit_code == 0, result.output
    [directory] = (tmp_path / "out").iterdir()
    record = json.loads((directory / "record.json").read_text(encoding="utf-8"))
    assert [figure["name"] for figure in record["figures"]] == ["9", "realistic", "visits"]
    assert all(figure["is_complete"] and figure["checks"] for figure in record["figures"])
    assert (directory / "placement-9.png").stat().st_size > 10_000
    with (directory / "values.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["series"] for row in rows if row["figure"] == "realistic"} == {
        "one index",
        "hash",
        "cost",
        "prefix",
        "PEP",
        "PEP by rates",
    }
    written = page.read_text(encoding="utf-8")
    assert all(heading in written for heading in ("partitions matched", "bytes moved", "largest"))
    again = bench(tmp_path, "--from", directory, "--page", page)
    assert again.exit_code == 0
    assert page.read_text(encoding="utf-8") == written
    assert bench(tmp_path, "--figure", "11").exit_code != 0


def test_pep_sends_to_few_and_random_matches_many(definition: PlacementFigures) -> None:
    """At a size at which as many queries match as in the paper: 20,000 queries, 28 values."""
    [figure] = [figure for figure in definition.figures if figure.name == "9"]
    [variant, *_] = figure.variants
    small = figure.model_copy(update={"variants": (variant.model_copy(update={"values": 28}),)})
    chosen = PlacementSet(queries=20_000, messages=20, repeats=(0, 5))
    values = [
        value for values in run_patterns(small, chosen, 1, lambda _: None) for value in values
    ]
    found = {(value.series, value.x, value.measure): value.spread.median for value in values}
    assert found[RANDOM, 0.0, MATCHED] > 2 * found[PEP, 0.0, MATCHED]
    assert found[PEP, 0.0, SENT] <= 5
    assert found[RANDOM, 0.0, SENT] == 100
    assert found[RANDOM, 5.0, MATCHED] > 80
    verdicts = {one.statement[:6]: one.answer for one in judge("9", values)}
    assert verdicts["PEP le"] is Answer.HOLDS
    assert verdicts["where "] is Answer.HOLDS


def test_statements_fail_where_values_say_otherwise() -> None:
    def values(random: float, pep: float, sent: float) -> list[Value]:
        return [
            Place("9", "V=200", series, x, 10).value(measure, "%", number)
            for x in (0.0, 5.0)
            for series, measure, number in (
                (RANDOM, MATCHED, random),
                (PEP, MATCHED, pep),
                (PEP, SENT, sent * (1 + x)),
            )
        ]

    answers = [one.answer for one in judge("9", values(95, 10, 4))]
    assert answers == [Answer.HOLDS] * 4
    answers = [one.answer for one in judge("9", values(50, 45, 7))]
    assert answers == [Answer.FAILS, Answer.FAILS, Answer.FAILS, Answer.HOLDS]
