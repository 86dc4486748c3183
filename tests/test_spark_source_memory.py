"""Files of a few kilobytes that unpack to gigabytes: no more is held than the limits say.

If these fail, one file of a source takes the memory of a machine, whatever its headers promise.
Each file is read in a process of its own, since memory that was once taken is not given back.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
import struct
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")

from pathcast.spark.bounded_memory import MEMORY_ENVIRONMENT

MIB = 1 << 20
MESSAGE_BYTES_MAX = 8 * MIB
ALLOWED_BYTES = 280 * MIB + MESSAGE_BYTES_MAX
"""What a source may hold, over what a process needs that has read nothing."""

RUN = """
import json, sys
from pathlib import Path
from pathcast.spark.pipeline import run
from pathcast.spark.settings import load_settings
from pathcast.spark.workers import InProcess

sys.path.insert(0, sys.argv[2])
from silent_progress import Silent

chosen = load_settings(sys.argv[1], sys.argv[3:])
summary = run(chosen, workers=InProcess(), progress=Silent())
status = Path("/proc/self/status").read_text()
peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
print(json.dumps({"peak": peak * 1024, "messages": summary.messages, "unread": summary.unread,
                  "deliveries": summary.deliveries, "refused": sum(summary.refused.values())}))
"""


def measured(root: Path, kind: str, *overrides: str) -> dict[str, int]:
    """What came of a run over `in` in a process of its own, and the most memory that it took."""
    if not Path("/proc/self/status").exists():
        pytest.skip("the peak of a process is told in /proc alone")
    (root / "s.tsv").write_text("subscriber\tquery_id\tquery\nann\tq1\t//a\n")
    (root / "p.toml").write_text(
        f'[source]\npath = "in"\nkind = "{kind}"\n[subscriptions]\npath = "s.tsv"\n'
        f'[output]\npath = "out"\n'
    )
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(root / "p.toml"), str(Path(__file__).parent), *overrides],
        capture_output=True,
        text=True,
        env={**os.environ, **MEMORY_ENVIRONMENT},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def nothing(tmp_path_factory: pytest.TempPathFactory) -> int:
    """What a process takes that reads one small file of each kind."""
    root = tmp_path_factory.mktemp("nothing")
    (root / "in").mkdir()
    pq.write_table(pa.table({"message_id": ["1"], "message": [b"<a/>"]}), root / "in/1.parquet")
    return measured(root, "parquet")["peak"]


@pytest.fixture(scope="module")
def one_message(tmp_path_factory: pytest.TempPathFactory) -> int:
    """What a process takes that answers one message of 7 MB."""
    root = tmp_path_factory.mktemp("one")
    (root / "in").mkdir()
    (root / "in/1.xml").write_bytes(b"<a>" + b"x" * 7_000_000 + b"</a>")
    return measured(root, "directory")["peak"]


def falsely_declared(packed: bytes, method: int, declared: int) -> bytes:
    """A zip with a good member and one whose header says that it is small."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as opened:
        opened.writestr("bad", packed)
    content = bytearray(target.getvalue())
    for mark, at, size in ((b"PK\x03\x04", 8, 22), (b"PK\x01\x02", 10, 24)):
        start = content.index(mark)
        content[start + at : start + at + 2] = struct.pack("<H", method)
        content[start + size : start + size + 4] = struct.pack("<I", declared)
    return bytes(content)


def raw_deflate(size: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return packer.compress(bytes(size)) + packer.flush()


def tar_with(member: tarfile.TarInfo, size: int = 0) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz") as opened:
        member.size = size
        opened.addfile(member, io.BytesIO(bytes(size)))
    return target.getvalue()


def sparse_map() -> bytes:
    """A sparse member whose map of data, in its content, has 30 million entries."""
    member = tarfile.TarInfo("a")
    member.pax_headers = {
        "GNU.sparse.major": "1",
        "GNU.sparse.minor": "0",
        "GNU.sparse.name": "a",
        "GNU.sparse.realsize": "5",
    }
    content = b"30000000\n" + b"0\n" * 60_000_000
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w:gz", compresslevel=1) as opened:
        member.size = len(content)
        opened.addfile(member, io.BytesIO(content))
    return target.getvalue()


def crowded_zip() -> bytes:
    """A directory of half a million members."""
    local = b"PK\x03\x04" + bytes(26)
    entry = b"PK\x01\x02" + struct.pack("<6H3I5H2I", 20, 20, 0, 0, 0, 33, 0, 0, 0, 6, *[0] * 6)
    names = b"".join(entry + b"%06d" % number for number in range(500_000))
    end = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 65535, 65535, len(names), len(local), 0)
    return local + names + end


ARCHIVES: Final[dict[str, tuple[str, Callable[[], bytes]]]] = {
    "deflate, falsely declared": ("zip", lambda: falsely_declared(raw_deflate(900 * MIB), 8, 99)),
    "a large directory": ("zip", crowded_zip),
    "a large member": ("tgz", lambda: tar_with(tarfile.TarInfo("a"), 400 * MIB)),
    "a sparse map": ("tgz", sparse_map),
    "one large file": ("gz", lambda: gzip.compress(bytes(900 * MIB), 9)),
}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [
        "deflate, falsely declared",
        "a large directory",
        *(
            pytest.param(name, marks=pytest.mark.nightly)
            for name in (
                "a large member",
                "a sparse map",
                "one large file",
            )
        ),
    ],
)
def test_an_archive_is_held_no_further_than_a_message_may_be_long(
    tmp_path: Path, nothing: int, case: str
) -> None:
    ending, make = ARCHIVES[case]
    (tmp_path / "in").mkdir()
    (tmp_path / f"in/a.{ending}").write_bytes(make())
    with zipfile.ZipFile(tmp_path / "in/b.zip", "w") as opened:
        opened.writestr("1.xml", "<a/>")
    found = measured(tmp_path, "archive")
    assert found["deliveries"] == 1
    assert found["unread"] + found["refused"] == 1
    assert found["peak"] - nothing < ALLOWED_BYTES


def same_rows(rows: int, size: int, **options: Any) -> pa.Table:
    """Rows of one long message."""
    message = b"<a>" + b"x" * size + b"</a>"
    messages = pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), [message])
    return pa.table({"message_id": [str(n) for n in range(rows)], "message": messages})


def write_same(path: Path) -> None:
    pq.write_table(same_rows(250, 7_000_000), path, compression="zstd", store_schema=False)


def write_large_binary(path: Path) -> None:
    """More than 2 GiB of messages in 1,024 rows."""
    table = same_rows(330, 7_000_000)
    schema = table.schema.set(1, pa.field("message", pa.large_binary()))
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, 330, 10):
            writer.write_table(table.slice(start, 10).cast(schema), row_group_size=330)


def write_plain(path: Path) -> None:
    """Every message stands there, packed."""
    table = same_rows(12, 7_000_000).cast(
        pa.schema([("message_id", pa.string()), ("message", pa.binary())])
    )
    pq.write_table(table, path, compression="zstd", use_dictionary=False)


def write_delta_bytes(path: Path) -> None:
    """Every message says how much of it is that of the one before it."""
    table = same_rows(60, 7_000_000).cast(
        pa.schema([("message_id", pa.string()), ("message", pa.binary())])
    )
    pq.write_table(
        table, path, compression="zstd", use_dictionary=False,
        column_encoding={"message": "DELTA_BYTE_ARRAY"},
    )  # fmt: skip


@pytest.mark.parametrize(
    "write",
    [
        write_same,
        pytest.param(write_large_binary, marks=pytest.mark.nightly),
        pytest.param(write_plain, marks=pytest.mark.nightly),
        pytest.param(write_delta_bytes, marks=pytest.mark.nightly),
    ],
)
def test_rows_of_parquet_are_read_by_their_bytes(
    tmp_path: Path, one_message: int, write: Callable[[Path], None]
) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in/a.parquet")
    rows = pq.read_metadata(tmp_path / "in/a.parquet").num_rows
    assert (tmp_path / "in/a.parquet").stat().st_size < MIB
    found = measured(tmp_path, "parquet")
    assert (found["messages"], found["deliveries"], found["unread"]) == (rows, rows, 0)
    assert found["peak"] - one_message < ALLOWED_BYTES


@pytest.mark.parametrize("nested", [False, True])
def test_columns_that_are_passed_through_are_bounded_as_well(
    tmp_path: Path, nothing: int, nested: bool
) -> None:
    (tmp_path / "in").mkdir()
    region = pa.DictionaryArray.from_arrays(pa.array([0] * 600, pa.int32()), ["x" * 5_000_000])
    if nested:
        region = pa.ListArray.from_arrays(list(range(601)), region)
    table = pa.table(
        {"message_id": [str(n) for n in range(600)], "message": ["<b/>"] * 600, "region": region}
    )
    pq.write_table(table, tmp_path / "in/a.parquet", compression="zstd", store_schema=False)
    found = measured(tmp_path, "parquet", 'source.columns=["region"]', "output.matches=none")
    assert (found["messages"], found["unread"]) == (600, 0)
    assert found["peak"] - nothing < ALLOWED_BYTES


@pytest.mark.parametrize("use_dictionary", [False, True])
def test_a_page_that_is_too_large_is_a_dead_letter_that_says_what_to_do(
    tmp_path: Path, nothing: int, use_dictionary: bool
) -> None:
    (tmp_path / "in").mkdir()
    big = pa.table({"message_id": ["1"], "message": [b"x" * 300_000_000]})
    pq.write_table(
        big, tmp_path / "in/a.parquet", compression="zstd", use_dictionary=use_dictionary
    )
    del big
    pq.write_table(pa.table({"message_id": ["2"], "message": ["<a/>"]}), tmp_path / "in/b.parquet")
    found = measured(tmp_path, "parquet")
    assert (found["deliveries"], found["unread"]) == (1, 1)
    assert found["peak"] - nothing < ALLOWED_BYTES
    from pathcast.spark.outputs import read_output

    (letter,) = read_output(tmp_path / "out", "dead_letters").to_pylist()
    assert "source.read_bytes_max" in letter["message"]


@pytest.mark.nightly
@pytest.mark.parametrize("ending", ["xml.gz", "xml.zst"])
def test_a_packed_file_of_records_is_read_as_it_is_unpacked(
    tmp_path: Path, nothing: int, ending: str
) -> None:
    pytest.importorskip("pathcast.kernel", reason="the native kernel is not installed")
    (tmp_path / "in").mkdir()
    codec = "gzip" if ending == "xml.gz" else "zstd"
    with pa.CompressedOutputStream(str(tmp_path / f"in/a.{ending}"), codec) as packed:
        packed.write(b"<r><a/><a>")
        for _ in range(900):
            packed.write(bytes(b"x" * MIB))
        packed.write(b"</a><a/></r>")
    found = measured(tmp_path, "records", "source.record=/r/a")
    assert found["deliveries"] == 2
    assert found["refused"] == 1
    assert found["peak"] - nothing < ALLOWED_BYTES


@pytest.mark.parametrize("format", ["parquet", pytest.param("jsonl", marks=pytest.mark.nightly)])
def test_an_inbox_is_read_without_those_of_others(tmp_path: Path, format: str) -> None:
    # Each of 700 subscribers gets the same message: it stands in the file of Parquet once.
    (tmp_path / "in").mkdir()
    size = MIB if format == "parquet" else MIB // 8
    (tmp_path / "in/1.xml").write_bytes(b"<a>" + b"x" * size + b"</a>")
    lines = "".join(f"s{n}\tq1\t//a\tmessage\n" for n in range(700))
    (tmp_path / "many.tsv").write_text(f"subscriber\tquery_id\tquery\tdeliver\n{lines}")
    where = ("output.path=many", f"output.format={format}", "subscriptions.path=many.tsv")
    assert measured(tmp_path, "directory", *where)["deliveries"] == 700
    read = (
        "import sys; from pathlib import Path; from pathcast.spark.outputs import inbox;"
        "print(len(inbox(sys.argv[1], 's77')), [line.split()[1] for line in"
        " Path('/proc/self/status').read_text().splitlines() if line.startswith('VmHWM')][0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", read, str(tmp_path / "many")], capture_output=True, text=True
    )
    rows, peak = map(int, done.stdout.split())
    assert rows == 1
    assert peak * 1024 < 400 * MIB


@pytest.mark.parametrize("use_dictionary", [False, True])
def test_long_messages_in_the_pages_of_an_ordinary_writer_are_read(
    tmp_path: Path, use_dictionary: bool
) -> None:
    # A thousand of them stand in a page, and in a dictionary, of more than PAGE_BYTES.
    (tmp_path / "in").mkdir()
    bodies = [random.Random(n).randbytes(60_000).hex() for n in range(1_100)]
    rows = {
        "message_id": [str(n) for n in range(1_100)],
        "message": [f"<b>{b}</b>" for b in bodies],
    }
    path = tmp_path / "in/a.parquet"
    pq.write_table(pa.table(rows), path, compression="zstd", use_dictionary=use_dictionary)
    found = measured(tmp_path, "parquet", "output.matches=none")
    assert (found["messages"], found["unread"]) == (1_100, 0)
