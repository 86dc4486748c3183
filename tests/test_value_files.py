"""`values-of("FILE")` is the list of the file when the query is registered; no other file is read.

If these fail, a subscription asks for other values than its file has, or reads a file that whoever
wrote the query may not see.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from command_line import run_command
from pathcast import Registry, Subscription
from pathcast.errors import ConfigError, QuerySyntaxError
from pathcast.registry import rows_with_values, with_values
from pathcast.registry.subscription_rows import read_rows
from pathcast.registry.value_files import FILE_BYTES_MAX
from pathcast.spark.settings import SubscriptionSettings
from pathcast.spark.subscription_places import place_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "lists"
    (found / "more").mkdir(parents=True)
    (found / "codes.txt").write_bytes("\ufeffA1\r\n  B & \"b\" c \n\n'c'\n\u2028é\n".encode())
    (found / "one.txt").write_text("A1")
    (found / "none.txt").write_text("\n")
    (found / "more" / "many.txt").write_text("\n".join(f"v{n}" for n in range(10_000)))
    (found / "latin.txt").write_bytes(b"\xe9")
    (found / "long.txt").write_bytes(b"x" * (FILE_BYTES_MAX + 1))
    (tmp_path / "secret.txt").write_text("secret")
    (found / "link.txt").symlink_to(tmp_path / "secret.txt")
    return found


def expanded(query: str, folder: Path) -> str:
    return with_values(Subscription("s", "ann", query, "ids"), folder).query


def test_it_is_the_list_as_if_it_were_written(folder: Path) -> None:
    text = """//a[@code = values-of( "codes.txt" ) and b = values-of('one.txt')]"""
    values = '"A1", "B &amp; ""b"" c", "\'c\'", "\u2028é"'
    written = f'//a[@code = ({values}) and b = ("A1", "A1")]'
    assert expanded(text, folder) == written
    registries = [Registry(), Registry()]
    for registry, query in zip(registries, (expanded(text, folder), written), strict=True):
        registry.add(Subscription("s", "ann", query, "ids"))
    assert registries[0].version == registries[1].version
    message = "<a code='B &amp; &quot;b&quot; c'><b>A1</b></a>"
    assert len(registries[0].deliver(message)) == 1
    assert len(registries[0].deliver("<a code='B'><b>A1</b></a>")) == 0


def test_the_version_is_that_of_the_values(folder: Path) -> None:
    versions = set()
    for content in ("x\ny", "x\nz", "x\ny"):
        (folder / "one.txt").write_text(content)
        registry = Registry()
        registry.add(Subscription("s", "ann", expanded("//a[@c = values-of('one.txt')]", folder)))
        versions.add(registry.version)
    assert len(versions) == 2


def test_many_values_are_one_condition(folder: Path) -> None:
    registry = Registry()
    text = "//a[@code = values-of('more/many.txt')]"
    registry.add(Subscription("s", "ann", expanded(text, folder), "ids"))
    found = registry.deliver([f"<a code='v{n}'/>" for n in (0, 9_999, 10_000)])
    assert [row for row, *_ in found.results] == [0, 1]


def test_no_value_is_no_condition_that_holds(folder: Path) -> None:
    query = expanded("(//a[@code = values-of('none.txt')], ())", folder)
    assert query == "(//a[@code = ()], ())"
    registry = Registry()
    registry.add(Subscription("s", "ann", query, "ids"))
    assert len(registry.deliver("<a code=''/>")) == 0


@pytest.mark.parametrize(
    "text",
    [
        "//a[b = 'values-of(\"one.txt\")']",
        "//a[b = \"it's values-of('one.txt')\"]",
        "(: values-of('one.txt') (: :) values-of('one.txt') :) (//a, ())",
        "//a[$values-of('one.txt')]",
        "//a[my-values-of('one.txt')]",
        "//a[values-of(//b)]",
        "//values-of[1]",
    ],
)
def test_elsewhere_the_word_says_nothing(text: str, folder: Path) -> None:
    assert expanded(text, folder) == text


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../secret.txt", "not below"),
        ("link.txt", "not below"),
        ("/etc/hostname", "not below"),
        ("missing.txt", "No such file"),
        ("more", "Is a directory"),
        ("latin.txt", "decode"),
        ("long.txt", "longer than"),
    ],
)
def test_a_file_that_may_not_or_cannot_be_read(name: str, reason: str, folder: Path) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        expanded(f"//a[@code = values-of('{name}')]", folder)
    assert name in str(caught.value)
    assert "secret" not in str(caught.value.params.get("reason", "")).replace("secret.txt", "")


def test_a_registry_reads_no_file() -> None:
    row = Subscription("s", "ann", "(//a[@code = values-of('codes.txt')], ())")
    with pytest.raises(QuerySyntaxError, match="values-of") as caught:
        Registry().add(row)
    assert caught.value.code == "XPST0017"


TABLE = (
    "subscriber\tquery_id\tquery\n"
    "ann\tlisted\t//a[@code = values-of('codes.txt')]\n"
    "bob\tmissing\t//a[@code = values-of('missing.txt')]\n"
    "cid\tplain\t//a\n"
)


def test_a_row_whose_list_is_missing_is_rejected_alone(folder: Path) -> None:
    table = folder.parent / "subscriptions.tsv"
    table.write_text(TABLE)
    found = rows_with_values(read_rows(table, "ids"), folder)
    assert [row.id for row in found.rows] == ["listed", "plain"]
    assert '("A1", ' in found.rows[0].query
    (rejected,) = found.rejected
    assert (rejected.row.id, rejected.place.line) == ("missing", 3)
    assert "values-of('missing.txt')" in rejected.reason
    assert rows_with_values(read_rows(table, "ids"), None).rows[0].query.endswith("codes.txt')]")


def test_commands_read_lists_of_the_folder_that_they_are_given(folder: Path) -> None:
    table, message = folder.parent / "subscriptions.tsv", folder.parent / "m.xml"
    table.write_text(TABLE)
    message.write_text("<a code='A1'/>")
    arguments = ["match", "--queries", str(table), str(message)]
    found = run_command(*arguments, "--values", str(folder))
    assert '"matches": ["listed", "plain"]' in found.stdout
    assert "cannot" in found.stderr or "No such file" in found.stderr
    assert '"matches": ["plain"]' in run_command(*arguments).stdout
    checked = run_command("check", str(table), "--values", str(folder))
    assert "subscriptions: 3, rejected: 1" in checked.stderr
    query = "//a[@code = values-of('codes.txt')]"
    for command in (["transform", query, str(message)], ["explain", query, str(message)]):
        assert "values-of" in run_command(*command).stderr
        assert "code='A1'" in run_command(*command, "--values", str(folder)).stdout.replace(
            '"', "'"
        )


def test_a_pipeline_takes_up_a_list_that_has_changed(folder: Path) -> None:
    table = folder.parent / "subscriptions.tsv"
    table.write_text(TABLE)
    place = place_of(SubscriptionSettings(path=table, values=folder))
    before = place.state()
    assert place.state() == before
    (folder / "codes.txt").write_text("B2\nC3")
    assert place.state() != before
    assert place.rows("ids").rows[0].query == '//a[@code = ("B2", "C3")]'
    with pytest.raises(ValidationError, match="values"):
        SubscriptionSettings(store="sqlite:////tmp/x.db", values=folder)
