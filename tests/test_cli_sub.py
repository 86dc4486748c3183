"""`pathcast sub` from outside: what is written, what is refused, and what a pipeline reads then."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

pytest.importorskip("sqlalchemy", reason="the store is not installed: pip install 'pathcast[net]'")

from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode
from pathcast.spark.subscription_places import StorePlace
from pathcast.store import ProfileRecord, Store

Call = Callable[..., Result]


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'profiles.db'}"


@pytest.fixture
def sub(url: str) -> Call:
    """Runs `pathcast sub` on the database of the test."""

    def run(*arguments: str, code: int = ExitCode.OK, place: str = url) -> Result:
        result = CliRunner().invoke(build_app(), ["sub", *arguments, "--store", place])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return run


def read(url: str) -> Sequence[tuple[str, str, str, str]]:
    """Subscriptions as a pipeline reads them."""
    place = StorePlace(url)
    found = [(row.id, row.subscriber, row.query, row.deliver) for row in place.rows("ids").rows]
    place.close()
    return found


def lines(result: Result) -> list[dict[str, object]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_subscription_lives(sub: Call, url: str) -> None:
    added = lines(sub("add", "//order[@id]", "--owner", "ann", "--id", "q", "--new"))
    assert added == [{"id": "q", "version": 1, "cost": "indexed"}]
    assert read(url) == [("q", "ann", "//order[@id]", "fragment")]
    sub("edit", "q", "//order[total > 5]", "--deliver", "ids", "--label", "tier=gold")
    assert read(url) == [("q", "ann", "//order[total > 5]", "ids")]
    sub("pause", "q")
    assert read(url) == []
    sub("resume", "q")
    assert len(read(url)) == 1
    sub("edit", "q", "--label", "tier=")
    sub("rm", "q")
    assert read(url) == []
    told = lines(sub("history", "q", "--format", "json"))
    assert [each["version"] for each in told] == [6, 5, 4, 3, 2, 1]
    states = ["removed", "active", "active", "paused", "active", "active"]
    assert [each["state"] for each in told] == states
    assert all(str(each["at"]).endswith("+00:00") for each in told)
    labels = [each["subscription"] and each["subscription"]["labels"] for each in told]  # type: ignore[index]
    gold = {"tier": "gold"}
    assert labels == [None, {}, gold, gold, gold, {}]


def test_what_is_refused_changes_nothing(sub: Call, url: str) -> None:
    sub("add", "//a", "--owner", "ann", "--id", "q", "--new")
    before = lines(sub("show", "q", "--format", "json"))
    for arguments, reason in (
        (("add", "//a", "--owner", "bob", "--id", "q"), "pathcast sub edit changes it"),
        (("add", "//a[", "--owner", "bob", "--id", "r"), "//a["),
        (("edit", "q", "//b["), "//b["),
        (("edit", "q", "count(//a)"), "delivers nodes"),
        (("edit", "q", "--values", "."), "needs QUERY"),
        (("edit", "nobody", "//b"), "no subscription of this id"),
        (("pause", "q", "nobody"), "no subscription of this id"),
        (("rm", "q", "nobody"), "no subscription of this id"),
        (("history", "nobody"), "no subscription of this id"),
    ):
        result = CliRunner().invoke(build_app(), ["sub", *arguments, "--store", url])
        assert result.exit_code != ExitCode.OK
        assert reason in result.stderr
    assert lines(sub("show", "q", "--format", "json")) == before
    with Store.open(url) as store:
        assert store.position == 1


def test_a_database_is_made_when_that_is_asked_for(sub: Call, url: str) -> None:
    result = CliRunner().invoke(build_app(), ["sub", "ls", "--store", url])
    assert result.exit_code == ExitCode.REFUSED
    assert "no profile database" in result.stderr
    assert not Path(url.removeprefix("sqlite:///")).exists()


def test_what_is_evaluated_for_every_message_is_told_or_refused(sub: Call, url: str) -> None:
    dear = ("add", "count(//*) > 3", "--owner", "ann", "--deliver", "ids", "--new")
    result = CliRunner().invoke(build_app(), ["sub", *dear, "--store", url, "--dear", "refuse"])
    assert result.exit_code == ExitCode.REFUSED
    assert "is evaluated for every message: " in result.stderr
    assert not Path(url.removeprefix("sqlite:///")).exists()
    assert "is evaluated for every message: " in sub(*dear).stderr
    assert "every message" not in sub(*dear, "--dear", "allow").stderr
    assert [each["cost"] for each in lines(sub("ls", "--format", "json"))] == ["scan", "scan"]


def test_a_hosted_profile_is_the_service_s(sub: Call, url: str) -> None:
    with Store.open(url) as store:
        store.write([ProfileRecord("p", "ann", "//a", host="bern")])
    for arguments in (("edit", "p", "//b"), ("pause", "p"), ("rm", "p")):
        result = CliRunner().invoke(build_app(), ["sub", *arguments, "--store", url])
        assert "the broker bern hosts it" in result.stderr
    with Store.open(url) as store:
        assert store.position == 1


def test_a_table_is_taken_in_as_a_whole(sub: Call, url: str, tmp_path: Path) -> None:
    table = tmp_path / "subscriptions.tsv"
    table.write_text("subscriber\tquery_id\tquery\nann\tq1\t//a\nbob\tq2\t//b[\n")
    result = sub("import", str(table), "--new", code=ExitCode.REFUSED)
    assert "subscriptions.tsv:3: q2: " in result.stderr
    assert "nothing is taken in" in result.stderr
    assert read(url) == []
    told = sub("import", str(table), "--skip-rejected", code=ExitCode.REFUSED).stderr
    assert "1 added, 0 changed, 0 removed, 0 as they were, 1 rejected" in told
    sub("edit", "q1", "--label", "tier=gold")
    sub("pause", "q1")
    table.write_text("subscriber\tquery_id\tquery\nann\tq1\t//a[@x]\nbob\tq2\t//b\n")
    assert "1 added, 1 changed, 0 removed" in sub("import", str(table)).stderr
    assert "0 added, 0 changed, 0 removed, 2 as they were" in sub("import", str(table)).stderr
    kept = lines(sub("show", "q1", "--format", "json"))[0]
    assert (kept["query"], kept["labels"], kept["state"]) == ("//a[@x]", {"tier": "gold"}, "paused")
    table.write_text("subscriber\tquery_id\tquery\nbob\tq2\t//b\n")
    assert (
        "0 added, 0 changed, 1 removed, 1 as they were"
        in sub("import", str(table), "--replace").stderr
    )
    assert read(url) == [("q2", "bob", "//b", "fragment")]


def test_a_rejected_row_keeps_what_it_would_have_changed(
    sub: Call, url: str, tmp_path: Path
) -> None:
    """A file that replaces all removes nothing that it names, though it cannot be taken in."""
    table = tmp_path / "subscriptions.tsv"
    sub("add", "//a", "--owner", "ann", "--id", "q1", "--new")
    table.write_text("subscriber\tquery_id\tquery\nann\tq1\t//a[\n")
    sub("import", str(table), "--replace", "--skip-rejected", code=ExitCode.REFUSED)
    assert read(url) == [("q1", "ann", "//a", "fragment")]


def test_two_rows_of_one_id_are_told(sub: Call, url: str, tmp_path: Path) -> None:
    table = tmp_path / "subscriptions.tsv"
    table.write_text("subscriber\tquery_id\tquery\nann\tq\t//a\nbob\tq\t//a\n")
    result = sub("import", str(table), "--new", code=ExitCode.REFUSED)
    assert "subscriptions.tsv:3: q: " in result.stderr
    assert "has this id twice" in result.stderr


def test_a_subscription_has_a_period(sub: Call, url: str, tmp_path: Path) -> None:
    sub("add", "//a", "--owner", "ann", "--id", "q", "--new", "--until", "2020-01-01T01:00+01:00")
    sub("add", "//a", "--owner", "ann", "--id", "r", "--from", "2999-01-01")
    sub(
        "add", "//a", "--owner", "ann", "--id", "s", "--from", "2020-01-01", "--until", "2999-01-01"
    )
    assert [row[0] for row in read(url)] == ["s"]
    listed = sub("ls").stdout.splitlines()
    assert [("expired" in line, "not yet" in line) for line in listed] == [
        (False, False),
        (True, False),
        (False, True),
        (False, False),
    ]
    assert "2020-01-01T00:00:00+00:00" in listed[1]
    told = [(each["state"], each["standing"]) for each in lines(sub("ls", "--format", "json"))]
    assert told == [("active", "expired"), ("active", "not yet"), ("active", "active")]
    shown = sub("show", "s").stdout
    assert "valid from 2020-01-01T00:00:00+00:00\nvalid until 2999-01-01T00:00:00+00:00" in shown
    assert "version 1, expired" in sub("show", "q").stdout
    sub("edit", "q", "--until", "")
    sub("edit", "r", "--from", "2020-01-01T00:00:00.5Z")
    assert [row[0] for row in read(url)] == ["q", "r", "s"]
    assert "2020-01-01T00:00:00.500000+00:00" in sub("history", "r").stdout.splitlines()[1]
    unread = sub("edit", "r", "--until", "soon", code=ExitCode.USAGE)
    assert "--until: 'soon' is no time such as 2026-03-01" in unread.stderr
    reversed_ = sub("edit", "r", "--until", "2019-01-01", code=ExitCode.REFUSED)
    assert "the valid_until has to be after 2020-01-01" in reversed_.stderr
    with Store.open(url) as store:
        assert store.position == 5


def test_an_import_sets_the_period_of_a_file_or_leaves_what_is_there(
    sub: Call, url: str, tmp_path: Path
) -> None:
    file = tmp_path / "s.tsv"
    file.write_text("subscriber\tquery_id\tquery\nann\tp\t//a\nann\tq\t//b\n")
    sub("import", str(file), "--new", "--until", "2999-01-01")
    file.write_text(file.read_text().replace("//b", "//c"))
    assert "1 changed" in sub("import", str(file)).stderr
    ends = [each["valid_until"] for each in lines(sub("ls", "--format", "json"))]
    assert ends == ["2999-01-01T00:00:00+00:00"] * 2
    exported = tmp_path / "all.jsonl"
    exported.write_text(sub("export").stdout)
    assert exported.read_text().count('"valid_until":"2999-01-01T00:00:00+00:00"') == 2
    sub("import", str(exported), "--until", "2020-01-01")
    assert read(url) == []
    exported.write_text(exported.read_text().replace("2999-01-01T00:00:00+00:00", "some day"))
    refused = sub("import", str(exported), code=ExitCode.REFUSED).stderr
    assert f"{exported}:1: " in refused
    assert "the valid_until has to be a moment such as 2026-03-01T12:00Z, or empty" in refused


def test_what_is_exported_is_imported_elsewhere(sub: Call, url: str, tmp_path: Path) -> None:
    sub(
        *("add", "//c:a", "--owner", "ann", "--id", "q1", "--new", "--namespace", "c=urn:c"),
        *("--label", "tier=gold", "--step", "drop //b", "--language", "xpath1"),
    )
    sub("add", "for $a in //a return <r>{$a}</r>", "--owner", "bob", "--id", "q2")
    sub("pause", "q2")
    file = tmp_path / "all.jsonl"
    file.write_text(sub("export").stdout)
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert "2 added" in sub("import", str(file), "--new", place=other).stderr
    assert sub("export", place=other).stdout == file.read_text()
    file.write_text(file.read_text() + '{"type": "profile", "id": 3}\n{\n')
    refused = sub("import", str(file), place=other, code=ExitCode.REFUSED).stderr
    assert f"{file}:3: " in refused
    assert f"{file}:4: " in refused
    assert (
        lines(sub("ls", "--owner", "bob", "--format", "json", place=other))[0]["state"] == "paused"
    )
    assert (
        lines(sub("ls", "--label", "tier=gold", "--format", "json", place=other))[0]["id"] == "q1"
    )
    assert sub("ls", "--state", "active", place=other).stdout.count("\n") == 2


UNUSABLE = {
    "owner": ("", "the owner has to be not empty"),
    "query": ("//a[. = '\0']", "the query has the character U+0000 at character 9"),
    "id": ("x" * 513, "the id has 513 bytes, at most 512"),
    "labels": ({"tier": "\ud800"}, "no line of JSON as pathcast sub export writes it"),
}
"""Field of a profile -> a value that no database keeps, and what is told of it."""


@pytest.mark.parametrize("field", UNUSABLE)
def test_what_cannot_be_kept_is_refused_with_its_place(
    field: str, sub: Call, url: str, tmp_path: Path
) -> None:
    value, reason = UNUSABLE[field]
    lines = [{"type": "profile", "id": id, "owner": "ann", "query": "//a"} for id in "pqr"]
    lines[1][field] = value  # type: ignore[assignment]
    file = tmp_path / "all.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    told = sub("import", str(file), "--new", code=ExitCode.REFUSED).stderr
    assert f"{file}:2: " in told
    assert reason in told
    assert read(url) == []
    sub("import", str(file), "--skip-rejected", code=ExitCode.REFUSED)
    assert [row[0] for row in read(url)] == ["p", "r"]


def test_a_row_of_a_table_that_cannot_be_kept_is_refused_with_its_place(
    sub: Call, url: str, tmp_path: Path
) -> None:
    file = tmp_path / "s.tsv"
    rows = ["subscriber\tquery_id\tquery", "ann\tp\t//a", f"ann\t{'q' * 513}\t//a", "ann\tr\t//a"]
    file.write_text("\n".join(rows))
    told = sub("import", str(file), "--new", "--skip-rejected", code=ExitCode.REFUSED).stderr
    assert f"{file}:3: " in told
    assert "513 bytes, at most 512" in told
    assert [row[0] for row in read(url)] == ["p", "r"]


def test_a_version_that_cannot_be_kept_changes_nothing(sub: Call, url: str) -> None:
    for arguments in (
        ("--owner", "", "--id", "q"),
        ("--owner", "ann", "--id", "q" * 513),
        ("--owner", "ann", "--id", "q", "--label", "tier=\udcff"),
    ):
        result = CliRunner().invoke(build_app(), ["sub", "add", "//a", *arguments, "--store", url])
        assert result.exit_code == ExitCode.REFUSED, result.output
        assert not Path(url.removeprefix("sqlite:///")).exists()
    sub("add", "//a", "--owner", "ann", "--id", "q", "--new")
    sub("edit", "q", "//a[. = '\0']", code=ExitCode.REFUSED)
    sub("edit", "q", "--label", "tier=" + "x" * 513, code=ExitCode.REFUSED)
    assert read(url) == [("q", "ann", "//a", "fragment")]


def test_an_export_with_separators_of_lines_is_taken_in(
    sub: Call, url: str, tmp_path: Path
) -> None:
    query = "//a[. = 'x\u2028y\u0085z']"
    sub("add", query, "--owner", "ann", "--id", "q", "--new")
    file = tmp_path / "all.jsonl"
    file.write_text(sub("export").stdout)
    sub("rm", "q")
    sub("import", str(file))
    assert [row[2] for row in read(url)] == [query]
