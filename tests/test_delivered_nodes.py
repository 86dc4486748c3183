"""Which nodes of a message a query gives, told instead of their text.

The nodes must be those whose text `deliver="fragment"` gives, their numbers those of the papers'
trees and of lxml, and the bytes between start and end, read again, the node.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import pytest
from lxml import etree

from generators import random_expression, random_message, random_query
from generators.alphabet import ALPHABET_WITH_NAMESPACES, Alphabet
from generators.message_text import MessageShape, in_some_encoding
from generators.query_text import LINEAR
from oracles.engines import ENGINES, EngineName, made_by
from pathcast import Registry, Snapshot
from pathcast.engine import carried_mode
from pathcast.errors import PathcastError, UnsupportedQueryError
from pathcast.kernel import parse
from pathcast.limits import Limits
from pathcast.model import DeliveredNode, Subscription
from pathcast.overlay.content import DeliveryProfile
from pathcast.overlay.local_plan import XmlProfiles
from pathcast.registry.deliveries import NODES_SCHEMA
from pathcast.registry.subscription_files import subscription_of
from pathcast.registry.subscription_rows import read_rows
from pathcast.store import ProfileRecord
from pathcast.store.records import check_record
from test_restructuring import BOUND
from test_steps import drawn, messages_of

pytest.importorskip("pathcast_kernel", reason="the native kernel is not installed")

SPACED: Final = ALPHABET_WITH_NAMESPACES
SHAPE: Final = MessageShape(has_markup=True, has_defaults=True)
GENEROUS: Final = Limits(result_ratio_max=1_000_000)
FLWRS: Final = (
    "for $x in {0} return $x",
    "for $x in {0} where $x/@x return $x/@*",
    "for $x in {0} return $x/text()",
    "for $x in {0} order by string($x) descending return ($x, $x/..)",
    "let $x := {0} return if (count($x) > 1) then reverse($x) else $x//comment()",
    "({0}, //comment()[2], /)",
    "{0} ! (. | @y)",
    "for $x at $n in {0} return subsequence(($x, $x/*), $n, 1)",
)
"""Programs over a path that give nodes of the message only."""

Found: TypeAlias = dict[tuple[int, str], list[tuple[str, int]]]


def registry_of(
    rows: Sequence[Subscription], engine: EngineName = "kernel", limits: Limits = GENEROUS
) -> Registry:
    registry = made_by(engine, Registry, limits, SPACED.namespaces, threads=1)
    report = registry.add(rows)
    assert not report.errors, report.errors
    return registry


def nodes_of(registry: Registry, messages: Sequence[bytes]) -> Found:
    """Message and subscription -> kind and number of each node, in the order of the results."""
    batch = registry.deliver(messages)
    found: Found = {}
    for row in batch.nodes.to_pylist():
        nodes = found.setdefault((row["row"], row["subscription_id"]), [])
        assert row["result_number"] == len(nodes)
        nodes.append((row["kind"], row["node_number"]))
    return found


def texts(rng: random.Random, count: int, alphabet: Alphabet) -> Iterator[str]:
    """Queries of every kind that give nodes."""
    while count > 0:
        path = random_query(rng, alphabet)
        ways = (
            path,
            f"{path}/@* | {path}/text() | //comment() | //processing-instruction()",
            random_expression(rng, alphabet),
            rng.choice(FLWRS).format(path),
        )
        text = rng.choice(ways)
        if not Registry(namespaces=alphabet.namespaces).add([nodes(text)]).errors:
            yield text
            count -= 1


def nodes(text: str, id: str = "q") -> Subscription:
    return Subscription(id, "ann", text, "nodes")


def check_span(message: bytes, node: DeliveredNode) -> bool:
    """Compares the bytes of a node with the tree of the message; whether there are any."""
    tree = parse(message, Limits())
    if node.start is None or node.end is None:
        assert node.start is node.end
        return False
    piece = message[node.start : node.end]
    match node.kind:
        case "text":
            assert piece.decode() == tree.text_value[node.number]
        case "attribute":
            assert piece.decode() == tree.attribute_value[node.number]
        case "document":
            assert piece == message
        case "element":
            assert piece[:1] == b"<"
            assert piece[-1:] == b">"
            end = tree.element_end[node.number]
            around = f"<w {declarations(message, node.number)}>".encode()
            again = parse(subset_of(message) + around + piece + b"</w>", Limits())
            assert again.name[1:] == tree.name[node.number : end]
            inside = slice(tree.text_start[node.number], tree.text_end[node.number])
            assert again.text_value == tree.text_value[inside]
            attributes = slice(tree.attribute_start[node.number], tree.attribute_start[end])
            assert again.attribute_value == tree.attribute_value[attributes]
        case _:
            raise AssertionError(f"a {node.kind} lies nowhere")
    return True


def declarations(message: bytes, element: int) -> str:
    """The namespaces in scope around an element."""
    root = etree.fromstring(message, etree.XMLParser(recover=True))
    around = [*root.iter("*")][element].nsmap
    names = {f"xmlns:{prefix}" if prefix else "xmlns": uri for prefix, uri in around.items()}
    return " ".join(f"{name}='{uri}'" for name, uri in names.items() if name != "xmlns:xml")


def subset_of(message: bytes) -> bytes:
    """The document type declaration, of which an element may need the entities."""
    start = message.find(b"<!DOCTYPE")
    if start < 0:
        return b""
    declaration = message[start : message.index(b"]>", start) + 2]
    return b"<!DOCTYPE w " + declaration[declaration.index(b"[") :]


def check(seed: int, alphabet: Alphabet) -> tuple[int, int]:
    """One batch of queries and messages; how many nodes there were, and how many lie somewhere."""
    rng = random.Random(seed)
    asked = [nodes(text, f"q{n}") for n, text in enumerate(texts(rng, 12, alphabet))]
    messages = [random_message(rng, alphabet, SHAPE) for _ in range(6)]
    messages[-1] = in_some_encoding(rng, messages[-1])
    registry = registry_of(asked)
    found = nodes_of(registry, messages)
    assert found == nodes_of(registry_of(asked, "reference"), messages)
    assert found == nodes_of(registry_of(asked, "nfa"), messages)
    texts_of = registry_of([each._replace(deliver="fragment") for each in asked])
    results = texts_of.deliver(messages).numbers.to_pylist()
    ids = texts_of.deliver(messages).subscription_ids
    counted: dict[tuple[int, str], int] = {}
    for row in results:
        at = row["row"], ids[row["subscription"]]
        counted[at] = counted.get(at, 0) + 1
    assert counted == {at: len(each) for at, each in found.items()}
    satisfied = [set(each.query_ids) for each in registry.match(messages)]
    assert satisfied == [{name for at, name in found if at == row} for row in range(6)]
    total = known = 0
    for row, message in enumerate(messages[:-1]):
        for delivery in registry.deliver(message):
            assert delivery.node is not None
            total += 1
            known += check_span(message, delivery.node)
        assert row < 6
    return total, known


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(n, marks=pytest.mark.nightly) for n in range(12, 400))]
)
def test_nodes_are_those_of_the_papers_and_lie_where_it_is_said(seed: int) -> None:
    alphabet = SPACED if seed % 2 else Alphabet()
    total, known = check(seed, alphabet)
    assert total > 10
    assert known > 0


@pytest.mark.parametrize("seed", range(6))
def test_elements_are_those_of_lxml(seed: int) -> None:
    rng = random.Random(seed)
    paths = {f"q{n}": random_query(rng, SPACED, LINEAR) for n in range(20)}
    registry = registry_of([nodes(text, name) for name, text in paths.items()])
    shape = MessageShape(has_markup=True, has_dtd=False)
    messages = [random_message(rng, SPACED, shape) for _ in range(8)]
    found = nodes_of(registry, messages)
    expected: Found = {}
    for row, message in enumerate(messages):
        root = etree.fromstring(message).getroottree()
        number = {element: at for at, element in enumerate(root.iter("*"))}
        for name, text in paths.items():
            path = "/" * (text[0] not in "/$") + text.removeprefix("$msg")
            selected = root.xpath(path, namespaces=dict(SPACED.namespaces))
            assert isinstance(selected, list)
            elements = [("element", number[each]) for each in selected if each in number]
            if elements:
                expected[row, name] = elements
    assert {at: each for at, each in found.items() if each[0][0] == "element"} == expected
    assert len(expected) > 10


MESSAGE: Final = b"<m><a n='1'>x</a><a n='22'/><!--c--><a><b>y</b></a></m>"


def test_a_batch_is_a_table_and_a_delivery_says_its_node() -> None:
    rows = [nodes("//a"), Subscription("f", "bob", "//b"), nodes("//a/@n", "n")]
    registry = registry_of(rows)
    batch = registry.deliver([b"<m>", MESSAGE, None, b"<m/>", MESSAGE], list("01234"))
    table = batch.nodes
    assert table.schema == NODES_SCHEMA
    ids = batch.subscription_ids
    assert table["subscription_id"].chunk(0).indices.to_pylist() == [
        ids.index(name) for name in ["q", "q", "q", "n", "n"] * 2
    ]
    assert [row["row"] for row in table.to_pylist()] == [1] * 5 + [4] * 5
    assert [MESSAGE[row["start"] : row["end"]] for row in table.to_pylist()[:5]] == [
        *(b"<a n='1'>x</a>", b"<a n='22'/>", b"<a><b>y</b></a>"),
        *(b"1", b"22"),
    ]
    # The table of all deliveries is as ever, without fragments for nodes.
    assert len(batch) == len(batch.table) == 12
    assert batch.table["fragment"].null_count == 10
    assert batch.table["fragment"].chunk(0).dictionary.to_pylist() == [b"<b>y</b>"]
    assert batch.stats.result_bytes == 10 * 16 + 2 * len(b"<b>y</b>")
    told = {(each.subscription_id, each.result_number): each.node for each in batch.deliveries(1)}
    assert told["q", 1] == DeliveredNode("element", 2, 17, 28)
    assert told["n", 0] == DeliveredNode("attribute", 0, 9, 10)
    assert told["f", 0] is None
    again = pickle.loads(pickle.dumps(batch))
    assert again.nodes == table
    assert again.table == batch.table
    assert again.deliveries(1) == batch.deliveries(1)
    assert registry_of([rows[1]]).deliver([MESSAGE]).nodes.num_rows == 0


PLACES: Final[Mapping[str, tuple[bytes, list[bytes | None]]]] = {
    "a byte order mark": (b"\xef\xbb\xbf<a><b/></a>", [b"<a><b/></a>", b"<b/>"]),
    "another encoding": (
        "<?xml version='1.0' encoding='latin-1'?><a>\u00e9<b/></a>".encode("latin-1"),
        [None, None, None],
    ),
    "an entity": (
        b"<!DOCTYPE a [<!ENTITY e '<b>t</b>'>]><a><b/>&e;</a>",
        [b"<a><b/>&e;</a>", b"<b/>", None, None],
    ),
    "text of an entity": (b"<!DOCTYPE a [<!ENTITY e 't'>]><a>&e;</a>", [b"<a>&e;</a>", None]),
    "a default": (b"<!DOCTYPE a [<!ATTLIST a x CDATA 'd'>]><a/>", [b"<a/>", None]),
    "a reference": (
        b"<a x='&lt;' y='v'>&amp;</a>",
        [b"<a x='&lt;' y='v'>&amp;</a>", None, b"v", None],
    ),
    "a line end": (b"<a>1\r\n2</a>", [b"<a>1\r\n2</a>", None]),
    "a section": (b"<a><![CDATA[<1>]]></a>", [b"<a><![CDATA[<1>]]></a>", b"<1>"]),
    "an empty value": (b"<a x=''/>", [b"<a x=''/>", b""]),
}


@pytest.mark.parametrize("name", PLACES)
def test_nodes_that_are_not_in_the_bytes_lie_nowhere(name: str) -> None:
    message, expected = PLACES[name]
    registry = registry_of([nodes("//* | //@* | //text()")])
    spans = [each.node for each in registry.deliver(message)]
    found = [
        None if node is None or node.start is None else message[node.start : node.end]
        for node in spans
    ]
    assert found == expected


REFUSED: Final = (
    *("count(//a)", "//a = 1", "string(//a)", "<r>{//a}</r>", "for $a in //a return <r/>"),
    *("(//a, 1)", "for $a at $n in //a return $n", "data(//a)", "for $a in //a return string($a)"),
    *("let $n := //a/@n return max($n)", "if (//a) then //b else 'none'", "//a ! string(.)"),
    *("(//a, <r>{//b}</r>)", "for $a in (//a, 2) return $a", "reverse((//a, 'x'))"),
)


@pytest.mark.parametrize("text", REFUSED)
def test_what_may_be_no_node_of_the_message_is_refused(text: str) -> None:
    errors: list[PathcastError] = []
    for engine in ENGINES:
        with pytest.raises(UnsupportedQueryError) as caught:
            made_by(engine, Registry).add(nodes(text))
        errors.append(caught.value)
    assert {error.code for error in errors} == {"subscription.nodes"}
    assert len({str(error) for error in errors}) == 1
    assert "give the nodes as they are" in str(errors[0])


@pytest.mark.parametrize("seed", range(4))
def test_engines_refuse_the_same_programs(seed: int) -> None:
    rng, refused = random.Random(seed), 0
    for _ in range(80):
        path = random_query(rng)
        inner = rng.choice(FLWRS).format(path)
        text = rng.choice(
            (
                *(f"<r>{{{inner}}}</r>", f"({inner}, {path})", f"count(({inner}))", inner),
                f"for $o in ({inner}) return $o | $o/..",
                f"let $o := ({inner}, 1) return $o",
                f"insert-before(({inner}), 1, ({path}, <x/>))",
            )
        )
        said = {
            report.errors[0].code if report.errors else None
            for report in (made_by(name, Registry).add([nodes(text)]) for name in ENGINES)
        }
        assert len(said) == 1, text
        refused += said == {"subscription.nodes"}
    assert 10 < refused < 70


@pytest.mark.parametrize("engine", ENGINES)
def test_places_have_limits(engine: EngineName) -> None:
    message = b"<m>" + b"<a/>" * 300 + b"</m>"
    for text in ("//a", "//a[last() > 1]", "for $a in //a order by $a return $a"):
        few = registry_of([nodes(text)], engine, Limits(result_bytes_max=300 * 16))
        assert len(few.deliver(message)) == 300
        many = registry_of([nodes(text)], engine, Limits(result_bytes_max=300 * 16 - 1))
        answer = many.deliver(message)
        assert not answer
        assert answer.verdicts["q"].code == "limit.result_bytes"


@pytest.mark.parametrize("engine", ENGINES)
def test_nodes_after_steps_are_those_of_the_changed_message(engine: EngineName) -> None:
    rng, told = random.Random("nodes"), 0
    for _ in range(3):
        asked = [each for each in drawn(rng, 30) if "<" not in each.query]
        asked = [each for each in asked if not each.query.startswith(("count", "not"))]
        messages = messages_of(rng, 4)
        registry = made_by(engine, Registry, namespaces=BOUND)
        registry.add([each._replace(deliver="nodes") for each in asked])
        texts_of = made_by("reference", Registry, namespaces=BOUND)
        texts_of.add([each._replace(deliver="fragment") for each in asked])
        found, expected = registry.deliver(messages), texts_of.deliver(messages)
        keys = ("subscription_id", "result_number")
        wanted = [[row[key] for key in keys] for row in expected.table.to_pylist()]
        assert [[row[key] for key in keys] for row in found.table.to_pylist()] == wanted
        assert found.nodes.num_rows == len(wanted)
        stepped = {each.id for each in asked if each.steps}
        for row in found.nodes.to_pylist():
            told += row["subscription_id"] in stepped
            assert row["subscription_id"] not in stepped or row["start"] is None
        plain = made_by("reference", Registry, namespaces=BOUND)
        plain.add([each._replace(deliver="nodes") for each in asked])
        columns = ["row", "subscription_id", "result_number", "kind", "node_number"]
        assert (
            found.nodes.select(columns).to_pylist()
            == plain.deliver(messages).nodes.select(columns).to_pylist()
        )
    assert told > 20


def restored(registry: Registry, path: Path) -> Registry:
    registry.freeze().save(path)
    return Registry.of(Snapshot.open(path))


def test_a_snapshot_delivers_nodes_and_changes_go_on_from_there(tmp_path: Path) -> None:
    rng = random.Random("frozen nodes")
    asked = [nodes(text, f"q{n:02}") for n, text in enumerate(texts(rng, 30, SPACED))]
    asked[::4] = [each._replace(deliver="fragment") for each in asked[::4]]
    messages = [random_message(rng, SPACED, SHAPE) for _ in range(5)]
    registry = registry_of(asked)
    opened = restored(registry, tmp_path / "s")
    assert nodes_of(opened, messages) == nodes_of(registry, messages)
    assert opened.get("q01") == registry.get("q01")
    assert opened.get("q01").deliver == "nodes"
    for each in (registry, opened):
        each.remove([row.id for row in asked[:7]])
        each.add([nodes("//a/@x", "new"), nodes("//b", "newer")])
    fresh = registry_of([*asked[7:], nodes("//a/@x", "new"), nodes("//b", "newer")])
    assert nodes_of(opened, messages) == nodes_of(registry, messages) == nodes_of(fresh, messages)
    again = restored(opened, tmp_path / "again")
    assert nodes_of(again, messages) == nodes_of(fresh, messages)
    assert nodes_of(fresh, messages)


def test_explain_says_that_places_are_delivered() -> None:
    registry = registry_of([nodes("//a")])
    assert "delivers places of nodes" in registry.explain("q").to_text()
    assert registry.explain("q").plan[-1] == "deliver the places of the nodes"


def test_nothing_but_a_registry_carries_places(tmp_path: Path) -> None:
    asked = nodes("//a")
    table = tmp_path / "s.tsv"
    table.write_text("subscriber\tquery_id\tquery\tdeliver\nann\tq\t//a\tnodes\n")
    (rejected,) = read_rows(table, "ids").rejected
    assert rejected.error.code == "subscription.deliver"
    with pytest.raises(PathcastError, match="not one of fragment, message, ids"):
        subscription_of("(: @deliver nodes :) //a", Path("q.xq"))
    with pytest.raises(UnsupportedQueryError, match='a Registry takes "nodes" too'):
        carried_mode(asked.deliver)
    profile = DeliveryProfile("//a", cast("Any", "nodes"))
    with pytest.raises(UnsupportedQueryError, match='a Registry takes "nodes" too'):
        XmlProfiles().entries(profile)
    with pytest.raises(PathcastError):
        check_record(ProfileRecord("q", "ann", "//a", cast("Any", "nodes")))
