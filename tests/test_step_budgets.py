"""What steps of subscriptions may cost a message: one budget over all series, and bounded texts."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from broker_engines import broker_engines, missing
from oracles.engines import EngineName, made_by
from pathcast import Registry, Subscription
from pathcast.errors import PathcastError
from pathcast.limits import KIB, MIB, STEP_SERIES_MAX, Limits
from pathcast.model import DeliverMode
from pathcast.overlay.cutting import LinkCuts, cut_entry
from pathcast.registry.restructuring import Restructuring
from pathcast.registry.steps import parse_steps
from pathcast_papers.evaluation.tags import START_TAG

SERIES = 24


def asked(number: int, deliver: DeliverMode = "ids") -> Subscription:
    """One of subscriptions that have different steps, in the order of their numbers."""
    steps = (f"rename //image i{number:03}",)
    return Subscription(f"s{number}", "ann", "/news/list", deliver, steps=steps)


def message(size: int) -> bytes:
    return b"<news><image/><list/>%s</news>" % (b"x" * size)


def answered(registry: Registry, texts: list[bytes]) -> list[dict[str, str]]:
    """For each message, subscription -> "" or the code of its verdict."""
    found: list[dict[str, str]] = [{} for _ in texts]
    batch = registry.deliver(texts)
    for at in range(len(texts)):
        deliveries = batch.deliveries(at)
        found[at] = {each.subscription_id: "" for each in deliveries}
        found[at] |= {name: error.code for name, error in deliveries.verdicts.items()}
    told: list[dict[str, str]] = [{} for _ in texts]
    for row, name, _, _ in batch.results:
        told[row][name] = ""
    for row, name, error in batch.undecided:
        told[row][name] = error.code
    assert told == found
    return found


def check_served(engine: EngineName, limits: Limits, deliver: DeliverMode, code: str) -> None:
    """Series are served in order until the budget is used up, whatever came first."""
    rng = random.Random(7)
    outcomes = []
    for _ in range(2):
        registry = made_by(engine, Registry, limits)
        rows = [asked(number, deliver) for number in range(SERIES)]
        rng.shuffle(rows)
        plain = Subscription("plain", "bob", "/news", "ids")
        assert not registry.add([*rows, plain]).rejected
        short, long = message(10), message(20_000)
        found = answered(registry, [short, long, short])
        assert found[0] == found[2]
        assert set(found[0].values()) == {""}
        assert len(found[0]) == SERIES + 1
        assert found[1].pop("plain") == ""
        outcome = [found[1][f"s{number}"] for number in range(SERIES)]
        assert answered(registry, [long])[0] | {"plain": ""} == found[1] | {"plain": ""}
        outcomes.append(outcome)
    assert outcomes[0] == outcomes[1]
    served = outcomes[0].count("")
    assert 1 < served < SERIES - 1
    assert outcomes[0] == [""] * served + [code] * (SERIES - served)


@broker_engines
def test_the_steps_of_a_message_are_for_all_series_together(engine: EngineName) -> None:
    # What one series takes of the long message is about 1,000.
    check_served(engine, Limits(message_steps_max=10_000), "ids", "limit.message_steps")


@broker_engines
def test_the_counted_steps_are_those_of_the_budget(engine: EngineName) -> None:
    """A message that may take the steps that were counted is served, with fewer it is not."""

    def taken(limits: Limits | None) -> tuple[int, int]:
        registry = made_by(engine, Registry, limits)
        registry.add([asked(number) for number in range(SERIES)])
        stats = registry.deliver([message(20_000)]).stats
        return stats.steps, stats.verdicts

    steps, undecided = taken(None)
    assert undecided == 0
    # Of the last text, the steps that exceed the budget are told too late.
    assert taken(Limits(message_steps_max=steps + 10)) == (steps, 0)
    assert taken(Limits(message_steps_max=steps * 9 // 10))[1] > 0


@broker_engines
def test_the_result_bytes_of_a_message_are_for_all_series_together(engine: EngineName) -> None:
    limits = Limits(message_result_bytes_max=100_000)
    check_served(engine, limits, "message", "limit.message_result_bytes")


@broker_engines
def test_there_are_no_more_series_than_a_broker_keeps(engine: EngineName) -> None:
    registry = made_by(engine, Registry)
    report = registry.add([asked(number) for number in range(STEP_SERIES_MAX + 2)])
    assert [error.code for error in report.rejected.values()] == ["subscription.step_series"] * 2
    same = asked(0)._replace(id="same")
    assert registry.add(same).accepted == 1
    registry.remove("s1")
    assert registry.add(asked(STEP_SERIES_MAX)).accepted == 1
    assert registry.add([asked(STEP_SERIES_MAX + 1)]).rejected
    found = answered(registry, [message(1)])[0]
    assert set(found.values()) == {""}
    assert len(found) == STEP_SERIES_MAX + 1


@broker_engines
def test_a_refused_row_replaces_none_where_no_series_is_left(engine: EngineName) -> None:
    registry = made_by(engine, Registry)
    registry.add([asked(number) for number in range(STEP_SERIES_MAX)])
    version = registry.version
    unreadable = asked(0)._replace(query="/news/")
    another = asked(STEP_SERIES_MAX)
    for rows in ([another, unreadable], [unreadable, another]):
        report = registry.update(rows)
        assert report.rejected["s0"].code == "XPST0003"
        assert report.rejected[another.id].code == "subscription.step_series"
        assert registry.version == version
    report = registry.update([another._replace(id="s0"), unreadable._replace(id="s1"), asked(0)])
    assert list(report.errors) == [1, 2]
    assert report.errors[2].code == "query.duplicate"
    assert registry.get("s0").steps == another.steps
    assert registry.get("s1") == asked(1)


@broker_engines
def test_a_row_may_replace_where_one_of_its_id_was_refused_before(engine: EngineName) -> None:
    registry = made_by(engine, Registry)
    registry.add([asked(0), asked(1)._replace(steps=())])
    for id in ("s0", "s1"):
        rows = [Subscription(id, "ann", query, "ids") for query in ("/a/", "/a", "/b")]
        report = registry.update(rows)
        assert list(report.errors) == [0, 2]
        assert registry.get(id).query == "/a"


@broker_engines
@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(message_bytes_max=2 * MIB, result_ratio_max=10_000), "limit.message_bytes"),
        (Limits(), "limit.steps_ratio"),
    ],
)
def test_a_message_that_grows_is_refused_before_it_is_made(
    engine: EngineName, limits: Limits, code: str
) -> None:
    name = "i" * 4_000
    step = parse_steps([f"rename //image {name}"])
    grows = b"<news>%s</news>" % (b"<image/>" * 20_000)
    restructuring = made_by(engine, Restructuring, step, limits)
    restructuring.apply([message(1)])
    tracemalloc.start()
    try:
        refused, small = restructuring.apply([grows, message(1)])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(refused, PathcastError)
    assert refused.code == code
    assert small == b"<news><%s/><list/>x</news>" % name.encode()
    # What it would have become has 80 MB.
    assert peak < 60 * MIB


def test_reading_a_tag_takes_no_memory_for_its_blanks() -> None:
    tag = b"<a%sb='%s' />" % (b" " * 2_000_000, b"x" * 100_000)
    tracemalloc.start()
    try:
        found = START_TAG.match(tag)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found is not None
    assert found.end() == len(tag)
    assert peak < 64 * KIB


@pytest.mark.skipif(missing("kernel") is not None, reason=str(missing("kernel")))
def test_links_share_the_steps_of_a_message() -> None:
    """A link that they do not suffice for is sent the message as it came, for others to do them."""
    came = message(20_000)
    names = [f"link{number:03}" for number in range(SERIES)]

    def sent(limits: Limits | None) -> list[int]:
        cuts = LinkCuts(limits=limits)
        for number, name in enumerate(names):
            one = asked(number, "message")
            cuts.update(name, [cut_entry(one, parse_steps(one.steps))], [])
        given = cuts.cut([came], {name: [0] for name in names})
        ones = [given[name][0] for name in names]
        assert all(one is not None and (one.steps or one.body == came) for one in ones)
        return [one.steps for one in ones if one is not None]

    assert sent(None) == [1] * SERIES
    done = sent(Limits(message_steps_max=10_000))
    assert 1 < sum(done) < SERIES - 1
    assert done == sorted(done, reverse=True)
