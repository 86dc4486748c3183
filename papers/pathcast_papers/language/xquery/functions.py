"""The functions that a FLWR subscription may call.

The core library of XPath 1.0 and the ones of XQuery 1.0 that shape messages. `doc`, `document`,
`true` and `false` are here for their arity; the parser turns the first two into the message.

Source: XQuery 1.0 and XPath 2.0 Functions and Operators.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from pathcast_papers.language.functions import ARGUMENT_COUNTS as XPATH_ARGUMENT_COUNTS
from pathcast_papers.language.functions import arguments_expected as xpath_arguments_expected

FUNCTION_NAMESPACE: Final = "http://www.w3.org/2005/xpath-functions"
"""What the prefix `fn` stands for."""

ADDED_ARGUMENT_COUNTS: Final = MappingProxyType(
    {
        "abs": (1, 1),
        "adjust-date-to-timezone": (1, 2),
        "adjust-dateTime-to-timezone": (1, 2),
        "adjust-time-to-timezone": (1, 2),
        "avg": (1, 1),
        "codepoint-equal": (2, 2),
        "codepoints-to-string": (1, 1),
        "compare": (2, 3),
        "contains-token": (2, 3),
        "current-date": (0, 0),
        "current-dateTime": (0, 0),
        "current-time": (0, 0),
        "data": (0, 1),
        "dateTime": (2, 2),
        "day-from-date": (1, 1),
        "day-from-dateTime": (1, 1),
        "days-from-duration": (1, 1),
        "deep-equal": (2, 3),
        "distinct-values": (1, 2),
        "empty": (1, 1),
        "encode-for-uri": (1, 1),
        "ends-with": (2, 3),
        "exists": (1, 1),
        "format-date": (2, 2),
        "format-dateTime": (2, 2),
        "format-number": (2, 2),
        "format-time": (2, 2),
        "head": (1, 1),
        "hours-from-dateTime": (1, 1),
        "hours-from-duration": (1, 1),
        "hours-from-time": (1, 1),
        "implicit-timezone": (0, 0),
        "index-of": (2, 3),
        "insert-before": (3, 3),
        "lower-case": (1, 1),
        "matches": (2, 3),
        "max": (1, 2),
        "min": (1, 2),
        "minutes-from-dateTime": (1, 1),
        "minutes-from-duration": (1, 1),
        "minutes-from-time": (1, 1),
        "month-from-date": (1, 1),
        "month-from-dateTime": (1, 1),
        "months-from-duration": (1, 1),
        "normalize-unicode": (1, 2),
        "remove": (2, 2),
        "replace": (3, 4),
        "reverse": (1, 1),
        "round-half-to-even": (1, 2),
        "seconds-from-dateTime": (1, 1),
        "seconds-from-duration": (1, 1),
        "seconds-from-time": (1, 1),
        "string-join": (1, 2),
        "string-to-codepoints": (1, 1),
        "subsequence": (2, 3),
        "tail": (1, 1),
        "timezone-from-date": (1, 1),
        "timezone-from-dateTime": (1, 1),
        "timezone-from-time": (1, 1),
        "tokenize": (1, 3),
        "upper-case": (1, 1),
        "year-from-date": (1, 1),
        "year-from-dateTime": (1, 1),
        "years-from-duration": (1, 1),
    }
)
"""Functions beyond XPath 1.0: name -> fewest and most arguments."""

ARGUMENT_COUNTS: Final = MappingProxyType(
    {
        **XPATH_ARGUMENT_COUNTS,
        **ADDED_ARGUMENT_COUNTS,
        # With a collation, digits, or a value for no items.
        "contains": (2, 3),
        "round": (1, 2),
        "starts-with": (2, 3),
        "substring-after": (2, 3),
        "substring-before": (2, 3),
        "sum": (1, 2),
    }
)
"""Every function: name -> fewest and most arguments."""

CONTEXT_FUNCTIONS: Final = frozenset(
    {
        "data",
        "string",
        "string-length",
        "normalize-space",
        "number",
        "name",
        "local-name",
        "namespace-uri",
    }
)
"""Functions that read the context item where they are given no argument."""

REFUSED_ARGUMENTS: Final = MappingProxyType(
    {
        ("id", 2): "the node of id()",
        ("lang", 2): "the node of lang()",
        ("format-number", 3): "the decimal format of format-number()",
        **{
            (f"format-{each}", 5): f"the language of format-{each}()"
            for each in ("date", "dateTime", "time")
        },
    }
)
"""Function and number of arguments -> what XQuery knows, and a subscription does not."""

BOOLEAN_FUNCTIONS: Final = frozenset(
    {
        "boolean",
        "codepoint-equal",
        "contains",
        "contains-token",
        "deep-equal",
        "empty",
        "ends-with",
        "exists",
        "false",
        "lang",
        "matches",
        "not",
        "starts-with",
        "true",
    }
)
"""Functions that give a boolean."""

STRING_FUNCTIONS: Final = frozenset(
    {
        *("codepoints-to-string", "concat", "encode-for-uri", "local-name", "lower-case", "name"),
        *("format-date", "format-dateTime", "format-number", "format-time"),
        *("namespace-uri", "normalize-space", "normalize-unicode", "replace", "string"),
        *("string-join", "substring", "substring-after", "substring-before", "tokenize"),
        *("translate", "upper-case"),
    }
)
"""Functions that give strings."""

CODEPOINT: Final = "http://www.w3.org/2005/xpath-functions/collation/codepoint"
"""The default collation."""

CASE_BLIND: Final = "http://www.w3.org/2005/xpath-functions/collation/html-ascii-case-insensitive"
"""The collation to which the letters of ASCII are the same in both cases."""

COLLATIONS: Final = MappingProxyType(
    {
        **dict.fromkeys(("distinct-values", "max", "min"), 1),
        **dict.fromkeys(("compare", "contains", "contains-token", "deep-equal", "ends-with"), 2),
        **dict.fromkeys(("index-of", "starts-with", "substring-after", "substring-before"), 2),
    }
)
"""Functions that take a collation -> its place."""

PICTURED: Final = frozenset({"format-date", "format-dateTime", "format-number", "format-time"})
"""Functions that take a picture."""

SCHEMA_NAMESPACE: Final = "http://www.w3.org/2001/XMLSchema"
"""What the prefix `xs` stands for."""


def arguments_expected(name: str) -> str:
    """How many arguments a function takes, in words.

    Example:
        >>> arguments_expected("string-join")
        '1 or 2 arguments'
    """
    fewest, most = ARGUMENT_COUNTS[name]
    if (fewest, most) == XPATH_ARGUMENT_COUNTS.get(name):
        return xpath_arguments_expected(name)
    if fewest == most:
        return "1 argument" if fewest == 1 else f"{fewest} arguments"
    return f"{fewest} to {most} arguments" if most > fewest + 1 else f"{fewest} or {most} arguments"
