"""Rooms that have a face are entered by it, so that what is inside can change.

If this fails because of an import that is not listed, import the name from the room itself, and
give the room that name if it has none. If it fails because one is listed that is not there any
more, take it off the list: the list only shrinks.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pathcast

SOURCES = Path(__file__).resolve().parents[1] / "src" / "pathcast"

EXCEPTIONS = """
chunking query: atoms names notation static syntax
cli message: canonical
cli query: names near_names query_warnings xquery
cli registry: delimited subscription_engines subscription_files
cli registry: subscription_rows
cli spark: dead_letters files generations json_lines last_valid listing outputs
cli spark: progress reasons session settings sources storage subscription_places
engine query: atoms canonical names near_names normal notation
engine query: query_warnings static syntax values
kernel query: refusals syntax xquery
lint engine: rows
lint query: atoms canonical condition_issues implication language_issues
lint query: names near_names normal notation static syntax values
lint query: xquery xquery.subscription
lint registry: steps
overlay query: atoms names notation syntax xquery
overlay registry: before_steps restructuring selector steps
partition engine: messages
partition query: normal values
records query: names syntax
registry engine: explain explanation lazy_warnings matcher messages
registry engine: results rows
registry query: names xquery
spark records: blocks cutting
spark registry: delimited identity subscription_engines
spark registry: subscription_files subscription_rows
store engine: rows
"""
"""The room that imports, the room with a face, modules of the latter."""


def test_the_package_gives_each_name_that_it_promises() -> None:
    """Rooms are imported when a name is asked for, so a wrong entry shows nowhere else."""
    assert {name for names in pathcast._ROOMS.values() for name in names} == set(pathcast.__all__)
    assert [name for name in pathcast.__all__ if not hasattr(pathcast, name)] == []


def rooms_with_faces() -> set[str]:
    """Rooms that say what they offer."""
    faces = SOURCES.glob("*/__init__.py")
    return {path.parent.name for path in faces if "__all__" in path.read_text(encoding="utf-8")}


def test_rooms_are_entered_by_their_faces() -> None:
    faces, found = rooms_with_faces(), dict[tuple[str, str], set[str]]()
    for path in SOURCES.rglob("*.py"):
        room = path.relative_to(SOURCES).with_suffix("").parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pathcast."):
                _, other, *inside = str(node.module).split(".")
                if inside and other in faces and other != room:
                    found.setdefault((room, other), set()).add(".".join(inside))
    listed = dict[tuple[str, str], set[str]]()
    for line in EXCEPTIONS.split("\n")[1:-1]:
        pair, _, modules = line.partition(": ")
        room, other = pair.split()
        listed.setdefault((room, other), set()).update(modules.split())
    assert found == listed
