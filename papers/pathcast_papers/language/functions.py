"""The functions an expression may call.

The core library (XPath 1.0, section 4), and `doc` and `document`, with which papers begin a path:
how many arguments each takes, and the type of what it gives.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

_MANY: Final = 1 << 16

ARGUMENT_COUNTS: Final = MappingProxyType(
    {
        "last": (0, 0),
        "position": (0, 0),
        "count": (1, 1),
        "id": (1, 1),
        "local-name": (0, 1),
        "namespace-uri": (0, 1),
        "name": (0, 1),
        "string": (0, 1),
        "concat": (2, _MANY),
        "starts-with": (2, 2),
        "contains": (2, 2),
        "substring-before": (2, 2),
        "substring-after": (2, 2),
        "substring": (2, 3),
        "string-length": (0, 1),
        "normalize-space": (0, 1),
        "translate": (3, 3),
        "boolean": (1, 1),
        "not": (1, 1),
        "true": (0, 0),
        "false": (0, 0),
        "lang": (1, 1),
        "number": (0, 1),
        "sum": (1, 1),
        "floor": (1, 1),
        "ceiling": (1, 1),
        "round": (1, 1),
        "doc": (1, 1),
        "document": (1, 1),
    }
)
"""Name -> fewest and most arguments."""


CAST: Final = "double"
"""The cast of XQuery, which canonical text of the product has and XPath 1.0 has not."""

MOMENT_CASTS: Final = ("date", "dateTime", "time", "dayTimeDuration", "yearMonthDuration")
"""Casts of XQuery to dates, times and durations, which canonical text of the product has too."""

FOLDS: Final = ("lower-case", "upper-case", "ascii-case")
"""How canonical text of the product folds a text; the last one is the case-blind collation."""

CANONICAL_COUNTS: Final = MappingProxyType(
    {**dict.fromkeys((CAST, *MOMENT_CASTS, *FOLDS), 1), "matches": 2}
)
"""Functions that canonical text of the product has besides -> how many arguments each takes."""

LIST: Final = "("
"""What a list of XQuery in parentheses is read as, which that text has, too."""

RESULT_TYPES: Final = MappingProxyType(
    {
        CAST: "number",
        **dict.fromkeys(MOMENT_CASTS, "number"),
        **dict.fromkeys((*FOLDS, LIST), "string"),
        "matches": "boolean",
        "last": "number",
        "position": "number",
        "count": "number",
        "id": "nodes",
        "local-name": "string",
        "namespace-uri": "string",
        "name": "string",
        "string": "string",
        "concat": "string",
        "starts-with": "boolean",
        "contains": "boolean",
        "substring-before": "string",
        "substring-after": "string",
        "substring": "string",
        "string-length": "number",
        "normalize-space": "string",
        "translate": "string",
        "boolean": "boolean",
        "not": "boolean",
        "true": "boolean",
        "false": "boolean",
        "lang": "boolean",
        "number": "number",
        "sum": "number",
        "floor": "number",
        "ceiling": "number",
        "round": "number",
        "doc": "nodes",
        "document": "nodes",
    }
)
"""Name -> type of the result: "nodes", "boolean", "number" or "string"."""

NODE_SET_FUNCTIONS: Final = frozenset({"count", "sum", "local-name", "namespace-uri", "name"})
"""Functions whose arguments must be node-sets."""


def arguments_expected(name: str) -> str:
    """How many arguments a function takes, in words.

    Example:
        >>> arguments_expected("substring")
        '2 to 3 arguments'
        >>> arguments_expected("not")
        '1 argument'
    """
    fewest, most = ARGUMENT_COUNTS[name]
    if most == _MANY:
        return f"{fewest} arguments or more"
    if fewest != most:
        return f"{fewest} to {most} arguments"
    return f"{fewest} argument" if fewest == 1 else f"{fewest or 'no'} arguments"
