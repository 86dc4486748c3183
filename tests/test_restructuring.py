"""Early restructuring: steps are those of a tree of nodes, and routing sees what they will give.

The oracle of the edits is lxml's tree; of the entries, matching on both sides of the steps.
"""

from __future__ import annotations

import random
from typing import Any, Final

import pytest

from broker_engines import missing
from oracles.engines import made_by
from pathcast import Query, Registry
from pathcast.errors import PathcastError, QuerySyntaxError, UnsupportedQueryError
from pathcast.overlay.disjuncts import disjuncts_of
from pathcast.query import conjunction_of
from pathcast.registry.before_steps import paths_before
from pathcast.registry.restructuring import Restructuring
from pathcast.registry.steps import (
    TABLE_TO_LIST,
    Edit,
    EditStep,
    Steps,
    common_steps,
    parse_steps,
)

etree = pytest.importorskip("lxml.etree", reason="lxml is not installed")
pytestmark = pytest.mark.skipif(missing("kernel") is not None, reason=str(missing("kernel")))

NAMES: Final = ("a", "b", "c", "n:d")
BOUND: Final = {"n": "urn:n"}


TEXTS: Final = (
    *("1", "2", "]", "]]", ">", "\r", "\n", "<!--</b>-->", "<?p </a>?>"),
    *("<![CDATA[</b><b xmlns:n='u'>]]>", "&lt;b xmlns=&#34;u&#34;>", "<!--<a xmlns='u'>-->"),
)
VALUES: Final = (
    "'{}'",
    '"{}>"',
    "'a xmlns=y{}'",
    "\"/>\n xmlns:n='u' {}\"",
    "'&#10;&quot;<!--{}-->'",
)
DECLARATIONS: Final = (" xmlns:n='urn:n'", '\n xmlns:m = "urn:m"', " xmlns=''")


def element(rng: random.Random, depth: int, top: str = "") -> str:
    """An element whose text and attributes look like tags where they can.

    Elements that declare a namespace say so, for the oracle.
    """
    name = top or rng.choice(NAMES)
    attributes = "".join(
        rng.choice([" {}={}", "\t{} = {}"]).format(
            x, (rng.choice(VALUES).replace("<", "&lt;")).format(rng.randrange(3))
        )
        if rng.random() < 0.3
        else f" {x}='{rng.randrange(3)}'"
        for x in ("x", "y")
        if rng.random() < 0.4
    )
    if top or rng.random() < 0.1:
        declared = DECLARATIONS[0] if top else rng.choice(DECLARATIONS)
        attributes += f"{declared} declares='1'"
    inside: list[str] = []
    for _ in range(rng.randrange(6 if top else 4)):
        piece = element(rng, depth - 1) if depth and rng.random() < 0.6 else rng.choice(TEXTS)
        # `]]>` is no text.
        inside.append("&gt;" if piece == ">" and inside and inside[-1].endswith("]") else piece)
    if not inside:
        return f"<{name}{attributes}/>"
    return f"<{name}{attributes}>{''.join(inside)}</{name}\n>"


def random_steps(rng: random.Random, *, draws_plain: bool = False) -> Steps:
    """Some steps; `draws_plain`: of which more keep what entries ask of text."""
    made = []
    kinds = [Edit.DROP, Edit.DROP, Edit.RENAME] if draws_plain and rng.random() < 0.6 else Edit
    for _ in range(rng.randrange(1, 4)):
        path = rng.choice(["//", "/top/", "/top//"]) + rng.choice(
            [*NAMES, "*", "b[c]", "a/b", "c[@x = 1]"]
        )
        if draws_plain and rng.random() < 0.6:
            path = "/top/" + "/".join(rng.choices([*NAMES, "b[c]"], k=rng.randint(1, 3)))
        kind = rng.choice(list(kinds))
        made.append(
            f"{kind.value} {path}" + (f" {rng.choice('bce')}" if kind is Edit.RENAME else "")
        )
    return parse_steps(made, BOUND)


def parsed(message: bytes) -> Any:
    return etree.fromstring(message, etree.XMLParser(attribute_defaults=True, no_network=True))


def by_tree(message: bytes, steps: Steps) -> bytes:
    """The steps on a tree, as the module says them."""
    root = parsed(message)
    for step in steps:
        chosen = [e for e in root.xpath(step.path, namespaces=BOUND) if e is not root]
        for each in chosen:
            parent = each.getparent()
            if step.edit is Edit.RENAME:
                each.tag = each.tag.rpartition("}")[0] + "}" * each.tag.startswith("{") + step.name
            elif parent is not None and (step.edit is Edit.DROP or not declares(each)):
                replace(parent, each, keep=step.edit is Edit.UNWRAP)
    return bytes(etree.tostring(root, method="c14n"))


def declares(each: Any) -> bool:
    """Whether a start tag has a declaration, which lxml forgets if it says nothing new."""
    return bool(each.get("declares") == "1")


def replace(parent: Any, each: Any, *, keep: bool) -> None:
    """Puts the content of an element, or nothing, in its place."""
    at = parent.index(each)
    pieces: list[str | Any] = (
        [each.text or "", *each, each.tail or ""] if keep else [each.tail or ""]
    )
    children: list[str | Any] = []
    for piece in pieces:
        children.append(piece)
        if not isinstance(piece, str) and piece.tail:
            children.append(piece.tail)
            piece.tail = None
    each.tail = None
    parent.remove(each)
    before = parent[at - 1] if at else None
    for child in children:
        if isinstance(child, str):
            if before is None:
                parent.text = (parent.text or "") + child
            else:
                before.tail = (before.tail or "") + child
        else:
            parent.insert(at, child)
            before, at = child, at + 1


def same_as_by_tree(message: bytes, steps: Steps, found: bytes) -> bool:
    said = etree.tostring(parsed(found), method="c14n")
    assert said == by_tree(message, steps), (message, list(map(str, steps)))
    return found != message


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_edits_are_those_of_a_tree(engine: str) -> None:
    rng, changed = random.Random(3), 0
    for _ in range(250 if engine == "kernel" else 60):
        steps = random_steps(rng)
        messages = [element(rng, 4, "top").encode() for _ in range(4)]
        made = made_by(engine, Restructuring, steps).apply(messages)
        for message, found in zip(messages, made, strict=True):
            assert isinstance(found, bytes), (message, found)
            changed += same_as_by_tree(message, steps, found)
    assert changed > (300 if engine == "kernel" else 70)


SUBSETS: Final = (
    "<!ATTLIST a w CDATA '1&#9;&#10;&lt;&amp;&quot;\"'><!ATTLIST a w CDATA '2' x CDATA 'x'>",
    "<!ATTLIST b x CDATA #IMPLIED y CDATA #FIXED 'y'><!ATTLIST b x CDATA 'never'>",
    "<!ENTITY e 'an entity'><!ATTLIST c v CDATA '>&e;' y CDATA 'p'>",
    "<!ATTLIST n:d xmlns:q CDATA #FIXED 'urn:q' declares CDATA '1'>",
    "<!-- <!ATTLIST a z CDATA 'comment'> --><?p <!ATTLIST b z CDATA 'p'>?>",
)


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_attributes_that_a_declaration_gives_are_kept(engine: str) -> None:
    """They belong to the name that a renaming takes; and none comes with the new one."""
    rng, changed, refused = random.Random(7), 0, 0
    for _ in range(160 if engine == "kernel" else 60):
        steps = random_steps(rng)
        subset = "".join(rng.sample(SUBSETS, rng.randint(1, 3)))
        messages = [f"<!DOCTYPE top [{subset}]>{element(rng, 3, 'top')}".encode() for _ in range(4)]
        made = made_by(engine, Restructuring, steps).apply(messages)
        for message, found in zip(messages, made, strict=True):
            if isinstance(found, bytes):
                changed += same_as_by_tree(message, steps, found)
            else:
                assert found.code == "message.unreadable"
                assert any(f"<!ATTLIST {step.name} ".encode() in message for step in steps)
                refused += 1
    assert changed > 60
    assert refused


@pytest.mark.parametrize("space", ["\n", "\t", " \r\n  "])
def test_white_space_of_a_step_is_that_of_an_expression(space: str) -> None:
    text = f"{space}rename{space}//a |{space}//b{space}c{space}"
    [found] = Restructuring(parse_steps([text])).apply([b"<r><a/><b/></r>"])
    assert found == b"<r><c/><c/></r>"
    with pytest.raises(QuerySyntaxError):
        parse_steps(["drop\xa0//a"])


def test_steps_done_before_are_not_done_again() -> None:
    rng = random.Random(5)
    for _ in range(60):
        steps = random_steps(rng)
        done = rng.randrange(len(steps) + 1)
        messages = [element(rng, 4, "top").encode() for _ in range(3)]
        early = [m for m in Restructuring(steps[:done]).apply(messages) if isinstance(m, bytes)]
        assert Restructuring(steps).apply(early, done) == Restructuring(steps).apply(messages)


def whole_ones(steps: Steps, messages: list[bytes]) -> list[bytes]:
    """Messages after steps that can be done to all of them."""
    found = [each for each in Restructuring(steps).apply(messages) if isinstance(each, bytes)]
    assert len(found) == len(messages)
    return found


def test_entries_hold_before_the_steps_and_between_them() -> None:
    rng = random.Random(11)
    texts = [
        "/top/a[. = '1']/b",
        "/top/b[text() = '2']",
        "/top/a/n:d[c = '1']/@x",
        "/top/c[b = '12' and @x]",
        "//e",
        "//b/@x",
        "//e/c",
        "/top/a/b",
        "//b[a]//c",
        "//*[text() = '12']",
        "//e[. = '1']",
    ]
    texts += [
        "//e[. = '1']",
        "/top//e/n:d[2]",
        "/top[a and b]//c",
        "for $v in //e where $v/@y = '2' return $v/b",
    ]
    held = 0
    for _ in range(200):
        steps = random_steps(rng, draws_plain=True)
        text = rng.choice(texts)
        entries = disjuncts_of(text, BOUND)
        messages = [element(rng, 4, "top").encode() for _ in range(8)]
        index = Registry(namespaces=BOUND)
        for number, entry in enumerate(entries):
            index.add([Query(f"after{number}", entry)])
            early_entry = paths_before(conjunction_of(entry), steps).text if steps else entry
            index.add([Query(f"before{number}", early_entry)])
        after = index.match(whole_ones(steps, messages))
        for done in range(len(steps) + 1):
            now = whole_ones(steps[:done], messages)
            for whole, early, last in zip(now, index.match(now), after, strict=True):
                wanted = {each for each in last.query_ids if each.startswith("after")}
                given = {each.replace("after", "before") for each in wanted}
                assert given <= set(early.query_ids), (text, whole)
                held += bool(wanted)
    assert held > 100


def test_a_table_becomes_a_list() -> None:
    message = b"<n><table><tr><td>a</td><td><b>c</b></td></tr><tr/></table></n>"
    made = b"<n><list><item>a<b>c</b></item><item/></list></n>"
    assert Restructuring(TABLE_TO_LIST).apply([message]) == [made]


def test_the_document_element_stays() -> None:
    for text in ("drop //*", "unwrap //*", "rename //* b"):
        [found] = Restructuring(parse_steps([text])).apply([b"<a x='1'><c>t</c></a>"])
        assert isinstance(found, bytes)
        assert found.startswith(b"<a x='1'>")


def test_what_steps_have_in_common() -> None:
    one = parse_steps(["drop //a", "drop //b"])
    assert common_steps([]) == ()
    assert common_steps([one]) == one
    assert common_steps([one, one[:1], one]) == one[:1]
    assert common_steps([one, one[1:]]) == ()


@pytest.mark.parametrize(
    "text", ["drop", "rename //a", "rename //a 1b", "move //a", "", "drop //a[", "unwrap <a/>"]
)
def test_what_is_no_step(text: str) -> None:
    with pytest.raises(QuerySyntaxError):
        parse_steps([text])
    with pytest.raises((QuerySyntaxError, UnsupportedQueryError)):
        Restructuring((EditStep(Edit.DROP, "count(//a)"),))


def test_messages_that_cannot_be_edited_say_so_and_disturb_no_other() -> None:
    entity = b"<!DOCTYPE a [<!ENTITY e '<c/>'>]><a><b/>&e;</a>"
    messages = [b"<a><c/><b/></a>", b"<a>", entity, "<a><c/></a>".encode("utf-16"), b"<a/>"]
    found = Restructuring(parse_steps(["drop //c", "drop //b"])).apply(messages)
    assert (found[0], found[4]) == (b"<a></a>", b"<a/>")
    codes = [each.code if isinstance(each, PathcastError) else "" for each in found]
    assert codes[2:4] == ["message.unreadable"] * 2
    assert codes[1]
    assert paths_before(conjunction_of("/a"), parse_steps(["drop //c"])).text == "/a"
