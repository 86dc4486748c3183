"""Pipelines answer each subscription in its language, wherever its query is matched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast import Subscription
from pathcast.registry.identity import delivery_id, subscription_version
from pathcast.spark.last_valid import subscriptions_of
from pathcast.spark.outputs import read_output
from pathcast.spark.pipeline import run
from pathcast.spark.reasons import why
from pathcast.spark.settings import PipelineSettings, load_settings
from pathcast.spark.storage import Storage
from pathcast.spark.workers import InProcess

TEXT = "//alert[@sent > '2026-01-01']"
ROWS = [
    Subscription(f"{language} {deliver}", "ann", TEXT, deliver, language=language)
    for language in ("xpath1", "xquery", None)
    for deliver in ("ids", "fragment", "message")
]
MESSAGES = {"old.xml": "<alert sent='2025-01-01'/>", "new.xml": "<alert sent='2026-02-01'/>"}


def put(root: Path, rows: Sequence[Subscription], messages: dict[str, str]) -> None:
    columns = {
        "subscriber": [row.subscriber for row in rows],
        "query_id": [row.id for row in rows],
        "query": [row.query for row in rows],
        "deliver": [row.deliver for row in rows],
        "language": [row.language for row in rows],
    }
    pq.write_table(pa.table(columns), root / "s.parquet")
    (root / "in").mkdir(exist_ok=True)
    for name, message in messages.items():
        (root / "in" / name).write_text(message)


def settings(root: Path, *overrides: str) -> PipelineSettings:
    path = root / "pipeline.toml"
    path.write_text(
        '[source]\npath = "in"\n[subscriptions]\npath = "s.parquet"\nshrink_max = 1.0\n'
        'rejected_max = 1.0\n[output]\npath = "out"\n'
    )
    return load_settings(path, overrides)


def delivered(root: Path) -> dict[tuple[str, str], str]:
    """File and query -> id of the delivery."""
    return {
        (Path(row["message_id"]).name, row["subscription_id"]): bytes(row["delivery_id"]).hex()
        for row in read_output(root / "out", "inboxes").to_pylist()
    }


@pytest.mark.parametrize("default", [None, "xpath1", "xquery"])
def test_a_run_answers_in_the_language_of_each_subscription(
    tmp_path: Path, default: str | None
) -> None:
    put(tmp_path, ROWS, MESSAGES)
    chosen = () if default is None else (f"subscriptions.language={default}",)
    run(settings(tmp_path, *chosen), workers=InProcess())
    languages = ("xquery", "None") if default == "xquery" else ("xquery",)
    found = delivered(tmp_path)
    rows = [row for row in ROWS if row.id.split()[0] in languages]
    assert found == {
        ("new.xml", row.id): delivery_id(
            subscription_version(row._replace(language="xquery")), "new.xml", 0
        )
        for row in rows
    }


def test_a_language_that_changes_is_another_subscription(tmp_path: Path) -> None:
    row = Subscription("s", "ann", TEXT, "ids", language="xpath1")
    put(tmp_path, [row], MESSAGES)
    run(settings(tmp_path), workers=InProcess())
    assert not delivered(tmp_path)
    put(tmp_path, [row._replace(language="xquery")], {"later.xml": MESSAGES["new.xml"]})
    summary = run(settings(tmp_path), workers=InProcess())
    assert {name for name, _ in delivered(tmp_path)} == {"later.xml"}
    told = why(tmp_path / "out", "ann", "later.xml")
    assert f"{TEXT} (xquery)" in told.to_text()
    assert summary.messages == 1


def test_the_last_valid_version_keeps_its_language(tmp_path: Path) -> None:
    row = Subscription("s", "ann", TEXT, "ids", language="xquery")
    put(tmp_path, [row], {"one.xml": MESSAGES["new.xml"]})
    run(settings(tmp_path), workers=InProcess())
    put(tmp_path, [row._replace(query="//alert[")], {"two.xml": MESSAGES["new.xml"]})
    run(settings(tmp_path), workers=InProcess())
    version = subscription_version(row)
    assert delivered(tmp_path) == {
        (name, "s"): delivery_id(version, name, 0) for name in ("one.xml", "two.xml")
    }
    storage = Storage(tmp_path / "out")
    newest = sorted((tmp_path / "out/_snapshots").iterdir(), key=lambda at: at.stat().st_mtime)[-1]
    assert subscriptions_of(storage, newest.name, "ann")["s"].language == "xquery"
