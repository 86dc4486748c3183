"""Completion of interests: the names and values that can come next, by the sources.

Example:
    >>> from pathcast.store import SampleRecord
    >>> sample = SampleRecord("s", ("<recall><sku>A7</sku></recall>",))
    >>> found = completion("//s", ["<!ELEMENT order (sum)><!ELEMENT sum (#PCDATA)>"], [sample])
    >>> [each.text for each in found.proposals]
    ['sku', 'sum']

It is by the schemas of the sources, and by the samples of their messages that root brokers keep in
the profile database.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from functools import lru_cache

from pathcast.errors import MissingDependencyError, PathcastError, SchemaError
from pathcast.kernel import parse
from pathcast.limits import Limits
from pathcast.lint import Completion, Structure, complete, structure_of_dtd, structure_of_sample
from pathcast.message import MessageTree
from pathcast.overlay.schemas import read_schema
from pathcast.store import SampleRecord


def completion(
    text: str,
    schemas: Iterable[str],
    samples: Iterable[SampleRecord],
    namespaces: Mapping[str, str] | None = None,
) -> Completion:
    """The names and values that can come next in an interest.

    Args:
        text: The interest up to where it is written: an XPath expression.
        schemas: Of the sources; those that cannot be read say nothing.
        samples: Of their messages.
        namespaces: Bindings of the interest.

    Raises:
        QuerySyntaxError: What is complete of it cannot be read.

    Cost: about 10 ms for a schema or sample that is new; they are remembered.
    """
    found = [_of_schema(each) for each in dict.fromkeys(schemas) if each]
    found += [_of_messages(each.messages) for each in samples]
    return complete(text, [each for each in found if each is not None], namespaces)


@lru_cache(maxsize=128)
def _of_schema(text: str) -> Structure | None:
    try:
        return structure_of_dtd(read_schema(text)[0])
    except (SchemaError, MissingDependencyError):
        return None


@lru_cache(maxsize=128)
def _of_messages(messages: tuple[str, ...]) -> Structure | None:
    trees: list[MessageTree] = []
    for message in messages:
        with contextlib.suppress(PathcastError):
            trees.append(parse(message.encode(), Limits()))
    return structure_of_sample(trees) if trees else None
