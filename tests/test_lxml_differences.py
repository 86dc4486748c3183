"""Where lxml leaves XPath 1.0: each named difference is one, and no engine follows lxml there.

If one of these fails, the list hides a fault of ours, or libxml2 has changed and can be asked more.
"""

from __future__ import annotations

import pytest

from every_engine import engines
from oracles import lxml_matches, lxml_tree
from oracles.engines import EngineName, made_by
from oracles.lxml_differences import DIFFERENCES, may_differ
from pathcast.errors import QuerySyntaxError
from pathcast.model import Query
from pathcast.registry import Registry

differences = pytest.mark.parametrize("name", sorted(DIFFERENCES))


@differences
def test_lxml_differs(name: str) -> None:
    pytest.importorskip("lxml")
    difference = DIFFERENCES[name]
    assert lxml_matches(Query("q", difference.query), difference.message) is difference.by_lxml
    assert difference.by_lxml is not difference.by_xpath
    assert difference.why
    assert difference.section


@engines
@differences
def test_engines_follow_xpath(engine: EngineName, name: str) -> None:
    difference = DIFFERENCES[name]
    index = made_by(engine, Registry)
    report = index.add([Query("q", difference.query)])
    if difference.by_xpath is None:
        assert isinstance(report.rejected["q"], QuerySyntaxError)
        return
    assert not report.rejected
    (result,) = index.match([difference.message])
    assert (list(result.query_ids) == ["q"]) is difference.by_xpath


def test_differences_by_construct_are_recognised() -> None:
    """Generated queries that meet one are not put to lxml."""
    for name in ("following-of-attribute", "following-of-namespace", "lang-of-namespace"):
        assert may_differ(DIFFERENCES[name].query) == name
    assert may_differ("//a/following::b[lang('en')]") is None


def test_empty_text_nodes_go_and_what_stands_beside_the_root_stays() -> None:
    """libxml2 leaves an empty text node for an empty CDATA section; `lxml_tree` has none."""
    etree = pytest.importorskip("lxml.etree")
    message = b"<!DOCTYPE a [<!ENTITY e '2'>]><!--c--><a><![CDATA[]]><b>1&e;3</b></a><?p?>"
    query = etree.XPath("count(//text())")
    assert query(etree.fromstring(message).getroottree()) == 2
    assert query(lxml_tree(message).getroottree()) == 1
    assert etree.XPath("count(/node())")(lxml_tree(message).getroottree()) == 3
