"""Early projection: what is cut out of a message changes no result behind the link.

Generated profiles and batches; the oracle is a registry that sees the messages whole.
"""

from __future__ import annotations

import random
from typing import Final
from xml.parsers import expat

import pytest

from broker_engines import missing
from oracles.engines import made_by
from pathcast import Registry, Subscription
from pathcast.errors import PathcastError, UnsupportedQueryError
from pathcast.limits import Limits
from pathcast.model import DeliverMode
from pathcast.overlay.projection import SELECTS_MAX, Offer, Offers, Projections, common, offer_of
from pathcast.query.syntax import NameTest
from pathcast.registry.selector import Select, Selector

pytestmark = pytest.mark.skipif(missing("kernel") is not None, reason=str(missing("kernel")))

NAMES: Final = ("a", "b", "c", "n:d")


def subtree(rng: random.Random, depth: int) -> str:
    name = rng.choice(NAMES)
    attributes = "".join(f" {x}='{rng.randrange(3)}'" for x in ("x", "y") if rng.random() < 0.4)
    if rng.random() < 0.1:
        attributes += " xmlns:n='urn:other'"
    inside = "".join(
        subtree(rng, depth - 1)
        if depth and rng.random() < 0.3
        else rng.choice(["0", "1", "2", "<!--a-->", "<![CDATA[<b>1</b>]]>"])
        for _ in range(rng.randrange(3))
    )
    return f"<{name}{attributes}>{inside}</{name}>" if inside else f"<{name}{attributes} />"


def batch_message(rng: random.Random) -> bytes:
    """Units within one or two elements, and things around them."""
    groups = []
    for _ in range(rng.choice([1, 1, 2])):
        units = "".join(subtree(rng, 3) for _ in range(rng.randrange(6)))
        groups.append(f"<group x='{rng.randrange(2)}'>\n {units} t</group>")
    text = f"<batch xmlns:n='urn:n' y='1'>{subtree(rng, 1)}{''.join(groups)}</batch><!-- e -->"
    if rng.random() < 0.1:
        return ("<!DOCTYPE batch [<!ENTITY e '<a><b>1</b></a>'>]>" + text).encode()
    if rng.random() < 0.05:
        return text.encode("utf-16")
    return (b"\xef\xbb\xbf" if rng.random() < 0.1 else b"") + text.encode()


def relative(rng: random.Random) -> str:
    steps = "/".join(rng.choice([*NAMES, "*"]) for _ in range(rng.randrange(1, 3)))
    return steps + rng.choice(["", "", "/@x", "/text()"])


def condition(rng: random.Random, of: str = "") -> str:
    compared = rng.choice(["", " = '1'", " > 0", " != '2'"])
    return of + rng.choice([relative(rng), "@x", "@y"]) + compared


def profile(rng: random.Random, number: int) -> Subscription:
    head = rng.choice(["/batch/group", "/batch/group", "/batch[@y = 1]/group[@x = '1']", "/batch"])
    axis = rng.choice(["/", "/", "/", "//"])
    binding = f"{head}{axis}{rng.choice(NAMES)}"
    if rng.random() < 0.3:
        binding += f"[{condition(rng)}]"
    if rng.random() < 0.2:
        binding += f"/{rng.choice(NAMES)}"
    deliver: DeliverMode = rng.choice(["fragment", "fragment", "ids"])
    text = binding
    if rng.random() < 0.6:
        where = f" where {condition(rng, '$v/')}" if rng.random() < 0.7 else ""
        made = rng.choice(["$v", f"<hit>{{$v/{relative(rng)}}}</hit>", f"$v/{relative(rng)}"])
        text = f"for $v in {binding}{where} return {made}"
        if made.startswith("<") and rng.random() < 0.3:
            text = f"<all>{{{text}}}</all>"
    return Subscription(f"s{number}", "ann", text, deliver, {"n": "urn:n"})


def deliveries(registry: Registry, messages: list[bytes | None], ids: list[str]) -> list[object]:
    batch = registry.deliver(messages, ids)
    rows = [
        (row["message_id"], row["subscription_id"], row["result_number"], row["fragment"])
        for row in batch.table.to_pylist()
    ]
    return sorted(rows, key=repr)


def check(seed: int, engine: str) -> tuple[int, int]:
    """One population behind a link; says how many bytes there were, and how many went over it."""
    rng = random.Random(seed)
    profiles = [profile(rng, number) for number in range(rng.randrange(1, 8))]
    registry = made_by(engine, Registry, threads=1)
    registry.add(profiles)
    offer = common(offer_of(each) for each in profiles)
    messages = [batch_message(rng) for _ in range(6)]
    ids = [f"m{n}" for n in range(len(messages))]
    sent = made_by(engine, Projections, {"link": offer}).project(messages, "link")
    assert deliveries(registry, sent, ids) == deliveries(registry, list(messages), ids), seed
    if offer is None:
        assert sent == messages
        return 0, 0
    # What is left to do on what has been done is nothing.
    again = made_by(engine, Projections, {"link": offer}).project([m for m in sent if m], "link")
    assert again == [m for m in sent if m]
    return sum(map(len, messages)), sum(len(m) for m in sent if m is not None)


@pytest.mark.parametrize("engine", ["kernel", "nfa"])
def test_results_are_those_of_whole_messages(engine: str) -> None:
    sizes = [check(seed, engine) for seed in range(150)]
    whole, sent = sum(size for size, _ in sizes), sum(size for _, size in sizes)
    assert whole > 50_000, "too few populations have something to offer"
    assert sent < 0.8 * whole, "too little is cut for the test to say anything"


@pytest.mark.nightly
def test_results_are_those_of_whole_messages_at_length() -> None:
    for seed in range(1_000, 9_000):
        check(seed, "kernel")


def test_what_is_left_of_a_parents_offer_is_the_childrens() -> None:
    """A message that was cut for all children, cut for a child, gives what the message gives."""
    told = 0
    for seed in range(80):
        rng = random.Random(seed)
        profiles = {
            name: [profile(rng, n) for n in range(rng.randrange(1, 3))] for name in ("east", "west")
        }
        offers = {name: common(map(offer_of, profiles[name])) for name in profiles}
        above = common(offers.values())
        if above is None:
            continue
        told += 1
        messages = [batch_message(rng) for _ in range(4)]
        ids = [f"m{n}" for n in range(4)]
        parent = Projections({"up": above}).project(messages, "up")
        wanted = [row for row, message in enumerate(parent) if message is not None]
        links = Projections(offers)
        every = links.project_all([m or b"" for m in parent], dict.fromkeys(offers, wanted))
        for name, sent in every.items():
            registry = Registry(threads=1)
            registry.add(profiles[name])
            got = deliveries(registry, sent, [ids[row] for row in wanted])
            assert got == deliveries(registry, list(messages), ids), seed
    assert told > 20


@pytest.mark.parametrize(
    "text",
    [
        "/batch/group/a[2]",
        "for $v at $i in /batch/a return $v",
        "for $v in /batch/a return <n>{count(/batch/a)}</n>",
        "for $v in /batch/a return $v/..",
        "for $v in /batch[a = 1]/b return $v",
        "for $v in /batch[text() = 'x']/b return $v",
        "count(/batch/a) > 3",
        "//a",
        "/*/a",
        "/batch",
        "/batch/a | /batch/b",
        "/batch/a/following-sibling::b",
    ],
)
def test_what_looks_beyond_a_unit_offers_nothing(text: str) -> None:
    deliver: DeliverMode = "ids" if text.startswith("count") else "fragment"
    assert offer_of(Subscription("s", "ann", text, deliver)) is None


def test_who_gets_the_message_needs_it_whole() -> None:
    assert offer_of(Subscription("s", "ann", "/batch/a", "message")) is None


def test_offers_come_and_go() -> None:
    told = Offers()
    assert told.offer is None
    one, two = (offer_of(Subscription("s", "ann", text)) for text in ("/b/c/d", "/b/c/e[x = 1]"))
    assert one is not None
    assert two is not None
    for each in (one, two, one):
        told.add(each)
    assert told.offer == Offer((NameTest("", "b"), NameTest("", "c")), one.selects | two.selects)
    told.add(None)
    assert told.offer is None
    told.remove(None)
    told.remove(two)
    assert told.offer == one
    told.remove(one)
    assert told.offer == one
    told.remove(one)
    assert told.offer is None


def test_too_many_queries_are_no_offer() -> None:
    told = Offers()
    for number in range(SELECTS_MAX + 1):
        told.add(offer_of(Subscription("s", "ann", f"/b/c[@n = {number}]")))
    assert told.offer is None


def test_an_offer_that_makes_no_sense_is_refused() -> None:
    unit = (NameTest("", "b"), NameTest("", "c"))
    for query, error in (("/b/[", PathcastError), ("<a>{/b/c}</a>", UnsupportedQueryError)):
        with pytest.raises(error):
            Projections({"link": Offer(unit, frozenset([Select(query)]))})


def spans_by_expat(message: bytes, name: str) -> list[tuple[int, int]]:
    """Start and end of the elements of a name; attribute values have no `>` in these messages."""
    found, open_at = [], []
    parser = expat.ParserCreate()

    def start(tag: str, _: object) -> None:
        open_at.append(parser.CurrentByteIndex)

    def end(tag: str) -> None:
        begin = open_at.pop()
        if tag == name:
            after_tag = message.index(b">", begin) + 1
            is_empty = message[after_tag - 2 : after_tag] == b"/>"
            after = message.index(b">", parser.CurrentByteIndex) + 1 if not is_empty else after_tag
            found.append((begin, after))

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.Parse(message, True)
    return sorted(found)


@pytest.mark.parametrize("engine", ["kernel", "nfa"])
def test_places_are_those_of_expat(engine: str) -> None:
    rng = random.Random(7)
    messages = [batch_message(rng) for _ in range(200)]
    messages = [m for m in messages if m[:2] not in (b"\xff\xfe", b"\xef\xbb")]
    # A path of the shared plans, one that is evaluated by itself, a FLWR.
    texts = ("//a", "//b[count(.) = 1]", "for $v in //c return $v")
    spans = made_by(engine, Selector, [Select(text) for text in texts]).spans(messages)
    assert not spans.unknown
    for row, message in enumerate(messages):
        for query, name in enumerate("abc"):
            assert spans.of(row, query) == spans_by_expat(message, name), message
    mark = b"\xef\xbb\xbf"
    shifted = made_by(engine, Selector, [Select("//a")]).spans(
        [mark + message for message in messages[:9]]
    )
    assert [shifted.of(row, 0) for row in range(9)] == [
        [(start + 3, end + 3) for start, end in spans.of(row, 0)] for row in range(9)
    ]


def test_places_that_are_not_known() -> None:
    entity = b"<!DOCTYPE a [<!ENTITY e '<c/>'>]><a><c/>&e;</a>"
    latin = "<?xml version='1.0' encoding='latin-1'?><a>\u00e9<c/></a>".encode("latin-1")
    messages = [b"<a", latin, entity, b"<a b='1'><c/></a>", None]
    spans = Selector([Select("//c"), Select("/a/@b")]).spans(messages)
    assert {row: type(why).__name__ for row, why in spans.unknown.items()} == {
        0: "IllFormedMessageError",
        1: "NoneType",
        2: "NoneType",
        3: "NoneType",
    }
    assert spans.of(2, 0)[0] == (36, 40)
    costly = Selector([Select("//c[count(//c) > 0]")], limits=Limits(evaluation_steps_max=1))
    assert type(costly.spans([b"<a><c/></a>"]).unknown[0]).__name__ == "EvaluationBudgetError"
