"""Spark that is there before a pipeline runs: it is used as it is, and lives on.

If these fail, a pipeline cannot be a step of a larger Spark application: it ends with an error
after its work is done, or takes the session of the application with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

import pyspark
from typer.testing import CliRunner

from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode
from pathcast.errors import JavaMissingError
from pathcast.spark.java import find_java, quiet_home
from pathcast.spark.outputs import read_output
from patience import SPARK_SECONDS
from spark_cluster import cluster
from test_spark_session import SOURCES, pathcast_run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for number in range(4):
        (tmp_path / "in" / f"{number}.xml").write_text("<m><a/></m>")
    (tmp_path / "s.tsv").write_text("subscriber\tquery_id\tquery\nann\tq1\t//a\n")
    path = tmp_path / "pipeline.toml"
    path.write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "s.tsv"\n[output]\npath = "out"\n'
    )
    return path


def received(pipeline: Path) -> list[str]:
    table = read_output(pipeline.parent / "out", "inboxes")
    return sorted(table.column("message_id").to_pylist())


def submitted(pipeline: Path, master: str) -> subprocess.CompletedProcess[str]:
    """The command as an application of `spark-submit`, whose file of a pipeline says local[7]."""
    try:
        java = find_java()
    except JavaMissingError as error:
        pytest.skip(str(error))
    script = pipeline.parent / "application.py"
    script.write_text("from pathcast.cli.app import main\nmain()\n")
    return subprocess.run(
        [
            str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", master,
            "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.executor.memory=512m",
            str(script), "run", str(pipeline), "--set", "spark.master=local[7]", "--json",
        ],
        capture_output=True, text=True, check=False, timeout=SPARK_SECONDS,
        env={
            **os.environ,
            "JAVA_HOME": str(quiet_home(java)),
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(SOURCES),
        },
    )  # fmt: skip


def check_submitted(done: subprocess.CompletedProcess[str], pipeline: Path) -> None:
    # It hands on all that the command says to its own standard output.
    said = done.stdout + done.stderr
    assert done.returncode == ExitCode.OK, said
    assert "settings that spark-submit was given go over spark.master" in said
    assert "Traceback" not in said
    assert '"messages": 4' in said
    assert received(pipeline) == [f"{number}.xml" for number in range(4)]


def test_a_pipeline_under_spark_submit_ends_well(pipeline: Path) -> None:
    check_submitted(submitted(pipeline, "local[1]"), pipeline)


@pytest.mark.nightly
def test_spark_submit_decides_on_which_cluster_a_pipeline_runs(
    pipeline: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "cluster"
    folder.mkdir()
    # Its machines do not have Pathcast: they have to be sent it.
    with cluster(folder, folder, workers=1) as standalone:
        check_submitted(submitted(pipeline, standalone.url), pipeline)
        assert "Registered app application.py" in standalone.log("master")


def test_a_session_that_runs_already_is_used_and_lives_on_as_it_was(
    spark: SparkSession, pipeline: Path
) -> None:
    before = dict(spark.sparkContext.getConf().getAll())
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    # Twice: the first run may not leave a session that the second cannot use.
    for number, messages in ((1, 4), (2, 1)):
        if number == 2:
            (pipeline.parent / "in" / "late.xml").write_text("<m><a/></m>")
        result = CliRunner().invoke(
            build_app(), ["run", str(pipeline), "--json", "--set", "spark.master=local[7]"]
        )
        assert result.exit_code == ExitCode.OK, result.output
        assert f'"messages": {messages}' in result.stdout
        assert "the Spark session of this process is used as it is, without spark.master" in (
            result.stderr
        )
        assert spark.range(3).count() == 3, "the session has ended with the run"
    assert dict(spark.sparkContext.getConf().getAll()) == before
    assert spark.conf.get("spark.sql.shuffle.partitions") == partitions
    assert len(received(pipeline)) == 5


@pytest.mark.nightly
def test_a_kubernetes_that_nobody_answers_for_is_the_master_that_is_wrong(pipeline: Path) -> None:
    code, out, err = pathcast_run(pipeline, "--set", "spark.master=k8s://https://127.0.0.1:1")
    assert (code, out) == (ExitCode.USAGE, "")
    (line,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert line.startswith("error: spark.master: k8s://https://127.0.0.1:1 cannot be used: Conn")
    assert line.endswith("check that the address is right and that this machine can reach it")
    assert "Traceback" not in err


@pytest.mark.nightly
def test_a_cluster_that_needs_its_configuration_says_which(pipeline: Path) -> None:
    code, _, err = pathcast_run(pipeline, "--set", "spark.master=yarn", HADOOP_CONF_DIR="")
    assert code == ExitCode.USAGE
    assert "error: spark.master: yarn needs HADOOP_CONF_DIR or YARN_CONF_DIR" in err
