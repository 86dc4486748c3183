"""FLWR subscriptions that want too much, and limits of their results.

If these fail, one subscription can take the process down, or its neighbours with it.
"""

from __future__ import annotations

import sys

import pytest

from pathcast.errors import (
    ConstructionError,
    EvaluationBudgetError,
    LimitExceededError,
    ResultLimitError,
)
from pathcast.limits import Limits
from pathcast_papers.evaluation.xpath import Document
from pathcast_papers.language.xquery import DEPTH_MAX, parse
from pathcast_papers.message import parse_message
from pathcast_papers.message_broker.xquery import Evaluation, evaluate, holds

ROWS = b"<r>" + b"<a>1</a>" * 200 + b"</r>"
FEW = b"<r>" + b"<a>1</a>" * 3 + b"</r>"


def results(query: str, message: bytes = ROWS, limits: Limits | None = None) -> tuple[bytes, ...]:
    return evaluate(parse(query), parse_message(message), limits).results


def chain(first: str, step: str, count: int, last: str) -> str:
    """`let $v0 := first let $v1 := step ... return last`, with the variable before as `$it`."""
    lets = [f"let $v0 := {first}"]
    lets += [
        f"let $v{number} := {step.replace('$it', f'$v{number - 1}')}"
        for number in range(1, count + 1)
    ]
    return " ".join(lets) + f" return {last.replace('$it', f'$v{count}')}"


EXPLOSIONS = {
    "strings that double": chain("string(//a[1])", "concat($it, $it)", 60, "string-length($it)"),
    "joined strings that double": chain(
        "string(//a[1])", "string-join(($it, $it), $it)", 60, "string-length($it)"
    ),
    "sequences that double": chain("//a", "($it, $it)", 60, "count($it)"),
    "attribute values that double": chain(
        "'abc'", "string-join(($it, $it), '')", 60, '<o a="{$it}{$it}">{//a[1]}</o>'
    ),
    "a product of four": "for $a in //a, $b in //a, $c in //a, $d in //a return 1",
    "a product that selects nothing": (
        "for $a in //a, $b in //a, $c in //a where $a + $b + $c = 0 return $a"
    ),
    "a quantifier over a product": (
        "if (some $a in //a, $b in //a, $c in //a satisfies $a + $b = $c + 5) then 1 else ()"
    ),
    "comparisons of all with all": "for $a in //a where (//a, //a) < (//a, //a) return $a/../a",
    "predicates over what follows": "//a[count(following::*[count(preceding::*) > 5]) > 3]",
    "an order of a product": "for $a in //a, $b in //a, $c in //a order by $a, $b return 1",
    "constructors in a product": "for $a in //a, $b in //a, $c in //a return <e>{$a}</e>",
}


@pytest.mark.parametrize("name", EXPLOSIONS)
def test_explosions_are_stopped_by_their_steps(name: str) -> None:
    limits = Limits(evaluation_steps_max=20_000)
    program = parse(EXPLOSIONS[name])
    with pytest.raises(EvaluationBudgetError) as caught:
        evaluate(program, parse_message(ROWS), limits, subscription_id="s1")
    assert caught.value.params["id"] == "s1"
    assert caught.value.params["maximum"] == 20_000


def test_elements_that_double_are_stopped_by_the_bytes_of_the_result() -> None:
    """They are shared and never copied, so that they cost nothing until they are written."""
    query = chain("<e>{//a[1]}</e>", "<e>{$it}{$it}</e>", 60, "$it")
    with pytest.raises(ResultLimitError) as caught:
        results(query)
    assert caught.value.code == "limit.result_bytes"
    assert caught.value.params["maximum"] == Limits().result_bytes_max
    query = chain("<e>{//a[1]}</e>", "<e>{$it}{$it}</e>", 60, "count($it)")
    assert results(query) == (b"1",)


def test_limits_of_results() -> None:
    message = b"<r><a>" + b"x" * 1000 + b"</a></r>"
    tree, size = parse_message(message), len(message)
    copies = "<o>{" + ", ".join(["//a"] * 12) + "}</o>"
    program = parse(copies)
    whole = evaluate(program, tree).results[0]
    assert evaluate(program, tree, Limits(result_bytes_max=len(whole))).results == (whole,)
    with pytest.raises(ResultLimitError, match="result_bytes_max"):
        evaluate(program, tree, Limits(result_bytes_max=len(whole) - 1))
    assert evaluate(program, tree, Limits(result_ratio_max=13), message_bytes=size).is_delivered
    with pytest.raises(ResultLimitError) as caught:
        evaluate(program, tree, Limits(result_ratio_max=11), message_bytes=size)
    assert caught.value.code == "limit.result_ratio"
    assert caught.value.params["maximum"] == 11
    # All results count together.
    apart = parse(", ".join(["//a"] * 12))
    with pytest.raises(ResultLimitError):
        evaluate(apart, tree, Limits(result_bytes_max=12_000))


def test_short_results_pass_however_short_the_message() -> None:
    tree = parse_message(b"<a/>")
    page = "<o>{//a}" + "x" * 4080 + "</o>"
    limits = Limits(result_ratio_max=1)
    assert len(evaluate(parse(page), tree, limits, message_bytes=4).results[0]) <= 4096
    longer = page.replace("x", "xx", 20)
    with pytest.raises(ResultLimitError, match="result_ratio_max"):
        evaluate(parse(longer), tree, limits, message_bytes=4)
    with pytest.raises(ResultLimitError, match="result_bytes_max"):
        evaluate(parse(page), tree, Limits(result_bytes_max=100), message_bytes=4)


def nested(opening: str, core: str, closing: str, depth: int) -> str:
    return opening * depth + core + closing * depth


DEEP = {
    "constructors": nested("<e>", "{//a[1]}", "</e>", DEPTH_MAX - 3),
    "enclosed constructors": nested("<e>{", "//a[1]", "}</e>", DEPTH_MAX // 2 - 2),
    "FLWORs in return": nested("for $x in //a[1] return ", "$x", "", DEPTH_MAX - 1),
    "FLWORs in sources": nested("for $x in (", "//a[1]", ") return $x", DEPTH_MAX // 2 - 1),
    "FLWORs in conditions": (
        nested("for $x in //a[1] where ", "1", " return 1", DEPTH_MAX // 2 - 1)
    ),
    "quantifiers": nested("some $x in //a[1] satisfies ", "1", "", DEPTH_MAX - 1),
    "quantifiers in sources": (
        nested("some $x in (", "//a[1]", ") satisfies 1", DEPTH_MAX // 2 - 1)
    ),
    "conditionals": nested("if (//a) then ", "1", " else 2", DEPTH_MAX - 2),
    "conditionals in conditions": nested("if (", "//a", ") then 1 else 2", DEPTH_MAX // 2 - 1),
    "predicates": nested("//a[../a[", "1", "]]", DEPTH_MAX // 2 - 1),
    "predicates of parents": nested("//a[1][parent::r[", "1", "]]", DEPTH_MAX // 2 - 1),
    "calls": nested("not(", "//a", ")", DEPTH_MAX - 2),
    "sums in parentheses": nested("(1 + ", "count(//a)", ")", DEPTH_MAX // 2 - 1),
    "ands and ors": nested("(1 and (//a or ", "1", "))", DEPTH_MAX // 2 - 2),
    "filters": nested("(", "//a", ")[1]", DEPTH_MAX // 2 - 1),
    "attribute values": (
        '<o a="{' + nested("concat('x', ", "//a[1]", ")", DEPTH_MAX - 3) + '}">{//a[1]}</o>'
    ),
    "order keys": (nested("for $x in //a[1] order by (", "1", ") return $x", DEPTH_MAX // 2 - 2)),
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_nesting_is_evaluated(name: str) -> None:
    """The deepest that is accepted still fits into the stack that Python has by default."""
    assert sys.getrecursionlimit() <= 1000
    assert results(DEEP[name], FEW)


def test_long_chains_do_not_nest() -> None:
    assert results(chain("//a[1]", "$it", 600, "$it")) == (b"<a>1</a>",)
    tower = results(chain("<e>{//a[1]}</e>", "<e>{$it}</e>", 400, "$it"))[0]
    assert tower == b"<e>" * 401 + b"<a>1</a>" + b"</e>" * 401
    assert results("count(" + " | ".join(["//a"] * 500) + ")", FEW) == (b"3",)
    assert results(" or ".join(["//nothing"] * 500) + " or //a", FEW) == (b"true",)
    assert results("<o>{" + ", ".join(["//a[1]"] * 300) + "}</o>", FEW) == (
        b"<o>" + b"<a>1</a>" * 300 + b"</o>",
    )
    assert results(" + ".join(["/r/a[1]"] * 100), FEW) == (b"100",)


def test_a_deep_message_is_copied() -> None:
    depth = Limits().depth_max
    message = b"<e xmlns='urn:e'>" + b"<e>" * (depth - 1) + b"</e>" * depth
    document = Document(parse_message(message))
    inner = b"<e>" * (depth - 2) + b"<e/>" + b"</e>" * (depth - 1)
    whole = b'<e xmlns="urn:e">' + inner
    assert evaluate(parse("<o>{/}</o>"), document).results == (b"<o>" + whole + b"</o>",)
    assert len(evaluate(parse("for $e in //*:e return $e"), document).results) == depth
    with pytest.raises(ResultLimitError):
        evaluate(parse("//*:e"), document, Limits(result_bytes_max=100_000))


def test_worst_cases_are_polynomial() -> None:
    """Without values that are kept, each level would multiply the steps."""
    message = b"<a>" + b"<b><c/></b>" * 10 + b"</a>"
    limits = Limits(evaluation_steps_max=100_000)
    nest = "//b" + "[parent::a/child::b" * 12 + "]" * 12
    assert len(results(nest, message, limits)) == 10
    join = "for $b in //b, $c in //b where count(//c[../../b]) = 10 return 1"
    assert len(results(join, message, limits)) == 100


def test_steps_are_counted() -> None:
    """The same evaluation passes with as many steps as it takes, and fails with one fewer."""
    program = parse("for $a in //a order by $a descending return <e k='{$a}'>{$a/text()}</e>")
    document = Document(parse_message(ROWS))

    def passes(steps: int) -> bool:
        try:
            evaluate(program, document, Limits(evaluation_steps_max=steps))
        except EvaluationBudgetError:
            return False
        return True

    low, high = 1, 1_000_000
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    assert high > 600
    assert passes(high)
    assert not passes(high - 1)


def test_verdicts_are_typed_and_leave_nothing_behind() -> None:
    document = Document(parse_message(ROWS))
    program = parse(EXPLOSIONS["a product of four"])
    with pytest.raises(LimitExceededError):
        evaluate(program, document, Limits(evaluation_steps_max=10))
    assert evaluate(parse("<o>{//a[1]/@*}{//a}</o>"), document).is_delivered
    with pytest.raises(ConstructionError) as caught:
        evaluate(parse("<o:x xmlns:o='urn:o'>t{/r/@k}</o:x>"), parse_message(b"<r k='1'/>"))
    assert (caught.value.code, caught.value.params["name"]) == ("XQTY0024", "o:x")
    with pytest.raises(ConstructionError) as caught:
        evaluate(parse("<o k='0'>{/r/@k}</o>"), parse_message(b"<r k='1'/>"), subscription_id="s")
    assert (caught.value.code, caught.value.params["id"]) == ("XQDY0025", "s")


def test_whether_it_is_delivered_is_asked_until_it_is_known() -> None:
    """A filter need not build what nobody wants."""
    program = parse("<o>{//a[1]}{" + EXPLOSIONS["a product of four"] + "}</o>")
    limits = Limits(evaluation_steps_max=10_000)
    tree = parse_message(ROWS)
    assert holds(program, tree, limits)
    with pytest.raises(EvaluationBudgetError):
        evaluate(program, tree, limits)
    program = parse("<o>{//nothing}{" + EXPLOSIONS["a product of four"] + "}</o>")
    with pytest.raises(EvaluationBudgetError):
        holds(program, tree, limits)
    assert evaluate(parse("<o>{//nothing}</o>"), tree) == Evaluation(False, ())
