"""Whatever file is not there, or is none: the error names it, once.

A sentence without a path sends somebody through every file of a deployment.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from every_engine import engines
from oracles.engines import made_by
from pathcast import Registry, Snapshot
from pathcast.cli.app import build_app
from pathcast.cli.exits import ExitCode
from pathcast.cli.suite import read_suite
from pathcast.errors import PathcastError
from pathcast.registry.subscription_rows import read_rows
from pathcast.schema import read_dtd, read_xsd
from pathcast.spark.settings import load_settings

FACES: dict[str, Callable[[Path], Any]] = {
    "suite": read_suite,
    "subscriptions": lambda path: read_rows(path.with_suffix(".tsv"), "ids"),
    "subscriptions in Parquet": lambda path: read_rows(path.with_suffix(".parquet"), "ids"),
    "DTD": read_dtd,
    "schema": read_xsd,
    "pipeline": load_settings,
}


def check_named(path: Path, call: Callable[[Path], Any]) -> None:
    with pytest.raises((PathcastError, OSError)) as caught:
        call(path)
    assert str(caught.value).count(str(path.with_suffix(""))) == 1
    assert "os error" not in str(caught.value)
    if not isinstance(caught.value, PathcastError):
        assert isinstance(caught.value, OSError)
        # Programs look here, and at the class that follows from it.
        assert caught.value.filename == str(path)
        assert caught.value.errno


@engines
def test_snapshots(engine: str, tmp_path: Path) -> None:
    index, registry = made_by(engine, Registry).freeze(), made_by(engine, Registry).freeze()
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "gone" / "file", tmp_path / "folder"):
        check_named(path, lambda each: made_by(engine, Snapshot.open, each))
        check_named(path, lambda each: made_by(engine, Snapshot.open, each))
        check_named(path, index.save)
        check_named(path, registry.save)
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("face", FACES)
def test_files_of_every_kind(face: str, tmp_path: Path) -> None:
    check_named(tmp_path / "gone", FACES[face])
    for suffix in ("", ".tsv", ".parquet"):
        (tmp_path / f"folder{suffix}").mkdir()
    if face == "subscriptions":
        return  # a folder of them is one
    if face != "subscriptions in Parquet":
        check_named(tmp_path / "folder", FACES[face])


@pytest.mark.parametrize("name", ["topology", "broker", "peer", "registry", "context"])
def test_files_of_a_network(name: str, tmp_path: Path) -> None:
    pytest.importorskip("msgspec", reason="the extra `net` is not installed")
    from pathcast.settings import FileSettings, read_settings
    from pathcast.transport.contexts import CallContext
    from pathcast.transport.network import load_topology
    from pathcast.transport.peer_settings import PeerSettings
    from pathcast.transport.registry_settings import RegistrySettings
    from pathcast.transport.settings import BrokerSettings

    kinds: dict[str, type[FileSettings]] = {
        "broker": BrokerSettings,
        "peer": PeerSettings,
        "registry": RegistrySettings,
        "context": CallContext,
    }
    faces: dict[str, Callable[..., object]] = {"topology": load_topology}
    face = faces.get(name) or partial(read_settings, kinds[name])
    check_named(tmp_path / "gone", face)
    (tmp_path / "folder").mkdir()
    check_named(tmp_path / "folder", face)


@pytest.mark.parametrize(
    "command",
    [
        "match --queries GONE MESSAGE",
        "check GONE",
        "lint GONE",
        "lint QUERIES --dtd GONE",
        "explain //b GONE",
        "explain @GONE MESSAGE",
        "transform @GONE MESSAGE",
        "transform //b GONE",
        "test GONE",
        "run GONE",
        "generate queries --dtd GONE",
        "net up GONE",
        "broker run GONE",
        "registry run GONE",
        "peer run GONE",
    ],
)
def test_commands(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A terminal's width must not break the name.
    monkeypatch.setenv("COLUMNS", "1000")
    if command.split()[0] in ("net", "broker", "registry", "peer"):
        for module in ("msgspec", "grpc", "sqlalchemy"):
            pytest.importorskip(module, reason="the extra `net` is not installed")
    names = {"GONE": tmp_path / "gone", "QUERIES": tmp_path / "q", "MESSAGE": tmp_path / "m"}
    names["QUERIES"].write_text("//b\n")
    names["MESSAGE"].write_text("<b/>")
    words = []
    for word in command.split():
        plain = word.removeprefix("@")
        words.append(word.removesuffix(plain) + str(names.get(plain, plain)))
    result = CliRunner().invoke(build_app(), words)
    assert result.exit_code in (ExitCode.REFUSED, ExitCode.USAGE)
    assert str(names["GONE"]) in result.stderr
    assert not isinstance(result.exception, OSError)
