"""Which elements of a file are records: a path of child steps from the root element on.

/orders/order      order elements in no namespace, below a root element orders
/o:orders/o:order  in the namespace that is bound to o
/*/*               every child of the root element
"""

from __future__ import annotations

from collections.abc import Mapping

from pathcast.errors import ConfigError, QuerySyntaxError
from pathcast.query import binding, parse, usual_uri
from pathcast.query.names import namespace_of
from pathcast.query.syntax import Axis, LocationPath, NameTest


def record_path(
    text: str, namespaces: Mapping[str, str] | None = None
) -> tuple[tuple[str | None, str | None], ...]:
    """The name tests of a path, from the root element to a record.

    Args:
        text: The path; child steps only, without predicates.
        namespaces: Prefix -> URI; the prefix "" is the default namespace of elements.

    Returns:
        Namespace and local name of each level; None for any.

    Raises:
        QuerySyntaxError: It is no XPath.
        ConfigError: It is another XPath than such a path.

    Example:
        >>> record_path("/o:orders/*", {"o": "urn:o"})
        (('urn:o', 'orders'), (None, None))
    """
    path = parse(text)
    bound = dict(namespaces or {})
    if isinstance(path, LocationPath) and path.is_absolute and path.steps:
        steps = path.steps
        tests = [step.test for step in steps if step.axis is Axis.CHILD and not step.predicates]
        names = [test for test in tests if isinstance(test, NameTest)]
        if len(names) == len(steps):
            return tuple(_pair(text, test, bound) for test in names)
    reason = f"{text!r} is not a path of names from the root element on, such as /orders/order"
    raise ConfigError("config.invalid", key="record", reason=reason)


def _pair(text: str, test: NameTest, bound: Mapping[str, str]) -> tuple[str | None, str | None]:
    local = test.local
    if test.uri is not None:
        return test.uri, local
    if test.prefix is None:
        return (None if local is None else bound.get("", "")), local
    if test.prefix == "*":
        return None, local
    uri = namespace_of(test.prefix, bound)
    if uri is None:
        raise QuerySyntaxError(
            "XPST0081",
            query=text,
            offset=test.offset,
            reason=f"prefix {test.prefix!r} is not bound",
            suggestion=f"bind it: {binding(test.prefix, usual_uri(test.prefix) or '...')}",
        )
    return uri, local
