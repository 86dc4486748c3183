"""The functions that a FLWR subscription may call.

The core library of XPath 1.0 and the ones of XQuery 1.0 that shape messages. `doc`, `document`,
`true` and `false` are here for their arity; the kernel turns the first two into the message.

Source: XQuery 1.0 and XPath 2.0 Functions and Operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final

from pathcast.boundary import native
from pathcast.query.functions import ARGUMENT_COUNTS as XPATH_ARGUMENT_COUNTS
from pathcast.query.functions import arguments_expected as xpath_arguments_expected

FUNCTION_NAMESPACE: Final = "http://www.w3.org/2005/xpath-functions"
"""What the prefix `fn` stands for."""

_MANY: Final = 1 << 16

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

SCHEMA_NAMESPACE: Final = "http://www.w3.org/2001/XMLSchema"
"""What the prefix `xs` stands for."""


@cache
def argument_counts() -> Mapping[str, tuple[int, int]]:
    """Every function: name -> fewest and most arguments."""
    of_xquery = {
        name: (fewest, _MANY if most is None else most)
        for name, fewest, most in native.xquery_functions()
    }
    return MappingProxyType({**XPATH_ARGUMENT_COUNTS, **of_xquery})


def arguments_expected(name: str) -> str:
    """How many arguments a function takes, in words.

    Example:
        >>> arguments_expected("string-join")
        '1 or 2 arguments'
    """
    fewest, most = (1, 1) if name.startswith("xs:") else argument_counts()[name]
    if (fewest, most) == XPATH_ARGUMENT_COUNTS.get(name):
        return xpath_arguments_expected(name)
    if fewest == most:
        return "1 argument" if fewest == 1 else f"{fewest} arguments"
    return f"{fewest} to {most} arguments" if most > fewest + 1 else f"{fewest} or {most} arguments"
