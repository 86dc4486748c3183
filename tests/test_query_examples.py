"""The examples in the docstrings and the description of the query language are true.

If these fail, what users read first does not work as shown.
"""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pathcast.query
from pathcast.query import canonical_form

DOCS = Path(__file__).parent.parent / "docs"
LANGUAGE = DOCS / "query-language.md"


def test_docstrings() -> None:
    attempted = 0
    for module in pkgutil.iter_modules(pathcast.query.__path__, "pathcast.query."):
        result = doctest.testmod(importlib.import_module(module.name))
        assert result.failed == 0, module.name
        attempted += result.attempted
    assert attempted >= 15


def test_description() -> None:
    result = doctest.testfile(str(LANGUAGE), module_relative=False, encoding="utf-8")
    assert result.failed == 0
    assert result.attempted >= 2


def test_cookbook() -> None:
    result = doctest.testfile(str(DOCS / "cookbook.md"), module_relative=False, encoding="utf-8")
    assert result.failed == 0
    assert result.attempted >= 20


def test_table_of_canonical_forms() -> None:
    """Each row: a rule, notations, canonical forms; a predicate alone stands on some step."""
    section = LANGUAGE.read_text(encoding="utf-8").partition("## Canonical form")[2]
    checked = 0
    for row in re.findall(r"^\| (?!rule|-)[^|]*\|([^|]*)\|([^|]*)\|$", section, re.MULTILINE):
        written, canonical = (re.findall("`([^`]*)`", cell) for cell in row)
        if len(canonical) < len(written):
            canonical = (canonical or [""]) * len(written)
        for query, expected in zip(written, canonical, strict=True):
            step = "/x" if query.startswith("[") else ""
            namespaces = {"n": "urn:news"}
            assert canonical_form(step + query, namespaces) == step + expected
            checked += 1
    assert checked >= 20
