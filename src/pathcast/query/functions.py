"""The functions an expression may call, in XPath 1.0 and in a program.

An XPath may call the core library (XPath 1.0, section 4), and `doc` and `document`, with which
papers begin a path; a program those of XQuery 1.0 that shape messages as well, which the kernel
lists.

Source: XPath 1.0, section 4; XQuery 1.0 and XPath 2.0 Functions and Operators.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from pathcast.boundary import native

FUNCTION_NAMESPACE: Final = "http://www.w3.org/2005/xpath-functions"
"""What the prefix `fn` stands for."""

SCHEMA_NAMESPACE: Final = "http://www.w3.org/2001/XMLSchema"
"""What the prefix `xs` stands for."""

CASE_BLIND: Final = "http://www.w3.org/2005/xpath-functions/collation/html-ascii-case-insensitive"
"""The collation to which the letters of ASCII are the same in both cases."""

_MANY: Final = 1 << 16


class CoreFunction(NamedTuple):
    """A function of XPath 1.0: how many arguments it takes, and the type of what it gives."""

    fewest: int
    most: int
    result: Literal["nodes", "boolean", "number", "string"]


CORE_FUNCTIONS: Final = MappingProxyType(
    {
        "last": CoreFunction(0, 0, "number"),
        "position": CoreFunction(0, 0, "number"),
        "count": CoreFunction(1, 1, "number"),
        "id": CoreFunction(1, 1, "nodes"),
        "local-name": CoreFunction(0, 1, "string"),
        "namespace-uri": CoreFunction(0, 1, "string"),
        "name": CoreFunction(0, 1, "string"),
        "string": CoreFunction(0, 1, "string"),
        "concat": CoreFunction(2, _MANY, "string"),
        "starts-with": CoreFunction(2, 2, "boolean"),
        "contains": CoreFunction(2, 2, "boolean"),
        "substring-before": CoreFunction(2, 2, "string"),
        "substring-after": CoreFunction(2, 2, "string"),
        "substring": CoreFunction(2, 3, "string"),
        "string-length": CoreFunction(0, 1, "number"),
        "normalize-space": CoreFunction(0, 1, "string"),
        "translate": CoreFunction(3, 3, "string"),
        "boolean": CoreFunction(1, 1, "boolean"),
        "not": CoreFunction(1, 1, "boolean"),
        "true": CoreFunction(0, 0, "boolean"),
        "false": CoreFunction(0, 0, "boolean"),
        "lang": CoreFunction(1, 1, "boolean"),
        "number": CoreFunction(0, 1, "number"),
        "sum": CoreFunction(1, 1, "number"),
        "floor": CoreFunction(1, 1, "number"),
        "ceiling": CoreFunction(1, 1, "number"),
        "round": CoreFunction(1, 1, "number"),
        "doc": CoreFunction(1, 1, "nodes"),
        "document": CoreFunction(1, 1, "nodes"),
    }
)
"""Name -> function, of those that an XPath may call."""

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


@cache
def argument_counts() -> Mapping[str, tuple[int, int]]:
    """Every function of a program: name -> fewest and most arguments."""
    core = {name: (each.fewest, each.most) for name, each in CORE_FUNCTIONS.items()}
    of_program = {
        name: (fewest, _MANY if most is None else most)
        for name, fewest, most in native.xquery_functions()
    }
    return MappingProxyType({**core, **of_program})


def arguments_expected(name: str) -> str:
    """How many arguments a function takes, in words.

    Example:
        >>> arguments_expected("substring"), arguments_expected("string-join")
        ('2 to 3 arguments', '1 or 2 arguments')
        >>> arguments_expected("not"), arguments_expected("xs:date")
        ('1 argument', '1 argument')
    """
    fewest, most = (1, 1) if name.startswith("xs:") else argument_counts()[name]
    core = CORE_FUNCTIONS.get(name)
    is_core = core is not None and (core.fewest, core.most) == (fewest, most)
    if fewest == most:
        none = "no" if is_core else "0"
        return "1 argument" if fewest == 1 else f"{fewest or none} arguments"
    if most == _MANY and is_core:
        return f"{fewest} arguments or more"
    is_next = most == fewest + 1 and not is_core
    return f"{fewest} {'or' if is_next else 'to'} {most} arguments"
