"""Sources whose messages are validated at their root: refusals, counts, neighbours, restarts."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")
pytest.importorskip("grpc", reason="grpcio is not installed: pip install 'pathcast[net]'")
pytest.importorskip("pathcast_kernel", reason="the kernel is not installed")

import httpx
from typer.testing import CliRunner

from pathcast.cli.app import build_app
from pathcast.errors import SchemaError
from pathcast.limits import Limits
from pathcast.overlay import schemas
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.deliveries import InboxDelivery
from pathcast.overlay.messages import SourceEntry
from pathcast.overlay.schemas import check_schema, read_schema
from pathcast.schema import MessageValidator, validator_of
from pathcast.transport.broker_requests import (
    DELIVERIES,
    NotTaken,
    PublishRequest,
    RegisterSourceRequest,
)
from pathcast.transport.client import BrokerClient
from pathcast.transport.doorkeeper import Doorkeeper
from pathcast.transport.local_processes import free_ports
from pathcast.transport.network import LocalNetwork, load_topology
from pathcast_lab.demos.running import followed
from patience import eventually

DTD = "<!ELEMENT order (no, item*)><!ELEMENT no (#PCDATA)><!ELEMENT item EMPTY>"
XSD = """<?xml version="1.0" encoding="ISO-8859-1"?>
<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
 <xs:element name="order"><xs:complexType><xs:sequence>
  <xs:element name="no" type="xs:int"/>
  <xs:element name="item" minOccurs="0" maxOccurs="unbounded"/>
 </xs:sequence></xs:complexType></xs:element>
</xs:schema>"""
VALID = b"<order><no>7</no><item/></order>"
INVALID = b"<order>\n<item/>\n<no>7</no></order>"


@pytest.mark.parametrize("schema", [DTD, XSD], ids=["dtd", "xsd"])
def test_a_message_is_valid_or_the_first_fault_is_told(schema: str) -> None:
    validator = MessageValidator(schema)
    assert validator.fault(VALID) is None
    fault = validator.fault(INVALID)
    assert fault is not None
    assert "item" in fault.reason
    assert fault.line in (1, 2)
    assert validator.fault(VALID) is None
    deep = b"<a>" * 300 + b"</a>" * 300
    assert validator.fault(deep) is not None


def test_the_types_of_an_xml_schema_are_checked() -> None:
    fault = MessageValidator(XSD).fault(b"<order><no>seven</no></order>")
    assert fault is not None
    assert "xs:int" in fault.reason


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ('<!ENTITY % m SYSTEM "file:///etc/passwd"> %m; <!ELEMENT a ANY>', "names other files"),
        ("<!ELEMENT a", None),
        (XSD.replace('"order">', '"order"/><xs:include schemaLocation="x"/><xs:element>'), None),
        (XSD.replace('"unbounded"', '"99999"'), "maxOccurs is 99999"),
        (XSD.replace('"xs:int"', '"int"'), "int"),
        (XSD[:-4], None),
        ("", "characters"),
    ],
)
def test_a_schema_that_nothing_can_be_validated_by_is_refused(
    schema: str, reason: str | None
) -> None:
    with pytest.raises(SchemaError, match=reason):
        check_schema(schema, validated=True)


PATTERN = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="a">
<xs:simpleType><xs:restriction base="xs:string"><xs:pattern value="{}"/></xs:restriction>
</xs:simpleType></xs:element></xs:schema>"""


@pytest.mark.parametrize("pattern", ["(x|x|x|(xx)|xxx)*y", "((x+)+)+y", "(x*)*(x*)*(xx)*y"])
@pytest.mark.parametrize("length", [1, 40, 4000])
def test_a_value_that_the_validator_gives_up_on_is_refused_alone(pattern: str, length: int) -> None:
    """Others of the call, and of the source, are taken."""
    door = Doorkeeper(Limits())
    door.sources = {"strict": SourceEntry(PATTERN.format(pattern), 2, validated=True)}
    bodies = [b"<a>xy</a>", b"<a>" + b"x" * length + b"</a>", b"<a>xxxy</a>"]
    asked = [PublishRequest("strict", f"m{n}", body) for n, body in enumerate(bodies)]
    refused = door(asked)
    assert list(refused) == [1]
    told = refused[1]
    assert isinstance(told, NotTaken)
    assert told.code == "publication.invalid"
    assert "gives up" in told.reason or "[facet 'pattern']" in told.reason
    assert not door([asked[0]]), "the validator goes on"


def test_the_validator_does_give_up() -> None:
    """Else the test above says nothing."""
    fault = MessageValidator(PATTERN.format("(x|x|x|(xx)|xxx)*y")).fault(b"<a>%s</a>" % (b"x" * 40))
    assert fault is not None
    assert "gives up" in fault.reason


@pytest.mark.parametrize("schema", [DTD, "<!ELEMENT", ""])
def test_a_schema_is_read_once(monkeypatch: pytest.MonkeyPatch, schema: str) -> None:
    """Beside the event loop, which asks for what was found there."""
    read: list[str] = []

    def reading(text: str) -> object:
        read.append(text)
        return read_schema(text)

    monkeypatch.setattr(schemas, "read_schema", reading)
    text = f"{schema}<!-- {tuple(map(id, [read]))} -->" if schema else schema
    for _ in range(3):
        with contextlib.suppress(SchemaError):
            check_schema(text)
    assert len(read) == bool(text)


def test_an_xml_schema_is_whole_in_its_text() -> None:
    whole = XSD.partition("<xs:element")[0]
    named = f'{whole}<xs:include schemaLocation="x.xsd"/></xs:schema>'
    with pytest.raises(SchemaError, match="xs:include"):
        MessageValidator(named)


def test_what_a_message_names_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("<item/>")
    validator = validator_of("<!ELEMENT order (#PCDATA|item)*><!ELEMENT item EMPTY>")
    body = f'<!DOCTYPE order [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]><order>&x;</order>'
    fault = validator.fault(body.encode())
    assert fault is None or "secret" not in fault.reason


def test_a_doorkeeper_validates_for_sources_that_ask_for_it() -> None:
    door = Doorkeeper(Limits())
    door.sources = {
        "strict": SourceEntry(DTD, 3, validated=True),
        "lax": SourceEntry(DTD, 1),
        "gone": SourceEntry(DTD, 1, withdrawn=True, validated=True),
        "broken": SourceEntry("<!ELEMENT", 1, validated=True),
    }
    asked = [
        PublishRequest(source, f"{source}{number}", body)
        for source in ("strict", "lax", "gone", "broken", "other")
        for number, body in enumerate([VALID, INVALID, b"<order"])
    ]
    refused = {}
    for answer in door(asked).values():
        assert isinstance(answer, NotTaken)
        refused[answer.message] = answer
    codes = {name: answer.code for name, answer in refused.items()}
    ill_formed = {name: codes.pop(name) for name in list(codes) if name.endswith("2")}
    assert len(ill_formed) == 5
    assert len(set(ill_formed.values())) == 1
    assert codes.pop("strict1") == "publication.invalid"
    assert set(codes) == {"broken0", "broken1"}
    told = refused["strict1"]
    assert "schema 3 of source 'strict'" in told.reason
    assert told.line in (1, 2)
    assert door.looks_long(asked[:1])
    assert not door.looks_long(asked[3:9])


def test_a_broker_refuses_what_is_invalid_and_takes_all_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    topology = tmp_path / "t.toml"
    topology.write_text('[network]\nlinks = [["a", "b"]]\n')
    network = LocalNetwork.write(load_topology(topology))
    (port,) = free_ports(1)
    file = network.directory / "a.toml"
    metrics = f'[broker]\nmetrics = "127.0.0.1:{port}"\n'
    text = file.read_text().replace("[broker]\n", metrics)
    file.write_text(f'{text}\n[[clients]]\nname = "shop"\n')
    (tmp_path / "orders.xsd").write_text(XSD)
    network.start(network.names, are_new=True)
    try:
        command = ["net", "register-source", "strict", "--schema", "orders.xsd"]
        made = CliRunner().invoke(
            build_app(), [*command, "--validate", "--at", "a", "--as", "shop"]
        )
        assert made.exit_code == 0, made.output
        listed = CliRunner().invoke(build_app(), ["net", "sources", "--at", "b"])
        assert '"validated":true' in listed.output.replace(" ", "")
        asyncio.run(_publish(network, port))
    finally:
        network.stop(network.names)


async def _publish(network: LocalNetwork, port: int) -> None:
    given: set[str] = set()

    async def read() -> None:
        async for told in followed(network, "b", DELIVERIES):
            if isinstance(told, InboxDelivery):
                given.add(told.message)

    reading = asyncio.create_task(read())
    async with network.operator("b") as subscriber:
        assert not await subscriber.subscribe_many([("all", DeliveryProfile("/order", "ids"))])
    async with network.client("a", "shop") as publisher:
        await publisher.ask(RegisterSourceRequest("lax", SourceEntry(XSD, 1)))
        for validated in (True, False):
            entry = SourceEntry("<!ELEMENT", 1, validated=validated)
            with pytest.raises(SchemaError):
                await publisher.ask(RegisterSourceRequest("broken", entry))
        await _publish_both(publisher, "first")
    async with httpx.AsyncClient() as client:
        shown = (await client.get(f"http://127.0.0.1:{port}/metrics")).text
    assert 'pathcast_refusals_total{code="publication.invalid"} 1.0' in shown
    await asyncio.to_thread(network.kill, "a")
    await asyncio.to_thread(network.start, ["a"])
    async with network.client("a", "shop") as publisher:
        await _publish_both(publisher, "again")
    expected = {
        f"{phase} {name}" for phase in ("first", "again") for name in ("valid", "lax", "lax valid")
    }
    await eventually(lambda: given >= expected)
    assert given == expected
    reading.cancel()


async def _publish_both(publisher: BrokerClient, phase: str) -> None:
    answers = await publisher.publish(
        [
            PublishRequest("strict", f"{phase} valid", VALID),
            PublishRequest("strict", f"{phase} invalid", INVALID),
            PublishRequest("lax", f"{phase} lax", INVALID),
            PublishRequest("lax", f"{phase} lax valid", VALID),
        ]
    )
    (refused,) = answers
    assert isinstance(refused, NotTaken)
    assert (refused.message, refused.code) == (f"{phase} invalid", "publication.invalid")
    assert refused.line in (1, 2)
