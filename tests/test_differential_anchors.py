"""Where conditions and nested paths stand: recursion, anchors, namespaces; engine == lxml.

If one of these fails, a condition is looked at on the wrong element, or a nested path is taken for
another one or for one at another anchor. PATHCAST_CONTENT=<cases> makes the tests longer.
"""

from __future__ import annotations

import random
from itertools import combinations, product

from content_cases import CASES, Content
from every_engine import engines
from oracles import assert_same_matches
from oracles.engines import EngineName, made_by
from pathcast.errors import MessageError
from pathcast.limits import Limits
from pathcast.model import Query
from pathcast.registry import Registry
from pathcast_papers import parse


@engines
def test_conditions_with_recursion(engine: EngineName) -> None:
    """The same attribute at several steps of a recursion: each step needs its own element."""
    values = ("1", "2", "3")
    texts = [
        f"//a[@x='{one}']{axis}a[@x='{two}']{last}"
        for one, two, axis, last in product(
            values, values, ("/", "//", "/*/", "//*//"), ("", "//b", "/b", "//b[@x='1']")
        )
    ]
    texts += [f"//a//a[@x={one}]//a[@y<{two}]//a" for one, two in product(values, values)]
    texts += [
        f"//a[@x='{one}'][.//a[@x='{two}']//a[@y]]//a" for one, two in product(values, values)
    ]
    texts += [f"//a[a[@x='{one}']/a[@x='{two}']]" for one, two in product(values, values)]
    texts += [f"//*[@x='{one}']//*[@x='{two}']//*[@x='1']" for one, two in product(values, values)]
    generator = random.Random(3)
    messages = []
    for depth in (1, 2, 3, 4, 6, 9, 14, 20) * 3:
        text = "<b x='1'/>" if generator.randrange(2) else ""
        for _ in range(depth):
            name = generator.choice("aaab")
            attributes = "".join(
                f" {key}='{generator.choice(values)}'" for key in "xy" if generator.randrange(3)
            )
            text = f"<{name}{attributes}>{text}</{name}>"
        messages.append(text.encode())
    content = Content(texts, messages)
    assert content.matches > 100
    content.check(content.index(engine))


ANCHORS = (
    # Two nested paths that hold, but not at one element; equal ones at different anchors; chains.
    "/r/a[b][c]/d",
    "/r/a[b/c][d/c]",
    "/r/a[b]/e[b]",
    "/r/a[.//b][.//c]//d",
    "/r//a[b][c]",
    "//a[b[@x='1']][b[@x='2']]",
    "//a[b[@x='1'][@y='2']]",
    "//a[b[@x='1']]/b[@y='2']",
    "//a[b[@x='1']]//a[b[@x='2']]",
    "//a[b[@x='1']]//a[b[@x='1']]",
    "/r[a[b]]/a[c]",
    "/r[a[b][c]]",
    "/r[.//a[b]][.//a[c]]",
    "/r[.//a[b][c]]",
    "//a[e/b][e/c]",
    "//a[e[b][c]]",
    "//a[e[b]/c]",
    "//*[b]//*[c]",
    "//*[b[@x]]/*[b[@x]]",
    "//a[.//e[.//b]]//e[.//c]",
    "//a[b = 5][c = 5]",
    "//a[b = 5]/d[. = 5]",
    "//a[.//b/@x = 1][.//c/@x = 1]",
    "/r/*[b[@x='1']/c]/d[@y]",
    "/r/*[a[b[@x='1']]]",
    # Conditions of a nested path above one of its own `//` steps.
    "//a[e[@x='1']//b]",
    "/r/a[e[@x][@y]//b]",
    "//a[*[@x]/e[@y]//b]",
    "//a[e[c]//b][d]",
    "//a[b][2]",
    "//a[2][b]",
    "//a[b[2]][c]",
    "//a[b[c][1]][d]",
    "//e[b][position() > 1]/c",
    # The anchor itself may be what the nested path asks for.
    "//e[b]//@x",
    "//a[@x]//@y",
    "//a[.//@y][b]",
    "//a[2]//text()",
    "//b[.//text()='5']/c",
)


@engines
def test_nested_paths_at_their_anchors(engine: EngineName) -> None:
    """Nested paths that hold at different elements only must not match together."""
    generator = random.Random(4)

    def element(depth: int) -> str:
        name = generator.choice("aaebcd")
        attributes = "".join(
            f" {key}='{generator.choice('12')}'" for key in "xy" if not generator.randrange(3)
        )
        inside = "" if generator.randrange(4) else "5"
        if depth:
            inside += "".join(element(depth - 1) for _ in range(generator.randrange(5)))
        return f"<{name}{attributes}>{inside}</{name}>"

    messages = [
        f"<r>{''.join(element(3) for _ in range(generator.randrange(1, 5)))}</r>".encode()
        for _ in range(250 * max(1, CASES // 8))
    ]
    content = Content(ANCHORS, messages)
    assert all(0 < len(rows) < len(messages) for rows in content.truth.values()), {
        content.texts[query_id]: len(rows) for query_id, rows in content.truth.items()
    }
    content.check(content.index(engine))


@engines
def test_nested_paths_that_hold_apart(engine: EngineName) -> None:
    """The smallest such messages, so that a failure is readable."""
    queries = {
        "both": "/r/a[b][c]",
        "apart": "/r[a/b][a/c]",
        "deep": "//a[.//b][.//c]",
        "chain": "/r/a[b]/a[c]",
        "values": "//a[b='1'][c='2']",
        "same": "//a[b='1'][b='2']",
        "one": "//a[b[@x][@y]]",
        "two": "//a[b[@x]][b[@y]]",
        "below": "//a[b[@x]//c]",
    }
    expected = {
        "<r><a><b/></a><a><c/></a></r>": {"apart"},
        "<r><a><b/><c/></a></r>": {"both", "apart", "deep"},
        "<r><a><b/><a><c/></a></a></r>": {"deep", "chain"},
        "<r><a><b>1</b></a><a><c>2</c></a></r>": {"apart"},
        "<r><a><b>1</b><c>2</c></a></r>": {"both", "apart", "deep", "values"},
        "<r><a><b>1</b><b>2</b></a></r>": {"same"},
        "<r><a><b>1</b></a><a><b>2</b></a></r>": set(),
        "<r><a><b x=''/><b y=''/></a></r>": {"two"},
        "<r><a><b x='' y=''/></a></r>": {"one", "two"},
        "<r><a><b x=''/></a><a><b y=''/></a></r>": set(),
        "<r><a><b x=''><c/></b></a></r>": {"deep", "below"},
        "<r><a x=''><b><c/></b></a></r>": {"deep"},
    }
    index = made_by(engine, Registry)
    index.add([Query(query_id, text) for query_id, text in queries.items()])
    results = index.match([message.encode() for message in expected])
    for (message, wanted), result in zip(expected.items(), results, strict=True):
        assert_same_matches(result.query_ids, wanted, engine, "the case", queries, message.encode())


@engines
def test_queries_that_share_one_of_their_alternatives(engine: EngineName) -> None:
    """What one of them is known by must not be taken for what they share."""
    shared = "a[position() <= 2][@x != 6]/@y"
    queries = {
        "first": f"//a/*[{shared} or contains(., 'u')]//*/@y",
        "second": f"//a/*[{shared} or contains(., 'v')]//*/@y",
        "third": f"//a/*[{shared} or b = 5]//*/@y",
        "other": "//a/*[contains(., 'u')]//*/@y",
    }
    messages = {
        "<c><c><a><a>u<b><a x='s' y='1'/></b></a></a></c></c>": {
            "first",
            "second",
            "third",
            "other",
        },
        "<c><a><b>u<a x='s' y='1'/></b></a></c>": {"first", "second", "third", "other"},
        "<c><a><b>v<a x='6' y='1'/></b></a></c>": {"second"},
        "<c><a><b><a x='6' y='1'/></b></a></c>": set(),
        "<c><a><b>u<b>5</b><c y='1'/></b></a></c>": {"first", "third", "other"},
    }
    content = Content(queries.values(), [message.encode() for message in messages])
    for number, wanted in enumerate(messages.values()):
        truth = zip(queries, content.truth.values(), strict=True)
        assert {name for name, rows in truth if number in rows} == wanted, number
    for count in (1, 2, 3, 4):
        for ids in combinations(content.texts, count):
            index = content.index(engine, ids)
            content.check(index, ids)
            content.check(index.freeze(), ids)


NAMESPACES = {"p": "urn:p", "q": "urn:q"}


@engines
def test_conditions_on_names_in_namespaces(engine: EngineName) -> None:
    """One local name in several namespaces: conditions must not meet each other's attributes."""
    elements = ("a", "p:a", "q:a", "*:a", "p:*", "*")
    attributes = ("x", "p:x", "q:x", "p:*", "*")
    texts = [
        text
        for element, attribute, value in product(elements, attributes, ("'1'", "2"))
        for text in (
            f"//{element}[@{attribute} = {value}]",
            f"//{element}[@{attribute} != {value}]/*",
            f"/*/*[{element}/@{attribute} = {value}]",
            f"//{element}[.//{element}[@{attribute} = {value}]]//{element}",
            f"//{element}[. = {value}][@{attribute}]",
        )
    ]
    texts += [
        f"//{element}[starts-with(@x, '1')]/{other}[@p:x > 1]"
        for element, other in product(elements, elements)
    ]
    generator = random.Random(12)

    def element(depth: int) -> str:
        name = generator.choice(("a", "p:a", "q:a", "b", "p:b"))
        attributes = "".join(
            f' {key}="{generator.choice(("1", "2", "1.0", "12"))}"'
            for key in ("x", "p:x", "q:x", "y")
            if not generator.randrange(3)
        )
        declared = generator.choice(("", "", "", ' xmlns="urn:p"', ' xmlns=""', ' xmlns:q="urn:p"'))
        if "xmlns:q" in declared:
            # p and q are one namespace here: p:x and q:x would be the same attribute twice.
            attributes = attributes.replace(" q:x", " z")
        inside = (
            "".join(element(depth - 1) for _ in range(generator.randrange(4))) if depth else "1"
        )
        return f"<{name}{declared}{attributes}>{inside}</{name}>"

    messages = [
        f'<r xmlns:p="urn:p" xmlns:q="urn:q">{element(3)}{element(2)}</r>'.encode()
        for _ in range(25)
    ]
    messages = [message for message in messages if is_well_formed(message)]
    assert len(messages) > 10
    content = Content(texts, messages, namespaces=NAMESPACES)
    assert content.matches > 1000
    content.check(content.index(engine))


def is_well_formed(message: bytes) -> bool:
    """Inside an element that makes p and q one namespace, an attribute may be there twice."""
    try:
        parse(message, Limits())
    except MessageError:
        return False
    return True
