"""The reference engine of customised delivery: every subscription on every message.

If these fail, the broker with `engine="reference"` delivers something wrong or takes a neighbour
down, and the kernel's answers are compared with something wrong.
"""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from flwr_cases import flwr_groups
from generators import VOCABULARIES, FlwrWidth, random_flwr, random_flwr_message
from oracles.paths import lets_pass
from pathcast.errors import (
    ConstructionError,
    EvaluationBudgetError,
    MessageError,
    ResultLimitError,
    UnknownQueryError,
)
from pathcast.kernel.registry import DeliveryAnswer
from pathcast.limits import Limits
from pathcast.model import BatchStats, DeliverMode, Subscription
from pathcast.query import compile_subscription
from pathcast_papers.message_broker.dissemination import ReferenceDissemination

MESSAGE = b"<a k='1'><b>1</b><b>2</b><c/></a>"


def engine(
    *queries: str, deliver: DeliverMode = "fragment", limits: Limits | None = None
) -> ReferenceDissemination:
    """An engine with subscriptions q0, q1 and so on."""
    made = ReferenceDissemination(limits or Limits())
    report = made.subscribe(
        [Subscription(f"q{n}", "desk", query, deliver) for n, query in enumerate(queries)], {}
    )
    assert report.rejected == {}
    return made


def fragments(answer: DeliveryAnswer) -> dict[tuple[int, str], list[bytes | None]]:
    """Message and subscription id -> what is delivered, in the order of the rows."""
    pool = answer.fragments.to_pylist()
    found: dict[tuple[int, str], list[bytes | None]] = {}
    for row in answer.rows.to_pylist():
        own = found.setdefault((row["message"], answer.subscription_ids[row["subscription"]]), [])
        assert row["result"] == len(own)
        own.append(None if row["fragment"] is None else pool[row["fragment"]])
    return found


QUERIES = ("//b", "<o>{//b[. > 1]}</o>", "for $b in //b return $b/text()", "//d", "//@k")


def test_fragments() -> None:
    answer = engine(*QUERIES).process(pa.array([MESSAGE, None, b"<a><b/></a>"]))
    assert fragments(answer) == {
        (0, "q0"): [b"<b>1</b>", b"<b>2</b>"],
        (0, "q1"): [b"<o><b>2</b></o>"],
        (0, "q2"): [b"1", b"2"],
        (0, "q4"): [b"1"],
        (2, "q0"): [b"<b/>"],
    }
    # Equal results of one message are there once.
    assert (
        len(answer.fragments) == len({b"<b>1</b>", b"<b>2</b>", b"<o><b>2</b></o>", b"1", b"2"}) + 1
    )
    assert answer.fragments.type == pa.large_binary()


def test_the_message_itself_and_notices() -> None:
    messages = pa.array([MESSAGE, b"<?xml version='1.0'?>\n<a><b/></a>"], pa.large_binary())
    expected = {(0, "q0"), (0, "q1"), (0, "q2"), (0, "q4"), (1, "q0")}
    whole = fragments(engine(*QUERIES, deliver="message").process(messages))
    assert whole == {pair: [messages[pair[0]].as_py()] for pair in expected}
    notices = fragments(engine(*QUERIES, deliver="ids").process(messages))
    assert notices == {pair: [None] for pair in expected}
    truths = engine("count(//b) = 2", "//b = 2", "string(//b)", deliver="ids")
    assert {pair[1] for pair in fragments(truths.process(messages[:1]))} == {"q0", "q1", "q2"}


def test_a_path_keeps_the_meaning_of_xpath_1() -> None:
    """XQuery compares texts as texts: "10" < "9"."""
    message = pa.array([b"<r><a x='10'/><b x='9'/></r>"])
    found = fragments(
        engine("//a[@x < //b/@x]", "for $a in //a[@x < //b/@x] return $a").process(message)
    )
    assert set(found) == {(0, "q1")}


def test_errors_do_not_disturb_neighbours() -> None:
    product = "for $x in //b, $y in //b, $z in //b, $w in //b return $x"
    queries = ("//b[1]", product, "<o>x{//@k}</o>", "<o>{//b, //b, //b}</o>", "//c")
    messages = pa.array([MESSAGE, b"<broken>", b"<a>" + b"<b>1</b>" * 30 + b"<c k='2'/></a>", None])
    made = engine(*queries, limits=Limits(evaluation_steps_max=5000, result_bytes_max=500))
    answer = made.process(messages)
    ((refused, error),) = answer.refusals
    assert refused == 1
    assert isinstance(error, MessageError)
    assert [(message, number, type(error)) for message, number, error in answer.verdicts] == [
        (0, 2, ConstructionError),
        (2, 1, EvaluationBudgetError),
        (2, 2, ConstructionError),
        (2, 3, ResultLimitError),
    ]
    assert [error.params["id"] for _, _, error in answer.verdicts] == ["q2", "q1", "q2", "q3"]
    found = fragments(answer)
    assert set(found) == {(0, "q0"), (0, "q1"), (0, "q3"), (0, "q4"), (2, "q0"), (2, "q4")}
    assert len(found[0, "q1"]) == 16


def test_paths_have_budget_and_limits_too() -> None:
    message = pa.array([b"<a>" + b"<b>text</b>" * 300 + b"</a>"])
    deep = "//b[count(following::b) > count(preceding::b)]"
    for deliver in ("fragment", "message", "ids"):
        answer = engine(
            deep, "//a", deliver=deliver, limits=Limits(evaluation_steps_max=5000)
        ).process(message)
        assert [type(error) for _, _, error in answer.verdicts] == [EvaluationBudgetError]
        assert [error.params["id"] for _, _, error in answer.verdicts] == ["q0"]
        assert set(fragments(answer)) == {(0, "q1")}
    answer = engine("//b", "//b[1]", limits=Limits(result_bytes_max=100)).process(message)
    assert [type(error) for _, _, error in answer.verdicts] == [ResultLimitError]
    assert set(fragments(answer)) == {(0, "q1")}
    # The message as it arrived is no result that was built.
    answer = engine("//b", deliver="message", limits=Limits(result_bytes_max=100)).process(message)
    assert fragments(answer) == {(0, "q0"): [message[0].as_py()]}


def test_subscriptions_come_and_go() -> None:
    made = engine("//b", "//c", "//d")
    message = pa.array([MESSAGE])
    before = made.process(message)
    with pytest.raises(UnknownQueryError):
        made.unsubscribe(["q0", "nobody"])
    assert len(made) == 3
    made.unsubscribe(["q0"])
    assert "q0" not in made
    assert made.subscribe([Subscription("q9", "desk", "//@k")], {}).accepted == 1
    after = made.process(message)
    assert set(fragments(after)) == {(0, "q1"), (0, "q9")}
    # What was handed out keeps its numbers.
    assert set(fragments(before)) == {(0, "q0"), (0, "q1")}
    with pytest.raises(UnknownQueryError):
        made.subscription("q0")


def test_bad_subscriptions_leave_no_trace() -> None:
    made = engine("//b")
    bad = [
        Subscription("q0", "desk", "//c"),
        Subscription("s1", "desk", "//a["),
        Subscription("s2", "desk", "<o>constant</o>"),
        Subscription("s3", "desk", "count(//b)"),
        Subscription("s5", "desk", "<o>{typeswitch (//b) default return 1}</o>"),
        Subscription("s6", "desk", "//p:b"),
        Subscription("s7", "desk", "//b"),
        Subscription("s7", "desk", "//c"),
    ]
    report = made.subscribe(bad, {})
    assert report.accepted == 1
    assert {query_id: error.code for query_id, error in report.rejected.items()} == {
        "q0": "query.duplicate",
        "s1": "XPST0003",
        "s2": "subscription.constant",
        "s3": "subscription.fragment",
        "s5": "query.unsupported",
        "s6": "XPST0081",
        "s7": "query.duplicate",
    }
    assert len(made) == 2
    assert set(fragments(made.process(pa.array([MESSAGE])))) == {(0, "q0"), (0, "s7")}


def test_namespaces() -> None:
    made = ReferenceDissemination(Limits())
    own = {"p": "urn:own"}
    made.subscribe(
        [
            Subscription("s1", "desk", "//p:b"),
            Subscription("s2", "desk", "<p:o>{//p:b}</p:o>", namespaces=own),
        ],
        {"p": "urn:p", "q": "urn:q"},
    )
    assert made.subscription("s1").namespaces == {"p": "urn:p", "q": "urn:q"}
    assert made.subscription("s2").namespaces == {"p": "urn:own", "q": "urn:q"}
    message = b"<a xmlns='urn:p'><b/><b xmlns='urn:own'/></a>"
    assert fragments(made.process(pa.array([message]))) == {
        (0, "s1"): [b'<b xmlns="urn:p"/>'],
        (0, "s2"): [b'<p:o xmlns:p="urn:own"><b xmlns="urn:own"/></p:o>'],
    }
    plain = engine("//b")
    assert plain.subscription("q0").namespaces is None


def test_encodings() -> None:
    made = engine("<o>{//b/text()}</o>", "//b")
    latin = "<?xml version='1.0' encoding='ISO-8859-1'?><a><b>é€</b></a>"
    message = latin.replace("€", "").encode("iso-8859-1")
    assert fragments(made.process(pa.array([message])))[0, "q0"] == ["<o>é</o>".encode()]
    # Text was decoded before, whatever it declares.
    answer = made.process(pa.array([latin.encode()]), encoding="UTF-8")
    assert fragments(answer)[0, "q1"] == ["<b>é€</b>".encode()]


def test_counters_add_up() -> None:
    made = engine("//b", "//c", "for $b in //b return <o/>", "<o>x{//@k}</o>")
    messages = [MESSAGE, None, b"<a", b"<a/>", b"<b>x</b>"]
    answer = made.process(pa.array(messages))
    stats = answer.stats
    rows = answer.rows.to_pylist()
    pool = answer.fragments.to_pylist()
    assert stats.messages == 4
    assert stats.bytes == sum(len(message) for message in messages if message is not None)
    assert stats.refused == len(answer.refusals) == 1
    assert stats.verdicts == len(answer.verdicts) == 1
    assert stats.deliveries == len(rows) == 7
    assert stats.matches == len({(row["message"], row["subscription"]) for row in rows})
    assert stats.result_bytes == sum(len(pool[row["fragment"]]) for row in rows)
    assert (stats + BatchStats()).parsing_ns > 0
    order = [(row["message"], row["subscription"], row["result"]) for row in rows]
    assert order == sorted(order)


def test_an_empty_batch_and_no_subscriptions() -> None:
    assert engine("//b").process(pa.array([], pa.binary())).rows.num_rows == 0
    answer = engine().process(pa.array([MESSAGE]))
    assert (answer.rows.num_rows, answer.stats.messages) == (0, 1)


def test_gates_let_everything_through_that_is_delivered() -> None:
    """A gate that is closed for a message with results would lose deliveries in the kernel."""
    opened = 0
    for group in flwr_groups():
        for query, expected in group.cases:
            if not expected:
                continue
            # Most are bare paths; in a constructor they are programs.
            compiled = (
                compile_subscription(f"<gate>{{{query}}}</gate>", group.namespaces)
                if (not query.lstrip().startswith(("declare", "xquery")))
                else compile_subscription(query, group.namespaces)
            )
            assert lets_pass(compiled, group.message), (query, compiled.alternatives)
            opened += 1
    assert opened > 600


def generated(seeds: range) -> tuple[list[Subscription], list[bytes]]:
    """Subscriptions of all widths, paths among them, and messages of their vocabulary."""
    vocabulary = VOCABULARIES["book"]
    subscriptions = []
    messages = []
    for seed in seeds:
        random = Random(seed)
        flwr = random_flwr(random, vocabulary, list(FlwrWidth)[seed % 3])
        subscriptions.append(
            Subscription(f"g{seed}", "desk", flwr.text, "fragment", flwr.namespaces)
        )
        messages.append(random_flwr_message(random, vocabulary))
    paths = ("//title", "//section[title]", "//*[@id]", "(//p)[last()]", "//section//figure")
    for number, path in enumerate(paths):
        subscriptions.append(Subscription(f"p{number}", "desk", path))
    return subscriptions, messages


def is_built(results: list[bytes | None] | None) -> bool:
    """Whether results are elements, which are true; or there is none."""
    return not results or (results[0] or b"").startswith(b"<")


def test_neighbours_batches_and_modes_change_nothing() -> None:
    subscriptions, messages = generated(range(21))
    together = ReferenceDissemination(Limits())
    assert together.subscribe(subscriptions, {}).rejected == {}
    whole = together.process(pa.array(messages))
    found = fragments(whole)
    assert len(found) > 60
    # One batch a message.
    apart: dict[tuple[int, str], list[bytes | None]] = {}
    for place, message in enumerate(messages):
        for (_, name), results in fragments(together.process(pa.array([message]))).items():
            apart[place, name] = results
    assert apart == found
    # One engine a subscription, and the other modes.
    stopped = {(message, whole.subscription_ids[number]) for message, number, _ in whole.verdicts}
    for subscription in subscriptions[::6]:
        alone = ReferenceDissemination(Limits())
        names = [subscription.id, "message", "ids"]
        modes: tuple[DeliverMode, ...] = ("fragment", "message", "ids")
        changed = [
            subscription._replace(id=name, deliver=mode)
            for name, mode in zip(names, modes, strict=True)
        ]
        assert alone.subscribe(changed, {}).accepted == 3
        own = fragments(alone.process(pa.array(messages)))
        for place, message in enumerate(messages):
            wanted = found.get((place, subscription.id))
            assert own.get((place, subscription.id)) == wanted
            if (place, subscription.id) not in stopped and is_built(wanted):
                is_delivered = wanted is not None
                assert own.get((place, "message")) == ([message] if is_delivered else None)
                assert own.get((place, "ids")) == ([None] if is_delivered else None)


def test_results_are_well_formed() -> None:
    """Every element that is delivered can be parsed again by itself, and says the same again."""
    subscriptions, messages = generated(range(100, 121))
    made = ReferenceDissemination(Limits())
    assert made.subscribe(subscriptions, {}).rejected == {}
    elements = [
        fragment
        for results in fragments(made.process(pa.array(messages))).values()
        for fragment in results
        if fragment is not None and fragment.startswith(b"<") and not fragment.startswith(b"<!")
    ]
    assert len(elements) > 60
    for fragment in elements[:60]:
        if fragment.startswith(b"<?"):
            continue
        again = engine("/*").process(pa.array([fragment]))
        assert fragments(again) == {(0, "q0"): [fragment]}
