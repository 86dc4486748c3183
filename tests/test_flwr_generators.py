"""The generators of FLWR subscriptions and their messages: legal, various, and they replay.

If one of these fails, the differential tests still pass and prove less than they say.
"""

from __future__ import annotations

import random
import re
from collections import Counter

import pytest

from customised_cases import GENEROUS, pairs
from generators import VOCABULARIES, FlwrWidth, MessageTemper, random_flwr, random_flwr_message
from pathcast.message.canonical import FragmentError, canonical, expanded
from pathcast.query import compile_subscription
from pathcast.query.xquery import binding_of
from pathcast_papers.message import parse_message

vocabularies = pytest.mark.parametrize("vocabulary", sorted(VOCABULARIES))
widths = pytest.mark.parametrize("width", list(FlwrWidth), ids=[it.value for it in FlwrWidth])


@widths
@vocabularies
def test_every_subscription_is_legal(width: FlwrWidth, vocabulary: str) -> None:
    for number in range(60):
        flwr = random_flwr(random.Random(f"legal {number}"), VOCABULARIES[vocabulary], width)
        compiled = compile_subscription(flwr.text, flwr.namespaces)
        assert compiled.kind == "xquery", flwr.text
        if width is FlwrWidth.PAPER:
            assert compiled.program is not None
            assert binding_of(compiled.program) is not None, flwr.text


@vocabularies
def test_every_message_is_well_formed(vocabulary: str) -> None:
    chosen = VOCABULARIES[vocabulary]
    sizes = []
    for number in range(60):
        generator = random.Random(f"message {number}")
        message = random_flwr_message(generator, chosen, MessageTemper(hostility=number / 59))
        tree = parse_message(message, GENEROUS)
        sizes.append(len(tree.name))
    assert min(sizes) >= 1
    assert max(sizes) > 40


def test_a_seed_replays() -> None:
    for _ in range(2):
        assert [str(pair) for pair in pairs(FlwrWidth.WHOLE, "book", range(5))] == [
            str(pair) for pair in pairs(FlwrWidth.WHOLE, "book", range(5))
        ]


def test_tame_messages_keep_to_their_vocabulary() -> None:
    """With what `hostility` adds, hardly any does."""
    odd = re.compile(rb"<!DOCTYPE|<!\[CDATA|&#|xmlns:z|xml:lang")
    found: Counter[float] = Counter()
    for hostility in (0.0, 1.0):
        for number in range(40):
            generator = random.Random(f"temper {number}")
            message = random_flwr_message(
                generator, VOCABULARIES["book"], MessageTemper(hostility=hostility)
            )
            found[hostility] += odd.search(message) is not None
    assert found[0.0] == 0
    assert found[1.0] > 36


def test_they_use_all_of_the_language() -> None:
    """A generator that no longer wrote one of these would leave it unproven."""
    texts = "\n".join(
        random_flwr(random.Random(f"language {number}"), vocabulary).text
        for vocabulary in VOCABULARIES.values()
        for number in range(300)
    )
    wanted = ["for $", "let $", " at $", " where ", "order by", "stable order by", "descending"]
    wanted += ["empty greatest", "empty least", "some $", "every $", "satisfies", "if (", " else "]
    wanted += [" and ", " or ", " eq ", " ne ", " lt ", " le ", " gt ", " ge ", " = ", " != "]
    wanted += [" < ", " <= ", " > ", " >= ", " + ", " - ", " * ", " div ", " idiv ", " mod ", "(- "]
    wanted += [
        " | ",
        " union ",
        "//",
        "/@",
        "/..",
        "[1]",
        "[last()]",
        "position()",
        "::",
        ":*",
        "*:",
    ]
    wanted += ["text()", "node()", "comment()", "processing-instruction()", "element()", "@*"]
    wanted += [f"{axis}::" for axis in ("child", "descendant", "descendant-or-self", "self")]
    wanted += [f"{axis}::" for axis in ("parent", "ancestor", "ancestor-or-self", "following")]
    wanted += [f"{axis}::" for axis in ("following-sibling", "preceding", "preceding-sibling")]
    wanted += ["$msg", 'doc("', "document(", "fn:doc(", "xquery version", "declare namespace"]
    wanted += [
        "declare default element namespace",
        "(: a comment (: in a comment :)",
        "xmlns=",
        "xmlns:k",
    ]
    wanted += ["<![CDATA[", "&lt;", "&#10;", "{{", "}}", '="', "='", "{(", "<br/>", '""', "&amp;"]
    functions = [
        "string",
        "number",
        "count",
        "sum",
        "avg",
        "min",
        "max",
        "floor",
        "ceiling",
        "round",
    ]
    functions += ["abs", "concat", "substring", "substring-before", "substring-after", "contains"]
    functions += ["starts-with", "ends-with", "normalize-space", "translate", "upper-case"]
    functions += ["lower-case", "string-length", "string-join", "distinct-values", "data", "exists"]
    functions += ["empty", "boolean", "not", "true", "false", "name", "local-name", "namespace-uri"]
    functions += ["position", "last", "lang"]
    wanted += [f"{function}(" for function in functions]
    assert [construct for construct in wanted if construct not in texts] == []


@pytest.mark.parametrize(
    ("left", "right", "is_same"),
    [
        (b"<a/>", b"<a></a>", True),
        (b"<a x='1' y='2'/>", b'<a y="2" x="1"></a>', True),
        (b"<a>&lt;</a>", b"<a><![CDATA[<]]></a>", True),
        (b"<a>\r\n</a>", b"<a>\n</a>", True),
        (b"<a>&#13;</a>", b"<a>\n</a>", False),
        (b"<a x='\n'/>", b"<a x=' '/>", True),
        (b"<a x='&#10;'/>", b"<a x=' '/>", False),
        (b"<a xmlns:p='u'><b xmlns:p='u'/></a>", b"<a xmlns:p='u'><b/></a>", True),
        (b"<a><b xmlns:p='u'/></a>", b"<a><b/></a>", False),
        (b"<p:a xmlns:p='u'/>", b"<q:a xmlns:q='u'/>", False),
        (b"<a xmlns='u'><b xmlns=''/></a>", b"<a xmlns='u'><b/></a>", False),
        (b"<a xmlns=''/>", b"<a/>", True),
        (b"x &amp; y", b"x <![CDATA[&]]> y", True),
        (b"<!--a--><b/><?p x?>", b"<!--a--><b></b><?p  x?>", True),
        (b"<a><!--x--></a>", b"<a/>", False),
        (b"<a> </a>", b"<a/>", False),
    ],
)
def test_canonical_form(left: bytes, right: bytes, is_same: bool) -> None:
    assert (canonical(left) == canonical(right)) is is_same
    assert canonical(canonical(left)) == canonical(left)


def test_expanded_form_forgets_prefixes_alone() -> None:
    one = b"<p:a xmlns:p='u' p:x='1' y='2'><b/></p:a>"
    other = b"<a xmlns='u' xmlns:q='u' y='2' q:x='1'><b xmlns=''/></a>"
    assert expanded(one) == expanded(other)
    assert expanded(one) != expanded(other.replace(b" xmlns=''", b""))


@pytest.mark.parametrize(
    "fragment", [b"<a>", b"</f><f>", b"<p:a/>", b"<a p:x=''/>", b"&x;", b"\xff"]
)
def test_what_is_no_fragment(fragment: bytes) -> None:
    with pytest.raises(FragmentError):
        canonical(fragment)
