"""Warnings of a query that was taken up.

They name conditions that never or always hold, and parts whose meaning depends on the language.

Example:
    >>> for warning in warnings_of("q1", "//order[@day >= '2026-06-01']", {}):
    ...     print(warning)
    PL201: no message can satisfy the query: `@day>='2026-06-01'`: `>=` compares numbers, and \
'2026-06-01' is none
      //order[@day >= '2026-06-01']
              ^
      write `translate(substring(@day,1,10),'-','')>=20260601`; or, in a Subscription, \
`@day>=xs:date('2026-06-01')` for dates, `@day>=xs:dateTime('2026-06-01T00:00:00')` for dateTimes

Most queries are plain: paths whose conditions are about different values each. A pattern tells
these by their text, and the others are analysed (`pathcast.query.condition_issues`).

It knows no message; `pathcast.lint` looks at a sample.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from pathcast.errors import QuerySyntaxError
from pathcast.model import QueryLanguage, QueryWarning
from pathcast.query.compiled import compile_query
from pathcast.query.condition_issues import query_issues
from pathcast.query.condition_walk import ConditionIssue
from pathcast.query.language_issues import language_issues
from pathcast.query.names import Namespaces
from pathcast.query.notation import Notation
from pathcast.query.reader import read_query
from pathcast.query.xquery.known_truths import program_truths
from pathcast.query.xquery.language import without_comments
from pathcast.query.xquery.reader import parse

# Names that are operators elsewhere are left to the analysis.
_NAME: Final = r"(?!(?:and|or|div|mod)(?![\w.\-]))[^\W\d][\w.\-]*+"
_NAMED: Final = rf"{_NAME}(?::{_NAME})?"
_TEST: Final = rf"(?:{_NAME}(?::(?:{_NAME}|\*))?|\*)"
_END: Final = rf"(?:@{_TEST}|text\(\))"
_STRING: Final = r"(?:'[^'\[\]&]+'|\"[^\"\[\]&]+\")"
_NUMBER: Final = r"\d{1,15}(?:\.\d{1,15})?"


def _conditions(inner: str) -> str:
    """A pattern of predicates with conditions joined by `and` or `or`.

    Args:
        inner: Predicates that may stand in a path that a condition is about.
    """
    operand = rf"(?:{_TEST}{inner}(?://?{_TEST}{inner})*(?://?{_END})?|{_END}|\.)"
    # A function reads one item, so a path that may find several of them is looked at.
    last = rf"(?:@{_NAMED}|text\(\))"
    read = rf"(?:{_NAMED}{inner}(?:/{_NAMED}{inner})*(?:/{last})?|{last}|\.)"
    call = rf"(?:starts-with|contains)\(\s*{read}\s*,\s*{_STRING}\s*\)"
    compared = rf"{operand}(?:\s*(?:!?=\s*(?:{_STRING}|{_NUMBER})|[<>]=?\s*{_NUMBER}))?(?![\w(])"
    condition = rf"(?:{call}|{compared})"
    return rf"(?:\[\s*{condition}(?:\s+(?:and|or)\s+{condition})*\s*\])*"


_CONDITIONS: Final = _conditions(_conditions(""))
_STEP: Final = rf"{_TEST}{_CONDITIONS}(?:\[\s*[1-9]\d{{0,14}}\s*\]{_CONDITIONS})?"
# A root element has no position but the first.
_FIRST: Final = rf"(?:/{_TEST}{_CONDITIONS}|//{_STEP})"
_STRINGS: Final = re.compile(r"'[^']*'|\"[^\"]*\"")
_NO_CALL: Final = rf"{_TEST}(?!\s*\()"
_ASKED: Final = re.compile(
    rf"{_NO_CALL}(?://?{_NO_CALL})*(?://?{_END})?|{_END}|(?<![\w.\-])\.(?![\w.\-])"
)
_PREDICATE: Final = re.compile(r"\[([^\[\]]*)\]")
_PREFIX: Final = re.compile(rf"{_NAME}:")

_SIMPLE: Final = rf"(@?{_TEST}(?://?{_TEST})*)"
_ONE_OF: Final = re.compile(
    rf"\[\s*{_SIMPLE}\s*=\s*(?:''|{_NUMBER})(?:\s+or\s+\1\s*=\s*(?:''|{_NUMBER}))+\s*\]"
)
_RANGE: Final = re.compile(
    rf"\[\s*{_SIMPLE}\s*>=?\s*({_NUMBER})(?:\s*\]\s*\[\s*|\s+and\s+)\1\s*<=?\s*({_NUMBER})\s*\]"
)
"""Comparisons of one value which are fine together."""


def warnings_of(
    query_id: str, text: str, namespaces: Namespaces, language: QueryLanguage | None = None
) -> tuple[QueryWarning, ...]:
    """The conditions of a query that never or always hold, and what depends on its language.

    Args:
        query_id: The query.
        text: A query that can be registered, or subscribed to in XPath or XQuery.
        namespaces: All prefixes that it may use, and under "" the default element namespace.
        language: As it was chosen; nothing depends on it then.

    Cost: some microseconds for a plain query, 1 ms for any other.
    """
    if language == "xquery":
        return _of_program(query_id, text, namespaces)
    if is_plain(text):
        return ()
    plain = without_comments(text)
    try:
        expr = read_query(plain, namespaces)
    except QuerySyntaxError:
        # It is XQuery, as it can be registered.
        return _of_program(query_id, text, namespaces)
    notation = Notation(namespaces)
    issues = query_issues(expr, compile_query(plain, namespaces).alternatives, notation)
    truths = _told(query_id, text, issues)
    meanings = [
        QueryWarning(query_id, text, issue.code, False, issue.offset, issue.reason, issue.fix)
        for issue in (language_issues(expr, notation) if language is None else ())
    ]
    return (*truths, *meanings)


def _of_program(query_id: str, text: str, namespaces: Namespaces) -> tuple[QueryWarning, ...]:
    """The conditions of an XQuery that never or always hold."""
    return _told(query_id, text, program_truths(parse(text, namespaces)))


def _told(query_id: str, text: str, issues: Iterable[ConditionIssue]) -> tuple[QueryWarning, ...]:
    """Warnings: conditions that never or always hold."""
    return tuple(
        QueryWarning(
            query_id,
            text,
            issue.code,
            issue.is_decisive and issue.truth == "never",
            issue.offset,
            issue.reason,
            issue.fix,
        )
        for issue in issues
        if issue.truth != "implied"
    )


@cache
def _plain_path() -> re.Pattern[str]:
    """Location paths of which nothing is known to hold, if no value is asked for twice.

    Cost: 0.1 s, once, which no process pays that looks at no query.
    """
    return re.compile(rf"\s*{_FIRST}(?://?{_STEP})*(?://?{_END})?\s*")


def is_plain(text: str) -> bool:
    """Whether the text alone shows that the analysis of a query would find nothing.

    Example:
        >>> [is_plain(text) for text in ("//a[@b = 'x' and c > 3]/d", "//a[@b > 'x']", "//a[0]")]
        [True, False, False]
        >>> is_plain("//a[@b > 3 and @b < 2]")
        False

    Cost: linear in the text.
    """
    if _plain_path().fullmatch(text) is None:
        return False
    return "[" not in text or _asks_for_each_once(text)


def _asks_for_each_once(path: str) -> bool:
    """Whether no path occurs twice in the predicates, but in a range or a list of values."""
    text = _STRINGS.sub("''", path)
    if _has_distinct_paths(text):
        return True
    text = _RANGE.sub(lambda found: f"[{found[1]}]" if _is_range(found) else found[0], text)
    return _has_distinct_paths(_ONE_OF.sub(r"[\1]", text))


def _is_range(found: re.Match[str]) -> bool:
    return float(found[2]) < float(found[3])


def _has_distinct_paths(text: str) -> bool:
    """Whether no path occurs twice in the predicates of a text without strings."""
    asked: list[str] = []
    text = _PREFIX.sub("", text) if ":" in text else text
    while "[" in text:
        asked += _ASKED.findall(" ".join(_PREDICATE.findall(text)))
        text = _PREDICATE.sub("", text)
    return len(asked) == len(set(asked))
