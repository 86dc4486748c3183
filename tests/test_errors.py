"""The catalogue of errors: complete, readable, used, the same after a trip between processes."""

from __future__ import annotations

import pickle
import re
import string
from pathlib import Path

import pytest

from pathcast import errors
from pathcast.errors import (
    CATALOGUE,
    IllFormedMessageError,
    KernelBugError,
    PathcastError,
    QuerySyntaxError,
    UnknownQueryError,
    UnsupportedQueryError,
    caret,
    error_for,
)

ROOT = Path(__file__).resolve().parent.parent
CODES = sorted(CATALOGUE)

BUILTIN_BASES = {
    "QuerySyntaxError": ValueError,
    "UnsupportedQueryError": ValueError,
    "IllFormedMessageError": ValueError,
    "EncodingError": ValueError,
    "LimitExceededError": ValueError,
    "UnknownQueryError": KeyError,
    "DuplicateQueryError": ValueError,
    "SnapshotFormatError": ValueError,
    "SchemaError": ValueError,
    "ConfigError": ValueError,
    "KernelMissingError": ImportError,
    "MissingDependencyError": ImportError,
    "StoreError": RuntimeError,
    "RegistrationError": ValueError,
    "KernelBugError": RuntimeError,
}


def placeholders(template: str) -> list[str]:
    """Names of the parameters of a sentence."""
    return [name for _, name, _, _ in string.Formatter().parse(template) if name]


def concrete_families() -> set[str]:
    """Names of the exception classes of the module that the catalogue may name."""
    classes = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, PathcastError)
    }
    return {cls.__name__ for cls in classes} - {"PathcastError", "MessageError"}


def test_the_catalogue_is_not_empty() -> None:
    # Everything below loops over it and would pass on an empty one.
    assert len(CODES) >= 20


@pytest.mark.parametrize("code", CODES)
def test_every_entry_renders(code: str) -> None:
    entry = CATALOGUE[code]
    params = {name: f"<{name}>" for name in placeholders(entry.template)}
    error = error_for(code, params)
    assert type(error) is entry.family
    for name in params:
        assert f"<{name}>" in str(error), "a parameter does not reach the person who reads it"
    assert "{" not in str(error)
    assert error.to_dict()["code"] == code


@pytest.mark.parametrize("code", CODES)
def test_an_error_without_its_parameters_still_says_what_it_is(code: str) -> None:
    # A forgotten parameter must not replace the error by a KeyError.
    assert str(error_for(code, {}))


def test_every_family_exists_and_has_an_entry() -> None:
    used = {entry.family.__name__ for entry in CATALOGUE.values()}
    assert used == concrete_families(), "a family without an entry can never be raised"


def test_families_can_be_caught_as_the_builtin_errors_that_they_are() -> None:
    assert BUILTIN_BASES
    for family, base in BUILTIN_BASES.items():
        assert issubclass(getattr(errors, family), base)
        assert issubclass(getattr(errors, family), PathcastError)


@pytest.mark.parametrize("code", CODES)
def test_an_error_survives_a_trip_between_processes(code: str) -> None:
    # Spark workers and process pools pickle errors; a lost parameter would lose line and column.
    error = error_for(code, {"line": 3, "column": 7, "offset": 41, "path": "a.xml"})
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert (again.code, again.params, str(again)) == (error.code, error.params, str(error))


SOURCES = (("src", "*.py"), ("papers", "*.py"), ("lab", "*.py"), ("kernel", "*.rs"))


def test_every_code_is_used() -> None:
    # A code that nothing raises promises a check that does not exist.
    catalogue = ROOT / "src" / "pathcast" / "errors" / "sentences.py"
    sources = [
        path
        for folder, pattern in SOURCES
        for path in (ROOT / folder).rglob(pattern)
        if path != catalogue
    ]
    if not sources:
        pytest.skip("the sources are not beside the tests")
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    assert len(text) > 10_000, "the guard looked at (almost) nothing"
    quoted = set(re.findall(r'"([A-Za-z0-9_.\-]+)"', text))
    assert [code for code in CODES if code not in quoted] == []


def test_place_of_a_message_error_is_kept_as_numbers() -> None:
    error = IllFormedMessageError("limit.depth", line=3, column=7, offset=41)
    place = error.to_dict()
    assert (place["line"], place["column"], place["offset"]) == (3, 7, 41)


def test_caret_stands_under_the_fault_even_behind_tabs_and_newlines() -> None:
    assert caret("/a\t[\n", 3).splitlines() == ["  /a [ ", "     ^"]


def test_query_error_shows_query_caret_and_suggestion() -> None:
    error = QuerySyntaxError(
        "XPST0003", query="/a[", offset=3, reason="a predicate is open", suggestion="add a ]"
    )
    assert str(error).splitlines() == [
        "XPST0003: a predicate is open",
        "  /a[",
        "     ^",
        "  add a ]",
    ]


def test_unsupported_query_error_is_a_query_error() -> None:
    # Whoever catches QuerySyntaxError at registration must see the unsupported ones as well.
    assert issubclass(UnsupportedQueryError, QuerySyntaxError)


def test_unknown_query_error_reads_as_a_sentence() -> None:
    # KeyError shows the repr of its argument; the sentence must win.
    assert str(UnknownQueryError("query.unknown", id="q9")) == "no query has the id q9"


def test_an_error_of_the_kernel_itself_is_no_value_error() -> None:
    # "except ValueError" around a batch must not hide a bug of the kernel.
    assert not issubclass(KernelBugError, ValueError)
