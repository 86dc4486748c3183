r"""Records of text files: what CSV writers write is read back; what people write is left alone."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathcast.registry.delimited import records

# Pieces that meet in hostile fields; a line end alone would be a field of several lines.
PIECES = st.sampled_from(
    ['"', '""', "'", "\t", ",", "\n", "\r\n", "a", "é", "\ufeff", "#", " ", "="]
)
FIELD = st.lists(PIECES, max_size=6).map("".join)
ROWS = st.lists(st.lists(FIELD, min_size=3, max_size=3), min_size=1, max_size=5)


def written(rows: list[list[str]], **options: Any) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, **options).writerows(rows)
    return out.getvalue()


@given(
    ROWS,
    st.sampled_from(["\t", ","]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_what_csv_writes_is_read_back_or_is_a_fault(
    rows: list[list[str]], delimiter: str, quoting: int, line_end: str
) -> None:
    text = written(rows, delimiter=delimiter, quoting=quoting, lineterminator=line_end)
    found = list(records(text, delimiter))
    left = iter(rows)
    for record in found:
        if record.fault is None:
            # In order, and nothing that was not written: a fault costs its own rows only.
            assert any(record.fields == row for row in left), text
        else:
            assert '"' in record.text
            assert "\n" in record.text
    if all(record.fault is None for record in found):
        assert [record.fields for record in found] == rows


@given(
    ROWS.map(
        lambda rows: [[part.replace("\n", "").replace("\r", "") for part in row] for row in rows]
    )
)
def test_fields_of_one_line_are_never_a_fault(rows: list[list[str]]) -> None:
    found = list(records(written(rows, delimiter="\t", lineterminator="\n")))
    assert [record.fields for record in found] == rows
    assert [record.line for record in found] == list(range(1, len(rows) + 1))


LITERAL = st.text(st.sampled_from("ab \t'=/"), max_size=4).map(lambda text: f'"{text}"')


@given(
    st.lists(
        st.tuples(LITERAL, st.sampled_from([" = //a", "=//a", " = string(//b)", "!='x'"])),
        min_size=1,
    )
)
def test_a_query_that_begins_with_a_string_is_text(pairs: list[tuple[str, str]]) -> None:
    """Nobody who writes by hand has to know of quoting, whatever the query compares."""
    queries = [literal + rest for literal, rest in pairs]
    text = "".join(f"q{number}\t{query}\n" for number, query in enumerate(queries))
    found = list(records(text, fields_max=2))
    assert [record.fields for record in found] == [[f"q{n}", q] for n, q in enumerate(queries)]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ('a\t"b', [["a", '"b']]),
        ('a\t"b"c', [["a", '"b"c']]),
        ('a\t"b"\n', [["a", "b"]]),
        ('a\t ""\n', [["a", ' ""']]),
        ('a\t""\n', [["a", ""]]),
        ('"a\nb"\t"c"\r\n\r\nd\te', [["a\nb", "c"], ["d", "e"]]),
        ("\n\n", []),
        ("a\t", [["a", ""]]),
    ],
)
def test_examples(text: str, fields: list[list[str]]) -> None:
    assert [record.fields for record in records(text)] == fields


def test_lines_that_may_be_one_record_or_several_are_a_fault_that_names_them() -> None:
    text = 'a\t//a\nb\t"x\nc\t//c\nd\t//d = "\ne\t//e\n'
    first, fault, last = records(text)
    assert (first.line, fault.line, last.line) == (1, 2, 5)
    assert fault.text == 'b\t"x\nc\t//c\nd\t//d = "'
    assert fault.fault is not None
    assert "double the quotes" in fault.fault


@pytest.mark.parametrize(
    "piece", ['"x\t', 'a\t"x\n', 'a\t"x""\n', '""x\n', '"x" = //a\n', '""""x\n']
)
def test_cost_is_linear(piece: str) -> None:
    """A field that is never closed must not be looked for to the end, again for each line."""
    looked_at = 0

    class Counting(str):
        def find(self, *args: Any) -> int:
            nonlocal looked_at
            found = super().find(*args)
            end = found if found >= 0 else len(self) if len(args) < 3 else args[2]
            looked_at += max(0, end - args[1])
            return found

    text = Counting(piece * 2000)
    assert sum(1 for _ in records(text)) >= 1
    assert looked_at < 40 * len(text)
