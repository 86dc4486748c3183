"""`pathcast preview`: counted over the newest messages of all kinds of files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import object_store  # noqa: F401 - makes objects:// known
from command_line import run_command
from pathcast.cli.exits import ExitCode
from pathcast.cli.message_sources import newest_messages
from pathcast.limits import Limits

ROWS_OF_A_GROUP = 7


def message(number: int) -> bytes:
    return b"<order><total>%d</total></order>" % number


def write(kind: str, folder: Path, name: str, numbers: list[int]) -> None:
    """A file of messages with these numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "parquet":
        columns = {"message": list(map(message, numbers)), "message_id": list(map(str, numbers))}
        table = pa.table({**columns, "message": pa.array(columns["message"], pa.binary())})
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=ROWS_OF_A_GROUP)
    elif kind == "zip":
        with zipfile.ZipFile(folder / f"{name}.zip", "w") as archive:
            for number in numbers:
                archive.writestr(f"{number}.xml", message(number))
    else:
        for number in numbers:
            (folder / f"{number}.xml").write_bytes(message(number))


def age(folder: Path, files: list[Path]) -> None:
    """Gives files times of writing, in this order."""
    for second, path in enumerate(files, 1_700_000_000):
        os.utime(path, (second, second))


def previewed(query: str, *arguments: str | Path, code: int = ExitCode.OK) -> dict[str, Any]:
    result = run_command("preview", query, *arguments, "--format", "json")
    assert result.exit_code == code, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["parquet", "zip"]), st.integers(1, 30)), max_size=4),
    st.integers(1, 60),
)
def test_the_newest_messages_are_those_written_last(
    tmp_path_factory: pytest.TempPathFactory, files: list[tuple[str, int]], last: int
) -> None:
    folder = tmp_path_factory.mktemp("archive")
    number, written = 0, list[Path]()
    for place, (kind, count) in enumerate(files):
        write(kind, folder, str(place), list(range(number, number + count)))
        written.append(folder / f"{place}.{kind}")
        number += count
    age(folder, written)
    if not number:
        return
    found = newest_messages([str(folder)], Limits(), last)
    assert sorted(str(each.content) for each in found) == sorted(
        str(message(each)) for each in range(max(0, number - last), number)
    )


@pytest.mark.parametrize("kind", ["parquet", "zip", "directory", "delta", "url"])
def test_what_would_have_matched_is_counted(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    if kind == "delta":
        deltalake = pytest.importorskip("deltalake", reason="deltalake is not installed")
        for numbers in (range(100, 200), range(20)):
            rows = {
                "message": [message(n) for n in numbers],
                "message_id": [str(n) for n in numbers],
            }
            # What was overwritten is no message any more.
            deltalake.write_deltalake(str(folder), pa.table(rows), mode="overwrite")
    else:
        write("parquet" if kind == "url" else kind, folder, "day", list(range(20)))
    place = f"objects://{folder}" if kind == "url" else str(folder)
    found = previewed("//order[total >= 15]", place)
    assert (found["messages"], found["matched"], found["share"]) == (20, 5, 0.25)
    assert found["cost"] == "candidate-checked"
    examples = found["examples"]
    assert len(examples) == 3
    for each in examples:
        assert each["place"] == "/order[1]"
        assert int(each["first"].partition("<total>")[2].partition("<")[0]) >= 15
        assert each["message"].startswith(place)


def test_results_notices_and_messages_are_previewed(tmp_path: Path) -> None:
    write("directory", tmp_path, "", [1, 2, 3])
    found = previewed("for $o in //order where $o/total > 2 return <hit>{$o/total}</hit>", tmp_path)
    assert (found["matched"], found["deliveries"]) == (1, 1)
    assert found["examples"][0]["first"] == "<hit><total>3</total></hit>"
    assert previewed("count(//total) = 1", tmp_path)["deliver"] == "ids"
    assert previewed("//total", tmp_path, "--deliver", "message")["examples"][0]["first"] is None
    assert run_command("preview", "count(//a)", tmp_path, "--deliver", "fragment").exit_code == 1


def test_what_cannot_be_read_or_decided_is_told_and_costs_the_others_nothing(
    tmp_path: Path,
) -> None:
    write("directory", tmp_path, "", [1, 2])
    (tmp_path / "broken.xml").write_bytes(b"<order><total>")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1")
    found = previewed("//order", tmp_path, tmp_path / "nowhere", code=ExitCode.REFUSED)
    assert found["matched"] == 2
    assert (found["messages"], found["refused"], found["unread"]) == (3, {"xml.end": 1}, 2)
    text = run_command("preview", "//order", tmp_path)
    assert "2 of the last 3 messages (there are no 1,000) match, 66.7%" in text.stdout
    assert "not read: 1" in text.stdout
    assert "broken.xml: line 1, column 15" in text.stderr
    limited = ["--limit", "evaluation_steps_max=1"]
    slow = previewed("count(//*) > 1", tmp_path / "1.xml", *limited, code=ExitCode.REFUSED)
    assert (slow["undecided"], slow["cost"]) == (1, "scan")


def test_where_none_matches_the_newest_says_why(tmp_path: Path) -> None:
    write("directory", tmp_path, "", [1, 2])
    age(tmp_path, [tmp_path / "2.xml", tmp_path / "1.xml"])
    text = run_command("preview", "//order[total > 5]", tmp_path).stdout
    assert "0 of the last 2 messages" in text
    assert "1.xml: query: no match" in text
    assert "the query wants more than 5" in text
    typo = run_command("preview", "for $o in //order/totel return $o", tmp_path)
    assert "did you mean total?" in typo.stdout


def test_a_query_that_never_holds_is_warned_of_and_a_fault_is_told(tmp_path: Path) -> None:
    write("directory", tmp_path, "", [1])
    assert "warning: " in run_command("preview", "//order[total > 'a']", tmp_path).stderr
    result = run_command("preview", "//order[", tmp_path)
    assert result.exit_code == ExitCode.REFUSED
    assert "write a condition and ]" in result.stderr


def test_the_source_of_a_pipeline_is_previewed_with_its_columns(tmp_path: Path) -> None:
    table = pa.table({"body": [message(1), message(2)], "key": ["a", "b"]})
    (tmp_path / "in").mkdir()
    pq.write_table(table, tmp_path / "in" / "day.parquet")
    pipeline = tmp_path / "pipeline.toml"
    rest = '[subscriptions]\npath = "s.tsv"\n[output]\npath = "out"\n'
    columns = 'kind = "parquet"\nmessage_column = "body"\nid_column = "key"\n'
    pipeline.write_text(f'[source]\npath = "{tmp_path}/in"\n{columns}{rest}')
    assert previewed("//order[total = 2]", pipeline)["examples"][0]["message"] == "b"
    pipeline.write_text(f'[source]\nformat = "kafka"\noptions = {{ subscribe = "a" }}\n{rest}')
    result = run_command("preview", "//order", pipeline)
    assert "Spark alone reads its source" in result.stderr


def test_no_spark_is_started(tmp_path: Path) -> None:
    write("parquet", tmp_path, "day", [1])
    code = (
        "import sys\nfrom pathcast.cli import main\n"
        f"sys.argv = ['pathcast', 'preview', '//order', {str(tmp_path)!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print({'pyspark', 'py4j'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "1 of the last 1 messages" in done.stdout
    assert done.stdout.splitlines()[-1] == "set()"


def test_a_subscription_of_a_database_is_previewed(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="the store is not installed")
    write("directory", tmp_path / "in", "", [1, 2])
    store = ("--store", f"sqlite:///{tmp_path / 'profiles.db'}")
    query = ("//o:order[total > 1]", "--namespace", "o=urn:o")
    run_command("sub", "add", *query, "--owner", "ann", "--id", "q", "--new", *store)
    (tmp_path / "in" / "3.xml").write_bytes(b"<o:order xmlns:o='urn:o'><total>3</total></o:order>")
    result = run_command("sub", "preview", "q", tmp_path / "in", "--format", "json", *store)
    assert json.loads(result.stdout)["matched"] == 1
    assert "no subscription of this id" in run_command("sub", "preview", "x", "in", *store).stderr


def test_examples_of_help_keep_their_predicates() -> None:
    """Typer takes what is in brackets for markup."""
    for command in (["preview"], ["sub", "add"]):
        assert "//order[total > 100]" in run_command(*command, "--help").stdout
