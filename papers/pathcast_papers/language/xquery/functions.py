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
        "avg": (1, 1),
        "codepoints-to-string": (1, 1),
        "compare": (2, 3),
        "current-date": (0, 0),
        "current-dateTime": (0, 0),
        "current-time": (0, 0),
        "data": (1, 1),
        "dateTime": (2, 2),
        "day-from-date": (1, 1),
        "day-from-dateTime": (1, 1),
        "days-from-duration": (1, 1),
        "distinct-values": (1, 1),
        "empty": (1, 1),
        "encode-for-uri": (1, 1),
        "ends-with": (2, 3),
        "exists": (1, 1),
        "head": (1, 1),
        "hours-from-dateTime": (1, 1),
        "hours-from-duration": (1, 1),
        "hours-from-time": (1, 1),
        "implicit-timezone": (0, 0),
        "index-of": (2, 2),
        "insert-before": (3, 3),
        "lower-case": (1, 1),
        "matches": (2, 3),
        "max": (1, 1),
        "min": (1, 1),
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
        # With a collation.
        "contains": (2, 3),
        "starts-with": (2, 3),
    }
)
"""Every function: name -> fewest and most arguments."""

CONTEXT_FUNCTIONS: Final = frozenset(
    {
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
        **{
            (name, count): f"a collation in {name}()"
            for name, count in (
                ("substring-before", 3),
                ("substring-after", 3),
                ("distinct-values", 2),
                ("min", 2),
                ("max", 2),
            )
        },
        ("index-of", 3): "a collation in index-of()",
        ("sum", 2): "the value of sum() for no items",
        ("id", 2): "the node of id()",
        ("lang", 2): "the node of lang()",
        ("round", 2): "the digits of round()",
        ("data", 0): "data() without an argument",
    }
)
"""Function and number of arguments -> what XQuery knows, and a subscription does not."""

CODEPOINT: Final = "http://www.w3.org/2005/xpath-functions/collation/codepoint"
"""The default collation."""

CASE_BLIND: Final = "http://www.w3.org/2005/xpath-functions/collation/html-ascii-case-insensitive"
"""The collation to which the letters of ASCII are the same in both cases."""

COLLATED: Final = frozenset({"contains", "starts-with", "ends-with", "compare"})
"""Functions that take a collation."""

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
