"""`testdata/xpath.toml`: XPath 1.0 section by section, on every engine and on lxml.

A failure means that the section named is broken. `docs/xpath.md` says where each is tested.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from every_engine import engines
from oracles import LxmlQuery, assert_same_matches, lxml_tree
from oracles.engines import EngineName, made_by
from oracles.lxml_differences import DIFFERENCES, may_differ
from pathcast.errors import QuerySyntaxError
from pathcast.model import Query
from pathcast.registry import Registry

ROOT = Path(__file__).parent.parent
SECTIONS: list[dict[str, Any]] = tomllib.loads(
    (ROOT / "testdata" / "xpath.toml").read_text("utf-8")
)["section"]
NOTES = (ROOT / "docs" / "xpath.md").read_text("utf-8")

sections = pytest.mark.parametrize("section", SECTIONS, ids=[it["number"] for it in SECTIONS])


def queries_of(section: dict[str, Any]) -> list[Query]:
    texts = [*section["holds"], *section["fails"]]
    assert len(set(texts)) == len(texts), "an expression is there twice"
    return [Query(text, text, section.get("namespaces")) for text in texts]


@sections
@engines
def test_engine(engine: EngineName, section: dict[str, Any]) -> None:
    index = made_by(engine, Registry)
    report = index.add(queries_of(section))
    assert not report.rejected, {text: str(error) for text, error in report.rejected.items()}
    message = section["message"].encode()
    for matcher in (index, index.freeze()):
        (result,) = matcher.match([message])
        assert result.error is None
        assert not result.verdicts
        assert_same_matches(result.query_ids, section["holds"], engine, "the table")


@sections
def test_lxml(section: dict[str, Any]) -> None:
    """The table is not our opinion alone."""
    pytest.importorskip("lxml")
    tree = lxml_tree(section["message"].encode())
    known = {difference.query for difference in DIFFERENCES.values()}
    asked = [
        query
        for query in queries_of(section)
        if may_differ(query.text) is None
        and query.text not in known
        and query.text not in section.get("lxml_differs", ())
    ]
    assert len(asked) > len(queries_of(section)) // 2
    found = [query.id for query in asked if LxmlQuery(query).matches(tree)]
    wanted = [query.id for query in asked if query.id in section["holds"]]
    assert_same_matches(found, wanted, "lxml", "the table")


@engines
def test_what_is_not_xpath_is_refused(engine: EngineName) -> None:
    for section in SECTIONS:
        texts = section.get("refused", ())
        report = made_by(engine, Registry).add([Query(text, text) for text in texts])
        assert set(report.rejected) == set(texts)
        for error in report.rejected.values():
            assert isinstance(error, QuerySyntaxError), error


def test_every_section_is_in_the_notes() -> None:
    for section in SECTIONS:
        assert re.search(rf"^\| {re.escape(section['number'])} ", NOTES, re.MULTILINE), section[
            "number"
        ]
    numbers = [section["number"] for section in SECTIONS]
    assert len(set(numbers)) == len(numbers) >= 18


def test_files_named_in_the_notes_exist() -> None:
    named = set(re.findall(r"`((?:tests|testdata|kernel|src|docs)/[\w./-]+)`", NOTES))
    assert len(named) > 8
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
    for name in re.findall(r"\]\((?!http)([\w./-]+)\)", NOTES):
        assert (ROOT / "docs" / name).exists(), name
    for name in re.findall(r"`(test_\w+\.py)`", NOTES):
        assert (ROOT / "tests" / name).exists(), name
    for path, function in re.findall(r"`(test_\w+\.py)::(test_\w+)`", NOTES):
        assert f"def {function}(" in (ROOT / "tests" / path).read_text("utf-8"), function


def test_known_differences_are_in_the_notes() -> None:
    for name in DIFFERENCES:
        assert f"`{name}`" in NOTES, name
