"""How the command line reads its inputs: query files, messages, options. No engine is started."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from oracles.engines import made_by
from pathcast.cli import messages as inputs
from pathcast.cli.messages import read_batches, read_message, read_messages
from pathcast.cli.options import read_limits, read_namespaces
from pathcast.cli.query_file import query_lines, rows_of
from pathcast.errors import (
    ConfigError,
    DuplicateQueryError,
    LimitExceededError,
    QuerySyntaxError,
    UnreadableMessageError,
    UnusableRowError,
)
from pathcast.limits import Limits
from pathcast.model import Subscription
from pathcast.registry.subscription_engines import SubscriptionEngines


class TestQueryFile:
    def test_ids_are_line_numbers_of_the_file_not_of_the_queries(self) -> None:
        # The id is how a person finds the query again in an editor.
        found = query_lines("\n# comment\n/a\n   # indented comment\n /b \n")
        assert [
            (place.line, row.id, row.query)
            for row, place in zip(found.rows, found.places, strict=True)
        ] == [
            (3, "3", "/a"),
            (5, "5", "/b"),
        ]

    def test_an_id_may_be_given_before_a_tab(self) -> None:
        [row] = query_lines("news\t/a[@b = 'x\ty']").rows
        # Only the first tab separates; the literal keeps its own.
        assert row == Subscription("news", "", "/a[@b = 'x\ty']", "ids")

    def test_an_indented_query_has_no_empty_id(self) -> None:
        [row] = query_lines("\t/a").rows
        assert (row.id, row.query) == ("1", "/a")

    def test_a_hash_inside_a_query_is_no_comment(self) -> None:
        [row] = query_lines("/a[@b='#1']").rows
        assert row.query == "/a[@b='#1']"

    def test_windows_files_with_byte_order_mark_are_read(self) -> None:
        rows, is_table = rows_of("\ufeff/a\r\n/b\r\n".encode(), Path("queries.txt"))
        assert ([row.query for row in rows.rows], is_table) == (["/a", "/b"], False)

    def test_an_id_without_a_query_is_no_query_called_by_the_id(self) -> None:
        found = query_lines("news\t\n/a\nnews\t  \nb")
        assert [(each.place.line, each.reason) for each in found.rejected] == [
            (1, "news: there is no query"),
            (3, "news: there is no query"),
        ]
        assert [row.query for row in found.rows] == ["/a", "b"]

    def test_quotes_of_a_spreadsheet_are_read_and_those_of_a_query_stay(self) -> None:
        found = query_lines('"say ""hi"""\t"//a[. = ""x""]"\n"x" = //a\nb\t"x" = //b\n')
        assert [(row.id, row.query) for row in found.rows] == [
            ('say "hi"', '//a[. = "x"]'),
            ("2", '"x" = //a'),
            ("b", '"x" = //b'),
        ]

    def test_places_are_those_of_the_file(self) -> None:
        text = 'id\t"//a[. = ""x""]/b[\n. = ""y""]/c"\n  //d\nq\t //e\n'
        found = query_lines(text)
        lines = text.splitlines()
        assert len(found.rows) == 3
        for row, place in zip(found.rows, found.places, strict=True):
            for offset, character in enumerate(row.query):
                if character != "\n":
                    line, column = place.at(row.query, offset)
                    assert column is not None
                    assert lines[line - 1][column - 1] == character

    @pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
    def test_utf16_is_a_sentence(self, encoding: str) -> None:
        with pytest.raises(ConfigError, match=r"UTF-16.*save it as UTF-8"):
            rows_of("/a\n/b\n".encode(encoding), Path("queries.txt"))

    def test_a_line_that_is_not_utf8_is_refused_alone(self) -> None:
        content = b"/a\n# caf\xe9\n/caf\xe9\ncaf\xe9\t/b\nd\t/c\n"
        engines = made_by("reference", SubscriptionEngines, Limits(), {})
        taken = engines.take_up(rows_of(content, Path("queries.txt"))[0])
        assert [(each.place.line, type(each.error)) for each in taken.rejected] == [
            (3, QuerySyntaxError),
            (4, UnusableRowError),
        ]
        assert [name in engines.registry for name in ("1", "d")] == [True, True]

    def test_a_repeated_id_is_reported_at_its_second_line(self) -> None:
        # By its id alone, the fault would be shown at the first line.
        engines = made_by("reference", SubscriptionEngines, Limits(), {})
        taken = engines.take_up(query_lines("a\t/x\na\t/y\nb\t!"))
        assert [(each.place.line, type(each.error)) for each in taken.rejected] == [
            (2, DuplicateQueryError),
            (3, QuerySyntaxError),
        ]


class TestMessages:
    def test_a_directory_is_walked_in_sorted_order(self, tmp_path: Path) -> None:
        for name in ("b.xml", "a.xml", "sub/c.XML", "notes.txt"):
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("<a/>")
        found = list(read_messages([str(tmp_path)], Limits()))
        assert {each.content for each in found} == {b"<a/>"}
        names = [str(Path(each.name).relative_to(tmp_path)) for each in found]
        # Order must not depend on the file system.
        assert names == ["a.xml", "b.xml", str(Path("sub", "c.XML"))]

    def test_a_missing_file_is_an_error_of_that_message_alone(self, tmp_path: Path) -> None:
        there = tmp_path / "there.xml"
        there.write_bytes(b"<a/>")
        names = [str(tmp_path / "gone.xml"), str(there)]
        [[gone, found]] = read_batches(names, Limits())
        assert isinstance(gone.content, UnreadableMessageError)
        assert found.content == b"<a/>"

    def test_a_file_above_the_limit_is_not_read(self, tmp_path: Path) -> None:
        path = tmp_path / "big.xml"
        path.write_bytes(b"x" * 11)
        error = read_message(str(path), bytes_max=10).content
        assert isinstance(error, LimitExceededError)
        assert (error.params["given"], error.params["maximum"]) == (11, 10)
        assert read_message(str(path), bytes_max=11).content == b"x" * 11

    def test_standard_input_is_one_message(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stream = io.TextIOWrapper(io.BytesIO(b"<a/>"))
        monkeypatch.setattr("sys.stdin", stream)
        assert read_message("-", bytes_max=10) == ("-", b"<a/>")

    def test_batches_are_bounded_by_number_and_by_bytes(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Otherwise a directory of millions of files would be held in memory.
        path = tmp_path / "m.xml"
        path.write_bytes(b"12345")
        names = [str(path)] * 7
        monkeypatch.setattr(inputs, "BATCH_MESSAGES_MAX", 3)
        assert [len(batch) for batch in read_batches(names, Limits())] == [3, 3, 1]
        monkeypatch.setattr(inputs, "BATCH_BYTES_MAX", 10)
        assert [len(batch) for batch in read_batches(names, Limits())] == [2, 2, 2, 1]


class TestOptions:
    def test_namespaces_and_the_default_one(self) -> None:
        assert read_namespaces(["a=urn:a", "=urn:b=c"]) == {"a": "urn:a", "": "urn:b=c"}
        assert read_namespaces(None) == {}

    @pytest.mark.parametrize("pairs", [["a"], ["a="], ["a=u", "a=v"]])
    def test_a_binding_that_cannot_be_meant_is_refused(self, pairs: list[str]) -> None:
        with pytest.raises(ConfigError, match="--namespace"):
            read_namespaces(pairs)

    def test_limits_start_from_the_defaults(self) -> None:
        limits = read_limits(["depth_max=7", "dtd=refuse"])
        assert limits == Limits(depth_max=7, dtd="refuse")

    @pytest.mark.parametrize(
        ("pair", "named"),
        [("depht_max=7", "depth_max"), ("depth_max=many", "many"), ("depth_max", "depth_max")],
    )
    def test_a_limit_that_cannot_be_meant_is_refused(self, pair: str, named: str) -> None:
        with pytest.raises(ConfigError, match=named):
            read_limits([pair])
