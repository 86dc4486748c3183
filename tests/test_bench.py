"""`pathcast-lab bench` from outside: what it prints and records; a wrong count voids times."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from oracles.engines import missing_reason
from pathcast_lab.workload import ADVERSARIES

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[bench]'")
pytest.importorskip(
    "matplotlib", reason="matplotlib is not installed: pip install 'pathcast[bench]'"
)
KERNEL_MISSING = missing_reason("kernel")
pytestmark = pytest.mark.skipif(KERNEL_MISSING is not None, reason=str(KERNEL_MISSING))

DEFINITIONS = Path(__file__).resolve().parent.parent / "lab" / "benchmarks"

Bench = Callable[..., Result]


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Runs the quick set on the news domain, in this process."""
    from pathcast_lab.cli import build_app

    monkeypatch.setenv("PATHCAST_SHARED_DATA", str(tmp_path / "absent"))

    def run(*arguments: str | Path) -> Result:
        fixed = ["bench", "--quick", "--out", tmp_path / "out", "--work", tmp_path / "work"]
        result = CliRunner().invoke(build_app(), [str(a) for a in (*fixed, *arguments)])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


def only_record(tmp_path: Path) -> dict[str, Any]:
    """The record that a run has written."""
    [path] = (tmp_path / "out").glob("*.json")
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def test_filter_prints_every_case_and_records_raw_rounds(bench: Bench, tmp_path: Path) -> None:
    result = bench("filter", "--sizes", "100,300", "--rounds", "4")
    assert result.exit_code == 0, result.output
    assert "news Q=100" in result.stdout
    assert "news Q=300" in result.stdout
    assert re.search(r"warm by lxml +\d[\d.,]* x lxml", result.stdout)
    assert "checked news Q=100" in result.stdout
    assert "\x1b" not in result.stdout
    record = only_record(tmp_path)
    assert {"commit", "machine", "software", "started", "command", "set"} <= record.keys()
    [benchmark] = record["benchmarks"]
    assert [case["queries"] for case in benchmark["results"]] == [100, 300]
    for case in benchmark["results"]:
        assert len(case["warm"]) == 4
        assert all(one["yardstick_ns"] > 0 and one["total_ns"] > 0 for one in case["warm"])
        assert all(one["parsing_ns"] < one["total_ns"] for one in case["warm"])
        assert all(one["cache_misses"] == 0 for one in case["warm"]), "warm is not warm"
        assert all(one["cache_misses"] > 0 for one in case["cold"]), "cold is not cold"
        assert case["checks"]["nfa_matches"] > 0
        assert case["checks"]["reference_matches"] > 0
        assert case["matches_a_message"] > 0
        assert [len(one["quarters"]) for one in case["unseen"]] == [4, 4]
    [plot] = (tmp_path / "out").glob("*.png")
    assert plot.read_bytes().startswith(b"\x89PNG")


def test_known_count_that_differs_voids_the_times(bench: Bench, tmp_path: Path) -> None:
    assert bench("filter", "--sizes", "100").exit_code == 0
    checks = only_record(tmp_path)["benchmarks"][0]["results"][0]["checks"]
    shutil.rmtree(tmp_path / "out")
    definitions = tmp_path / "definitions"
    shutil.copytree(DEFINITIONS, definitions, ignore=shutil.ignore_patterns(".*", "records"))
    text = (definitions / "filter.toml").read_text(encoding="utf-8")
    known = '[[expected]]\ncase = "news Q=100"\ninputs = "{inputs}"\nmatches = {matches}\n'

    def run(matches: int) -> tuple[int, dict[str, Any], str]:
        expected = known.format(inputs=checks["inputs"], matches=matches)
        (definitions / "filter.toml").write_text(f"{text}\n{expected}", encoding="utf-8")
        result = bench("filter", "--sizes", "100", "--definitions", definitions)
        record = only_record(tmp_path)
        shutil.rmtree(tmp_path / "out")
        return result.exit_code, record["benchmarks"][0], result.stdout

    code, good, _ = run(checks["matches"])
    assert code == 0
    assert good["results"][0]["checks"]["is_expected"] is True
    code, wrong, printed = run(checks["matches"] + 1)
    assert code == 1
    assert "no time is reported" in wrong["failure"]
    assert wrong["results"] == wrong["measures"] == []
    assert "us/message" not in printed


def test_the_other_benchmarks_of_one_machine(bench: Bench, tmp_path: Path) -> None:
    names = ("door", "records", "compression", "registration", "threads", "conditions")
    result = bench(*names)
    assert result.exit_code == 0, result.output
    found = {each["name"]: each for each in only_record(tmp_path)["benchmarks"]}
    door, records, compression, registration, threads, conditions = (found[name] for name in names)
    *parsed, called = door["results"]
    assert [case["case"] for case in parsed] == [
        f"{name} generated" for name in ("news", "payments", "alerts")
    ]
    assert all(case["elements"] > 0 and case["refused"] == 0 for case in parsed)
    assert called["case"] == "one small message a call"
    assert {m["aim"] for m in door["measures"] if m["name"] == "door by lxml"} == {"<= 0.35"}
    assert records["results"][0]["records"] == 16 * 200
    assert {m["aim"] for m in records["measures"] if "by door" in m["name"]} == {">= 0.8", ">= 1.2"}
    for case in compression["results"]:
        ratios = {packing["name"]: packing["ratio"] for packing in case["packings"]}
        assert 0 < ratios["zstd, dictionary"] < ratios["zstd"] < 1
    assert [case["texts"] for case in registration["results"]] == [50, 50, 8]
    assert {m["aim"] for m in registration["measures"] if m["name"] == "dearest"} == {"<= 200"}
    assert threads["results"][0]["matches"] > 0
    kinds = ("P=1", "P=20", "NP=1", "NP=3")
    told = ("dates Q=300", "contains, lower case Q=300", "500 keywords Q=1")
    assert [case["case"] for case in conditions["results"]] == [
        *(f"news {kind} Q=300" for kind in kinds),
        *(f"stories {kind}" for kind in (*told, "10,000 patterns Q=300")),
    ]
    assert all(case["checks"]["nfa_matches"] > 0 for case in conditions["results"])
    assert all(one["cache_misses"] for case in conditions["results"] for one in case["cold"])


def test_realistic_and_adversarial_subscriptions(bench: Bench, tmp_path: Path) -> None:
    """Their figures are what the engine is judged by; without matches the checks would be void."""
    result = bench("mixed", "adversarial")
    assert result.exit_code == 0, result.output
    mixed, adversarial = only_record(tmp_path)["benchmarks"]
    [plot] = (tmp_path / "out").glob("*.png")
    assert plot.read_bytes().startswith(b"\x89PNG")
    [case] = mixed["results"]
    assert case["checks"]["reference_matches"] > 0
    assert {"memory", "cold by lxml", "warm by lxml", "unseen by lxml"} <= {
        measure["name"] for measure in mixed["measures"]
    } | ({"memory"} if case["matcher_bytes"] is None else set())
    assert {measure["benchmark"] for measure in mixed["measures"]} == {"mixed"}
    assert [case["case"] for case in adversarial["results"]] == [
        f"{family} Q=100" for family in ADVERSARIES
    ]
    for case in adversarial["results"]:
        assert case["checks"]["nfa_matches"] > 0, case["case"]
        assert case["checks"]["reference_matches"] > 0, case["case"]


def test_own_queries_and_documents(bench: Bench, tmp_path: Path) -> None:
    directory = tmp_path / "documents"
    directory.mkdir()
    for number in range(12):
        (directory / f"{number:02}.xml").write_text(f"<a><b c='{number}'/><d/></a>")
    queries = tmp_path / "queries.txt"
    queries.write_text("".join(f"/a/b{n}\n//d\n" for n in range(25)))
    result = bench("filter", "--sizes", "20", "--queries", queries, "--documents", directory)
    assert result.exit_code == 0, result.output
    record = only_record(tmp_path)
    [case] = record["benchmarks"][0]["results"]
    assert case["matches_a_message"] == 10, "every second of 20 queries is //d"
    assert str(tmp_path) not in json.dumps(record), "a record names no directory of the machine"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "none of filter, door"),
        (["--full"], "only one of the two"),
        (["--sizes", "10q"], "no number from 1 on"),
        (["--workload", "nitf"], "PATHCAST_SHARED_DATA"),
        (["--workload", "weather"], "none of nitf, news"),
        (["--definitions", "absent"], "holds no filter.toml"),
    ],
)
def test_what_cannot_be_run_is_said_before_anything_runs(
    bench: Bench, tmp_path: Path, arguments: list[str], said: str
) -> None:
    result = bench(*arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("module", ["lxml.etree", "matplotlib"])
def test_missing_library_names_the_extra(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    monkeypatch.setitem(__import__("sys").modules, module, None)
    result = bench("filter")
    assert result.exit_code == 3
    assert "pathcast[bench]" in result.output
    assert not (tmp_path / "out").exists()


def test_every_aim_speaks_of_a_figure(bench: Bench, tmp_path: Path) -> None:
    """A misspelt aim would never be printed."""
    assert bench("filter", "door", "mixed").exit_code == 0
    for benchmark in only_record(tmp_path)["benchmarks"]:
        text = (DEFINITIONS / f"{benchmark['name']}.toml").read_text(encoding="utf-8")
        aims = {aim["measure"] for aim in tomllib.loads(text)["aims"]}
        assert aims
        assert aims <= {measure["name"] for measure in benchmark["measures"]}


def test_a_hop_and_its_parsing_are_measured(bench: Bench, tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
    result = bench("hop")
    assert result.exit_code == 0, result.output
    [benchmark] = only_record(tmp_path)["benchmarks"]
    cases = benchmark["results"]
    assert [each["case"] for each in cases] == ["1,000 bytes", "18,000 bytes"]
    for each in cases:
        assert min(each["hop_us"]) > 0
        assert min(each["parsing_us"]) > 0
    names = {one["name"] for one in benchmark["measures"]}
    assert names == {"hop", "routing alone", "parsing alone", "parsing"}


def test_a_broker_that_was_killed_is_measured_with_its_snapshot_and_without(
    bench: Bench, tmp_path: Path
) -> None:
    pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
    result = bench("restart")
    assert result.exit_code == 0, result.output
    [benchmark] = only_record(tmp_path)["benchmarks"]
    cases = {each["case"]: each for each in benchmark["results"]}
    assert {case: each["profiles"] for case, each in cases.items()} == {
        "with the snapshot": 1200,
        "without": 1200,
        "no profiles": 0,
    }
    assert all(min(each["answers_s"]) > 0 for each in cases.values())


def test_capacity_is_measured_after_lxml_gave_the_same_answers(
    bench: Bench, tmp_path: Path
) -> None:
    result = bench("capacity")
    assert result.exit_code == 0, result.output
    [benchmark] = only_record(tmp_path)["benchmarks"]
    assert [each["subscriptions"] for each in benchmark["results"]] == [2000, 4000]
    for each in benchmark["results"]:
        assert each["opened"]["checked_matches"] > 0
        assert each["opened"]["matches"] > each["opened"]["checked_matches"]
        assert each["registered"]["file_bytes"] > each["registered"]["text_bytes"]


def test_one_broker_is_measured_after_its_deliveries_were_compared(
    bench: Bench, tmp_path: Path
) -> None:
    pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
    from pathcast_lab.bench.broker_node_run import Inbox, checked
    from pathcast_lab.bench.wrong_count import WrongCountError

    assert bench("broker-node").exit_code == 0
    [benchmark] = only_record(tmp_path)["benchmarks"]
    [result] = benchmark["results"]
    assert result["checks"] > 0
    assert result["sent"]["QUERY"] > 0
    assert {"messages", "hop, 99 %", "bound"} <= {one["name"] for one in benchmark["measures"]}
    here, onward = Inbox(None), Inbox(None)  # type: ignore[arg-type]
    wanted = [[{"p1"}, set()], [set(), {"p2"}]]
    here.came, onward.came = [(0, "operator/p1", 0.5), (2, "operator/p1", 0.7)], []
    with pytest.raises(WrongCountError):
        checked(3, wanted, (here, onward))
    onward.came = [(1, "operator/p2", 0.6)]
    assert checked(3, wanted, (here, onward)) == 3
    assert here.latencies(range(1, 3), [0.1, 0.2]) == pytest.approx((500, 500, 500))
