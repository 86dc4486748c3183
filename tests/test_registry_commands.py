"""Sources and interests are registered, changed and taken out by command, as Figure 3 has it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("sqlalchemy", reason="sqlalchemy is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

from command_line import run_command
from pathcast.cli.app import build_app
from pathcast.store import CatalogRecord, ProfileRecord, SourceRecord, Store
from patience import wait_until
from registration_processes import RegistrationProcesses

DTD = "<!ELEMENT order (no, to)><!ELEMENT no (#PCDATA)><!ELEMENT to (#PCDATA)>"


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistrationProcesses]:
    """A node of the service, and brokers a and b, of which a is nearer to all."""
    started = RegistrationProcesses(tmp_path_factory.mktemp("registry"), "profiles.db")
    started.start("r1", "a", "b")
    try:
        for name in "ab":
            wait_until((started.directory / name / "control").exists)
        yield started
    finally:
        started.stop()


def contexts(processes: RegistrationProcesses) -> tuple[Path, Path]:
    """Contexts of ann, who has interests, and of shop, which has a source."""
    nodes = "".join(
        f'[[{kind}]]\nname = "{name}"\naddress = "127.0.0.1:{processes.ports[name]}"\n'
        for kind, name in (("registry", "r1"), ("brokers", "a"))
    )
    written = []
    for name, token in (("ann", 'token = "hers"\n'), ("shop", "")):
        path = processes.directory / f"{name}.context"
        path.write_text(f'[client]\nname = "{name}"\n{token}{nodes}')
        written.append(path)
    return written[0], written[1]


def call(*arguments: object) -> tuple[int, str]:
    result = run_command(*(str(each) for each in arguments))
    return result.exit_code, result.output


def row(arguments: tuple[object, ...]) -> dict[str, object]:
    """The line of JSON that a command prints; it has to succeed."""
    code, text = call(*arguments)
    assert code == 0, text
    (found,) = (json.loads(line) for line in text.splitlines() if line.startswith("{"))
    assert isinstance(found, dict)
    return found


def test_sources_and_interests_by_command(processes: RegistrationProcesses, tmp_path: Path) -> None:
    ann, shop = contexts(processes)
    store = processes.directory / "profiles.db"
    of_ann, of_shop = ("--context", ann), ("--context", shop)
    schema = tmp_path / "orders.dtd"
    schema.write_text(DTD)
    (tmp_path / "m.xml").write_text("<order><no>1</no><to>Bern</to></order>")

    made = row(
        (
            "registry",
            "register-source",
            *of_shop,
            "--location",
            "eu/a/ch",
            "--schema",
            schema,
            "--rate",
            "50",
            "--bytes",
            "1000",
        )
    )
    assert (made["root"], made["address"]) == ("a", f"127.0.0.1:{processes.ports['a']}")
    source = made["source"]
    told = row(("registry", "sources", store))
    assert (told["owner"], told["location"], told["schema_version"]) == ("shop", "eu/a/ch", 1)
    assert (told["messages_a_second"], told["message_bytes"]) == (50.0, 1000.0)
    assert call("registry", "update-source", source, *of_shop, "--rate", "5")[0] == 0
    schema.write_text(DTD.replace("(no, to)", "(no, to?)"))
    code, text = call("registry", "update-source", source, *of_shop, "--schema", schema)
    assert (code, "number 2" in text) == (0, True)
    told = row(("registry", "sources", store))
    assert (told["schema_version"], told["messages_a_second"]) == (2, 5.0)
    assert not told["validated"]
    assert call("registry", "update-source", source, *of_shop)[0] == 2
    assert row(("registry", "locate", source, *of_shop))["broker"] == "a"

    for begun, kind, rest in (("//order/t", "element", "o"), ("/", "element", "order")):
        proposed = row(("registry", "complete", begun, *of_ann))
        assert proposed == {"interest": begun + rest, "kind": kind}
    assert call("registry", "complete", "//order/x", *of_ann) == (0, "")
    code, text = call("registry", "complete", "//order/::/", *of_ann)
    assert (code, "XPST0003" in text) == (1, True)

    interest = row(
        (
            "registry",
            "register-interest",
            "//to[. = 'Bern']",
            *of_ann,
            "--location",
            "eu/a",
            "--label",
            "tier=gold",
        )
    )["interest"]
    told = row(("registry", "interests", store, "--owner", "ann"))
    assert (told["query"], told["labels"]) == ("//to[. = 'Bern']", {"tier": "gold"})
    assert call("registry", "interests", store, "--owner", "bob") == (0, "")
    assert row(("registry", "locate", interest, *of_ann))["broker"] == "a"

    published = ("net", "publish", tmp_path / "m.xml", "--source", source, *of_shop)
    assert row(published)["error"] is None
    inbox = ("net", "inbox", *of_ann)
    wait_until(lambda: "<to>Bern</to>" in call(*inbox)[1])

    changed = ("registry", "change-interest", interest, "//no", *of_ann, "--deliver", "ids")
    assert call(*changed)[0] == 0
    told = row(("registry", "interests", store))
    assert (told["query"], told["deliver"], told["labels"]) == ("//no", "ids", {})
    assert call(*changed, "--pause")[0] == 0
    assert row(("registry", "interests", store))["state"] == "paused"
    assert call("registry", "delete-interest", interest, *of_ann)[0] == 0
    assert call("registry", "interests", store) == (0, "")

    assert call("registry", "withdraw-source", store, source)[0] == 0
    assert call("registry", "withdraw-source", store, source)[0] == 2

    wait_until(lambda: call(*published)[0] != 0)


WRONG = [
    # command, options, words of the error, exit code
    (["register-source"], "ann", "ann may not publish", 1),
    (["register-interest", "//a["], "ann", "XPST0003", 1),
    (["locate", "nothing"], "ann", "nothing", 1),
    (["register-interest", "//a", "--label", "gold"], "ann", "is not NAME=VALUE", 2),
    (["register-interest", "//a", "--as", "nobody"], "ann", "nobody is not known here", 1),
]


@pytest.mark.parametrize(("command", "client", "told", "code"), WRONG)
def test_refusals_say_why_and_are_told_at_once(
    processes: RegistrationProcesses, command: list[str], client: str, told: str, code: int
) -> None:
    contexts(processes)
    options = ["--context", processes.directory / f"{client}.context"]
    found, text = call("registry", *command, *options)
    assert (found, told in text) == (code, True), text


def test_the_service_has_to_be_named() -> None:
    code, text = call("registry", "locate", "p")
    assert (code, "--registry HOST:PORT" in text) == (2, True)


def test_interests_are_linted_against_the_schemas_of_all_sources(tmp_path: Path) -> None:
    """A name that one source has is none that is missing; one that no source has is found."""
    schemas = {
        "s-1": "<!ELEMENT order (to, no)><!ELEMENT to (#PCDATA)><!ELEMENT no (#PCDATA)>",
        "s-2": "<!ELEMENT alert (area)><!ELEMENT area (#PCDATA)>",
        "s-3": "",
    }
    queries = {"p-1": "/order[to = 'Bern']", "p-2": "/alert/area", "p-3": "/order[too = 'Bern']"}
    database = tmp_path / "profiles.db"
    with Store.open(database) as store:
        for id, schema in schemas.items():
            store.write(
                [
                    CatalogRecord(f"{id}@1", id, 1, "<!ELEMENT old EMPTY>"),
                    CatalogRecord(f"{id}@2", id, 2, schema),
                    SourceRecord(id, "shop", "eu", 2, 1.0, 100.0, root="a"),
                ]
            )
        store.write([ProfileRecord(id, "ann", text, host="a") for id, text in queries.items()])
    result = CliRunner().invoke(build_app(), ["registry", "lint", str(database)])
    assert result.exit_code == 1
    found = [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]
    assert [(each["interest"], each["code"]) for each in found] == [("p-3", "PL101")]
    assert "1 of 3 sources have no schema" in result.output
    with Store.open(database) as store:
        store.write([ProfileRecord("p-3", "ann", "//to", host="a")])
    assert CliRunner().invoke(build_app(), ["registry", "lint", str(database)]).exit_code == 0
