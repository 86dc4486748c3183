"""Commands reach nodes that somebody else started: by address or context, with token or TLS."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

import msgspec

from broker_processes import BrokerProcesses
from command_line import run_command
from pathcast.cli.net_sources import all_rows
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.messages import SourceEntry
from pathcast.transport.broker import broker_kind
from pathcast.transport.broker_requests import ListSources, ListSubscriptions, RegisterSourceRequest
from pathcast.transport.client import BrokerClient
from pathcast.transport.local_processes import free_ports
from pathcast.transport.process import running
from patience import wait_until
from test_broker_process import address_of, certificates, settings_for

DTD = "<!ELEMENT order (to)><!ELEMENT to (#PCDATA)>"


def call(*arguments: object) -> tuple[int, str]:
    """Exit code and all that a command prints."""
    result = run_command(*(str(each) for each in arguments))
    return result.exit_code, result.output


def rows(text: str) -> list[dict[str, object]]:
    """The lines of JSON in what a command prints."""
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcesses]:
    """Brokers a - b, whose client `tester` may operate and whose client `loader` may not."""
    started = BrokerProcesses(tmp_path_factory.mktemp("brokers"), ["a", "b"])
    wait_until(lambda: started.is_up("a"))
    yield started
    started.stop()


@pytest.fixture
def context(network: BrokerProcesses, tmp_path: Path) -> Path:
    """A context of `tester`, whose token is in a file beside it."""
    (tmp_path / "tester.token").write_text("tester!\n")
    text = '[client]\nname = "tester"\ntoken_file = "tester.token"\n'
    for name, address in network.addresses.items():
        text += f'[[brokers]]\nname = "{name}"\naddress = "{address}"\n'
    file = tmp_path / "context.toml"
    file.write_text(text)
    return file


def test_a_client_subscribes_publishes_and_reads_by_context(
    context: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATHCAST_CONTEXT", str(context))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.xml").write_text("<order><to>Bern</to></order>")
    (tmp_path / "orders.dtd").write_text(DTD)

    assert call("net", "subscribe", "s", "//to", "--at", "b") == (0, "s is in force\n")
    code, text = call("net", "interests", "--at", "b")
    assert (code, [row["subscription"] for row in rows(text)]) == (0, ["tester/s"])
    assert rows(call("net", "interests", "--at", "a")[1]) == []

    registered = ("net", "register-source", "orders", "--schema", "orders.dtd", "--at", "a")
    assert call(*registered)[0] == 0
    assert "number 2" in call(*registered)[1]
    wait_until(lambda: rows(call("net", "sources", "--at", "b")[1]))
    assert rows(call("net", "sources", "--at", "b")[1]) == [
        {
            "source": "orders",
            "root": "a",
            "schema_version": 2,
            "schema_length": len(DTD),
            "validated": False,
        }
    ]
    assert "orders is a source of a" in call("net", "withdraw-source", "orders", "--at", "b")[1]

    published = ("net", "publish", "m.xml", "--source", "orders", "--at", "a", "--trace")
    code, text = call(*published)
    (row,) = rows(text)
    assert (code, row["error"]) == (0, None)
    inbox = ("net", "inbox", "--at", "b")
    text = wait_until(lambda: said if "<to>Bern</to>" in (said := call(*inbox)[1]) else "")
    assert rows(text)[-1]["message"] == row["id"]
    assert call("net", "way", row["id"])[1].split(":")[0] == "a"

    code, text = call("net", "trace", "m.xml", "--at", "a")
    assert (code, "delivered: tester/s" in text) == (0, True)
    assert "a       b " in call("net", "ls")[1]
    assert call("net", "ls", "--at", "b")[1].count("\nb ") == 1
    assert json.loads(call("net", "status", "--at", "b")[1])["name"] == "b"

    assert call("net", "withdraw-source", "orders", "--at", "a")[0] == 0
    assert call("net", "withdraw-source", "orders", "--at", "a")[0] == 1
    assert call("net", "unsubscribe", "s", "--at", "b")[0] == 0


def test_a_broker_is_reached_by_address_and_a_broker_beyond_it_is_named(
    network: BrokerProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATHCAST_TOKEN", "tester!")
    (tmp_path / "m.xml").write_text("<news/>")
    reach = ("--as", "tester", "--broker")
    at_a, at_b = ((*reach, network.addresses[name]) for name in ("a", "b"))
    assert call("net", "subscribe", "news", "/news", *at_b)[0] == 0
    code, text = call("net", "trace", tmp_path / "m.xml", "--at", "a", *at_a)
    assert (code, "b (from a)" in text, "context does not list it" in text) == (0, True, True)
    assert call("net", "unsubscribe", "news", *at_b)[0] == 0


def test_lists_come_in_parts_and_have_all_of_a_client_and_nothing_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathcast.transport.broker.ROWS_AT_ONCE", 2)

    async def main() -> None:
        settings = settings_for(tmp_path, clients=[{"name": "ann"}, {"name": "bob"}])
        async with running(settings, broker_kind("b", [])):
            address = address_of(settings)
            async with BrokerClient("bob", address) as bob:
                await bob.subscribe_many([("other", DeliveryProfile("//other"))])
            async with BrokerClient("ann", address) as ann:
                names = [f"s{number}" for number in range(5)]
                await ann.subscribe_many([(name, DeliveryProfile(f"//{name}")) for name in names])
                for name in names:
                    await ann.ask(RegisterSourceRequest(name, SourceEntry()))
                for ask, expected in (
                    (ListSubscriptions, [f"ann/{name}" for name in names]),
                    (ListSources, names),
                ):
                    found = [row async for row in all_rows(ann, ask)]
                    assert [msgspec.structs.astuple(row)[0] for row in found] == expected

    asyncio.run(main())


WRONG = [
    # options, words of the error, exit code
    (("--as", "tester"), "tester did not give its token", 1),
    (("--as", "stranger"), "stranger is not known here", 1),
    ((), "say who calls", 2),
    (("--as", "tester", "--token-file", "gone"), "gone cannot be read", 2),
    (("--as", "tester", "--token-file", "empty"), "empty is empty", 2),
    (("--as", "tester", "--certificate", "c.pem"), "key is missing", 2),
    (("--as", "tester", "--directory", "network"), "nodes on this machine", 2),
    (("--as", "tester", "--context", "gone.toml"), "gone.toml", 2),
]


@pytest.mark.parametrize(("options", "told", "code"), WRONG)
def test_options_that_cannot_work_are_refused_with_the_reason(
    network: BrokerProcesses,
    options: tuple[str, ...],
    told: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").write_text("\n")
    found, text = call("net", "inbox", "--broker", network.addresses["a"], *options)
    assert (found, told in text.replace("\n", " ")) == (code, True), text


def test_what_needs_another_role_says_which(
    network: BrokerProcesses, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATHCAST_TOKEN", "loader!")
    (tmp_path / "m.xml").write_text("<news/>")
    at_a = ("--as", "loader", "--broker", network.addresses["a"])
    for command in (["ls"], ["status"], ["trace", tmp_path / "m.xml"]):
        code, text = call("net", *command, *at_a)
        assert (code, "loader may not operate; the file of the node" in text) == (1, True), text
    # Publishing asks nothing of the operator.
    assert call("net", "publish", tmp_path / "m.xml", "--source", "loads", *at_a)[0] == 0


def test_options_for_other_machines_need_an_address(
    context: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, text = call("net", "inbox", "--at", "a", "--token-file", "t")
    assert (code, "--broker HOST:PORT or --context" in text) == (2, True)
    code, text = call("net", "inbox", "--context", context)
    assert (code, "say which node is asked; there are a, b" in text) == (2, True)
    code, text = call("peer", "inbox", "--context", context)
    assert (code, "the context lists none" in text) == (2, True)
    code, text = call("net", "inbox", "--as", "ann", "--broker", "here")
    assert (code, "'here' is not HOST:PORT" in text) == (2, True)
    port = free_ports(1)[0]
    code, text = call("net", "inbox", "--as", "ann", "--broker", f"127.0.0.1:{port}")
    assert (code, "nobody answers" in text) == (1, True)
    # A directory that is named counts more than a context of the environment.
    monkeypatch.setenv("PATHCAST_CONTEXT", str(context))
    # The token of the environment counts more than the file that a context names.
    monkeypatch.setenv("PATHCAST_TOKEN", "wrong")
    assert "did not give its token" in call("net", "inbox", "--at", "a")[1]
    code, text = call("net", "ls", "--directory", context.parent / "gone")
    assert (code, "pathcast net up TOPOLOGY begins it" in text) == (2, True)


def test_every_key_of_a_context_is_described() -> None:
    code, text = call("net", "context")
    assert code == 0
    for key in ("[client]", "token_file", "authority", "[brokers]", "[peers]", "[registry]"):
        assert key in text


def test_certificates_are_given_and_a_wrong_one_is_told_from_an_address_where_nobody_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trustme = pytest.importorskip("trustme")
    authority = trustme.CA()
    of = {name: certificates(tmp_path, authority, name) for name in ("b", "ann")}
    (tmp_path / "strange").mkdir()
    certificates(tmp_path / "strange", trustme.CA(), "ann")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ann.token").write_text("hers")
    port = free_ports(1)[0]
    (tmp_path / "broker.toml").write_text(
        f'[broker]\nname = "b"\ndirectory = "b"\nlisten = "127.0.0.1:{port}"\n'
        f'[tls]\ncertificate = "{of["b"].certificate.name}"\nkey = "{of["b"].key.name}"\n'
        'authority = "authority.pem"\n[[clients]]\nname = "ann"\ntoken = "hers"\n'
    )
    command = [sys.executable, "-m", "pathcast", "broker", "run", "broker.toml"]
    command += ["--log-format", "json", "--new"]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    base = ("net", "inbox", "--as", "ann", "--token-file", "ann.token")
    address = ("--broker", f"127.0.0.1:{port}")

    def shown(folder: str, authority: str = "authority.pem") -> tuple[str, ...]:
        own = ("--certificate", f"{folder}ann.pem", "--key", f"{folder}ann.key")
        return (*own, "--authority", f"{folder}{authority}")

    try:
        wait_until((tmp_path / "b" / "control").exists)
        assert call(*base, *address, "--at", "b", *shown("")) == (0, "")
        wrong = [
            (("--at", "c", *shown("")), "not made out to c"),
            (("--at", "b", *shown("strange/")), "not signed by the authority"),
            (("--at", "b", *shown("strange/", "../authority.pem")), "has to sign the certificate"),
            (("--at", "b"), "give certificate, key and authority"),
        ]
        for options, told in wrong:
            code, text = call(*base, *address, *options)
            assert (code, told in text) == (1, True), text
        as_bob = ("net", "inbox", "--as", "bob", *address, "--at", "b", *shown(""))
        assert "bob is not known here" in call(*as_bob)[1]
        # gRPC has lines of its own for what fails before anybody has a name.
        log_rows = rows((tmp_path / "log").read_text())
        assert [(each["event"], each["level"]) for each in log_rows] == [
            ("process.listening", "info"),
            ("caller.refused", "warning"),
        ]
        assert "bob" in str(log_rows[-1]["params"])
    finally:
        process.kill()
        process.wait()
