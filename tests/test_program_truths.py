"""Conditions of an XQuery that never or always hold are told, and what is told is true.

If these fail, a subscriber is not warned of a condition that no message fulfils, or is warned of
one that messages do.
"""

from __future__ import annotations

import random

import pytest

from pathcast import Registry, Subscription
from pathcast.lint import lint
from pathcast.query.condition_issues import condition_issues
from pathcast.query.notation import Notation
from pathcast.query.reader import read_query
from pathcast.query.xquery import parse, program_truths

KNOWN = (
    # Condition, truth, part of the reason; None where nothing is known.
    ("xs:date(@d) > 5", "never", "an xs:date does not compare with a number"),
    ("xs:date(@d) = xs:dateTime('2026-01-01T00:00:00')", "never", "with an xs:dateTime"),
    ("current-date() < xs:time(@t)", "never", "an xs:date does not compare with an xs:time"),
    ("xs:date(@d) = ('soon', 'later')", "never", "'soon' is no xs:date"),
    ("xs:date(@d) = ('soon', '2026-01-01')", None, ""),
    ("xs:dayTimeDuration(@p) = xs:yearMonthDuration('P0M')", None, ""),
    ("@d > xs:date('2026-01-01')", None, ""),
    ("lower-case(b) = 'Flood'", "never", "lower-case() gives no capital letters"),
    ("lower-case(b) = ('Flood', 'fire')", None, ""),
    ("lower-case(b) = ('Flood', 'Fire')", "never", "lower-case()"),
    ("lower-case(b) != 'Flood'", None, ""),
    ("upper-case(b) = 'flood'", "never", "upper-case() gives no small letters"),
    ("upper-case(b) = '\u00df'", None, ""),
    ("contains(lower-case(b), 'Fl')", "never", "lower-case()"),
    ("contains(b, 'Fl')", None, ""),
    ("'Fl' = lower-case(b)", "never", "lower-case()"),
    ("normalize-space(b) = ' a'", "never", "single blanks"),
    ("contains(normalize-space(b), 'a b ')", None, ""),
    ("ends-with(normalize-space(b), 'a b ')", "never", "single blanks"),
    ("starts-with(normalize-space(b), 'a  b')", "never", "single blanks"),
    ("substring(b, 1, 4) = '2026-01'", "never", "4 characters at most"),
    ("substring(b, 1, 7) = '2026-01'", None, ""),
    ("count(b) >= 0", "always", "whole numbers from 0 on"),
    ("count(b) < 0", "never", "whole numbers from 0 on"),
    ("0 > count(b)", "never", "whole numbers from 0 on"),
    ("count(b) = 1.5", "never", "whole numbers from 0 on"),
    ("string-length(b) != 1.5", "always", "whole numbers from 0 on"),
    ("count(b) > 0", None, ""),
    ("month-from-date(@d) = 13", "never", "numbers from 1 to 12"),
    ("month-from-date(@d) <= 12", None, ""),
    ("hours-from-dateTime(@d) gt 23", "never", "numbers from 0 to 23"),
    ("seconds-from-time(@t) >= 60", "never", "less than 60"),
    ("seconds-from-time(@t) > 59.5", None, ""),
    ("hours-from-duration(@p) > 24", None, ""),
    ("@a = ()", "never", "no item compares with none"),
    ("matches(b, '.*')", "always", "the pattern matches the empty text"),
    ("matches(b, '^$')", None, ""),
    ("matches(b, 'a|b*')", "always", "the pattern matches the empty text"),
    # Of one value.
    ("@a > 5 and @a < 3", "never", "`@a < 3` and `@a > 5` exclude each other"),
    ("@a >= 5 and @a <= 5", None, ""),
    ("@a > 5 and @a <= 5", "never", "exclude each other"),
    ("@a = ('x', 'y') and @a = 'z'", "never", "exclude each other"),
    ("@a = ('x', 'y') and @a = ('z', 'y')", None, ""),
    ("@a = 1 and @a = '1'", None, ""),
    ("b = 'x' and b = 'y'", None, ""),
    ("not(count(b) >= 0)", "never", "whole numbers from 0 on"),
    ("not(matches(b, '.*')) and @a = 1", "never", "the pattern matches the empty text"),
    ("lower-case(b[1]) = 'x' and not(lower-case(b[1]) = 'x')", "never", "exclude each other"),
    ("b eq 'x' and b eq 'y'", "never", "exclude each other"),
    ("@*:a = 'x' and @*:a = 'y'", None, ""),
    (
        "xs:date(@d) >= xs:date('2026-02-01') and xs:date(@d) < xs:date('2026-01-01')",
        "never",
        "exclude each other",
    ),
    (
        "@d >= xs:dateTime('2026-01-01T00:00:00+01:00') and "
        "@d <= xs:dateTime('2025-12-31T22:59:59Z')",
        "never",
        "exclude each other",
    ),
    (
        "@d >= xs:dateTime('2026-01-01T00:00:00+01:00') and "
        "@d <= xs:dateTime('2025-12-31T23:00:00Z')",
        None,
        "",
    ),
)

VALUES = (
    *("", "Flood", "flood", "FLOOD", " a b ", "2026", "2026-01", "2026-02-01", "x", "y", "z", "1"),
    *("2026-01-01T00:00:00Z", "2025-12-31T23:00:00Z", "12:00:59.9", "P1D", "P1M", "5", "0", "4.5"),
    *("\u00df", "-1", "13:59:60", "3", "2025-06-30T12:00:00-14:00"),
)


MESSAGE = "<m>{}</m>".format(
    "".join(
        f'<v a="{one}" d="{one}" t="{one}" p="{other}"><b>{one}</b><b>{other}</b></v><v a="{one}"/>'
        for one in VALUES
        for other in VALUES[::3]
    )
)


def rows(condition: str) -> int:
    """How many elements of a message with all values fulfil a condition."""
    registry = Registry()
    text = f"<r>{{for $v in //v where $v[{condition}] return <hit/>}}</r>"
    assert not registry.add([Subscription("s", "u", text)]).rejected
    found = registry.deliver(MESSAGE)
    return sum((each.fragment or b"").count(b"<hit") for each in found)


@pytest.mark.parametrize(("condition", "truth", "reason"), KNOWN)
def test_what_is_known_is_told(condition: str, truth: str | None, reason: str) -> None:
    text = f"for $v in //v[{condition}] return <hit/>"
    issues = program_truths(parse(text))
    assert [issue.truth for issue in issues] == ([] if truth is None else [truth]), issues
    assert all(reason in issue.reason for issue in issues)
    all_rows = len(VALUES) * len(VALUES[::3]) * 2
    if truth is not None:
        assert rows(condition) == (0 if truth == "never" else all_rows)


@pytest.mark.parametrize("places", ["0", "-1", "1.5", "1][2"])
def test_positions_that_no_node_has_are_told_in_both_languages(places: str) -> None:
    told = [issue.truth for issue in program_truths(parse(f"(//v[{places}], ())"))]
    in_paths = [
        issue.truth for issue in condition_issues(read_query(f"//v[{places}]", {}), Notation())
    ]
    assert told == in_paths == ["never"]


OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "eq", "ne", "lt", "le", "gt", "ge")
LEFT = (
    *(
        "@a",
        "b",
        "xs:date(@d)",
        "xs:dateTime(@d)",
        "lower-case(b[1])",
        "upper-case(@a)",
        "count(b)",
    ),
    *("string-length(@a)", "month-from-date(@d)", "hours-from-time(@t)", "xs:time(@t)"),
    *("normalize-space(@a)", "substring(@a, 1, 2)", "xs:integer(@a)", "xs:dayTimeDuration(@p)"),
)
RIGHT = (
    *(
        "'Flood'",
        "'flood'",
        "5",
        "0",
        "-1",
        "1.5",
        "xs:date('2026-02-01')",
        "'2026-01'",
        "('x', 'y')",
    ),
    *(
        "xs:dateTime('2026-01-01T00:00:00Z')",
        "xs:dateTime('2025-12-31T23:00:00Z')",
        "(1, 5)",
        "'x'",
    ),
    *("xs:time('12:00:00')", "xs:dayTimeDuration('P1D')", "13", "()", "' a'", "'FLOOD'"),
)


@pytest.mark.parametrize("seed", range(2))
def test_what_is_told_is_true(seed: int) -> None:
    draw = random.Random(f"truths {seed}")
    told = 0
    for _ in range(120):
        left = draw.choice(LEFT)
        parts = [
            draw.choice(("{}", "{}", "not({})")).format(
                f"{left} {draw.choice(OPERATORS)} {draw.choice(RIGHT)}"
            )
            for _ in range(draw.choice((1, 2, 2)))
        ]
        # Several items where one is wanted, which XQuery refuses, are the first here.
        condition = draw.choice((" and ", "][")).join(parts)
        text = f"for $v in //v[{condition}] return <hit/>"
        issues = [each for each in program_truths(parse(text)) if each.truth != "implied"]
        if any(issue.truth == "never" for issue in issues):
            told += 1
            assert rows(condition) == 0, (condition, issues)
        elif len(issues) == len(parts):
            told += 1
            assert rows(condition) == len(VALUES) * len(VALUES[::3]) * 2, (condition, issues)
    assert told > 10


def test_variables_of_loops_are_one_value_and_others_are_not() -> None:
    for clause, count in (("for $x in //a", 1), ("let $x := //a", 0)):
        text = f"{clause} where $x = 'x' and $x = 'y' return <hit/>"
        assert len(program_truths(parse(text))) == count


def test_positions_count_anew_after_each_predicate() -> None:
    assert program_truths(parse("//a[position() = 2][position() = 1], //b")) == []


def test_they_are_warnings_of_a_registration_and_of_lint() -> None:
    text = "for $a in //a where lower-case($a/b) = 'Flood' return <hit/>"
    report = Registry().add([Subscription("s", "u", text)])
    (warning,) = report.warnings
    assert (warning.code, warning.offset, warning.is_hopeless) == ("PL201", 20, False)
    assert str(warning).startswith("PL201: the condition never holds") or "lower-case" in str(
        warning
    )
    found = [each for each in lint([Subscription("s", "u", text)]).findings if each.code == "PL201"]
    assert [each.message for each in found] == [warning.reason]
