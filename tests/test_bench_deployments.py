"""`pathcast-lab bench deployments`: the same load everywhere, and a table of what was measured."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from typer.testing import CliRunner

from oracles.engines import made_by

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[bench]'")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from oracles import missing_reason
from pathcast.errors import ConfigError
from pathcast.model import Query
from pathcast.registry import Registry
from pathcast.spark import find_java
from pathcast_lab.bench.definitions import default_directory, read_definition
from pathcast_lab.bench.deployments.alone import run_alone
from pathcast_lab.bench.deployments.definition import DeploymentFigures, DeploymentTable
from pathcast_lab.bench.deployments.inputs import Load, made_load
from pathcast_lab.bench.deployments.measured import LATENCY, SENT, Measured
from pathcast_lab.bench.deployments.page import deployments_table
from pathcast_lab.bench.figures.page import BLANK
from pathcast_lab.bench.figures.point import Place
from pathcast_lab.bench.wrong_count import WrongCountError

if missing_reason("kernel") is not None:
    pytest.skip(str(missing_reason("kernel")), allow_module_level=True)

TABLE: DeploymentTable = read_definition(
    default_directory(), "deployments", DeploymentFigures
).figures[0]
QUICK = TABLE.sets["quick"]


@pytest.fixture(scope="module")
def load() -> Load:
    return made_load(TABLE, QUICK, seed=5)


def test_answers_are_those_of_the_reference_engine(load: Load) -> None:
    index = made_by("reference", Registry)
    index.add([Query(id, text) for id, text in load.queries.items()])
    results = index.match(load.messages)
    assert [frozenset(result.query_ids) for result in results] == load.answers
    assert len(load.queries) == QUICK.subscriptions
    assert any(load.answers)


def test_no_query_matches_more_than_its_share(load: Load) -> None:
    hits = Counter(id for answers in load.answers for id in answers)
    assert max(hits.values()) <= TABLE.share_max * len(load.messages)


def test_too_few_such_queries_are_an_error() -> None:
    with pytest.raises(ConfigError, match="match few enough messages"):
        made_load(TABLE, QUICK.model_copy(update={"subscriptions": 60}), seed=5)


@pytest.mark.parametrize("wrong", ["lost", "doubled", "foreign", "of another message"])
def test_a_wrong_pair_gives_no_figures(load: Load, wrong: str) -> None:
    numbers = range(2 * len(load.messages))
    found = Counter((id, number) for number in numbers for id in load.due(number))
    load.check("right", found, numbers)
    (id, number), *_ = found
    if wrong == "lost":
        del found[id, number]
    elif wrong == "doubled":
        found[id, number] += 1
    elif wrong == "foreign":
        found["nobody", number] += 1
    else:
        del found[id, number]
        found[id, next(n for n in numbers if id not in load.due(n))] += 1
    with pytest.raises(WrongCountError):
        load.check(wrong, found, numbers)


def test_one_process_gives_every_pair(load: Load) -> None:
    measured = run_alone(TABLE, QUICK, load)
    assert (measured.nodes, measured.messages) == (1, QUICK.messages["one"])
    assert len(measured.latencies) == QUICK.single
    assert measured.sent_bytes == 0


def test_the_table_has_a_column_for_each_that_ran() -> None:
    one, spark, *_ = TABLE.deployments

    def measured(latency: float, sent: float | None) -> Measured:
        return Measured(
            nodes=3,
            messages=10,
            seconds=2.0,
            latencies=[9.0, latency, 0.0],
            sent_bytes=sent,
            memory_bytes=[1_000_000, 5_000_000],
            ready_seconds=1.0,
        )

    values = [
        *measured(0.25, 4_000).values(Place("deployments", "", one.name, 0, 60)),
        *measured(0.5, None).values(Place("deployments", "", spark.name, 0, 60)),
    ]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in deployments_table(TABLE, values).splitlines()
    ]
    found = {row[0]: row[1:] for row in rows}
    assert found[""] == [one.name, spark.name]
    assert found["messages a second"] == ["5.00 /s", "5.00 /s"]
    assert found[LATENCY] == ["250 ms", "500 ms"]
    assert found[SENT] == ["4.00 kB", BLANK]
    assert found["memory, largest node"] == ["5.00 MB", "5.00 MB"]
    assert found["memory, all nodes"] == ["6.00 MB", "6.00 MB"]
    assert found["a node dies"] == [one.node_dies, spark.node_dies]


@pytest.mark.nightly
def test_a_quick_run_delivers_the_same_everywhere(tmp_path: Path) -> None:
    """Java, brokers and peers: a minute."""
    pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    find_java()
    from pathcast_lab.cli import build_app

    page = tmp_path / "page.md"
    names = ("deployments_run", "deployments")
    marks = (f"<!-- figures:{name} --><!-- /figures:{name} -->" for name in names)
    page.write_text("\n".join(marks), encoding="utf-8")
    arguments = ["bench", "deployments", "--quick", "--out", tmp_path / "out", "--page", page]
    result = CliRunner().invoke(build_app(), [str(each) for each in arguments])
    assert result.exit_code == 0, result.output
    [directory] = (tmp_path / "out").iterdir()
    [record] = json.loads((directory / "record.json").read_text(encoding="utf-8"))["figures"]
    assert record["is_complete"]
    assert len(record["checks"]) == len(TABLE.deployments)
    written = page.read_text(encoding="utf-8")
    assert all(column.name in written for column in TABLE.deployments)
