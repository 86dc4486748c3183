"""Columns that are passed through: every type that a source can have, in every format of outputs.

If these fail, a column of some type ends a pipeline, or comes out as something else than went in.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'pathcast[spark]'")
pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")

import deltalake
import duckdb

from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode
from pathcast.errors import ConfigError
from pathcast.spark.outputs import files_of, inbox, read_output
from test_spark_bad_files import GOOD, deliver

FORMATS: tuple[Any, ...] = ("parquet", "jsonl", "delta")
DAY = date(2026, 3, 1)
NOON = datetime(2026, 3, 1, 12, 30, 15, 123456)
NOON_UTC = NOON.replace(tzinfo=UTC)
ID = uuid.UUID(int=7)
SAME: Any = object()


class Passed(NamedTuple):
    """A column and what comes of it.

    Attributes:
        column: Two values of it, and a null.
        stored: The values in Parquet.
        as_json: The values in JSON lines; as in Parquet when not given.
        in_delta: The type of a Delta table; None where that has none.
    """

    column: pa.Array
    stored: list[Any]
    as_json: list[Any] = SAME
    in_delta: str | None = None


def of(kind: pa.DataType, *values: Any) -> pa.Array:
    return pa.array([*values, None], kind)


def plain(kind: pa.DataType, in_delta: str | None, *values: Any, as_json: Any = SAME) -> Passed:
    return Passed(of(kind, *values), list(values), as_json, in_delta)


TEXTS: Final = ("a", "\u00e4\u20ac")
STAMP: Final = ["2026-03-01 12:30:15.123456", "2026-03-01 12:30:15.123456"]
DECIMALS: Final = (Decimal("1.50"), Decimal("-99999999.99"))

CASES: Final[Mapping[str, Passed]] = {
    "bool": plain(pa.bool_(), "boolean", True, False),
    "int8": plain(pa.int8(), "byte", -128, 127),
    "int16": plain(pa.int16(), "short", -5, 5),
    "int32": plain(pa.int32(), "integer", -5, 5),
    "int64": plain(pa.int64(), "long", -(2**63), 2**63 - 1),
    "uint8": plain(pa.uint8(), "short", 0, 255),
    "uint16": plain(pa.uint16(), "integer", 0, 65535),
    "uint32": plain(pa.uint32(), "long", 0, 2**32 - 1),
    "uint64": plain(pa.uint64(), "decimal(20,0)", 0, 2**64 - 1),
    "float16": plain(pa.float16(), "float", 0.5, -2.0),
    "float32": plain(pa.float32(), "float", 0.5, -2.0),
    "float64": plain(pa.float64(), "double", 0.1, -2e300),
    "infinite": plain(pa.float64(), "double", float("inf"), 1.5, as_json=[None, 1.5]),
    "string": plain(pa.string(), "string", *TEXTS),
    "large_string": plain(pa.large_string(), "string", *TEXTS),
    "string_view": plain(pa.string_view(), "string", *TEXTS),
    "long_string": plain(pa.string(), "string", "x" * 6000, "y"),
    "binary": plain(pa.binary(), "binary", b"\xff", b"a", as_json=["/w==", "YQ=="]),
    "large_binary": plain(pa.large_binary(), "binary", b"\xff", b"a", as_json=["/w==", "YQ=="]),
    "binary_view": plain(pa.binary_view(), "binary", b"\xff", b"a", as_json=["/w==", "YQ=="]),
    "fixed_binary": plain(pa.binary(1), "binary", b"\xff", b"a", as_json=["/w==", "YQ=="]),
    "dictionary": plain(pa.dictionary(pa.int8(), pa.string()), "string", *TEXTS),
    "date32": plain(pa.date32(), "date", DAY, DAY, as_json=["2026-03-01"] * 2),
    "date64": plain(pa.date64(), "date", DAY, DAY, as_json=["2026-03-01"] * 2),
    "stamp_s": plain(
        pa.timestamp("s"), "timestamp_ntz", *[NOON.replace(microsecond=0)] * 2,
        as_json=["2026-03-01 12:30:15.000"] * 2,
    ),
    "stamp_us": plain(pa.timestamp("us"), "timestamp_ntz", NOON, NOON, as_json=STAMP),
    "stamp_ns": plain(
        pa.timestamp("ns"), "timestamp_ntz", NOON, NOON, as_json=[f"{each}000" for each in STAMP]
    ),
    "stamp_utc": plain(
        pa.timestamp("us", "UTC"), "timestamp", NOON_UTC, NOON_UTC,
        as_json=[f"{each}Z" for each in STAMP],
    ),
    "stamp_zone": plain(
        pa.timestamp("us", "Europe/Zurich"), "timestamp", NOON_UTC, NOON_UTC,
        as_json=[f"{each}Z" for each in STAMP],
    ),
    "far_stamp": Passed(
        pa.array([-(2**62), 2**62, None], pa.int64()).cast(pa.timestamp("us")),
        [-(2**62), 2**62], SAME, "timestamp_ntz",
    ),
    "time32": plain(pa.time32("s"), None, time(1, 2, 3), time(0), as_json=SAME),
    "time64": plain(pa.time64("ns"), None, time(1, 2, 3, 4), time(0), as_json=SAME),
    "decimal": plain(
        pa.decimal128(10, 2), "decimal(10,2)", *DECIMALS, as_json=["1.50", "-99999999.99"]
    ),
    "decimal_long": plain(
        pa.decimal128(38, 0), "decimal(38,0)", Decimal(10**37 + 1), Decimal(1),
        as_json=[str(10**37 + 1), "1"],
    ),
    "decimal256": plain(
        pa.decimal256(50, 0), None, Decimal(10**49), Decimal(1), as_json=[str(10**49), "1"]
    ),
    "null": Passed(pa.nulls(3), [None, None], SAME, None),
    "uuid": Passed(
        pa.ExtensionArray.from_storage(pa.uuid(), of(pa.binary(16), ID.bytes, ID.bytes)),
        [ID.bytes, ID.bytes], ["AAAAAAAAAAAAAAAAAAAABw=="] * 2, "binary",
    ),
    "json": Passed(
        pa.ExtensionArray.from_storage(pa.json_(), of(pa.string(), "{}", "[]")),
        ["{}", "[]"], SAME, "string",
    ),
    "struct": Passed(
        of(pa.struct([("n", pa.uint8()), ("when", pa.date32())]), {"n": 1, "when": DAY}, {}),
        [{"n": 1, "when": DAY}, {"n": None, "when": None}],
        [{"n": 1, "when": "2026-03-01"}, {"n": None, "when": None}],
        "struct",
    ),
    "list": plain(pa.list_(pa.large_string()), "array", ["a", None], []),
    "large_list": plain(pa.large_list(pa.int32()), "array", [1, 2], []),
    "fixed_list": plain(pa.list_(pa.int32(), 2), "array", [1, 2], [3, 4]),
    "map": Passed(
        of(pa.map_(pa.string(), pa.float64()), [("a", 1.5)], []),
        [[("a", 1.5)], []], [[{"key": "a", "value": 1.5}], []], "map",
    ),
    "deep": Passed(
        of(pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.list_(pa.binary())))])),
           [{"m": [("k", [b"\xff", None])]}], []),
        [[{"m": [("k", [b"\xff", None])]}], []],
        [[{"m": [{"key": "k", "value": ["/w==", None]}]}], []],
        "array",
    ),
}  # fmt: skip

REFUSED: Final = {
    "duration": of(pa.duration("s"), 1, 2),
}


def put(root: Path, columns: Mapping[str, pa.Array]) -> None:
    (root / "in").mkdir(exist_ok=True)
    table = {"message_id": ["0", "1", "2"], "message": [GOOD] * 3, **columns}
    pq.write_table(pa.table(table), root / "in/a.parquet")


def rows_in_order(table: pa.Table, name: str) -> list[Any]:
    if pa.types.is_timestamp(table.schema.field(name).type) and "far" in name:
        # Python has no such time.
        table = table.set_column(
            table.schema.get_field_index(name), name, table.column(name).cast(pa.int64())
        )
    rows = table.select(["message_id", name]).sort_by("message_id").to_pylist()
    return [row[name] for row in rows]


def passed(names: list[str]) -> str:
    return f"source.columns={json.dumps(names)}"


def test_parquet_outputs_have_what_the_source_has(tmp_path: Path) -> None:
    put(tmp_path, {name: case.column for name, case in CASES.items()})
    deliver(tmp_path, "parquet", passed(list(CASES)))
    for output in ("inboxes", "matches"):
        table = read_output(tmp_path / "out", output)
        assert len(table) == 3
        for name, case in CASES.items():
            assert rows_in_order(table, name) == [*case.stored, None], name
    (file,) = files_of(tmp_path / "out", "inboxes", subscriber="ann")
    assert len(duckdb.sql(f"SELECT * FROM read_parquet('{file}')").fetchall()) == 3


def test_json_lines_have_it_as_json_can_say_it(tmp_path: Path) -> None:
    put(tmp_path, {name: case.column for name, case in CASES.items()})
    deliver(tmp_path, "parquet", passed(list(CASES)), "output.format=jsonl")
    (file,) = files_of(tmp_path / "out", "inboxes")

    def refused(text: str) -> None:
        raise AssertionError(f"{text} is no JSON")

    lines = Path(file).read_text("utf-8").splitlines()
    rows = sorted(
        (json.loads(line, parse_constant=refused) for line in lines), key=lambda r: r["message_id"]
    )
    for name, case in CASES.items():
        told = [row[name] for row in rows]
        assert told[2] is None
        if name in ("far_stamp", "time32", "time64"):
            assert all(isinstance(each, str) for each in told[:2])
        else:
            assert told[:2] == (case.stored if case.as_json is SAME else case.as_json), name
    assert rows[0]["time64"] == "01:02:03.000004000"
    read = read_output(tmp_path / "out", "inboxes")
    assert len(read) == len(inbox(tmp_path / "out", "ann")) == 3


IN_DELTA: Final = [name for name, case in CASES.items() if case.in_delta is not None]


def test_delta_tables_have_it_in_types_of_theirs(tmp_path: Path) -> None:
    put(tmp_path, {name: CASES[name].column for name in IN_DELTA})
    deliver(tmp_path, "parquet", passed(IN_DELTA), "output.format=delta")
    for output in ("inboxes", "matches"):
        table = deltalake.DeltaTable(tmp_path / "out" / output)
        kinds = {field.name: field.type for field in table.schema().fields}
        for name in IN_DELTA:
            assert getattr(kinds[name], "type", None) == CASES[name].in_delta, name
        read = table.to_pyarrow_dataset().to_table()
        for name in IN_DELTA:
            assert rows_in_order(read, name) == [*CASES[name].stored, None], name


@pytest.mark.parametrize("name", IN_DELTA)
def test_readers_of_delta_tables_find_rows_by_any_column(tmp_path: Path, name: str) -> None:
    # What the log says of a file lets readers pass over it: a wrong word there loses rows.
    column = CASES[name].column
    put(tmp_path, {name: column})
    deliver(tmp_path, "parquet", passed([name]), "output.format=delta")
    table = deltalake.DeltaTable(tmp_path / "out/inboxes").to_pyarrow_dataset()
    field = ds.field(name)
    assert len(table.to_table(filter=field.is_null())) == 1
    assert len(table.to_table(filter=field.is_valid())) == 2
    for other in ("subscriber", "message_id"):
        assert len(table.to_table(filter=ds.field(other) >= "")) == 3
    kind = table.schema.field(name).type
    if pa.types.is_nested(kind):
        return
    for value in column.cast(kind)[:2]:
        same = sum(each == value for each in column.cast(kind)[:2])
        assert len(table.to_table(filter=field == value)) == same, value


@pytest.mark.parametrize("name", [*(name for name in CASES if name not in IN_DELTA), *REFUSED])
@pytest.mark.parametrize("nested", [False, True])
def test_a_type_that_a_format_lacks_is_refused_by_name(
    tmp_path: Path, name: str, nested: bool
) -> None:
    column = REFUSED[name] if name in REFUSED else CASES[name].column
    if nested:
        column = pa.StructArray.from_arrays([column], ["inside"])
    put(tmp_path, {name: column})
    formats = ("delta",) if name in CASES else FORMATS
    for format in formats:
        where = (f"output.format={format}", f"output.path=out-{format}")
        with pytest.raises(ConfigError, match=f"source.columns: column '{name}'"):
            deliver(tmp_path, "parquet", passed([name]), *where)
    environment = {
        "PATHCAST__OUTPUT__FORMAT": "delta",
        "PATHCAST__SOURCE__COLUMNS": json.dumps([name]),
    }
    done = CliRunner(env=environment).invoke(
        build_app(), ["check", str(tmp_path / "p.toml")], catch_exceptions=True
    )
    assert done.exit_code != ExitCode.OK
    assert f"column '{name}'" in str(done.exception) + done.stderr


def test_a_value_that_does_not_fit_costs_its_file_alone(tmp_path: Path) -> None:
    nanoseconds = pa.array([1, 2, None], pa.int64()).cast(pa.timestamp("ns"))
    put(tmp_path, {"when": nanoseconds})
    (tmp_path / "in/a.parquet").rename(tmp_path / "in/b.parquet")
    put(tmp_path, {"when": CASES["stamp_ns"].column})
    summary = deliver(tmp_path, "parquet", passed(["when"]), "output.format=delta")
    assert (summary.unread, summary.deliveries) == (1, 3)
    (letter,) = read_output(tmp_path / "out", "dead_letters").to_pylist()
    assert "would lose data" in letter["message"]


@pytest.mark.parametrize("format", FORMATS)
def test_compacted_outputs_have_the_same(tmp_path: Path, format: Any) -> None:
    names = IN_DELTA if format == "delta" else list(CASES)
    for number in range(3):
        put(tmp_path, {name: CASES[name].column for name in names})
        (tmp_path / "in/a.parquet").rename(tmp_path / f"in/{number}.parquet")
        where = (f"output.format={format}", "output.compact_files=2")
        deliver(tmp_path, "parquet", passed(names), *where)
    table = read_output(tmp_path / "out", "inboxes")
    assert len(table) == 9
    if format != "jsonl":
        for name in names:
            values = rows_in_order(table, name)
            assert values == [v for v in [*CASES[name].stored, None] for _ in range(3)], name
