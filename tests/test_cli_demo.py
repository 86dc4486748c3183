"""`pathcast demo` from outside, small: from nothing to an inbox, and a pipeline that goes on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pathcast.cli.exits import ExitCode
from pathcast.errors import JavaMissingError
from silent_progress import Silent

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", autouse=True)
def java() -> None:
    pytest.importorskip("pyspark")
    from pathcast.spark.java import find_java

    try:
        find_java()
    except JavaMissingError as error:
        pytest.skip(str(error))


def pathcast(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    # A process of its own: the command ends the session that other tests share.
    return subprocess.run(
        [sys.executable, "-m", "pathcast", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        # Short runs: code that is compiled once, quickly, beats code that is compiled well.
        env={
            **os.environ,
            "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1",
        },
    )


def test_the_demo_shows_the_whole_way_and_leaves_a_pipeline_that_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    options = ("--messages", "60", "--queries", "60", "--subscribers", "5")
    done = pathcast("demo", "--out", out, *options)
    assert done.returncode == ExitCode.OK, done.stderr
    assert "\x1b" not in done.stdout
    for words in ("60 messages", "Inbox of s0", "Before: ", "After: ", "What to try next"):
        assert words in done.stdout
    shown = re.findall(r"because of (f\d+)", done.stdout)
    assert 1 < len(shown) == len(set(shown)), "an inbox shows what different queries delivered"
    before, after = done.stdout.split("After: ")
    assert len(re.findall(r"^  <", after, re.MULTILINE)), "the result is not shown"
    assert "has asked for" in before
    # The pipeline file that the demo names must do what the demo says: take up new messages.
    message = next((out / "messages").glob("news-*.xml"))
    shutil.copy(message, out / "messages" / "new.xml")
    from pathcast.spark.pipeline import run
    from pathcast.spark.settings import load_settings
    from pathcast.spark.workers import InProcess

    settings = load_settings(out / "pipeline.toml", [])
    summary = run(settings, workers=InProcess(), progress=Silent())
    assert (summary.earlier_messages, summary.messages) == (60, 1)


def test_the_demo_never_replaces_what_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    done = pathcast("demo", "--out", tmp_path)
    assert done.returncode == ExitCode.USAGE
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
