"""How a session starts, and what a person reads where it does not: a sentence, and no stack.

If these fail, somebody who has mistyped a host reads a hundred lines of a JVM, or waits a minute.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast.cli.exits import ExitCode
from pathcast.errors import ConfigError
from pathcast.spark.session import SETTINGS, SETTINGS_HERE, check_master
from pathcast.spark.settings import load_settings
from patience import SPARK_SECONDS
from test_spark_java import fake_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = Path(__file__).resolve().parent.parent / "src"


@pytest.fixture
def pipeline(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.xml").write_text("<m><a/></m>")
    (tmp_path / "s.tsv").write_text("subscriber\tquery_id\tquery\nann\tq1\t//a\n")
    path = tmp_path / "pipeline.toml"
    path.write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "s.tsv"\n[output]\npath = "out"\n'
    )
    return path


def pathcast_run(pipeline: Path, *options: str, **environ: str) -> tuple[int, str, str]:
    paths = [str(SOURCES), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", "pathcast", "run", str(pipeline), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=SPARK_SECONDS,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), **environ},
    )
    return done.returncode, done.stdout, done.stderr


MASTERS = (
    "local", "local[2]", "local[*]", "local[2,4]", "yarn", "spark://host:7077,other:7077",
    "k8s://https://host",
)  # fmt: skip


@pytest.mark.parametrize("master", MASTERS)
def test_master_urls(pipeline: Path, master: str) -> None:
    assert load_settings(pipeline, [f"spark.master={master}"]).spark.master == master


@pytest.mark.parametrize(
    "master", ["nonsense", "local[x]", "local[]", "spark//host", "http://host"]
)
def test_what_is_no_master_is_refused_where_it_is_read(pipeline: Path, master: str) -> None:
    with pytest.raises(ConfigError, match=r"spark\.master.*is no master URL; there are local"):
        load_settings(pipeline, [f"spark.master={master}"])


def test_a_master_that_is_not_there_is_known_at_once() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        # Nobody listens there: Spark would not know why for a minute.
        with pytest.raises(ConfigError, match=rf"spark\.master.*{port}: Connection refused"):
            check_master(f"spark://127.0.0.1:{port}", {})
        server.listen()
        check_master(f"spark://127.0.0.1:{port}", {})
        # Any of several will do.
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}", {})
    with pytest.raises(ConfigError, match="is not HOST:PORT"):
        check_master("spark://host", {})
    check_master("local[2]", {})


def test_addresses_of_this_machine_are_for_this_machine() -> None:
    # An executor elsewhere would look for the driver on its own machine.
    assert set(SETTINGS_HERE) == {"spark.driver.host", "spark.driver.bindAddress"}
    assert not SETTINGS_HERE.keys() & SETTINGS.keys()


def test_a_java_that_does_not_start_spark_is_a_sentence(pipeline: Path, tmp_path: Path) -> None:
    # It tells its version, as find_java asks, and then echoes its arguments and ends.
    home = fake_java(tmp_path / "java", "21.0.1")
    code, out, err = pathcast_run(pipeline, JAVA_HOME=str(home))
    assert (code, out) == (ExitCode.ENVIRONMENT, "")
    (line,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert f"JAVA_HOME ({home}) does not start Spark" in line
    assert "Traceback" not in err
    assert "\tat " not in err


@pytest.mark.spark
def test_ctrl_c_is_answered_by_whoever_did_before(spark: SparkSession) -> None:
    # PySpark would cancel all jobs, whatever a stream wants to do after Ctrl-C.
    assert spark.sparkContext is not None
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.spark
def test_a_setting_that_spark_refuses_is_a_sentence(pipeline: Path) -> None:
    code, out, err = pathcast_run(
        pipeline, "--set", 'spark.conf={"spark.serializer"="no.such.Class"}'
    )
    assert (code, out) == (ExitCode.USAGE, "")
    assert err.splitlines()[-1].startswith("error: spark.conf: no.such.Class")
    assert "Traceback" not in err
    assert "\tat " not in err


@pytest.mark.spark
def test_a_run_says_what_it_does_and_nothing_else(pipeline: Path) -> None:
    """No banner, no warnings of Java or Spark, no traceback of a worker; no `.crc` files."""
    code, out, err = pathcast_run(pipeline)
    assert code == ExitCode.OK
    assert out.startswith("1 messages")
    lines = err.splitlines()
    assert len(lines) == 2, err
    assert lines[0].startswith("batch: directory")
    assert lines[1].startswith("batch 1: 1 messages, 1 matches")
    files = [path for path in (pipeline.parent / "out").rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if path.suffix == ".crc" or path.name.startswith(".")]
