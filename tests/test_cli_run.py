"""`pathcast run`: what the exit code says about how a run ended, without running anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode
from pathcast.spark import pipeline
from pathcast.spark.summary import Summary


@pytest.mark.parametrize(
    ("mode", "summary", "code"),
    [
        ("batch", Summary("out"), ExitCode.OK),
        ("batch", Summary("out", refused={"xml.end": 3}, unread=2), ExitCode.OK),
        ("batch", Summary("out", unlisted={"in/a": "Permission denied"}), ExitCode.REFUSED),
        ("batch", Summary("out", was_stopped=True, stopped_by="SIGTERM"), ExitCode.INTERRUPTED),
        ("stream", Summary("out", was_stopped=True, stopped_by="SIGTERM"), ExitCode.OK),
        ("stream", Summary("out", was_stopped=True, stopped_by="SIGINT"), ExitCode.INTERRUPTED),
        ("stream", Summary("out", was_stopped=True, unlisted={"in": "gone"}), ExitCode.INTERRUPTED),
    ],
)
def test_exit_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, summary: Summary, code: ExitCode
) -> None:
    def run(*_: Any, **__: Any) -> Summary:
        return summary

    monkeypatch.setattr(pipeline, "run", run)
    path = tmp_path / "pipeline.toml"
    path.write_text(
        f'[source]\npath = "in"\n[subscriptions]\npath = "s.tsv"\n[output]\npath = "out"\n'
        f'[mode]\nkind = "{mode}"\n'
    )
    result = CliRunner().invoke(build_app(), ["run", str(path)])
    assert result.exit_code == code
    # The summary comes whatever the code, and says what waits.
    assert "output:" in result.stdout
    for folder, reason in summary.unlisted.items():
        assert f"{folder}: {reason}" in result.stdout
    assert ("unread files" in result.stdout) == bool(summary.unread)
    assert ("stopped:" in result.stdout) == summary.was_stopped
