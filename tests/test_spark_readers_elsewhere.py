"""Readers that know nothing of Pathcast: DuckDB, Polars and pandas, as docs/pipeline.md has it.

That a reader leaves out the files of others is shown by damaging these.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="needs: pip install duckdb")
pytest.importorskip("polars", reason="needs: pip install polars")
pytest.importorskip("pandas", reason="needs: pip install 'pathcast[spark]'")

import duckdb
import pandas as pd
import polars as pl

from pathcast.spark.compacting import compact
from pathcast.spark.outputs import files_of, inbox, read_output
from pathcast.spark.storage import Storage
from test_spark_compacting import deliver

WHO = "s07"
GUIDE = Path(__file__).resolve().parent.parent / "docs" / "pipeline.md"


def rows_of(found: Any) -> Counter[tuple[str, str, str]]:
    """The rows of an Arrow table, whoever made it."""
    names = ("subscriber", "message_id", "delivery_id")
    columns = [found.column(name).to_pylist() for name in names]
    return Counter(zip(*columns, strict=True))


def with_duckdb(files: list[str], who: str) -> Any:
    query = "SELECT * FROM read_parquet($files) WHERE subscriber = $who"
    return duckdb.sql(query, params={"files": files, "who": who}).to_arrow_table()


def with_polars(files: list[str], who: str) -> Any:
    return pl.scan_parquet(files).filter(pl.col("subscriber") == who).collect().to_arrow()


def with_pandas(files: list[str], who: str) -> Any:
    frame = pd.read_parquet(files, filters=[("subscriber", "==", who)])
    return pl.from_pandas(frame).to_arrow()


def sql_of_the_guide(out: Path, who: str) -> Any:
    """The statements of the guide, run as they stand there but for the two names in them."""
    section = GUIDE.read_text(encoding="utf-8").partition("## Reading it without Pathcast")[2]
    found = re.search(r"```sql\n(.*?)```", section, re.DOTALL)
    assert found is not None, "the guide has no SQL"
    text = found[1].replace("delivered", str(out)).replace("ann", who)
    first, second, rest = text.split(";")
    assert not rest.strip()
    with duckdb.connect() as connection:
        connection.execute(first)
        return connection.sql(second).to_arrow_table()


def damage_files_of_others(out: Storage) -> int:
    """Makes the files of inboxes that have no row of WHO unreadable; how many."""
    mine = set(files_of(out, "inboxes", subscriber=WHO))
    others = [path for path in files_of(out, "inboxes") if path not in mine]
    for path in others:
        Path(path).write_bytes(b"damaged")
    return len(others)


@pytest.fixture
def out(tmp_path: Path) -> Storage:
    return deliver(tmp_path, range(20))


@pytest.mark.parametrize("read", [with_duckdb, with_polars, with_pandas])
def test_files_that_count_are_read(out: Storage, read: Callable[..., Any]) -> None:
    want = rows_of(inbox(out, WHO))
    assert want.total() == 2
    assert damage_files_of_others(out) > 0
    assert rows_of(read(files_of(out, "inboxes", subscriber=WHO), WHO)) == want


@pytest.mark.parametrize("read", [with_duckdb, with_polars, with_pandas])
def test_every_output_is_read_as_a_whole(out: Storage, read: Callable[..., Any]) -> None:
    for who in {row["subscriber"] for row in read_output(out, "inboxes").to_pylist()}:
        assert rows_of(read(files_of(out, "inboxes"), who)) == rows_of(inbox(out, who))
    found = duckdb.execute(
        "SELECT message_id, unnest(query_numbers) FROM read_parquet($files)",
        {"files": files_of(out, "matches")},
    ).fetchall()
    rows = read_output(out, "matches").to_pylist()
    assert Counter(found) == Counter(
        (row["message_id"], number) for row in rows for number in row["query_numbers"]
    )
    assert len(pl.read_parquet(files_of(out, "dead_letters"))) == 4


def test_sql_finds_the_files_that_count(tmp_path: Path, out: Storage) -> None:
    folder = out.folder
    want = rows_of(inbox(out, WHO))
    out.write("inboxes/stray.parquet", b"of a task that was killed")
    assert rows_of(sql_of_the_guide(folder, WHO)) == want
    # What was merged, and what came after.
    assert compact(out, "parquet") is not None
    deliver(tmp_path, range(20, 30))
    want = rows_of(inbox(out, WHO))
    assert want.total() == 4
    assert rows_of(sql_of_the_guide(folder, WHO)) == want
    compact(out, "parquet")
    deliver(tmp_path, range(30, 36))
    damage_files_of_others(out)
    assert rows_of(sql_of_the_guide(folder, WHO)) == rows_of(inbox(out, WHO))


def delta_with_duckdb(table: Any, who: str) -> Any:
    rows = table.to_pyarrow_dataset()  # noqa: F841 - DuckDB finds it by its name
    return duckdb.sql(f"SELECT * FROM rows WHERE subscriber = '{who}'").to_arrow_table()


def delta_with_polars(table: Any, who: str) -> Any:
    return pl.scan_delta(table).filter(pl.col("subscriber") == who).collect().to_arrow()


def delta_with_pandas(table: Any, who: str) -> Any:
    return pl.from_pandas(table.to_pandas(filters=[("subscriber", "=", who)])).to_arrow()


@pytest.mark.parametrize("read", [delta_with_duckdb, delta_with_polars, delta_with_pandas])
def test_delta_tables_are_read(tmp_path: Path, read: Callable[..., Any]) -> None:
    deltalake = pytest.importorskip("deltalake", reason="needs: pip install 'pathcast[delta]'")
    plain = deliver(tmp_path, range(20))
    deliver(tmp_path, range(20), "output.format=delta", "output.path=tables")
    want = rows_of(inbox(plain, WHO))
    folder = tmp_path / "tables" / "inboxes"
    for path in folder.glob("*.parquet"):
        names = set(pl.read_parquet(path)["subscriber"])
        if not min(names) <= WHO <= max(names):
            path.write_bytes(b"damaged")
    assert any(path.read_bytes() == b"damaged" for path in folder.glob("*.parquet"))
    assert rows_of(read(deltalake.DeltaTable(folder), WHO)) == want
