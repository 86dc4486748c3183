"""`oracles.saxon_differences`: each difference is there, and is what is said of it.

If one of these fails, either Saxon or Pathcast has changed its answer: the list would then excuse
what nobody decided.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from customised_cases import agree, by_reference
from oracles import SaxonError, SaxonOracle, saxon_missing_reason
from oracles.saxon_differences import (
    CONSTRUCTION_ERRORS,
    DIFFERENCES,
    SaxonDifference,
    error_difference,
)
from pathcast.message.canonical import canonical

differences = pytest.mark.parametrize(
    "difference", DIFFERENCES.values(), ids=[it.name for it in DIFFERENCES.values()]
)


@differences
def test_pathcast(difference: SaxonDifference) -> None:
    found = by_reference(difference.query, difference.message, None)
    wanted = difference.by_pathcast
    if isinstance(wanted, tuple):
        wanted = tuple(map(canonical, wanted))
    assert found == wanted


@pytest.mark.skipif(saxon_missing_reason() is not None, reason=str(saxon_missing_reason()))
@differences
def test_saxon(difference: SaxonDifference) -> None:
    oracle = SaxonOracle.shared()
    if isinstance(difference.by_saxon, str):
        with pytest.raises(SaxonError) as caught:
            oracle.evaluate(difference.query, difference.message)
        assert caught.value.code == difference.by_saxon
        assert error_difference(caught.value.code) == difference.name
    else:
        results = oracle.evaluate(difference.query, difference.message)
        assert tuple(map(canonical, results)) == tuple(map(canonical, difference.by_saxon))


def test_a_construction_error_is_no_difference() -> None:
    assert CONSTRUCTION_ERRORS
    for code in CONSTRUCTION_ERRORS:
        assert error_difference(code) is None


def test_what_two_opinions_may_differ_in() -> None:
    """A comparison that excused too much would prove nothing."""
    assert agree((b"<a></a>",), (b"<a></a>",)) == ""
    assert agree(None, None) == ""
    assert agree((b"<a></a>",), (b"<b></b>",)) is None
    assert agree((b"<a></a>",), None) is None
    assert agree(None, (b"<a></a>",)) is None
    assert agree((), None) is None
    assert agree("XQDY0025", "XQTY0024") is None
    assert agree((b"<a></a>",), "XQTY0024") is None
    assert agree("XQDY0025", (b"",)) == "what-nobody-asks-for"
    assert agree((b"&#xD;",), (b"\n",)) == "carriage-return-alone"
    assert agree((b"&#xD;",), (b" ",)) is None


def test_differences_are_in_the_notes() -> None:
    notes = (Path(__file__).parent.parent / "docs" / "fidelity.md").read_text("utf-8")
    for name in DIFFERENCES:
        assert f"| `{name}` |" in notes, name
