"""The functions that a FLWR subscription may call.

The core library of XPath 1.0 and the ones of XQuery 1.0 that shape messages. `doc`, `document`,
`true` and `false` are here for their arity; the parser turns the first two into the message.

Source: XQuery 1.0 and XPath 2.0 Functions and Operators.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from pathcast.query.functions import ARGUMENT_COUNTS as XPATH_ARGUMENT_COUNTS

FUNCTION_NAMESPACE: Final = "http://www.w3.org/2005/xpath-functions"
"""What the prefix `fn` stands for."""

ADDED_ARGUMENT_COUNTS: Final = MappingProxyType(
    {
        "exists": (1, 1),
        "empty": (1, 1),
        "data": (1, 1),
        "avg": (1, 1),
        "min": (1, 1),
        "max": (1, 1),
        "distinct-values": (1, 1),
        "string-join": (2, 2),
        "ends-with": (2, 2),
        "upper-case": (1, 1),
        "lower-case": (1, 1),
        "abs": (1, 1),
    }
)
"""Functions beyond XPath 1.0: name -> fewest and most arguments."""

ARGUMENT_COUNTS: Final = MappingProxyType({**XPATH_ARGUMENT_COUNTS, **ADDED_ARGUMENT_COUNTS})
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
