"""lxml (libxml2) as an oracle: another implementation of XPath 1.0, written by others.

A query is given to lxml as its author wrote it. Only what XPath 1.0 cannot say is written anew:
`*:name` and `Q{uri}name`, and from the compiled form `//.[@a]`, a default element namespace, and
the papers' `$msg/...`, `doc(...)/...`, `/a/[b]`, `<>`.

Example:
    >>> from pathcast.model import Query
    >>> lxml_matches(Query("q1", "//b[. > 1]"), b"<a><b>2</b></a>")
    True

Where libxml2 leaves XPath 1.0 is listed in `oracles.lxml_differences`. One thing is
repaired: an empty CDATA section leaves an empty text node, which goes when the tree is serialised
and parsed once more (`lxml_tree`).

lxml is imported when it is first needed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oracles.paths import of_papers
from pathcast.model import Query
from pathcast.query import compile_query
from pathcast_papers.language import (
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
)
from pathcast_papers.language.canonical import literal_text, number_text, position_text

if TYPE_CHECKING:
    from lxml import etree

_LITERAL = re.compile(r"'[^']*'|\"[^\"]*\"")

_BEYOND_XPATH_1 = re.compile(r"[./]\s*\[|<>|^\s*(?:\$|doc(?:ument)?\s*\()")
"""What only the normal form can put into the words of XPath 1.0; names apart."""

_WIDE_NAME = re.compile(
    r"(?P<literal>'[^']*'|\"[^\"]*\")|Q\{(?P<uri>[^}]*)\}(?P<name>\*|[\w.-]+)|\*:(?P<local>[\w.-]+)"
)
"""`Q{uri}name`, `Q{uri}*` and `*:name`, outside of literals."""

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
    # Serialised without its DTD and parsed once more: empty text nodes go, and adjacent ones, if
    # there are any, become one. Comments and processing instructions beside the root element stay.
    document = root.getroottree()
    document.docinfo.clear()
    plain = etree.tostring(document, encoding="UTF-8", doctype=_declaration_of_ids(message))
    return etree.fromstring(plain, parser)


def _declaration_of_ids(message: bytes) -> str | None:
    """The internal subset if attributes of the type ID are declared there: `id()` needs it."""
    subset = re.search(rb"<!DOCTYPE\s+[^\s\[>]+\s*\[.*?\]\s*>", message, re.DOTALL)
    if subset is None or not re.search(rb"<!ATTLIST[^>]*\sID\s", subset[0]):
        return None
    return subset[0].decode()


def _with_attribute_defaults() -> etree.XMLParser:
    from lxml import etree

    return etree.XMLParser(
        resolve_entities="internal", no_network=True, huge_tree=True, attribute_defaults=True
    )


class LxmlQuery:
    """One query compiled by lxml.

    Any expression will do; as everywhere, it counts by `boolean()`. lxml starts at the root
    element, a standing query at the document node: a predicate of the document node changes that.

    Attributes:
        text: The query in the words of XPath 1.0.

    Raises:
        lxml.etree.XPathError: lxml does not read the query.
    """

    def __init__(self, query: Query) -> None:
        from lxml import etree

        namespaces = dict(query.namespaces or {})
        has_default = bool(namespaces.pop("", ""))
        self.text = in_xpath_1_names(query.text.strip())
        if has_default or _BEYOND_XPATH_1.search(_LITERAL.sub("''", self.text)):
            compiled = compile_query(query.text, query.namespaces)
            self.text = in_xpath_1_names(compiled.expression or "") or " | ".join(
                xpath_1_text(of_papers(path).steps) for path in compiled.alternatives
            )
        self._evaluator = etree.XPath(
            f"boolean(/self::node()[boolean({self.text})])",
            namespaces=namespaces or None,
            smart_strings=False,
        )

    def matches(self, root: Any) -> bool:
        """Whether the query holds in a tree of `lxml_tree`."""
        return bool(self._evaluator(root.getroottree()))


def lxml_matches(query: Query, message: bytes) -> bool:
    """Whether a message satisfies a query, by lxml.

    Raises:
        ImportError: lxml is not installed.
    """
    return LxmlQuery(query).matches(lxml_tree(message))


def in_xpath_1_names(text: str) -> str:
    """An expression with `Q{uri}name`, `Q{uri}*` and `*:name` written as XPath 1.0 has to.

    Example:
        >>> in_xpath_1_names("//*:a/Q{u}*[. = '*:b']")
        "//*[local-name()='a']/*[namespace-uri()='u'][. = '*:b']"
    """
    return _WIDE_NAME.sub(_xpath_1_name, text)


def _xpath_1_name(found: re.Match[str]) -> str:
    if found["literal"]:
        return found["literal"]
    if found["local"]:
        return f"*[local-name()='{found['local']}']"
    if found["name"] == "*":
        return f"*[namespace-uri()={literal_text(found['uri'])}]"
    return f"*[local-name()='{found['name']}' and namespace-uri()={literal_text(found['uri'])}]"


def xpath_1_text(steps: Sequence[Step]) -> str:
    """A normal form in the words of XPath 1.0, with no prefix to bind.

    Example:
        >>> from pathcast_papers.language import normalise
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
            return f"*[namespace-uri()={literal_text(uri)}]"
        case _:
            return f"*[local-name()='{test.local}' and namespace-uri()={literal_text(test.uri)}]"


def _stage(stage: Stage) -> str:
    positions = " and ".join(position_text(position) for position in stage.positions)
    return (f"[{positions}]" if positions else "") + "".join(
        f"[{_condition(condition)}]" for condition in stage.conditions
    )


def _condition(condition: Condition) -> str:
    match condition:
        case AttributeCondition(test, compare):
            return _compared(f"@{_name_test(test)}", compare)
        case TextCondition(compare):
            return _compared("text()", compare)
        case ValueCondition(compare):
            return _compared(".", compare)
        case NestedCondition(steps):
            return f".{xpath_1_text(steps)}"


def _compared(what: str, compare: Comparison | None) -> str:
    if compare is None:
        return what
    operator, constant = compare.operator, compare.constant
    assert isinstance(constant, float | str), "XPath 1.0 has no cast and no list"
    text = number_text(constant) if isinstance(constant, float) else literal_text(constant)
    if operator.is_call:
        return f"{operator.value}({what},{text})"
    return what + operator.value + text
