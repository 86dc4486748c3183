"""Outputs that need credentials, from the command line: the pipeline's TOML file says what opens
them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("fsspec", reason="needs: pip install 'pathcast[spark]'")
pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")

from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode
from pathcast.errors import ConfigError
from pathcast.spark import Storage, read_output
from pathcast.spark.dead_letters import DeadLetterBox
from pathcast.spark.pipeline import run
from pathcast.spark.settings import load_settings
from pathcast.spark.workers import InProcess
from s3_server import S3Server
from silent_progress import Silent

Call = Callable[..., Any]
FORMATS = pytest.mark.parametrize("format", ["delta", "parquet", "jsonl"])


@pytest.fixture
def call() -> Call:
    return lambda *args: CliRunner().invoke(build_app(), list(map(str, args)))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    with S3Server(tmp_path / "objects") as server:
        yield server


def pipeline(root: Path, server: S3Server, format: str) -> Path:
    """A pipeline whose source, output and checkpoint want credentials."""
    (root / "s.tsv").write_text("subscriber\tquery_id\tquery\nann\tq1\t//a\nbob\tq2\t//b\n")
    path = root / "p.toml"
    files = "".join(f"{key} = {value!r}\n" for key, value in server.options.items())
    delta = "".join(f"{key} = {value!r}\n" for key, value in server.delta_options.items())
    path.write_text(
        f'[source]\npath = "{server.url("in")}"\n[subscriptions]\npath = "s.tsv"\n'
        f'[output]\npath = "{server.url("out")}"\nformat = "{format}"\n'
        f'[mode]\ncheckpoint = "{server.url("memory")}"\n'
        f"[source.storage_options]\n{files}[output.storage_options]\n{files}"
        f"[output.delta_options]\n{delta}"
    )
    return path


def put(root: Path, **messages: str) -> None:
    folder = root / "objects/in"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in messages.items():
        (folder / f"{name}.xml").write_text(text)


@FORMATS
def test_inbox_why_and_dlq_open_what_the_pipeline_opens(
    call: Call, tmp_path: Path, server: S3Server, format: str
) -> None:
    put(tmp_path, x="<m><a/></m>", y="<m><b/></m>", z="<m>")
    path = pipeline(tmp_path, server, format)

    def go() -> int:
        return run(load_settings(path), workers=InProcess(), progress=Silent()).messages

    assert go() == 3
    rows = [json.loads(line) for line in call("inbox", "ann", "--output", path).stdout.splitlines()]
    assert [(row["subscriber"], row["message_id"]) for row in rows] == [("ann", "x.xml")]
    told = call("why", path, "--subscriber", "ann", "--message", "y.xml")
    assert told.exit_code == ExitCode.OK, told.output
    assert "q1: not satisfied" in told.stdout
    assert "no such node; there are: m, b" in told.stdout, "the message was at hand"
    shown = call("dlq", path)
    assert shown.exit_code == ExitCode.OK, shown.output
    assert shown.stdout.split(": ")[1:3] == ["z.xml", "refused"]
    # It is looked at in the source whether it was mended.
    assert "asked for: 0;" in call("dlq", path, "--retry").stderr
    put(tmp_path, z="<m><a/></m>")
    assert "asked for: 1;" in call("dlq", path, "--retry").stderr
    assert go() == 1
    found = call("inbox", "ann", "--output", path, "--after", 1).stdout.splitlines()
    assert [json.loads(line)["message_id"] for line in found] == ["z.xml"]
    box = DeadLetterBox(load_settings(path).output.storage, load_settings(path).checkpoint)
    assert [letter.state for letter in box.letters()] == ["taken up"]


def test_without_what_opens_a_table_it_is_said_which_setting_is_missing(
    call: Call, tmp_path: Path, server: S3Server
) -> None:
    put(tmp_path, x="<m><a/></m>")
    path = pipeline(tmp_path, server, "delta")
    run(load_settings(path), workers=InProcess(), progress=Silent())
    wrong = {**server.delta_options, "AWS_ACCESS_KEY_ID": "nobody"}
    output = Storage(server.url("out"), server.options, wrong)
    with pytest.raises(ConfigError, match=r"output\.delta_options"):
        read_output(output, "inboxes")
    text = path.read_text().replace("AWS_ACCESS_KEY_ID = 'let-me-in'", "AWS_ACCESS_KEY_ID = 'no'")
    path.write_text(text)
    refused = call("inbox", "ann", "--output", path)
    assert refused.exit_code == ExitCode.USAGE
    assert "output.delta_options" in refused.stderr


def test_whoever_reads_makes_no_table(tmp_path: Path, server: S3Server) -> None:
    # Its columns are the business of whoever writes.
    put(tmp_path)
    path = pipeline(tmp_path, server, "delta")
    (tmp_path / "objects/in").mkdir(exist_ok=True, parents=True)
    chosen = load_settings(path, ["source.kind=parquet", 'source.columns=["channel"]'])
    run(chosen, workers=InProcess(), progress=Silent())
    assert read_output(chosen.output.storage, "inboxes").num_rows == 0
    assert not (tmp_path / "objects/out/inboxes").exists()
