"""`pathcast inbox` and `pathcast why`: what was written, and why."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathcast.cli.app import build_app
from pathcast.spark.pipeline import run
from pathcast.spark.reasons import Why, why
from pathcast.spark.settings import load_settings
from pathcast.spark.workers import InProcess
from silent_progress import Silent


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An output of two micro-batches, with other subscriptions in the second."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.xml").write_text("<m><price>7</price></m>")
    (tmp_path / "in/bad.xml").write_text("<m>")
    (tmp_path / "pipeline.toml").write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "s.tsv"\nshrink_max = 1\n'
        '[output]\npath = "out"\n'
        "[engine.limits]\nevaluation_steps_max = 9\n"
    )
    subscribe(
        tmp_path,
        "ann\tcheap\t/m/price[. < 10]\t",
        "ann\tdear\t/m/price[. > 100]\t",
        "ann\theavy\tcount(//*[count(ancestor::*) > 0]) > 1\t",
        "ann\tshaped\tfor $p in //price return <p>{$p/text()}</p>\tfragment",
        "bob\tother\t/m/other\t",
    )
    go(tmp_path)
    (tmp_path / "in/2.xml").write_text("<m><price>8</price></m>")
    subscribe(tmp_path, "ann\tcheap\t/m/price[. < 8]\t")
    go(tmp_path)
    return tmp_path


def subscribe(root: Path, *rows: str) -> None:
    header = "subscriber\tquery_id\tquery\tdeliver"
    (root / "s.tsv").write_text("\n".join((header, *rows)) + "\n")


def go(root: Path) -> None:
    run(load_settings(root / "pipeline.toml"), workers=InProcess(), progress=Silent())


def asked(root: Path, subscriber: str, message: str) -> Why:
    content = root / "in" / message
    return why(
        root / "out",
        subscriber,
        message,
        content=content.read_bytes() if content.exists() else None,
    )


def test_every_subscription_of_the_pinned_version_has_its_reason(root: Path) -> None:
    found = asked(root, "ann", "1.xml")
    assert found.fate == "answered"
    verdicts = {reason.subscription_id: reason.verdict for reason in found.reasons}
    assert verdicts == {
        "cheap": "delivered",
        "dear": "not satisfied",
        "heavy": "not decided",
        "shaped": "delivered",
    }
    text = found.to_text()
    assert "/m/price[. > 100]" in text
    assert "wants more than 100" in text, "why it fails is not explained"
    # Today's subscriptions would not give it: they are not asked.
    assert {r.query for r in found.reasons if r.subscription_id == "cheap"} == {"/m/price[. < 10]"}
    later = asked(root, "ann", "2.xml")
    assert [(r.subscription_id, r.verdict) for r in later.reasons] == [("cheap", "not satisfied")]
    assert later.snapshot_version != found.snapshot_version


@pytest.mark.parametrize(
    ("subscriber", "message", "fate", "words"),
    [
        ("ann", "bad.xml", "refused", "ends inside"),
        ("ann", "none.xml", "not seen", "no micro-batch"),
        ("zoe", "1.xml", "answered", "zoe had no subscription then"),
    ],
)
def test_what_there_is_nothing_to_say_of_is_said(
    root: Path, subscriber: str, message: str, fate: str, words: str
) -> None:
    found = asked(root, subscriber, message)
    assert (found.fate, found.reasons) == (fate, ())
    assert words in found.to_text()


@pytest.fixture
def pathcast(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    monkeypatch.chdir(root)

    def call(*arguments: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(build_app(), arguments)
        return result.exit_code, result.stdout, result.stderr

    return call


def test_the_commands_say_it(pathcast: Callable[..., tuple[int, str, str]]) -> None:
    code, out, _ = pathcast("inbox", "ann")
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [(r["subscription_id"], r["message_id"], r["fragment"]) for r in rows] == [
        ("cheap", "1.xml", None),
        ("shaped", "1.xml", "<p>7</p>"),
    ]
    assert all(len(row["delivery_id"]) == 32 for row in rows)
    assert pathcast("inbox", "ann", "--after", str(rows[-1]["batch_id"])) == (0, "", "")
    code, out, err = pathcast("inbox", "nobody", "--output", "out")
    assert (code, out) == (2, "")
    assert "nobody has subscribed as 'nobody'; there are ann" in err
    who = ("--subscriber", "ann", "--message", "1.xml")
    code, out, _ = pathcast("why", "pipeline.toml", *who)
    assert code == 0
    assert "wants more than 100" in out
    code, out, err = pathcast("why", "out", *who)
    assert "dear: not satisfied" in out
    assert "--content FILE" in err
    code, out, _ = pathcast("why", "out", *who, "--format", "json")
    assert {r["verdict"] for r in json.loads(out)["reasons"]} >= {"delivered", "not decided"}


def test_a_place_that_is_no_output_is_a_sentence(
    pathcast: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, err = pathcast("inbox", "ann", "--output", "in")
    assert (code, "is not the output of a pipeline" in err) == (2, True)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    code, _, err = pathcast("inbox", "ann")
    assert (code, "no pipeline.toml" in err) == (2, True)
