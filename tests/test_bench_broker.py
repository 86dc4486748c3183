"""`pathcast-lab bench broker-figures` and `customise`: what they compare, keep and write.

If these fail, a figure may show times of algorithms that answered differently, say that a statement
of the paper holds when it does not, or write numbers into the page that no run has given.
"""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from oracles.engines import missing_reason

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[bench]'")
pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pathcast[bench]'"
)

from pathcast.limits import Limits
from pathcast.message import MessageTree
from pathcast_lab.bench.broker.definition import BrokerAlgorithm, BrokerFigures, BrokerParameters
from pathcast_lab.bench.broker.inputs import KEPT_FROM, BrokerInputs, flwr_queries
from pathcast_lab.bench.broker.reference_subject import BrokerSubject, broker_query
from pathcast_lab.bench.broker.statements import OPERATORS, STATEMENTS, judge
from pathcast_lab.bench.customise import CustomiseDefinition
from pathcast_lab.bench.customising import check_results, mixed_sample, subscriptions_of
from pathcast_lab.bench.definitions import default_directory, read_definition
from pathcast_lab.bench.figures.point import Place, Value
from pathcast_lab.bench.figures.verdicts import Answer
from pathcast_lab.bench.rounds import binary_array
from pathcast_lab.bench.wrong_count import WrongCountError
from pathcast_lab.workload import BIB, BOOK, BrokerWorkload, FlwrParameters
from pathcast_papers import parse
from pathcast_papers.language.xquery import paper_form
from pathcast_papers.language.xquery import parse as parse_query
from pathcast_papers.message_broker.dissemination import ReferenceDissemination
from pathcast_papers.message_broker.pathsharing.algorithms import PathSharingFW
from pathcast_papers.message_broker.pathsharing.broker_query import BrokerQuery

KERNEL_MISSING = missing_reason("kernel")
needs_kernel = pytest.mark.skipif(KERNEL_MISSING is not None, reason=str(KERNEL_MISSING))

PAPER = ["10", "11", "12", "7", "8", "9", "T2", "T3", "T4", "T5"]

Figures = Callable[..., Result]


@pytest.fixture
def definition() -> BrokerFigures:
    return read_definition(default_directory(), "broker-figures", BrokerFigures)


@pytest.fixture
def bench(tmp_path: Path) -> Figures:
    """Runs the quick set, in this process."""
    from pathcast_lab.cli import build_app

    def run(*arguments: str | Path) -> Result:
        fixed = ["bench", "--quick", "--out", tmp_path / "out", "--work", tmp_path / "work"]
        result = CliRunner().invoke(build_app(), [str(a) for a in (*fixed, *arguments)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def without_kernel(tmp_path: Path) -> Path:
    """Definitions that measure reference algorithms alone."""
    directory = tmp_path / "definitions"
    directory.mkdir()
    text = (default_directory() / "broker-figures.toml").read_text(encoding="utf-8")
    kept = [line for line in text.splitlines() if not line.startswith("kernel")]
    (directory / "broker-figures.toml").write_text("\n".join(kept), encoding="utf-8")
    shutil.copy(default_directory() / "filter.toml", directory)
    return directory


def only_run(tmp_path: Path) -> tuple[Path, dict[str, Any], list[dict[str, str]]]:
    """Directory, record and values of the run."""
    [directory] = (tmp_path / "out").iterdir()
    record: dict[str, Any] = json.loads((directory / "record.json").read_text(encoding="utf-8"))
    with (directory / "values.csv").open(newline="", encoding="utf-8") as file:
        return directory, record, list(csv.DictReader(file))


def test_every_figure_and_table_is_defined_for_every_set(definition: BrokerFigures) -> None:
    assert sorted(figure.name for figure in definition.figures) == PAPER
    for figure in definition.figures:
        assert figure.sets.keys() == {"quick", "short", "full"}, figure.name
        assert figure.algorithms
        assert figure.name in STATEMENTS, "the paper says something of each"
        if figure.kind == "mqpt":
            assert all(chosen.kernel for chosen in figure.sets.values()), figure.name


def test_the_kernel_runs_at_the_papers_sizes_and_ten_times_those(definition: BrokerFigures) -> None:
    largest = {"7": 5_000, "8": 5_000, "9": 5_000, "10": 10_000, "11": 40_000, "12": 100_000}
    for figure in definition.figures:
        if figure.name in largest:
            short = figure.sets["short"]
            sizes = short.kernel_queries or short.kernel
            assert {largest[figure.name], 10 * largest[figure.name]} <= set(sizes), figure.name


def test_reference_figures_tables_and_plots(
    bench: Figures, tmp_path: Path, without_kernel: Path
) -> None:
    names = "7,T2,T3,12"
    result = bench("broker-figures", "--figure", names, "--definitions", without_kernel)
    assert result.exit_code == 0, result.output
    directory, record, values = only_run(tmp_path)
    assert [one["name"] for one in record["figures"]] == ["7", "T2", "T3", "12"]
    assert all(one["is_complete"] and not one["failure"] for one in record["figures"])
    for name in ("figure-7", "figure-12", "table-2"):
        assert (directory / f"broker-{name}.png").read_bytes().startswith(b"\x89PNG")
    alternatives = {"PathSharing-F", "PathSharing-FW", "PathSharing-FWR"}
    seen = {(row["series"], row["variant"]) for row in values if row["figure"] == "7"}
    assert seen == {(a, o) for a in alternatives for o in ("NoOpt", "Opt(q)", "Opt(q+dtd)")}
    for row in values:
        if row["measure"] in ("mqpt", "by lxml", "lxml", "total"):
            assert float(row["median"]) > 0, row
    assert all(one["checks"] for one in record["figures"] if one["name"] != "T3")
    assert "gave the same" in result.output
    assert "the paper says" in result.output
    assert str(tmp_path) not in json.dumps(record), "a record names no directory of the machine"
    plans = {
        (row["variant"], row["measure"]): float(row["median"])
        for row in values
        if row["figure"] == "T3"
    }
    assert plans["NoOpt", "DupElim (hash)"] > 0
    assert ("Opt(q+dtd)", "semijoin (hash)") not in plans, "Bib needs nothing hash based"


def test_wrong_answer_voids_the_figure_and_no_other(
    bench: Figures, tmp_path: Path, without_kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(self: PathSharingFW, tree: MessageTree, profiler: object = None) -> dict[str, Any]:
        return {}

    monkeypatch.setattr(PathSharingFW, "process", nothing)
    result = bench("broker-figures", "--figure", "10,T5", "--definitions", without_kernel)
    assert result.exit_code == 1
    assert "no time is reported" in result.output
    _, record, values = only_run(tmp_path)
    wrong, right = record["figures"]
    assert "PathSharing-FW" in wrong["failure"]
    assert right["is_complete"]
    assert {row["figure"] for row in values} == {"T5"}


def test_page_is_written_from_a_run_and_only_between_marks(
    bench: Figures, tmp_path: Path, without_kernel: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "before <!-- figures:broker_run -->x<!-- /figures:broker_run --> between\n"
        "<!-- figures:broker_T4 -->\nearlier table\n<!-- /figures:broker_T4 -->\n"
        "<!-- figures:11 -->of another paper<!-- /figures:11 --> after\n",
        encoding="utf-8",
    )
    options = ["--definitions", without_kernel, "--page", page]
    assert bench("broker-figures", "--figure", "T4", *options).exit_code == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before <!-- figures:broker_run -->\nRun of ")
    assert "earlier table" not in text
    assert "| semijoin and OuterJoin-Select dominate as Q increases | 6.4 |" in text
    assert "<!-- figures:11 -->of another paper<!-- /figures:11 --> after" in text
    directory, _, _ = only_run(tmp_path)
    page.write_text(text.replace("Table", ""), encoding="utf-8")
    again = bench("broker-figures", "--from", directory, *options)
    assert again.exit_code == 0, again.output
    assert "wrote broker_run, broker_T4" in again.output


@pytest.mark.parametrize("workload", [BIB, BOOK], ids=lambda one: one.name)
def test_parts_of_queries_are_those_of_their_texts(workload: BrokerWorkload) -> None:
    parameters = FlwrParameters(count=150, predicates=2, returns=3, values_max=30)
    for query in workload.queries(parameters):
        paper = paper_form(parse_query(query.text(), {}))
        assert paper is not None, query.text()
        assert broker_query(query) == BrokerQuery.of(paper), query.text()


def test_queries_come_back_from_their_file(tmp_path: Path) -> None:
    parameters = FlwrParameters(count=KEPT_FROM, predicates=2, returns=3, values_max=100)
    made = list(BOOK.queries(parameters))
    assert flwr_queries("book", parameters, tmp_path) == made
    [file] = tmp_path.glob("flwr-*.txt")
    assert file.name.startswith(f"flwr-book-{KEPT_FROM}-")
    file.write_text(file.read_text(encoding="utf-8").replace("section", "chapter"), "utf-8")
    assert flwr_queries("book", parameters, tmp_path) != made, "the file is not looked at"
    other = FlwrParameters(count=KEPT_FROM, seed=1, values_max=100)
    assert flwr_queries("book", other, tmp_path)[0] == next(BOOK.queries(other))


def test_profile_names_every_operator_and_the_executor() -> None:
    inputs = BrokerInputs(seed=0)
    queries = inputs.queries("book", BrokerParameters(queries=60), 60)
    trees = [parse(message, Limits()) for message in inputs.messages("book", 2, 10)]
    for algorithm in BrokerAlgorithm:
        costs = BrokerSubject(algorithm, "Opt(q)", queries, None).profile(trees)
        assert costs.keys() <= set(OPERATORS)
        assert {"path matching", "executor"} <= costs.keys()
        assert all(seconds >= 0 for seconds in costs.values())


def profile(series: str, **costs: float) -> list[Value]:
    place = Place("T5", "Opt(q+dtd)", series, 100.0, 100)
    return [place.value(measure.replace("_", " "), "us", cost) for measure, cost in costs.items()]


def mqpt(figure: str, variant: str, **costs: float) -> list[Value]:
    return [
        Place(figure, variant, f"PathSharing-{name}", 100.0, 100).value("mqpt", "us", cost)
        for name, cost in costs.items()
    ]


def verdicts(name: str, values: list[Value]) -> dict[str, Answer]:
    return {one.statement: one.answer for one in judge(name, values)}


def test_statements_are_judged_by_the_values() -> None:
    good = [
        *mqpt("7", "NoOpt", F=8.0, FW=5.0, FWR=9.0),
        *mqpt("7", "Opt(q)", F=7.0, FW=4.0, FWR=3.0),
        *mqpt("7", "Opt(q+dtd)", F=6.0, FW=3.5, FWR=1.0),
    ]
    assert set(verdicts("7", good).values()) == {Answer.HOLDS}
    slow = [value for value in good if value.spread.median != 1.0]
    slow += mqpt("7", "Opt(q+dtd)", FWR=3.4)
    found = verdicts("7", slow)
    wide = "with Opt(q+dtd) FWR outperforms the others by a wide margin"
    assert found[wide] is Answer.FAILS
    assert found["Opt(q+dtd) improves all three further"] is Answer.FAILS
    lowest = "without optimisation FW has the lowest cost and FWR the highest"
    assert found[lowest] is Answer.HOLDS


def test_a_gain_that_the_clock_may_have_made_is_none() -> None:
    values = [*mqpt("7", "NoOpt", F=8.0, FW=8.0, FWR=8.0)]
    values += mqpt("7", "Opt(q)", F=4.0, FW=7.5, FWR=4.0)
    found = verdicts("7", values)
    assert found["Opt(q) improves all three alternatives"] is Answer.CLOSE


def test_costs_of_operators_are_compared() -> None:
    alone = profile("PathSharing-FWR", selection=9.0, semijoin=8.0, executor=4.0)
    shared = profile("plan sharing", selection=1.0, semijoin=9.0, executor=1.0)
    found = verdicts("T5", [*alone, *shared])
    grouped = "grouped selections reduce the cost of selection and DupElim"
    assert found[grouped] is Answer.HOLDS
    assert found["shared joins reduce the cost of semijoins"] is Answer.FAILS
    assert found["the executor costs less"] is Answer.HOLDS


@pytest.mark.parametrize("name", PAPER)
def test_without_values_nothing_is_claimed(name: str) -> None:
    assert {one.answer for one in judge(name, [])} == {Answer.UNMEASURED}
    few = mqpt(name, "Opt(q)", F=1.0)
    assert Answer.HOLDS not in verdicts(name, few).values()


def test_sample_has_subscriptions_with_results_and_others() -> None:
    queries = list(BIB.queries(FlwrParameters(count=100, values_max=100)))
    engine = ReferenceDissemination(Limits())
    subscriptions = subscriptions_of(query.text() for query in queries)
    engine.subscribe(subscriptions, {})
    messages = binary_array(list(BIB.messages(2, values_max=100)))
    places = mixed_sample(engine, len(queries), messages, 20)
    assert 10 < len(places) <= 20
    assert sorted(set(places)) == places
    answer = engine.process(messages)
    with_results = {
        int(answer.subscription_ids[number][1:])
        for number in answer.rows.column("subscription").to_pylist()
    }
    assert min(10, len(with_results)) <= len(with_results & set(places)) < len(places)


def test_results_that_differ_are_an_error() -> None:
    texts = [query.text() for query in BIB.queries(FlwrParameters(count=30, values_max=3))]
    engine = ReferenceDissemination(Limits())
    engine.subscribe(subscriptions_of(texts), {})
    messages = binary_array(list(BIB.messages(2, values_max=3)))
    sample = subscriptions_of(texts)
    assert check_results("case", engine, sample, messages) > 0
    other = [sample[0]._replace(query=texts[1]), *sample[1:]]
    with pytest.raises(WrongCountError, match="q0"):
        check_results("case", engine, other, messages)


@needs_kernel
def test_kernel_beside_the_algorithms(bench: Figures, tmp_path: Path) -> None:
    result = bench("broker-figures", "--figure", "12")
    assert result.exit_code == 0, result.output
    _, record, values = only_run(tmp_path)
    assert all(one["is_complete"] for one in record["figures"])
    kernel = [row for row in values if row["series"] in ("kernel", "kernel, serialised")]
    assert {row["series"] for row in kernel} == {"kernel", "kernel, serialised"}
    measures = {row["measure"] for row in kernel}
    assert {"mqpt", "by lxml", "total", "total by lxml", "output rate"} <= measures
    assert all(float(row["median"]) > 0 for row in kernel if row["measure"] == "mqpt")
    checks = [check for one in record["figures"] for check in one["checks"]]
    assert any("PathSharing-FWR: the same" in check for check in checks)


@needs_kernel
def test_customise_checks_counts_and_measures(bench: Figures, tmp_path: Path) -> None:
    result = bench("customise")
    assert result.exit_code == 0, result.output
    [path] = (tmp_path / "out").glob("*.json")
    [benchmark] = json.loads(path.read_text(encoding="utf-8"))["benchmarks"]
    cases = {case["case"]: case for case in benchmark["results"]}
    assert list(cases) == ["book Q=500", "bib Q=500", "domains Q=200"]
    for name, case in cases.items():
        assert case["checks"]["reference_results"] > 0
        assert (case["checks"]["reference_groups"] > 0) == ("domains" not in name)
        assert len(case["groups"]) == (0 if "domains" in name else 2)
        assert all(one["result_bytes"] > 0 for one in case["serialised"])
        assert len(case["entering"]) == len(case["leaving"]) == 2
    for wanted in ("groups by lxml", "output rate", "entering", "leaving", "with delivery rows"):
        assert wanted in result.stdout
    assert "checked book Q=500" in result.stdout


@needs_kernel
def test_known_count_of_results_that_differs_voids_the_times(
    bench: Figures, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "definitions"
    shutil.copytree(default_directory(), directory, ignore=shutil.ignore_patterns(".*", "records"))
    text = (directory / "customise.toml").read_text(encoding="utf-8")
    monkeypatch.setattr("pathcast_lab.bench.customise.inputs_digest", lambda *_: "known")
    (directory / "customise.toml").write_text(
        text + '\n[[expected]]\ncase = "book Q=500"\ninputs = "known"\nmatches = 1\n',
        encoding="utf-8",
    )
    result = bench("customise", "--definitions", directory)
    assert result.exit_code == 1
    assert "no time is reported" in result.output


def test_aims_speak_of_measures_that_exist() -> None:
    definition = read_definition(default_directory(), "customise", CustomiseDefinition)
    named = {aim.measure for aim in definition.aims}
    assert named == {
        *("groups", "groups by lxml", "output rate", "entering", "leaving"),
        "rows by results alone",
    }
    for chosen in definition.sets.values():
        assert chosen.queries.keys() == {"book", "bib", "domains"}
