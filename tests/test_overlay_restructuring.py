"""Networks that restructure messages on their way give what one process does with them whole."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

import pytest

from oracles.engines import EngineName, made_by

pytest.importorskip("msgspec")

from broker_engines import broker_engines, missing
from pathcast import Registry, Subscription
from pathcast.errors import PathcastError, QuerySyntaxError
from pathcast.overlay.broker_node import NodeSettings
from pathcast.overlay.broker_settings import Trees
from pathcast.overlay.content import LOCAL, DeliveryProfile, Results, Sent, Verdict
from pathcast.overlay.cutting import WHOLE, EntryNeeds, LinkCuts, ToldCuts, cut_entry, needs_in
from pathcast.overlay.local_plan import XmlProfiles
from pathcast.overlay.messages import Forward, SessionFrame
from pathcast.overlay.xml_content import XmlInterests, xml_content
from pathcast.registry.restructuring import Restructuring
from pathcast.registry.steps import EditStep, parse_steps
from pathcast.workload.documents import generate_documents
from pathcast.workload.domains import DOMAINS
from pathcast_lab.sim.ablations import without
from pathcast_lab.sim.broker_model import BrokerModel, Publish, Subscribe
from pathcast_lab.sim.broker_scenarios import random_scenario, stepped_toy_profile
from pathcast_lab.sim.broker_world import BrokerWorld, Scenario, Violation
from pathcast_lab.sim.from_scratch import from_scratch
from pathcast_lab.sim.interleavings import WrongOrder, explore
from shared_data import SHARED_DATA
from test_overlay_network import LINE, batch_body, batch_profile
from test_restructuring import BOUND, element, random_steps

NEEDS_KERNEL = pytest.mark.skipif(missing("kernel") is not None, reason=str(missing("kernel")))


def busy_scenario(seed: int) -> Scenario:
    """Subscriptions, most of them with steps, come and go while messages are under way."""
    return random_scenario(
        seed, seconds=12.0, steps_a_second=6.0, disasters=0.15, profile=stepped_toy_profile
    )


class Watch:
    """Counts messages on links that steps were done to."""

    def __init__(self) -> None:
        self.restructured = 0

    def __call__(self, message: object) -> object:
        for said in message.payloads if isinstance(message, SessionFrame) else ():
            if isinstance(said, Forward):
                self.restructured += sum(one.steps > 0 for one in said.messages)
        return message


def restructured_on_the_way(seeds: range) -> int:
    watch = Watch()
    for seed in seeds:
        BrokerWorld(busy_scenario(seed), seed, through=watch).run()
    return watch.restructured


def test_a_network_that_restructures_messages_is_one_process() -> None:
    assert restructured_on_the_way(range(20)) > 70


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(1000, 5000, 500))
def test_a_network_that_restructures_messages_is_one_process_at_length(first: int) -> None:
    assert restructured_on_the_way(range(first, first + 500)) > 3_000


@pytest.mark.parametrize("name", ["steps", "consider"])
def test_what_keeps_it_right_is_missed(name: str) -> None:
    with without(name):
        for seed in range(120):
            try:
                BrokerWorld(busy_scenario(seed), seed).run()
            except Violation:
                return
    pytest.fail("no seed misses it")


STEPPED: list[Subscribe | Publish] = [
    Subscribe("c", "s1", "4:3,1:4>a*"),
    Subscribe("c", "s2", "4:3>a*"),
    Publish("a", b"4 1 m1"),
]


def test_every_order_in_which_steps_are_found_and_found_to_be_too_many() -> None:
    assert explore(BrokerModel(LINE, list(STEPPED))).states > 100


@pytest.mark.parametrize("name", ["steps", "consider"])
def test_some_order_shows_what_keeps_it_right(name: str) -> None:
    with without(name), pytest.raises(WrongOrder, match="is given"):
        explore(BrokerModel(LINE, list(STEPPED)))


@pytest.mark.nightly
@pytest.mark.parametrize("trees", ["spanning", "broadcast"])
@pytest.mark.parametrize("second", ["b", "c"])
def test_every_order_of_two_messages_that_are_restructured(trees: Trees, second: str) -> None:
    one, _, message = STEPPED
    todo = [one, Subscribe(second, "s2", "4:3>a*"), message, Publish("b", b"1 4 m2")]
    assert explore(BrokerModel(LINE, todo, trees=trees)).states > 1000


# XML.

SERIES = (
    (),
    ("drop //d",),
    ("drop //d", "rename //b c"),
    ("drop //d", "rename //b c", "unwrap /r/a/c"),
    ("drop //d", "unwrap //c"),
    ("rename /r/a b", "rename /r/c a"),
)


def stepped_profile(draw: random.Random) -> str:
    """Of batches, after steps of which several have some in common; as text of a scenario."""
    steps = draw.choice([*SERIES, *SERIES[1:4]])
    deliver = draw.choice(["fragment", "fragment", "message"])
    return "\n".join([deliver, *steps, batch_profile(draw)])


def read(text: str) -> DeliveryProfile:
    deliver, *steps, query = text.splitlines()
    return DeliveryProfile(query, deliver, steps=tuple(steps))  # type: ignore[arg-type]


def stepped_body(draw: random.Random) -> str:
    """A batch, with elements here and there that a step drops."""
    body = batch_body(draw)
    return body.replace("<b>", "<b><d>drop me, who am in the way</d>").replace("<c>2", "<c><d/>2")


@cache
def on_the_whole(body: bytes, text: str) -> Results:
    """What the reference engine gives for the message that all the steps make of it."""
    asked = read(text)
    [made] = Restructuring(parse_steps(asked.steps)).apply([body])
    assert isinstance(made, bytes)
    plain, registry = made_by("reference", Registry), made_by("reference", Registry)
    plain.add(Subscription("s", "s", asked.query, asked.deliver))
    registry.add(Subscription("s", "s", asked.query, asked.deliver, steps=asked.steps))
    found = plain.deliver([made]).table["fragment"]
    assert found == registry.deliver([body]).table["fragment"]
    return tuple(found.to_pylist())


def stepped_batches(seeds: range, seconds: float) -> tuple[int, int]:
    """Runs of brokers that restructure and cut batches; messages that were, and bytes left out."""
    watch, saved = Watch(), 0
    for seed in seeds:
        scenario = random_scenario(
            seed,
            seconds=seconds,
            steps_a_second=3.0,
            disasters=0.2,
            profile=stepped_profile,
            body=stepped_body,
        )
        world = BrokerWorld(
            scenario,
            seed,
            content=xml_content(),
            results=on_the_whole,
            profile=read,
            through=watch,
            settings=NodeSettings(format=["text", "zstd"][seed % 2]),
        ).run()
        for name in world.brokers:
            for plane in world.node(name).broker.planes.values():
                assert isinstance(plane.interests, XmlInterests)
                saved += sum(plane.interests.saved.values())
    return watch.restructured, saved


@NEEDS_KERNEL
def test_batches_that_are_restructured_give_what_the_batches_give() -> None:
    restructured, saved = stepped_batches(range(4), seconds=12.0)
    assert restructured > 10
    assert saved > 200


@NEEDS_KERNEL
@pytest.mark.nightly
@pytest.mark.parametrize("first", range(1000, 1200, 25))
def test_batches_that_are_restructured_give_what_the_batches_give_at_length(first: int) -> None:
    restructured, saved = stepped_batches(range(first, first + 25), seconds=20.0)
    assert restructured > 150
    assert saved > 3_000


# What brokers tell each other of steps, and do on their links.


def entry(*steps: str, query: str = "", deliver: str = "fragment") -> str:
    asked = Subscription("s", "s", query or "/r/a[@k]", deliver)  # type: ignore[arg-type]
    return cut_entry(asked, parse_steps(steps))


@NEEDS_KERNEL
def test_an_entry_says_steps_and_what_is_left_after_them() -> None:
    steps = parse_steps(["drop //d", "rename //b c"])
    assert needs_in(entry("drop //d", "rename //b c", deliver="message")) == EntryNeeds(steps, None)
    offer = needs_in(entry()).offer
    assert offer is not None
    assert needs_in(entry("drop //d", "rename //b c")) == EntryNeeds(steps, offer)
    # Profiles that bind other prefixes beside have the step in common.
    one, two = ({"p": "urn:p", "q": "urn:q"}, {"p": "urn:p"})
    assert parse_steps(["drop //p:d"], one) == parse_steps(["drop //p:d"], two)
    assert parse_steps(["drop //p:d"], {"p": "urn:other"}) != parse_steps(["drop //p:d"], two)


@NEEDS_KERNEL
@pytest.mark.parametrize(
    "steps",
    [
        '[{"edit":"move","path":"//a"}]',
        '[{"edit":"drop","path":"//a["}]',
        '[{"edit":"drop","path":"count(//a)"}]',
        '[{"edit":"drop","path":"//a","name":"b"}]',
        '[{"edit":"rename","path":"//a"}]',
        '[{"edit":"rename","path":"//a","name":"b c"}]',
        '[{"edit":"drop","path":"//a"}' + ',{"edit":"drop","path":"//a"}' * 64 + "]",
    ],
)
def test_steps_of_a_neighbour_that_are_none_are_refused(steps: str) -> None:
    tables = XmlInterests()
    with pytest.raises(PathcastError):
        tables.check(['{"type":"whole","steps":' + steps + "}"])
    tables.check([entry("drop //d")])


def told_of(entries: set[str], is_plain: bool) -> set[str]:
    """What is told of entries, from scratch and in other words."""
    needs = [needs_in(one) for one in entries]
    series = {one.steps for one in needs}
    if is_plain and series - {()}:
        return {WHOLE}
    if all(one.offer for one in needs):
        return entries
    shared: list[EditStep] = []
    for steps in zip(*series, strict=False):
        if len(set(steps)) > 1:
            break
        shared.append(steps[0])
    return {entry(*map(str, shared), deliver="message")}


@NEEDS_KERNEL
@pytest.mark.parametrize("seed", range(6))
def test_deltas_of_steps_come_to_what_is_told_from_scratch(seed: int) -> None:
    draw = random.Random(seed)
    told, heard = ToldCuts(plain=["z"]), dict[str, set[str]]()
    series = [(), ("drop //d",), ("drop //d", "rename //b c"), ("drop //d", "unwrap //c")]
    queries = ["/r/a[@k]", "/r/b[a]"]
    pool = [entry(*steps, query=query) for steps in series for query in queries]
    pool += [entry(*steps, deliver="message") for steps in series]
    behind: dict[str, set[str]] = {}
    own: list[str] = []
    alone = shared = 0
    for _ in range(300):
        if draw.random() < 0.1:
            names = draw.sample("wxyz", draw.randint(0, 4))
            behind = {name: behind.get(name, set()) for name in names}
            heard = {name: heard.get(name, set()) for name in names}
            deltas = told.set_neighbours(names)
        else:
            origin = draw.choice([LOCAL, *sorted(behind)])
            few = pool if draw.random() < 0.5 else draw.choice([pool[2:4], pool[4:6]])
            added = draw.sample(few, draw.choice([0, 1, 1, 2]))
            if origin == LOCAL:
                removed = draw.sample(own, min(len(own), draw.randint(0, 4)))
                own += added
                for one in removed:
                    own.remove(one)
            else:
                removed = [one for one in sorted(behind[origin]) if draw.random() < 0.5]
                behind[origin] = (behind[origin] | set(added)) - set(removed)
            deltas = told.update(origin, added, removed)
        for name, delta in deltas.items():
            assert not set(delta.added) & heard[name]
            assert set(delta.removed) <= heard[name]
            heard[name] = (heard[name] | set(delta.added)) - set(delta.removed)
        assert from_scratch(told) == heard
        for name, known in heard.items():
            others = set(own).union(*(behind[one] for one in behind if one != name))
            assert known == told_of(others, name == "z")
            alone += len(known) > 1
            shared += len(others) > 1 and len(known) == 1 and known != {WHOLE}
    assert alone > 5
    assert shared > 5


def words(*names: str) -> bytes:
    return (
        b"<r>"
        + b"".join(b"<%b k='1'><d/>text</%b>" % (n, n) for n in map(str.encode, names))
        + b"</r>"
    )


@NEEDS_KERNEL
def test_links_do_the_steps_that_all_behind_them_begin_with() -> None:
    cuts = LinkCuts()
    useless = b"<a>no k</a>"
    body = words("a", "b").replace(b"</r>", useless + b"</r>")
    less = body.replace(b"<d/>", b"")
    renamed = less.replace(b"<b ", b"<c ").replace(b"</b>", b"</c>")
    one, both = ("drop //d",), ("drop //d", "rename //b c")

    def sent(done: int = 0, text: bytes = body) -> Sent | None:
        return cuts.cut([text], {"east": [0]}, [done])["east"][0]

    assert sent() == Sent(body)
    cuts.update("east", [entry(*both, deliver="message")], [])
    assert sent() == Sent(renamed, 2)
    assert sent(1, less) == Sent(renamed, 2)
    assert cuts.is_cutting("east")
    cuts.update("east", [entry(*one, deliver="message")], [])
    assert sent() == Sent(less, 1)
    # Who is behind wants fewer steps by now than were done to it: it is theirs no more.
    assert sent(2, renamed) == Sent(renamed, 2)
    cuts.update("east", [WHOLE], [])
    assert sent() == Sent(body)
    assert not cuts.is_cutting("east")
    # After the same steps it is cut as well; and not where more are to come.
    cuts.update("east", [entry(*both)], [WHOLE, entry(*one, deliver="message")])
    cuts.update("east", [], [entry(*both, deliver="message")])
    assert sent() == Sent(renamed.replace(useless, b""), 2)
    # Where another has the first of the steps only, what either has use for stays.
    cuts.update("east", [entry(*one, query="/r/a[e]")], [])
    assert sent() == Sent(less.replace(useless, b""), 1)
    kept = b"<a>of use to one<e/></a>"
    assert sent(0, body.replace(useless, kept)) == Sent(less.replace(useless, kept), 1)
    # A step that asks for more than names is to see everything.
    cuts.update("east", [entry("drop //d", "drop //a[last()]")], [])
    assert sent() == Sent(less, 1)
    assert cuts.saved["east"] > 0


UNIT_QUERIES: Final = (
    *("/top/a", "/top/b[@x = '1']", "/top/c/b", "/top/a[b]", "/top/b[c = '1']//e"),
    *("/top/e[@y]/*", "/top/a/b[. = '12']", "for $v in /top/c where $v/@x > 0 return $v/a"),
    *("for $v in /top/a where $v//b = '1' return <hit>{$v/@y}</hit>", "/top/b/a/c"),
)


def check_mixed(seed: int) -> int:
    """Profiles that begin differently behind one link; how many bytes were cut out for them."""
    draw = random.Random(seed)
    series = [(), *(tuple(random_steps(draw, draws_plain=True)) for _ in range(2))]
    begin = draw.choice([(), series[1][:1]])
    cuts, plan = LinkCuts(), XmlProfiles()
    for number in range(draw.randrange(2, 5)):
        steps = (*begin, *draw.choice(series))
        query, deliver = draw.choice(UNIT_QUERIES), draw.choice(["fragment", "ids"])
        bound = tuple(BOUND.items())
        asked = DeliveryProfile(query, deliver, bound, tuple(map(str, steps)))  # type: ignore[arg-type]
        subscription = Subscription("s", "s", query, deliver, BOUND)  # type: ignore[arg-type]
        cuts.update("east", [cut_entry(subscription, steps)], [])
        plan.add(f"p{number}", asked)
    messages = [text.encode() for text in (element(draw, 3, "top") for _ in range(12))]
    sent = cuts.cut(messages, {"east": range(len(messages))})["east"]
    left = [one or Sent(b"<nothing/>", len(begin)) for one in sent]
    found = plan.answers([one.body for one in left], [one.steps for one in left])
    expected = plan.answers(messages)
    for row, one in enumerate(sent):
        given = {} if one is None else found[row]
        assert given == expected[row], (seed, messages[row], one)
    return sum(cuts.saved.values())


@NEEDS_KERNEL
@pytest.mark.parametrize(
    "seeds", [range(150), pytest.param(range(150, 8_000), marks=pytest.mark.nightly)]
)
def test_profiles_that_begin_differently_get_what_whole_messages_give(seeds: range) -> None:
    saved = [check_mixed(seed) for seed in seeds]
    assert sum(map(bool, saved)) > len(seeds) // 4


@NEEDS_KERNEL
def test_a_message_that_steps_cannot_be_done_to_goes_as_it_came() -> None:
    cuts = LinkCuts()
    cuts.update("east", [entry("drop //a")], [])
    entity = b"<!DOCTYPE r [<!ENTITY e '<a/>'>]><r>&e;<b/></r>"
    foreign = words("a").decode().encode("utf-16")
    assert cuts.cut([entity, foreign, words("b")], {"east": [0, 1, 2]})["east"] == [
        Sent(entity),
        Sent(foreign),
        None,
    ]


@NEEDS_KERNEL
def test_a_neighbour_that_is_to_have_messages_whole_is_told_no_steps() -> None:
    tables = xml_content(whole_links=["west"]).interests()
    tables.set_neighbours(["east", "west"])
    steps = entry("drop //d", deliver="message")
    tables.update(LOCAL, [steps, "//a"], [])
    assert tables.told("east") == {steps, "//a"}
    assert tables.told("west") == {WHOLE, "//a"}
    for name in ("east", "west"):
        tables.update(name, [steps, "//a"], [])
    made = tables.cut([words("a")], {"east": [0], "west": [0]})
    assert made == {"east": [Sent(words("a").replace(b"<d/>", b""), 1)], "west": [Sent(words("a"))]}


# The local plan.


@NEEDS_KERNEL
def test_a_host_does_what_is_left_of_the_steps() -> None:
    plan = XmlProfiles()
    steps = ("drop //d", "rename //b c", "unwrap //a")
    whole = words("a", "b")
    messages = [whole]
    for count in range(1, 4):
        [made] = Restructuring(parse_steps(steps[:count])).apply([whole])
        assert isinstance(made, bytes)
        messages.append(made)
    plan.add("all", DeliveryProfile("/r/c", "message", steps=steps))
    plan.add("first", DeliveryProfile("/r/b/@k", "fragment", steps=steps[:1]))
    plan.add("none", DeliveryProfile("/r/b[d]", "message"))
    found = plan.answers(messages, [0, 1, 2, 3])
    assert [one.get("all") for one in found] == [(messages[3],)] * 4
    assert [one.get("first") for one in found[:2]] == [(b"1",)] * 2
    assert found[0]["none"] == (whole,)
    plan.remove("all")
    plan.remove("first")
    assert plan.answers(messages, [0, 1, 2, 3])[0] == {"none": (whole,)}


@NEEDS_KERNEL
def test_a_message_that_steps_cannot_be_done_to_is_undecided_for_those_it_may_concern() -> None:
    plan = XmlProfiles()
    plan.add("s", DeliveryProfile("/r/b", "ids", steps=("drop //a",)))
    plan.add("elsewhere", DeliveryProfile("/other", "ids", steps=("drop //a",)))
    plan.add("plain", DeliveryProfile("/r/b", "ids"))
    entity = b"<!DOCTYPE r [<!ENTITY e '<a/>'>]><r>&e;<b/></r>"
    nobodys = b"<!DOCTYPE q [<!ENTITY e '<a/>'>]><q>&e;</q>"
    found = plan.answers([entity, nobodys, b"<r><a/><b/></r>", b"<r>"])
    assert isinstance(verdict := found[0]["s"], Verdict)
    assert verdict.code == "message.unreadable"
    assert found[0]["plain"] == ()
    assert found[1] == {}
    assert found[2] == {"plain": (), "s": ()}
    assert {type(one) for one in found[3].values()} == {Verdict}


def real_messages() -> list[bytes]:
    """Messages of the domains, and real ones where these are at hand."""
    taken = XmlProfiles()
    taken.add("any", DeliveryProfile("//*", "ids"))
    messages = [
        message
        for name in sorted(DOMAINS)
        for message in generate_documents(
            DOMAINS[name].graph(), DOMAINS[name].documents(count=8, seed=7)
        )
    ]
    docs = SHARED_DATA / "docs"
    files = sorted(docs.rglob("*.xml"))[::60] if docs.exists() else []
    messages += [data for file in files if len(data := file.read_bytes()) < 200_000]
    answers = taken.answers(messages)
    return [one for one, each in zip(messages, answers, strict=True) if each == {"any": ()}]


def drawn_profile(draw: random.Random, names: list[str], message: bytes) -> DeliveryProfile:
    """About elements of these names, some of which come of a renaming; with steps."""

    def path() -> str:
        first, second = draw.choices([*names, "made"], k=2)
        return draw.choice([f"//{first}", f"//{first}", f"//{first}/*", f"//{first}//{second}"])

    made = []
    for _ in range(draw.randint(1, 3)):
        made.append(
            draw.choice(["drop {}", "unwrap {}", "rename {} made"]).format(
                f"//{draw.choice(names)}"
            )
        )
    condition = draw.choice(["", "", "", f"[{draw.choice(names)}]", "[contains(., 'a')]"])
    deliver = draw.choice(["fragment", "message", "ids"])
    default = re.search(rb"\sxmlns=[\"']([^\"']+)", message)
    bound = (("", default[1].decode()),) if default else ()
    return DeliveryProfile(path() + condition, deliver, bound, tuple(made))  # type: ignore[arg-type]


@NEEDS_KERNEL
def test_real_messages_that_were_restructured_give_what_the_whole_ones_give() -> None:
    draw = random.Random(4)
    given = restructured = 0
    for message in real_messages():
        names = sorted({name.decode() for name in re.findall(rb"<([A-Za-z]\w*)[\s/>]", message)})
        if len(names) < 3:
            continue
        for _ in range(3):
            profile = drawn_profile(draw, names, message)
            plan, tables = XmlProfiles(), XmlInterests()
            plan.add("s", profile)
            [whole] = plan.answers([message])
            for count in range(len(profile.steps) + 1):
                # Behind the link is another one, with whom it shares the first steps.
                other = DeliveryProfile("//nothing", "message", steps=profile.steps[:count])
                tables.set_neighbours(["east"])
                tables.update("east", plan.entries(profile) + plan.entries(other), [])
                sent: Sequence[Sent | None] = []
                if "east" in tables.route([message])[0]:
                    sent = tables.cut([message], {"east": [0]})["east"]
                found: Mapping[str, Results | Verdict] = {}
                for one in filter(None, sent):
                    [found] = plan.answers([one.body], [one.steps])
                    restructured += one.steps > 0
                assert found == whole, (profile, count)
                given += bool(found)
                tables.set_neighbours([])
    assert given > 30
    assert restructured > 30


@broker_engines
def test_what_is_no_step_is_no_profile(engine: EngineName) -> None:
    plan = made_by(engine, XmlProfiles)
    with pytest.raises(QuerySyntaxError):
        plan.entries(DeliveryProfile("/a", steps=("move //b",)))
    with pytest.raises(QuerySyntaxError):
        plan.add("s", DeliveryProfile("/a", steps=("move //b",)))
    assert plan.answers([b"<a/>"]) == [{}]
