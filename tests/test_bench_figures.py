"""`pathcast-lab bench figures`: what it compares, keeps and writes.

If these fail, a figure may show times of algorithms that answered differently, lose what it
measured, or write numbers into the page that no run has given.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from oracles.engines import missing_reason

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[bench]'")
pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pathcast[bench]'"
)
if KERNEL_MISSING := missing_reason("kernel"):
    pytest.skip(KERNEL_MISSING, allow_module_level=True)

from pathcast.errors import UnsupportedQueryError
from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast_lab.bench.definitions import default_directory, read_definition
from pathcast_lab.bench.figures import sweep
from pathcast_lab.bench.figures.definition import FiguresDefinition, Parameters
from pathcast_lab.bench.figures.inputs import Inputs, derived
from pathcast_lab.bench.figures.page import refreshed
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.figures.reference_subject import ReferenceSubject, plans_of
from pathcast_lab.bench.figures.statements import STATEMENTS, judge
from pathcast_lab.bench.figures.verdicts import Answer
from pathcast_papers import parse
from pathcast_papers.filtering.algorithm import Algorithm
from pathcast_papers.filtering.hybrid import Hybrid
from pathcast_papers.filtering.query_plan import QueryPlan

ROOT = Path(__file__).resolve().parent.parent
PAPER = [
    *("11", "12", "13", "14", "15", "16", "17", "18", "22", "23", "24", "26", "27"),
    *("T3", "T4", "T5", "T6"),
]

Figures = Callable[..., Result]


@pytest.fixture
def definition() -> FiguresDefinition:
    return read_definition(default_directory(), "figures", FiguresDefinition)


@pytest.fixture
def figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Figures:
    """Runs figures of the quick set on Pathcast's own domains, in this process."""
    from pathcast_lab.cli import build_app

    monkeypatch.setenv("PATHCAST_SHARED_DATA", str(tmp_path / "absent"))

    def run(*arguments: str | Path) -> Result:
        fixed = ["bench", "figures", "--quick", "--out", tmp_path / "out", "--work", tmp_path / "w"]
        result = CliRunner().invoke(build_app(), [str(a) for a in (*fixed, *arguments)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def only_run(tmp_path: Path) -> tuple[Path, dict[str, Any], list[dict[str, str]]]:
    """Directory, record and values of the run."""
    [directory] = (tmp_path / "out").iterdir()
    record: dict[str, Any] = json.loads((directory / "record.json").read_text(encoding="utf-8"))
    with (directory / "values.csv").open(newline="", encoding="utf-8") as file:
        return directory, record, list(csv.DictReader(file))


def test_every_figure_and_table_is_defined_for_every_set(definition: FiguresDefinition) -> None:
    assert sorted(figure.name for figure in definition.figures) == sorted(PAPER)
    for figure in definition.figures:
        assert figure.sets.keys() == {"quick", "short", "full"}, figure.name
        assert figure.algorithms or figure.kind != "sweep"


def test_curves_tables_and_plots(figures: Figures, tmp_path: Path) -> None:
    result = figures("--figure", "11,12,13,T3,T5")
    assert result.exit_code == 0, result.output
    directory, record, values = only_run(tmp_path)
    assert [one["name"] for one in record["figures"]] == ["11", "12", "13", "T3", "T5"]
    assert all(one["is_complete"] and not one["failure"] for one in record["figures"])
    assert {one["workload"] for one in record["figures"]} == {"news"}
    assert "stands in" in result.output
    for name in ("11", "12", "13"):
        assert (directory / f"figure-{name}.png").read_bytes().startswith(b"\x89PNG")
    series = {row["series"] for row in values if row["figure"] == "11"}
    wanted = {"yfilter", "hybrid", "xfilter", "xfilter-basic", "kernel", "kernel, first pass"}
    assert series == wanted
    for row in values:
        if row["measure"] in ("mqpt", "by lxml", "lxml", "insertion"):
            assert float(row["median"]) > 0, row
            assert float(row["least"]) <= float(row["median"]) <= float(row["most"])
    checks = [check for one in record["figures"] for check in one["checks"]]
    assert any("and the kernel gave the same" in check for check in checks)
    assert any("plain NFA: the same" in check for check in checks)
    copied = [{**row, "figure": "12"} for row in values if row["figure"] == "13"]
    assert copied == [row for row in values if row["figure"] == "12"]
    assert str(tmp_path) not in json.dumps(record), "a record names no directory of the machine"


def test_predicates_and_nested_paths(figures: Figures, tmp_path: Path) -> None:
    result = figures("--figure", "24,27,T6")
    assert result.exit_code == 0, result.output
    _, record, values = only_run(tmp_path)
    assert all(one["is_complete"] for one in record["figures"])
    tried = {row["series"] for row in values if row["measure"] == "predicates tried"}
    assert tried == {"yfilter", "yfilter-sorted"}
    assert {row["variant"] for row in values if row["figure"] == "27"} == {"P=0", "P=1"}
    profile = {row["measure"] for row in values if row["figure"] == "T6"}
    assert {"engine", "NP-Filter", "machine size", "accepting states hit", "matches"} <= profile


def test_the_other_axes(figures: Figures, tmp_path: Path) -> None:
    result = figures("--figure", "16,17,T4")
    assert result.exit_code == 0, result.output
    _, _, values = only_run(tmp_path)
    places = {
        name: sorted({float(row["x"]) for row in values if row["figure"] == name})
        for name in ("16", "17", "T4")
    }
    assert places == {"16": [6, 7], "17": [0, 0.4], "T4": [6, 10]}


def test_wrong_answer_voids_the_figure_and_no_other(
    figures: Figures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(self: Hybrid, tree: MessageTree) -> set[QueryPlan]:
        return set()

    monkeypatch.setattr(Hybrid, "match", nothing)
    result = figures("--figure", "11,22")
    assert result.exit_code == 1
    assert "no time is reported" in result.output
    directory, record, values = only_run(tmp_path)
    wrong, right = record["figures"]
    assert "hybrid" in wrong["failure"]
    assert right["is_complete"]
    assert {row["figure"] for row in values} == {"22"}
    assert not (directory / "figure-11.png").exists()


def test_a_query_that_is_refused_ends_its_figure_only(
    figures: Figures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values of the points before it were checked, and stay."""

    def refused(*arguments: object, **options: object) -> None:
        raise UnsupportedQueryError("query.unsupported", construct="what this test invents")

    monkeypatch.setattr(sweep, "measure_kernel", refused)
    result = figures("--figure", "11,T3")
    assert result.exit_code == 1
    _, record, values = only_run(tmp_path)
    ended, other = record["figures"]
    assert "this test invents" in ended["failure"]
    assert other["is_complete"]
    assert {row["figure"] for row in values} == {"11", "T3"}


def test_what_was_measured_before_an_interruption_is_kept(
    figures: Figures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def interrupted(*arguments: object, **options: object) -> None:
        calls.append(arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep, "measure_kernel", interrupted)
    result = figures("--figure", "11,22")
    assert result.exit_code == 130
    assert len(calls) == 1
    directory, record, values = only_run(tmp_path)
    assert [one["is_complete"] for one in record["figures"]] == [False]
    assert {row["series"] for row in values} >= {"yfilter", "hybrid", "xfilter"}
    assert (directory / "figure-11.png").is_file()


def test_page_is_written_between_its_marks_only(figures: Figures, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    template = "# Ours\n<!-- figures:run -->\n<!-- /figures:run -->\nprose {}\n"
    marks = "<!-- figures:{0} -->\nold\n<!-- /figures:{0} -->\n"
    page.write_text(template.format("11") + marks.format("15") + "more\n" + marks.format("26"))
    result = figures("--figure", "15", "--page", page)
    assert result.exit_code == 0, result.output
    written = page.read_text(encoding="utf-8")
    assert "| Q | yfilter | hybrid | xfilter | kernel |" in written
    assert "| 100,000 |" in written
    assert "46.0 x" in written, "the paper's number stands beside ours"
    assert "prose 11" in written
    assert "more\n<!-- figures:26 -->\nold" in written
    assert "figure-15.png" in written
    directory, _, _ = only_run(tmp_path)
    page.write_text(written.replace("46.0 x", "typed"))
    assert figures("--page", page, "--from", directory).exit_code == 0
    assert page.read_text(encoding="utf-8") == written


def test_blocks_without_new_contents_stay() -> None:
    text = "a<!-- figures:1 -->x<!-- /figures:1 -->b<!-- figures:11 -->y<!-- /figures:11 -->"
    changed = refreshed(text, {"1": "new"})
    assert changed.endswith("b<!-- figures:11 -->y<!-- /figures:11 -->")
    assert "\nnew\n" in changed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--figure", "10"], "none of 11, 12"),
        (["filter"], "figures are run alone"),
        (["--sizes", "100"], "sizes of their own"),
        (["--from", "absent"], "needs --page"),
        (["--from", "absent", "--page", "absent.md"], "holds no run of figures"),
        (["--definitions", "absent"], "holds no figures.toml"),
    ],
)
def test_what_cannot_be_run_is_said_before_anything_runs(
    figures: Figures, tmp_path: Path, arguments: list[str], said: str
) -> None:
    result = figures(*arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert not (tmp_path / "out").exists()


def test_options_of_figures_belong_to_figures() -> None:
    from pathcast_lab.cli import build_app

    result = CliRunner().invoke(build_app(), ["bench", "filter", "--figure", "11"])
    assert result.exit_code == 2
    assert "belong to pathcast-lab bench figures" in result.output


@pytest.mark.parametrize(("x", "sign"), [("wildcard", "*"), ("descendant", "//")])
def test_derived_queries(
    definition: FiguresDefinition, monkeypatch: pytest.MonkeyPatch, x: str, sign: str
) -> None:
    """4.5: distinct, and only what the axis says is replaced."""
    monkeypatch.setenv("PATHCAST_SHARED_DATA", "absent")
    inputs = Inputs(definition, None, lambda text: None)
    base = Parameters(queries=300, depth_max=10, wildcard=0, descendant=0, is_derived=True)
    plain = inputs.queries("nitf", base, 300)
    changed = inputs.queries("nitf", base.model_copy(update={x: 0.4}), 300)
    assert len(set(plain)) == len(set(changed)) == 300
    assert not any("*" in text or "//" in text for text in plain)
    other = {"*": "//", "//": "*"}[sign]
    assert sum(text.count(sign) for text in changed) > 300
    assert not any(other in text for text in changed)


def test_derivation_keeps_the_number_of_steps() -> None:
    draw = Random(3)
    for _ in range(50):
        made = derived("/a/b/c/d", draw, wildcard=0.5, descendant=0.5)
        assert len(made.replace("//", "/").split("/")) == 5


def test_subject_marks_the_number_of_every_equal_query() -> None:
    plans = plans_of(["/a/b", "//b", "/child::a/b", "/c"])
    assert [sorted(plan.numbers) for plan in plans] == [[0, 2], [1], [3]]
    trees = [parse(b"<a><b/></a>", Limits()), parse(b"<c/>", Limits())]
    for algorithm in Algorithm:
        subject = ReferenceSubject(algorithm, plans)
        assert subject.answers(trees) == [[0, 1, 2], [3]]
        assert subject.transitions > 0
        assert subject.run(trees).navigation_ns > 0


def curve(figure: str, series: str, values: dict[float, float], variant: str = "") -> list[Value]:
    return [
        Place(figure, variant, series, x, 100).value("mqpt", "us", value)
        for x, value in values.items()
    ]


def answers(name: str, values: list[Value]) -> dict[str, Answer]:
    return {one.statement: one.answer for one in judge(name, values)}


def test_statements_are_judged_by_the_values() -> None:
    more = "a predicate costs very little more"
    plain = curve("27", "yfilter", {100: 4.0, 200: 10.0}, "P=0")
    dear = curve("27", "yfilter", {100: 4.1, 200: 17.8}, "P=1")
    [verdict] = judge("27", plain + dear)
    assert (verdict.statement, verdict.answer) == (more, Answer.FAILS)
    assert verdict.detail == "1.78 times; 1.02 to 1.78 over all Q"
    cheap = curve("27", "yfilter", {100: 9.0, 200: 12.0}, "P=1")
    assert answers("27", plain + cheap) == {more: Answer.HOLDS}


def test_order_within_a_tenth_is_no_order() -> None:
    values = curve("14", "yfilter", {1: 10.0}) + curve("14", "hybrid", {1: 9.5})
    values += curve("14", "xfilter", {1: 40.0})
    order = "YFilter is cheapest, then Hybrid, then XFilter"
    assert answers("14", values)[order] is Answer.CLOSE
    values += curve("14", "hybrid", {1: 5.0})
    assert answers("14", values)[order] is Answer.FAILS


def test_a_top_at_an_end_is_no_bell() -> None:
    found = answers("17", curve("17", "hybrid", {0: 1.0, 0.4: 3.0, 0.8: 4.0}))
    assert found["Hybrid slows down, then gets faster"] is Answer.FAILS
    found = answers("17", curve("17", "hybrid", {0: 1.0, 0.4: 3.0, 0.8: 2.0}))
    assert found["Hybrid slows down, then gets faster"] is Answer.HOLDS


def test_without_values_nothing_is_claimed() -> None:
    assert STATEMENTS.keys() == set(PAPER)
    for name in PAPER:
        assert {one.answer for one in judge(name, [])} == {Answer.UNMEASURED}, name


def test_the_page_of_the_project_has_a_block_for_every_figure() -> None:
    text = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
    for name in ("run", *PAPER):
        assert text.count(f"<!-- figures:{name} -->") == 1, name
        assert text.count(f"<!-- /figures:{name} -->") == 1, name
