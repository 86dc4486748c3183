"""Why a message goes to a neighbour: the entries of its table that hold of the message.

Example:
    >>> entries = ["//item[@sku='A7'] and //to", "/recall", "//to[.='Chur']"]
    >>> entries_that_hold(entries, b"<order><item sku='A7'/><to>Bern</to></order>")
    ["//item[@sku='A7'] and //to"]

A table does not know that: it asks no further once it knows who wants a message.
"""

from __future__ import annotations

from collections.abc import Iterable

from pathcast.engine import gates_that_hold


def entries_that_hold(entries: Iterable[str], body: bytes) -> list[str]:
    """Entries of one neighbour that a message satisfies, sorted.

    Args:
        entries: What the neighbour told; what are no paths (offers for cutting) are passed over.
        body: The message; of one that is none no entry holds.

    Cost: some microseconds an entry: all are compiled anew, for this message.
    """
    paths = sorted(entry for entry in entries if entry.startswith("/"))
    return list(gates_that_hold(paths, body).query_ids)
