"""The registry: subscriptions come and go, every delivery says what it is, one subscriber's trouble
is nobody else's."""

from __future__ import annotations

import itertools
import signal
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from broker_engines import broker_engines
from oracles.engines import EngineName, made_by
from pathcast import Delivery, Query, Registry, Subscription
from pathcast.errors import (
    ConfigError,
    DuplicateQueryError,
    EvaluationBudgetError,
    QuerySyntaxError,
    ResultLimitError,
    UnknownQueryError,
    UnsupportedQueryError,
)
from pathcast.limits import Limits
from pathcast.message.canonical import canonical
from pathcast.model import DeliverMode
from pathcast.registry import delivery_id, message_id, subscription_version
from pathcast.registry.turns import Turns
from patience import PATIENCE_SECONDS

MESSAGE = (
    b"<bib><book year='1999'><title>Sand</title><price>20</price></book>"
    b"<book year='2001'><title>Gold &amp; Salt</title><price>90</price></book></bib>"
)
CHEAP = "for $b in //book where $b/price < 30 return <hit>{$b/title}</hit>"


def fragments(found: Any) -> list[bytes]:
    return [delivery.fragment for delivery in found]


def canonical_fragments(found: Any) -> list[bytes]:
    return [canonical(delivery.fragment) for delivery in found]


@broker_engines
class TestPublish:
    def test_a_flwr_delivers_what_its_return_clause_says(self, engine: EngineName) -> None:
        registry = made_by(engine, Registry)
        subscription = Subscription("s1", "ann", CHEAP)
        assert not registry.add(subscription).rejected
        version = subscription_version(subscription)
        (found,) = registry.deliver(MESSAGE, "m1")
        assert found == Delivery(
            delivery_id=delivery_id(version, "m1", 0),
            message_id="m1",
            subscription_id="s1",
            subscriber="ann",
            subscription_version=version,
            snapshot_version=registry.version,
            result_number=0,
            fragment=b"<hit><title>Sand</title></hit>",
        )

    def test_a_path_delivers_a_result_a_node_in_document_order(self, engine: EngineName) -> None:
        registry = made_by(engine, Registry)
        registry.add(Subscription("s1", "ann", "//book/title"))
        found = registry.deliver(MESSAGE)
        assert canonical_fragments(found) == [
            b"<title>Sand</title>",
            b"<title>Gold &amp; Salt</title>",
        ]
        assert [delivery.result_number for delivery in found] == [0, 1]
        assert len({delivery.delivery_id for delivery in found}) == 2

    def test_deliver_message_and_ids_are_one_delivery(self, engine: EngineName) -> None:
        registry = made_by(engine, Registry)
        registry.add(
            [
                Subscription("whole", "ann", "//book/title", "message"),
                Subscription("notice", "ann", "//book/title", "ids"),
                Subscription("filter", "ann", CHEAP, "message"),
                Subscription("scalar", "ann", "count(//book) = 2", "ids"),
                Subscription("no", "ann", "count(//book) = 3", "message"),
            ]
        )
        found = {delivery.subscription_id: delivery for delivery in registry.deliver(MESSAGE)}
        assert {name: delivery.fragment for name, delivery in found.items()} == {
            "whole": MESSAGE,
            "notice": None,
            "filter": MESSAGE,
            "scalar": None,
        }
        assert {delivery.result_number for delivery in found.values()} == {0}

    def test_a_message_without_an_id_is_named_by_its_bytes(self, engine: EngineName) -> None:
        # Otherwise a message that is published again after a crash would be delivered twice.
        registry = made_by(engine, Registry)
        registry.add(Subscription("s1", "ann", CHEAP))
        first, again = registry.deliver(MESSAGE), registry.deliver(bytearray(MESSAGE))
        assert first == again
        assert first[0].message_id == message_id(MESSAGE)

    def test_a_refused_message_is_an_answer(self, engine: EngineName) -> None:
        registry = made_by(engine, Registry)
        registry.add(Subscription("s1", "ann", CHEAP))
        found = registry.deliver(b"<bib>")
        assert len(found) == 0
        assert found.error is not None
        assert found.error.code == "xml.end"

    def test_prefixes_of_the_broker_and_of_the_subscription(self, engine: EngineName) -> None:
        registry = made_by(engine, Registry, namespaces={"b": "urn:b", "c": "urn:wrong"})
        registry.add(Subscription("s1", "ann", "//b:x/c:y", "ids", {"c": "urn:c"}))
        message = b"<x xmlns='urn:b'><y xmlns='urn:c'/></x>"
        assert [delivery.subscription_id for delivery in registry.deliver(message)] == ["s1"]
        assert registry.get("s1").namespaces == {"b": "urn:b", "c": "urn:c"}


@broker_engines
class TestVerdicts:
    """What one subscription cannot have must not take anything from the others."""

    def test_results_over_the_limit(self, engine: EngineName) -> None:
        message = b"<a>" + b"<b>0123456789</b>" * 600 + b"</a>"
        registry = made_by(engine, Registry, Limits(result_bytes_max=5_000))
        registry.add([Subscription("all", "ann", "//b"), Subscription("one", "bob", "//b[1]")])
        found = registry.deliver(message)
        assert fragments(found) == [b"<b>0123456789</b>"]
        error = found.verdicts["all"]
        assert isinstance(error, ResultLimitError)
        assert (error.code, error.params["maximum"]) == ("limit.result_bytes", 5_000)

    def test_results_over_the_ratio(self, engine: EngineName) -> None:
        message = b"<a>" + b"<b>0123456789</b>" * 60 + b"</a>"
        query = "for $x in //b for $y in //b return <p>{$x, $y}</p>"
        registry = made_by(engine, Registry)
        registry.add([Subscription("pairs", "ann", query), Subscription("one", "bob", "/a")])
        found = registry.deliver(message)
        assert [delivery.subscription_id for delivery in found] == ["one"]
        assert found.verdicts["pairs"].code == "limit.result_ratio"

    def test_steps(self, engine: EngineName) -> None:
        message = b"<a>" + b"<b/>" * 300 + b"</a>"
        query = "for $x in //b where count(//b[not(following::b/following::b = 'x')]) > 0 return $x"
        registry = made_by(engine, Registry, Limits(evaluation_steps_max=10_000))
        registry.add([Subscription("slow", "ann", query), Subscription("ok", "bob", "//b[3]")])
        found = registry.deliver(message)
        assert [delivery.subscription_id for delivery in found] == ["ok"]
        assert isinstance(found.verdicts["slow"], EvaluationBudgetError)

    def test_a_construction_that_xml_does_not_allow(self, engine: EngineName) -> None:
        query = "for $b in //book return <hit>{$b/title, $b/@year}</hit>"
        registry = made_by(engine, Registry)
        registry.add([Subscription("bad", "ann", query), Subscription("ok", "bob", CHEAP)])
        found = registry.deliver(MESSAGE)
        assert [delivery.subscription_id for delivery in found] == ["ok"]
        assert found.verdicts["bad"].code == "XQTY0024"


@broker_engines
class TestSubscribing:
    def test_a_bad_subscription_disturbs_no_other(self, engine: EngineName) -> None:
        registry = made_by(engine, Registry)
        report = registry.add(
            [
                Subscription("ok", "ann", CHEAP),
                Subscription("syntax", "ann", "for $b in //book retur $b"),
                Subscription("constant", "ann", "<a/>"),
                Subscription("scalar", "ann", "count(//a)"),
                Subscription("mode", "ann", "//a", "letter"),  # type: ignore[arg-type]
                Subscription("ok", "bob", "//b"),
            ]
        )
        assert report.accepted == 1
        assert {name: type(error) for name, error in report.rejected.items()} == {
            "syntax": QuerySyntaxError,
            "constant": UnsupportedQueryError,
            "scalar": UnsupportedQueryError,
            "mode": UnsupportedQueryError,
            "ok": DuplicateQueryError,
        }
        assert (len(registry), "ok" in registry, "syntax" in registry) == (1, True, False)
        assert registry.get("ok").subscriber == "ann"

    def test_an_id_that_is_taken_keeps_its_subscription(self, engine: EngineName) -> None:
        registry = made_by(engine, Registry)
        registry.add(Subscription("s1", "ann", "//a"))
        version = registry.version
        report = registry.add([Subscription("s1", "bob", "//b")])
        assert isinstance(report.rejected["s1"], DuplicateQueryError)
        assert registry.version == version
        assert registry.deliver(b"<a/>")[0].subscriber == "ann"

    def test_unsubscribe_takes_out_all_or_none(self, engine: EngineName) -> None:
        registry = made_by(engine, Registry)
        registry.add([Subscription("a", "ann", "//a"), Subscription("b", "ann", "//a")])
        version = registry.version
        with pytest.raises(UnknownQueryError):
            registry.remove(["a", "nobody"])
        assert (len(registry), registry.version) == (2, version)
        registry.remove("a")
        assert [delivery.subscription_id for delivery in registry.deliver(b"<a/>")] == ["b"]
        with pytest.raises(UnknownQueryError):
            registry.get("a")

    def test_an_id_may_come_again_with_another_query(self, engine: EngineName) -> None:
        registry = made_by(engine, Registry)
        registry.add(Subscription("s1", "ann", "//a"))
        first = registry.deliver(b"<a/>", "m")[0]
        registry.remove("s1")
        registry.add(Subscription("s1", "bob", "//b"))
        assert len(registry.deliver(b"<a/>")) == 0
        second = registry.deliver(b"<b/>", "m")[0]
        assert (first.subscriber, second.subscriber) == ("ann", "bob")
        assert first.delivery_id != second.delivery_id, "two deliveries would pass for one"

    def test_deliveries_are_readable_after_their_subscription_has_gone(
        self, engine: EngineName
    ) -> None:
        registry = made_by(engine, Registry)
        registry.add(Subscription("s1", "ann", "//a"))
        found = registry.deliver([b"<a/>"])
        registry.remove("s1")
        assert found.deliveries(0)[0].subscriber == "ann"
        assert found.table.column("subscription_id").to_pylist() == ["s1"]

    def test_the_version_is_that_of_the_content(self, engine: EngineName) -> None:
        one = [Subscription(f"s{i}", "ann", f"//a[{i + 1}]") for i in range(4)]
        seen = set()
        for order in itertools.permutations(one):
            registry = made_by(engine, Registry)
            registry.add(Subscription("x", "bob", CHEAP))
            registry.add(order)
            registry.remove("x")
            seen.add(registry.version)
        assert len(seen) == 1, "the version depends on the way to the content"

    @pytest.mark.parametrize(
        "change",
        [
            {"subscriber": "bob"},
            {"query": "//b"},
            {"deliver": "ids"},
            {"namespaces": {"p": "u"}},
            {"id": "s2"},
        ],
    )
    def test_every_part_of_a_subscription_is_in_the_version(
        self, engine: EngineName, change: dict[str, Any]
    ) -> None:
        # A part that is left out would let two different answers carry the same delivery id.
        versions = set()
        for subscription in (Subscription("s1", "ann", "//a"), Subscription("s1", "ann", "//a")):
            registry = made_by(engine, Registry)
            registry.add(subscription)
            versions.add(registry.version)
        assert len(versions) == 1
        registry = made_by(engine, Registry)
        registry.add(Subscription("s1", "ann", "//a")._replace(**change))
        assert registry.version not in versions

    def test_many_come_and_go(self, engine: EngineName) -> None:
        registry = made_by(engine, Registry)
        empty = registry.version
        many = [Subscription(f"s{i}", f"u{i % 7}", f"//a[@n='{i}']") for i in range(300)]
        registry.add(many)
        registry.remove(subscription.id for subscription in many)
        assert (len(registry), registry.version) == (0, empty)
        assert len(registry.deliver(b"<a n='3'/>")) == 0


class TestArguments:
    def test_what_is_no_subscription(self) -> None:
        registry = made_by("reference", Registry)
        report = registry.add([("s1", "ann", "//a")])  # type: ignore[list-item]
        assert report.rejected["row 0"].code == "row.type"
        report = registry.add([Subscription("s1", 7, "//a")])  # type: ignore[arg-type]
        assert report.rejected["s1"].code == "row.field"
        assert len(registry) == 0

    def test_settings_that_cannot_be_used(self) -> None:
        with pytest.raises(ConfigError):
            made_by("reference", Registry, threads=0)

    @pytest.mark.parametrize("ids", [["m1"], ["m1", "m2", "m3"]])
    def test_ids_that_do_not_fit_the_messages(self, ids: list[Any]) -> None:
        with pytest.raises(ConfigError):
            made_by("reference", Registry).deliver([b"<a/>", b"<a/>"], ids)


def test_the_plan_of_a_query_names_no_subscriber() -> None:
    registry = Registry()
    registry.add(Query("q1", "//a"))
    assert registry.explain("q1").to_text().splitlines()[0] == "q1: XPath, delivers a bare notice"


def test_the_cost_class_of_each_is_told() -> None:
    costs: dict[str, tuple[DeliverMode, str]] = {
        "for $a in //a where $a/@n > 1 return <r>{$a}</r>": ("fragment", "indexed"),
        "for $b in //b order by $b return <r>{$b}</r>": ("fragment", "candidate-checked"),
        "<r>{count(//b)}</r>": ("fragment", "scan"),
        "//a": ("fragment", "indexed"),
        "//a[last()]": ("fragment", "candidate-checked"),
        "//b[@n > 1]": ("ids", "indexed"),
        "//a/b | //c": ("message", "indexed"),
        "//b[last()]": ("ids", "candidate-checked"),
        "not(//a)": ("message", "scan"),
    }
    registry = Registry()
    rows = [Subscription(text, "ann", text, deliver) for text, (deliver, _) in costs.items()]
    assert not registry.add(rows).rejected
    told = {text: registry.explain(text).cost.value for text in costs}
    assert told == {text: cost for text, (_, cost) in costs.items()}
    with pytest.raises(UnknownQueryError):
        registry.explain("gone")


@broker_engines
def test_batches_and_changes_from_several_threads(engine: EngineName) -> None:
    # Every delivery has to carry the version of exactly the subscriptions that made it, and after
    # unsubscribe returns there must be none.
    registry = made_by(engine, Registry)
    registry.add(Subscription("stays", "ann", "//a"))
    without = registry.version
    registry.add(Subscription("goes", "bob", "//a"))
    with_it = registry.version
    registry.remove("goes")
    problems: list[str] = []
    is_done = threading.Event()
    messages = pa.array([b"<a/>"] * 20, pa.binary())

    def run(work: Callable[[], None]) -> Callable[[], None]:
        def guarded() -> None:
            try:
                work()
            except BaseException as error:  # reported by the assertion below
                problems.append(repr(error))

        return guarded

    def publish() -> None:
        while not is_done.is_set():
            table = registry.deliver(messages).table
            names = table.column("subscription_id").to_pylist()
            version = table.column("snapshot_version")[0].as_py()
            expected = {without: {"stays"}, with_it: {"stays", "goes"}}[version]
            if set(names) != expected or len(names) != 20 * len(expected):
                problems.append(f"{version}: {sorted(set(names))}")

    def change() -> None:
        for _ in range(60):
            registry.add(Subscription("goes", "bob", "//a"))
            registry.remove("goes")
            if len(registry.deliver(b"<a/>")) != 1:
                problems.append("delivered after unsubscribe")
        is_done.set()

    threads = [threading.Thread(target=run(work)) for work in (publish, publish, change)]
    for thread in threads:
        thread.start()
    threads[2].join(PATIENCE_SECONDS)
    is_done.set()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert not problems


def test_a_thread_that_has_a_turn_does_not_wait_for_itself() -> None:
    turns = Turns()
    refused = pytest.raises(RuntimeError, match="on the same thread")
    with turns.shared(), turns.shared(), refused, turns.alone():
        pass
    for inner in (turns.shared, turns.alone):
        with turns.alone(), refused, inner():
            pass
    # A second share of one thread goes past a change that waits for the first.
    changed = threading.Event()

    def change() -> None:
        with turns.alone():
            changed.set()

    thread = threading.Thread(target=change)
    with turns.shared():
        thread.start()
        while not turns._queue:
            threading.Event().wait(0.001)
        with turns.shared():
            assert not changed.is_set()
        assert not changed.is_set()
    thread.join(PATIENCE_SECONDS)
    assert changed.is_set()


def test_the_handler_of_a_signal_is_refused_what_would_wait_for_its_own_thread() -> None:
    registry = Registry(threads=1)
    told: list[str] = []

    def add(*_: object) -> None:
        try:
            registry.freeze()
        except RuntimeError as error:
            told.append(str(error))
        signal.setitimer(signal.ITIMER_REAL, 0.001)

    handler = signal.signal(signal.SIGALRM, add)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.001)
        while not told:
            registry.update([Query(str(number), f"/a/b{number}") for number in range(2_000)])
    finally:
        # Nothing that is under way begins it again, and an alarm would end the process.
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    assert "on the same thread" in told[0]


def test_whoever_wants_to_be_alone_is_not_kept_waiting_for_ever() -> None:
    turns = Turns()
    order: list[str] = []
    first_in, may_leave = threading.Event(), threading.Event()

    def first() -> None:
        with turns.shared():
            first_in.set()
            may_leave.wait(PATIENCE_SECONDS)
        order.append("first")

    def alone() -> None:
        with turns.alone():
            order.append("alone")

    def late() -> None:
        with turns.shared():
            order.append("late")

    threads = [threading.Thread(target=first), threading.Thread(target=alone)]
    threads[0].start()
    assert first_in.wait(PATIENCE_SECONDS)
    threads[1].start()
    while not turns._queue:
        threading.Event().wait(0.001)
    threads.append(threading.Thread(target=late))
    threads[2].start()
    threading.Event().wait(0.05)
    assert order == [], "someone went past"
    may_leave.set()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert order.index("alone") < order.index("late")
