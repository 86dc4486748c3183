"""lxml (libxml2) as an oracle: another implementation of XPath 1.0, written by others.

A query is given to lxml as its author wrote it. Only what XPath 1.0 cannot say is written anew from
the normal form: `*:name`, `Q{uri}name`, `//.[@a]`, a default element namespace, and the papers'
`$msg/...`, `doc(...)/...`, `/a/[b]`, `<>`.

Example:
    >>> from pathcast.model import Query
    >>> lxml_matches(Query("q1", "//b[. > 1]"), b"<a><b>2</b></a>")
    True

Where libxml2 leaves XPath 1.0 (seen with 2.14): `number()` reads exponents (`1e3`), which XPath 1.0
does not (`number_differs`); a text node is split where an entity was expanded, which parsing the
serialised tree once more repairs (`lxml_tree`).

lxml is imported when it is first needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pathcast.model import Query
from pathcast.query import (
    AnyIn,
    AnyName,
    AnyNamespace,
    AttributeCondition,
    Axis,
    Comparison,
    Condition,
    NameTest,
    NestedCondition,
    Stage,
    Step,
    TextCondition,
    ValueCondition,
    normalise,
)
from pathcast.query.canonical import number_text, position_text

if TYPE_CHECKING:
    from lxml import etree

_BEYOND_XPATH_1 = re.compile(r"\*:|Q\{|[./]\s*\[|<>|^\s*(?:\$|doc(?:ument)?\s*\()")

_NUMBER_WITH_EXPONENT = re.compile(
    r"[ \t\r\n]*-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)[eE][-+]?[0-9]*[ \t\r\n]*"
)


def number_differs(value: str) -> bool:
    """Whether libxml2 reads a value as a number and XPath 1.0 does not.

    Example:
        >>> number_differs("1e3"), number_differs("12.5")
        (True, False)
    """
    return _NUMBER_WITH_EXPONENT.fullmatch(value) is not None


def lxml_tree(message: bytes) -> etree._Element:
    """The message as lxml sees it, with text nodes as XPath 1.0 has them.

    Raises:
        lxml.etree.XMLSyntaxError: lxml refuses the message.
        ImportError: lxml is not installed.
    """
    from lxml import etree

    parser = etree.XMLParser(resolve_entities="internal", no_network=True, huge_tree=True)
    if b"<!ATTLIST" in message:
        # Asking for attribute defaults makes libxml2 ask for external subsets, too.
        root = etree.fromstring(message, _with_attribute_defaults())
    else:
        root = etree.fromstring(message, parser)
    # Serialised without its DTD and parsed once more: adjacent text nodes become one.
    plain = etree.tostring(root, encoding="UTF-8", with_tail=False)
    return etree.fromstring(plain, parser)


def _with_attribute_defaults() -> etree.XMLParser:
    from lxml import etree

    return etree.XMLParser(
        resolve_entities="internal", no_network=True, huge_tree=True, attribute_defaults=True
    )


class LxmlQuery:
    """One query compiled by lxml.

    Attributes:
        text: What lxml was given.
    """

    def __init__(self, query: Query) -> None:
        from lxml import etree

        namespaces = dict(query.namespaces or {})
        has_default = bool(namespaces.pop("", ""))
        self.text = query.text.strip()
        if has_default or _BEYOND_XPATH_1.search(self.text):
            self.text = xpath_1_text(normalise(query.text, query.namespaces).steps)
        elif not self.text.startswith("/"):
            # A relative query is read from the document node; lxml would take the root element.
            self.text = "/" + self.text
        self._evaluator = etree.XPath(self.text, namespaces=namespaces or None, smart_strings=False)

    def matches(self, root: Any) -> bool:
        """Whether the query selects something in a tree of `lxml_tree`."""
        return bool(self._evaluator(root.getroottree()))


def lxml_matches(query: Query, message: bytes) -> bool:
    """Whether a message satisfies a query, by lxml.

    Raises:
        ImportError: lxml is not installed.
    """
    return LxmlQuery(query).matches(lxml_tree(message))


def xpath_1_text(steps: Sequence[Step]) -> str:
    """A normal form in the words of XPath 1.0, with no prefix to bind.

    Example:
        >>> xpath_1_text(normalise("//*:a[2]/Q{u}b").steps)
        "//*[local-name()='a'][position()=2]/*[local-name()='b' and namespace-uri()='u']"
    """
    return "".join(_step(step) for step in steps)


def _step(step: Step) -> str:
    separator = {
        Axis.CHILD: "/",
        Axis.DESCENDANT: "//",
        Axis.DESCENDANT_OR_SELF: "/descendant-or-self::",
    }[step.axis]
    return separator + _name_test(step.test) + "".join(_stage(stage) for stage in step.stages)


def _name_test(test: NameTest) -> str:
    """A name test that holds for the names, and no positions change: `*[...]`."""
    match test:
        case AnyName():
            return "*"
        case AnyNamespace(local):
            return f"*[local-name()='{local}']"
        case AnyIn(uri):
            return f"*[namespace-uri()='{uri}']"
        case _:
            return f"*[local-name()='{test.local}' and namespace-uri()='{test.uri}']"


def _stage(stage: Stage) -> str:
    positions = " and ".join(position_text(position) for position in stage.positions)
    return (f"[{positions}]" if positions else "") + "".join(
        f"[{_condition(condition)}]" for condition in stage.conditions
    )


def _condition(condition: Condition) -> str:
    match condition:
        case AttributeCondition(test, compare):
            return f"@{_name_test(test)}{_comparison(compare)}"
        case TextCondition(compare):
            return f"text(){_comparison(compare)}"
        case ValueCondition(compare):
            return f".{_comparison(compare)}"
        case NestedCondition(steps):
            return f".{xpath_1_text(steps)}"


def _comparison(compare: Comparison | None) -> str:
    if compare is None:
        return ""
    constant = compare.constant
    if isinstance(constant, float):
        return compare.operator.value + number_text(constant)
    quote = '"' if "'" in constant else "'"
    return f"{compare.operator.value}{quote}{constant}{quote}"
