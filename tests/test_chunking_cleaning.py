"""Clean-up of queries: what `*`, `//` and `..` become by the schema, and where a query can be cut.

If these fail, alternatives are evaluated on chunks that lack what they look at, or queries go to
the potpourri that need not.
"""

from __future__ import annotations

import pytest

from pathcast.chunking.cleaning import Alternative, clean
from pathcast.chunking.names import path_text
from pathcast.errors import QuerySyntaxError
from pathcast.schema import ElementPaths, PathStep, Way, expand, parse_dtd

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")

FIGURE_4 = """
<!ELEMENT a (b+)> <!ELEMENT b (l*, m*, k*)> <!ELEMENT l (c*)> <!ELEMENT m (c*, a*)>
<!ELEMENT k (d*)> <!ELEMENT d EMPTY> <!ELEMENT c EMPTY>
"""


@pytest.fixture(scope="module")
def paths() -> ElementPaths:
    return ElementPaths(parse_dtd(FIGURE_4), root="a")


def texts(query: str, paths: ElementPaths | None) -> list[str]:
    return [each.text for each in clean(query, paths).alternatives]


def only(query: str, paths: ElementPaths | None = None) -> Alternative:
    [alternative] = clean(query, paths).alternatives
    return alternative


def test_the_example_of_the_paper(paths: ElementPaths) -> None:
    # 004, section 3: //c, /a/b/*/d and /a/d over Figure 4.
    found = [text for query in ("//c", "/a/b/*/d", "/a/d") for text in texts(query, paths)]
    assert found == ["/a/b/l/c", "/a/b/m//c", "/a/b/k/d"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("/a/b/*/c", ["/a/b/l/c", "/a/b/m/c"]),
        ("/a/b/m/../l", ["/a/b[m]/l"]),
        ("/a/b/m[c]/parent::b/l", ["/a/b[m[c]][self::b]/l"]),
        ("/a/b/@x/..", ["/a/b[@x]"]),
        ("/a/b/./l/self::l", ["/a/b/l[self::l]"]),
        ("//d|//k", ["/a/b/k/d", "/a/b/m//d", "/a/b/k", "/a/b/m//k"]),
        ("a/b", ["/a/b"]),
        ("/a/b/*[2]/d", ["/a/b/*[2][self::k]/d"]),
        ("//k[2]", ["/a/b/k[2]", "/a/b/m//k[2]"]),
        # What the schema does not have.
        ("/a/b[d]", []),
        ("/a/b[@x and k/c = 1]", []),
        ("/a/b[d or l]/m", ["/a/b[d or l]/m"]),
        ("/a/b[not(d)]/l", ["/a/b[not(d)]/l"]),
        ("/b", []),
        ("//l//k", []),
    ],
)
def test_what_a_query_becomes(paths: ElementPaths, query: str, expected: list[str]) -> None:
    assert texts(query, paths) == expected


@pytest.mark.parametrize(
    ("query", "prefix", "filters"),
    [
        ("/a/b[k]/l/c", "/a/b/l", ["/a/b/k"]),
        ("/a/b[k/d='x']/l/c", "/a/b/l", ["/a/b/k/d with content"]),
        ("/a/b[k[@y]/d]/l/c", "/a/b/l", ["/a/b/k", "/a/b/k/d"]),
        ("/a/b[count(m) > 2]/l/c", "/a/b/l", ["/a/b/m"]),
        ("/a/b[2]/l/c", "/a/b/l", ["/a/b"]),
        ("/a/b/*[2]/c", "/a/b/l", ["/a/b/k", "/a/b/m"]),
        ("/a/b/l[following-sibling::k]/c", "/a/b/l", ["/a/b/k"]),
        ("/a/b/l[/a/b/k/@x]/c", "/a/b/l", ["/a/b/k"]),
        ("/a/b/l[../@x]/c", "/a/b/l", []),
        ("/a/b/l[.='x']/c[2]", "/a/b/l", []),
    ],
)
def test_what_a_chunk_must_carry(
    paths: ElementPaths, query: str, prefix: str, filters: list[str]
) -> None:
    steps = tuple(("", name) for name in prefix.strip("/").split("/"))
    [alternative] = [each for each in clean(query, paths).alternatives if each.path[:3] == steps]
    assert alternative.depth >= len(steps)
    needs = alternative.filters(steps)
    contents = {need.path for need in needs if need.has_content}
    kept = [need for need in needs if need.has_content or need.path not in contents]
    assert sorted(str(need) for need in kept) == filters


@pytest.mark.parametrize(
    ("query", "longest", "reason"),
    [
        ("/a/b[.='x']/l", "/a/b", "string value, of /a/b"),
        ("/a/b[text()]/l", "/a/b", "nodes of any kind, of /a/b"),
        ("/a/b/l[following::k]", "/", "following::, of /"),
        ("/a/b/l[preceding::k]", "/", "preceding::, of /"),
        ("/a/b/l[id('x')]", "/", "id(), of /"),
        ("/a/b/l[/a='x']", "/a", "string value, of /a"),
        ("/a/b/l/c/ancestor::b", "/a/b", "result, of /a/b"),
        ("count(/a/b/l) > 1", "/", "no location path"),
        ("(//k)[1]", "/", "no location path"),
    ],
)
def test_what_cannot_be_cut_says_why(
    paths: ElementPaths, query: str, longest: str, reason: str
) -> None:
    alternative = only(query, paths)
    assert path_text(alternative.cut_path) == longest
    assert alternative.reason == reason


def test_without_a_schema_a_path_ends_before_what_is_not_known() -> None:
    assert [(each.text, path_text(each.path)) for each in clean("/a/b/*/c").alternatives] == [
        ("/a/b/*/c", "/a/b")
    ]
    assert only("//a/b").depth == 0
    assert only("/a/b[.//x]/c").depth == 2
    assert only("/a/b[x]/c/d").depth == 4


def test_names_of_a_namespace() -> None:
    dtd = "<!ELEMENT p:a (b*)><!ELEMENT b (p:c*)><!ELEMENT p:c EMPTY>"
    paths = ElementPaths(parse_dtd(dtd), root="p:a", namespaces={"p": "urn:p"})
    found = clean("//q:*/*", paths, {"q": "urn:p"}).alternatives
    assert [each.text for each in found] == ["/Q{urn:p}a/b"]
    assert texts("//*:c", paths) == ["/Q{urn:p}a/b/Q{urn:p}c"]


def test_expansions_are_bounded() -> None:
    names = [f"n{number}" for number in range(12)]
    dtd = "".join(
        f"<!ELEMENT {name} ({'|'.join(names[number + 1 :]) or '#PCDATA'})*>"
        for number, name in enumerate(names)
    )
    paths = ElementPaths(parse_dtd(dtd), root="n0")
    step = PathStep(Way.DESCENDANT, lambda name: name[1] == "n11")
    assert [each.names for each in expand(paths, [step])] == [()]
    assert len(expand(paths, [step], expansions_max=2_000)) == 2**10
    assert texts("//n11", paths) == ["//n11"]
    # What stands before it stays resolved.
    assert only("/n0/n1//n11", paths).cut_path == (("", "n0"), ("", "n1"))


def test_a_query_that_becomes_too_long_goes_to_the_potpourri(paths: ElementPaths) -> None:
    query = "/a/b" + "".join(f"[l or m or '{'x' * 700}']" for _ in range(10)) + "/m/a/b/m/a/b/k"
    assert len(query) < 8_192
    a, b, c = (letter * 1_500 for letter in "abc")
    dtd = f"<!ELEMENT {a} ({b}*)><!ELEMENT {b} ({c}*)><!ELEMENT {c} EMPTY>"
    names = ElementPaths(parse_dtd(dtd), root=a)
    [alternative] = clean(f"//*[@x='{'y' * 4_000}']/*[@z]/*", names).alternatives
    assert (alternative.depth, alternative.reason) == (0, "too long when resolved")
    assert only(query, paths).depth == 9
    with pytest.raises(QuerySyntaxError) as caught:
        clean("/n:a/n:b", None, {"n": "urn:" + "n" * 8_000})
    assert caught.value.code == "query.too_long"


def test_a_query_that_is_none_is_refused() -> None:
    with pytest.raises(QuerySyntaxError):
        clean("/a[")
    with pytest.raises(QuerySyntaxError) as caught:
        clean("/a[" * 400 + "x" + "]" * 400)
    assert caught.value.code == "query.too_deep"
