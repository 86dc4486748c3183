"""Files that stop a reader: each is a dead letter by itself, whatever the library raises on it.

If these fail, one bad file ends a pipeline for good: every later run takes it up again, ends in the
same way, and delivers nothing of the good files beside it.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import struct
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast.cli.app import build_app
from pathcast.errors import ConfigError, JavaMissingError
from pathcast.spark.outputs import read_output
from pathcast.spark.pipeline import run
from pathcast.spark.settings import load_settings
from pathcast.spark.storage import Storage
from pathcast.spark.summary import Summary
from pathcast.spark.workers import InProcess
from silent_progress import Silent

GOOD = b"<m><a/></m>"
STRAY = "caf\udce9"
"""A name that is not UTF-8."""


def deliver(root: Path, kind: str, *overrides: str) -> Summary:
    """One run over the files in `in`: ann gets every message with an element a."""
    (root / "s.tsv").write_text("subscriber\tquery_id\tquery\nann\tq1\t//a\n")
    (root / "p.toml").write_text(
        f'[source]\npath = "in"\nkind = "{kind}"\n[subscriptions]\npath = "s.tsv"\n'
        '[output]\npath = "out"\n'
    )
    chosen = load_settings(root / "p.toml", overrides)
    return run(chosen, workers=InProcess(), progress=Silent())


def outcome(root: Path) -> tuple[Counter[str], list[tuple[str, str]]]:
    """Ids of the messages that ann got, and the files of dead letters with their codes."""
    got = Counter(read_output(root / "out", "inboxes").column("message_id").to_pylist())
    letters = read_output(root / "out", "dead_letters").to_pylist()
    return got, sorted((row["file"], row["code"]) for row in letters)


def text_column(*values: bytes | None) -> pa.Array:
    """A column that says that it is text, of any bytes."""
    packed = pa.array(values, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(packed), packed.buffers())


def parquet_of(columns: Mapping[str, Any] | pa.Table) -> bytes:
    target = io.BytesIO()
    table = columns if isinstance(columns, pa.Table) else pa.table(dict(columns))
    pq.write_table(table, target)
    return target.getvalue()


def good_parquet(name: str = "good", **more: Any) -> bytes:
    return parquet_of({"message_id": [name], "message": [GOOD], **more})


def renamed(content: bytes, before: bytes, after: bytes) -> bytes:
    """A file whose footer has another name of the same length for a column."""
    footer = content.rindex(before)
    assert content.count(before) >= 1
    return content[:footer] + content[footer:].replace(before, after)


def not_utf8_name() -> bytes:
    target = io.BytesIO()
    table = pa.table({"message_id": ["1"], "message": [GOOD], "regionx": ["n"]})
    # Without the schema of Arrow, whose copy of the name would be checked first.
    pq.write_table(table, target, store_schema=False)
    return target.getvalue().replace(b"regionx", b"region\xff")


def two_columns_of_one_name() -> bytes:
    columns = [pa.array(["1"]), pa.array([GOOD]), pa.array([GOOD])]
    return parquet_of(pa.table(columns, names=["message_id", "message", "message"]))


BAD_PARQUET: Mapping[str, Callable[[], bytes]] = {
    "an id that is not UTF-8": lambda: parquet_of(
        {"message_id": text_column(b"a", b"\xff"), "message": [GOOD, GOOD]}
    ),
    "an id in bytes that is not UTF-8": lambda: parquet_of(
        {"message_id": [b"a", b"\xff"], "message": [GOOD, GOOD]}
    ),
    "a name of a column that is not UTF-8": not_utf8_name,
    "two columns of one name": two_columns_of_one_name,
    "an id that is no text": lambda: parquet_of({"message_id": [["1"]], "message": [GOOD]}),
    "nothing": lambda: b"",
    "no Parquet": lambda: b"PAR1" + bytes(100) + b"PAR1",
}


@pytest.mark.parametrize("case", BAD_PARQUET)
def test_a_parquet_file_that_cannot_be_used_costs_no_other(tmp_path: Path, case: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.parquet").write_bytes(BAD_PARQUET[case]())
    (tmp_path / "in/b.parquet").write_bytes(good_parquet())
    assert deliver(tmp_path, "parquet").unread == 1
    assert outcome(tmp_path) == (Counter(["good"]), [("a.parquet", "file.unreadable")])
    # A later run has no more trouble with it than the first, and takes it up when it is mended.
    (tmp_path / "in/c.parquet").write_bytes(good_parquet("later"))
    assert deliver(tmp_path, "parquet").unread == 1
    (tmp_path / "in/a.parquet").write_bytes(good_parquet("mended"))
    assert deliver(tmp_path, "parquet").unread == 0
    assert outcome(tmp_path)[0] == Counter(["good", "later", "mended"])


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_passed_text_that_is_not_utf8_costs_no_other_file(tmp_path: Path, format: str) -> None:
    (tmp_path / "in").mkdir()
    bad = {
        "text": text_column(b"n", b"\xff"),
        "list": pa.ListArray.from_arrays([0, 1, 2], text_column(b"n", b"\xff")),
        "dictionary": pa.DictionaryArray.from_arrays([0, 1], text_column(b"n", b"\xff")),
    }
    for name, column in bad.items():
        table = {"message_id": ["1", "2"], "message": [GOOD, GOOD], name: column}
        (tmp_path / f"in/{name}.parquet").write_bytes(parquet_of(table))
    more: dict[str, Any] = {"text": ["n"], "list": [["n"]], "dictionary": ["n"]}
    (tmp_path / "in/z.parquet").write_bytes(good_parquet(**more))
    columns = f"source.columns={json.dumps(list(bad))}"
    deliver(tmp_path, "parquet", columns, f"output.format={format}")
    got, letters = outcome(tmp_path)
    assert got == Counter(["good"])
    assert letters == sorted((f"{name}.parquet", "file.unreadable") for name in bad)
    (row,) = read_output(tmp_path / "out", "inboxes").to_pylist()
    assert (row["text"], row["list"], row["dictionary"]) == ("n", ["n"], "n")


def test_a_file_that_cannot_be_used_does_not_say_what_columns_are(tmp_path: Path) -> None:
    # The first file that has a column says its type: one without any value says nothing.
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.parquet").write_bytes(not_utf8_name())
    (tmp_path / "in/b.parquet").write_bytes(good_parquet("b", region=pa.nulls(1)))
    (tmp_path / "in/c.parquet").write_bytes(good_parquet("c", region=["n"]))
    deliver(tmp_path, "parquet", 'source.columns=["region"]')
    rows = read_output(tmp_path / "out", "inboxes").to_pylist()
    assert {row["message_id"]: row["region"] for row in rows} == {"b": None, "c": "n"}


def zip_of(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return target.getvalue()


def damaged_member(method: int) -> bytes:
    """A zip whose last member is damaged in the middle of what is packed."""
    content = bytearray(zip_of({"good": GOOD, "bad": os.urandom(600)}, method))
    place = content.rindex(b"PK\x03\x04") + 30 + len("bad") + 200
    content[place : place + 40] = bytes(40)
    return bytes(content)


def nameless_zip() -> bytes:
    content = bytearray(zip_of({"x": GOOD}))
    local, central = content.index(b"PK\x03\x04"), content.index(b"PK\x01\x02")
    del content[central + 46]
    content[central + 28 : central + 30] = bytes(2)
    del content[local + 30]
    content[local + 26 : local + 28] = bytes(2)
    end = content.index(b"PK\x05\x06")
    size, start = struct.unpack("<II", content[end + 12 : end + 20])
    content[end + 12 : end + 20] = struct.pack("<II", size - 1, start - 1)
    return bytes(content)


def unknown_method() -> bytes:
    content = bytearray(zip_of({"x": GOOD}, zipfile.ZIP_STORED))
    for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        content[content.index(mark) + offset] = 97
    return bytes(content)


def tar_of(members: Mapping[str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as opened:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return target.getvalue()


def tar_of_names() -> bytes:
    """A tar archive of long names alone, each of which calls the library again."""
    block = tarfile.TarInfo("././@LongLink")
    block.type, block.size = tarfile.GNUTYPE_LONGNAME, 2
    return (block.tobuf() + b"x\0".ljust(512, b"\0")) * 3000


BAD_ARCHIVES: Mapping[str, tuple[str, Callable[[], bytes]]] = {
    "a member packed with LZMA": ("zip", lambda: zip_of({"x": GOOD}, zipfile.ZIP_LZMA)),
    "a member packed with bzip2": ("zip", lambda: zip_of({"x": GOOD}, zipfile.ZIP_BZIP2)),
    "a damaged member, deflate": ("zip", lambda: damaged_member(zipfile.ZIP_DEFLATED)),
    "a damaged member, not packed": ("zip", lambda: damaged_member(zipfile.ZIP_STORED)),
    "a member without a name": ("zip", nameless_zip),
    "a member of an unknown method": ("zip", unknown_method),
    "names alone": ("tar", tar_of_names),
    "a damaged gzip": ("gz", lambda: gzip.compress(GOOD)[:-6] + bytes(6)),
    "a gzip of another kind": ("gz", lambda: bz2.compress(GOOD)),
    "a tar of another kind": ("tgz", lambda: lzma.compress(tar_of({"x": GOOD}))),
}


@pytest.mark.parametrize("case", BAD_ARCHIVES)
def test_an_archive_that_cannot_be_used_costs_no_other(tmp_path: Path, case: str) -> None:
    ending, make = BAD_ARCHIVES[case]
    (tmp_path / "in").mkdir()
    (tmp_path / f"in/a.{ending}").write_bytes(make())
    (tmp_path / "in/b.zip").write_bytes(zip_of({"1.xml": GOOD}))
    for _ in range(2):
        assert deliver(tmp_path, "archive").unread == 1
        got, letters = outcome(tmp_path)
        assert got == Counter(["b.zip!1.xml"])
        assert set(letters) == {(f"a.{ending}", "file.unreadable")}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_packed_and_not_packed_are_messages(tmp_path: Path, method: int) -> None:
    (tmp_path / "in").mkdir()
    long = b"<m><a>" + os.urandom(150_000).hex().encode() + b"</a></m>"
    members = {"1.xml": GOOD, "2.xml": long, "3.xml": b""}
    (tmp_path / "in/a.zip").write_bytes(zip_of(members, method))
    assert deliver(tmp_path, "archive").messages == 3
    assert outcome(tmp_path)[0] == Counter(["a.zip!1.xml", "a.zip!2.xml"])


def test_an_archive_in_an_archive_is_a_message_that_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    inside = zip_of({"1.xml": GOOD})
    (tmp_path / "in/a.zip").write_bytes(zip_of({"inside.zip": inside, "2.xml": GOOD}))
    summary = deliver(tmp_path, "archive")
    assert (summary.unread, summary.messages, sum(summary.refused.values())) == (0, 2, 1)
    assert outcome(tmp_path)[0] == Counter(["a.zip!2.xml"])


@pytest.mark.parametrize(
    ("kind", "ending", "good"),
    [
        ("directory", "xml", GOOD),
        ("parquet", "parquet", good_parquet()),
        ("archive", "zip", zip_of({"1.xml": GOOD})),
    ],
)
def test_files_whose_names_are_not_utf8(
    tmp_path: Path, kind: str, ending: str, good: bytes
) -> None:
    (tmp_path / "in").mkdir()
    try:
        (tmp_path / f"in/{STRAY}.{ending}").write_bytes(good)
    except (OSError, UnicodeEncodeError) as error:
        pytest.skip(f"this file system has UTF-8 names only ({error})")
    if kind == "directory":
        (tmp_path / f"in/{STRAY}2.{ending}").symlink_to("nowhere")
    else:
        (tmp_path / f"in/{STRAY}2.{ending}").write_bytes(b"bad")
    assert deliver(tmp_path, kind).unread == 1
    assert len(read_output(tmp_path / "out", "inboxes")) == 1
    (letter,) = read_output(tmp_path / "out", "dead_letters").to_pylist()
    assert letter["file"] == f"caf\\xe92.{ending}"


def test_whatever_is_raised_while_a_file_is_read_is_its_dead_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No list of exceptions is complete: the next release of a library raises another one.
    (tmp_path / "in").mkdir()
    for name in ("a", "b"):
        (tmp_path / f"in/{name}.xml").write_bytes(GOOD)
    original = Storage.open

    def refusing(self: Storage, name: str) -> Any:
        if name == "a.xml":
            raise RuntimeError("x" * 10_000 + "\udcff")
        return original(self, name)

    monkeypatch.setattr(Storage, "open", refusing)
    deliver(tmp_path, "directory")
    assert outcome(tmp_path) == (Counter(["b.xml"]), [("a.xml", "message.unreadable")])
    (letter,) = read_output(tmp_path / "out", "dead_letters").to_pylist()
    assert 500 < len(letter["message"]) < 2000


@pytest.mark.nightly
@pytest.mark.spark
def test_the_command_line_delivers_what_is_beside_bad_files(tmp_path: Path) -> None:
    from pathcast.spark.java import find_java

    try:
        find_java()
    except JavaMissingError as error:
        pytest.skip(str(error))
    (tmp_path / "in").mkdir()
    for number, make in enumerate(BAD_PARQUET.values()):
        (tmp_path / f"in/{number}.parquet").write_bytes(make())
    (tmp_path / "in/z.parquet").write_bytes(good_parquet())
    (tmp_path / "s.tsv").write_text("subscriber\tquery_id\tquery\nann\tq1\t//a\n")
    (tmp_path / "p.toml").write_text(
        '[source]\npath = "in"\nkind = "parquet"\n[subscriptions]\npath = "s.tsv"\n'
        '[output]\npath = "out"\n[spark]\nmaster = "local[1]"\n'
    )
    call = [sys.executable, "-m", "pathcast"]
    done = subprocess.run(
        [*call, "run", "p.toml", "--json"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert json.loads(done.stdout)["unread"] == len(BAD_PARQUET)
    read = subprocess.run(
        [*call, "inbox", "ann", "--output", "out"], cwd=tmp_path, capture_output=True, text=True
    )
    assert [json.loads(line)["message_id"] for line in read.stdout.splitlines()] == ["good"]


@pytest.mark.parametrize("ending", ["tsv", "csv", "parquet", "lists.parquet"])
def test_a_subscription_that_is_not_utf8_is_refused_alone(tmp_path: Path, ending: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/1.xml").write_bytes(GOOD)
    columns = {
        "subscriber": [b"ann", b"b\xffb", b"cid", b"dan", b"eve"],
        "query_id": [b"q1", b"q2", b"q\xff3", b"q4", b"q5"],
        "query": [b"//a", b"//a", b"//a", b"//a[. = '\xff']", b"//a"],
        "steps": [b"", b"", b"", b"", b"drop //\xff"],
    }
    path = tmp_path / f"subscriptions.{ending}"
    if ending.endswith("parquet"):
        table = {name: text_column(*values) for name, values in columns.items()}
        if ending == "lists.parquet":
            table["steps"] = pa.ListArray.from_arrays([0, 0, 0, 0, 0, 1], table["steps"].slice(4))
        path.write_bytes(parquet_of(table))
    else:
        rows = [list(columns), *([v.decode("utf-8", "surrogateescape") for v in row]
                                 for row in zip(*columns.values(), strict=True))]  # fmt: skip
        text = "".join(("," if ending == "csv" else "\t").join(row) + "\n" for row in rows)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
    subscriptions = f"subscriptions.path={path.name}"
    summary = deliver(tmp_path, "directory", subscriptions, "output.matches=none")
    assert sum(summary.rejected_queries.values()) == 4
    rows_of = read_output(tmp_path / "out", "inboxes").to_pylist()
    assert [row["subscriber"] for row in rows_of] == ["ann"]
    (written,) = (tmp_path / "out/rejected_queries").iterdir()
    rejected = pq.read_table(written).to_pylist()
    assert ["not UTF-8" in row["reason"] for row in rejected] == [True] * 4
    checked = CliRunner(env={"PATHCAST__SUBSCRIPTIONS__PATH": path.name}).invoke(
        build_app(), ["check", str(tmp_path / "p.toml")]
    )
    assert "subscriptions: 5, rejected: 4" in checked.stderr


RESERVED = (
    *("subscriber", "subscription_id", "message_id", "result_number", "fragment", "delivery_id"),
    *("snapshot_version", "batch_id", "query_numbers", "query_ids", "message", "code", "bytes"),
    *("fragment_base64", "Subscriber", "MESSAGE"),
)


@pytest.mark.parametrize("name", RESERVED)
def test_columns_that_pathcast_writes_are_not_passed_through(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(ConfigError, match=f"source.columns.*{name}"):
        deliver(tmp_path, "parquet", f'source.columns=["{name}"]')
    assert not (tmp_path / "out").exists()


def test_every_column_of_outputs_that_pass_columns_is_reserved(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.parquet").write_bytes(good_parquet())
    names: set[str] = set()
    for form in ("numbers", "ids"):
        deliver(tmp_path, "parquet", f"output.matches={form}", f"output.path=out-{form}")
        for output in ("inboxes", "matches", "dead_letters"):
            names |= set(read_output(tmp_path / f"out-{form}", output).column_names)
    # Those of dead letters alone, which pass none.
    names -= {"line", "column", "offset", "file"}
    assert len(names) > 13
    for name in names:
        with pytest.raises(ConfigError, match=name):
            deliver(tmp_path, "parquet", f'source.columns=["{name}"]')


def test_columns_that_differ_in_case_alone_and_columns_of_what_has_none(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(ConfigError, match="Region is there twice"):
        deliver(tmp_path, "parquet", 'source.columns=["region", "Region"]')
    with pytest.raises(ConfigError, match="has columns"):
        deliver(tmp_path, "directory", 'source.columns=["region"]')
