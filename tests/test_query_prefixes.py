"""Usual prefixes: what a hint proposes is what real messages bind, and can be pasted.

If one of these fails, a person who follows a hint gets queries that match nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathcast import PREFIX_PACKS, Query, Registry
from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode
from pathcast.cli.options import read_namespaces
from pathcast.errors import ConfigError, QuerySyntaxError
from pathcast.query import usual_prefix, usual_uri
from shared_data import shared_path


def test_a_prefix_and_a_namespace_lead_to_each_other() -> None:
    for pack in PREFIX_PACKS.values():
        for prefix, uri in pack.items():
            assert usual_uri(prefix) == uri
            assert usual_prefix(uri) == prefix


def test_the_hint_of_an_unbound_prefix_can_be_pasted() -> None:
    with pytest.raises(QuerySyntaxError) as raised:
        Registry().add(Query("q", "//cbc:ID"))
    told = str(raised.value)
    in_program = re.search(r'namespaces=\{"(\w+)": "(.+?)"\}', told)
    in_command = re.search(r"--namespace (\w+=\S+)\)", told)
    assert in_program is not None
    assert in_command is not None
    bound = {in_program[1]: in_program[2]}
    assert bound == read_namespaces([in_command[1]]) == {"cbc": PREFIX_PACKS["ubl"]["cbc"]}
    assert Registry(namespaces=bound).add(Query("q", "//cbc:ID")).accepted == 1


def test_explain_says_what_the_message_binds(tmp_path: Path) -> None:
    """The fault of the query is told also where the message has one."""
    for content, is_told in ((b"<x:a xmlns:x='urn:x'/>", True), (b"<x:a xmlns:x='urn:x'", False)):
        message = tmp_path / "m.xml"
        message.write_bytes(content)
        told = CliRunner().invoke(build_app(), ["explain", "//x:a", str(message)])
        assert told.exit_code == ExitCode.REFUSED
        assert "XPST0081: prefix x is not bound" in told.stderr
        assert ("--namespace x=urn:x" in told.stderr) == is_told


def test_own_bindings_come_before_those_of_a_vocabulary() -> None:
    assert read_namespaces(["cap=urn:mine", "cap"]) == {"cap": "urn:mine"}
    assert read_namespaces(["ubl"]) == dict(PREFIX_PACKS["ubl"])
    with pytest.raises(ConfigError, match="none of the vocabularies atom, cap"):
        read_namespaces(["ulb"])


def test_real_messages_use_these_namespaces() -> None:
    wanted = {uri.encode() for pack in PREFIX_PACKS.values() for uri in pack.values()}
    for path in sorted(shared_path("docs").rglob("*")):
        if path.is_file() and wanted:
            content = path.read_bytes()
            wanted = {uri for uri in wanted if uri not in content}
    assert wanted == set()
