"""What the kernel's dissemination engine does besides answering, which other tests compare."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pathcast.kernel.registry import KernelRegistry
from pathcast.limits import Limits
from pathcast.model import DeliverMode, Subscription
from patience import wait_until

pytest.importorskip("pathcast_kernel", reason="the native kernel is not installed")

MESSAGE = b"<a><b k='1'>x</b><b>y</b><c/></a>"


def engine(limits: Limits | None = None) -> KernelRegistry:
    return KernelRegistry(limits or Limits(), threads=1, cache_bytes_max=1 << 24)


def served(target: KernelRegistry, message: bytes = MESSAGE) -> dict[str, list[bytes | None]]:
    answer = target.process(pa.array([message]))
    assert not answer.refusals
    found: dict[str, list[bytes | None]] = {}
    for row in answer.rows.to_pylist():
        place = row["fragment"]
        fragment = None if place is None else answer.fragments[place].as_py()
        found.setdefault(answer.subscription_ids[row["subscription"]], []).append(fragment)
    return found


def test_what_has_left_does_not_pile_up() -> None:
    # Otherwise a broker whose subscriptions come and go would grow for ever.
    target = engine()
    stays = [
        Subscription("shared", "d", "<r>{for $x in //b where $x/@k = '1' return $x}</r>"),
        Subscription("program", "d", "<n>{count(//b)}</n>"),
        Subscription("path", "d", "//c", deliver="message"),
    ]
    assert target.subscribe(stays, {}).accepted == 3
    expected = served(target)
    for round_ in range(4):
        texts = [
            f"<r>{{for $x in //b where $x = '{round_}-{n}' return $x}}</r>" for n in range(6000)
        ]
        come = [Subscription(f"{round_}-{n}", "d", text) for n, text in enumerate(texts)]
        assert target.subscribe(come, {}).accepted == 6000
        assert served(target) == expected
        target.unsubscribe([each.id for each in come])
        assert served(target) == expected
    answer = target.process(pa.array([MESSAGE]))
    # In the background, which the next batch begins.
    wait_until(lambda: len(target.process(pa.array([MESSAGE])).subscription_ids) < 24_003)
    assert served(target) == expected
    assert answer.subscription_ids[answer.rows["subscription"][0].as_py()] in expected
    assert target.subscription("program").query == "<n>{count(//b)}</n>"


def test_ids_stay_what_they_were_when_they_were_handed_out() -> None:
    target = engine()
    target.subscribe([Subscription("s1", "d", "//b")], {})
    answer = target.process(pa.array([MESSAGE]))
    target.unsubscribe(["s1"])
    target.subscribe([Subscription("s2", "d", "//b")], {})
    numbers = {row["subscription"] for row in answer.rows.to_pylist()}
    assert [answer.subscription_ids[number] for number in numbers] == ["s1"]


@pytest.mark.parametrize("deliver", ["fragment", "message", "ids"])
def test_one_bad_subscription_of_many_is_refused_alone(deliver: DeliverMode) -> None:
    target = engine()
    texts = ["//b", "//b[", "<r>{for $x in //b return $x}</r>", "<r>{$y}</r>", "//b", "<r/>"]
    report = target.subscribe(
        [Subscription(f"s{n}", "d", text, deliver=deliver) for n, text in enumerate(texts)], {}
    )
    assert (report.accepted, sorted(report.rejected)) == (3, ["s1", "s3", "s5"])
    assert sorted(served(target)) == ["s0", "s2", "s4"]
    again = target.subscribe([Subscription("s0", "d", "//c", deliver=deliver)], {})
    assert again.rejected["s0"].code == "query.duplicate"


def test_verdicts_name_the_limit_and_disturb_nobody() -> None:
    target = engine(Limits(result_bytes_max=5000, evaluation_steps_max=2000))
    wide = "<r>{for $x in //* return $x}</r>"
    pairs = "<r>{for $x in //*, $y in //* where $x << $y return 1}</r>".replace(
        "$x << $y", "$x = $y"
    )
    target.subscribe(
        [
            Subscription("long", "d", wide),
            Subscription("slow", "d", pairs),
            Subscription("fine", "d", "<r>{count(//b)}</r>"),
        ],
        {},
    )
    message = b"<a>" * 90 + b"<b/>" + b"</a>" * 90
    answer = target.process(pa.array([message]))
    verdicts = {answer.subscription_ids[n]: error for _, n, error in answer.verdicts}
    assert {name: error.code for name, error in verdicts.items()} == {
        "long": "limit.result_bytes",
        "slow": "limit.evaluation_steps",
    }
    assert all(name in str(error.params) for name, error in verdicts.items())
    assert [row["subscription"] for row in answer.rows.to_pylist()] == [2]
    assert answer.stats.verdicts == 2


def test_explain_counts_those_who_share() -> None:
    target = engine()
    text = "<r>{for $x in //b where $x/@k = '1' return <i>{$x/c}</i>}</r>"
    target.subscribe([Subscription(f"s{n}", "d", text) for n in range(3)], {})
    target.subscribe([Subscription("other", "d", text.replace("'1'", "'2'"))], {})
    told = target.explain("s1")
    assert told["plan"] == [
        "binding path //b",
        '  predicate $x/@k = "1"',
        "selection of BoundNodes",
        "  GroupBy $x/c",
        "message factory: write the results",
    ]
    assert told["shared"] == {
        "binding path //b": 3,
        'predicate $x/@k = "1"': 2,
        "selection of BoundNodes": 2,
        "return clause": 3,
    }


def test_groups_are_counted_without_writing_any() -> None:
    from pathcast.kernel.registry import KernelRegistry

    target = engine()
    text = "<r>{for $x in //a return <i>{$x/b}{$x/c}</i>}</r>"
    target.subscribe([Subscription("s", "d", text)], {})
    assert isinstance(target, KernelRegistry)
    counted = target.count_groups(pa.array([MESSAGE, b"<a", b"<z/>"]), visits=True)
    assert [counted[name] for name in ("messages", "refused", "subscriptions")] == [3, 1, 1]
    assert [counted[name] for name in ("groups", "lists", "list_nodes")] == [1, 2, 3]
