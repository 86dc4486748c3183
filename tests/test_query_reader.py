"""The kernel's reader and the papers' reader agree on every text, good and bad.

If these fail, the product reads a query otherwise than XPath 1.0 says, or calls a fault by another
name or at another place.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import pytest

from generators.alphabet import ALPHABET_WITH_NAMESPACES
from generators.broken_text import mutated, random_tokens
from generators.expression_text import random_expression
from generators.query_text import random_query
from pathcast.boundary import native
from pathcast.errors import QuerySyntaxError
from pathcast.query import parse, refusals
from pathcast.query.reader import read_query
from pathcast_papers.language import parser, static
from pathcast_papers.language.parser import DEPTH_MAX, NODES_MAX, TEXT_BYTES_MAX
from trees import of_papers, of_product

NAMESPACES: Mapping[str, str] = {
    **ALPHABET_WITH_NAMESPACES.namespaces,
    "": "urn:d",
    "n": "urn:n",
    "a": "urn:{",
    "b": " urn:b",
    "c": "urn:\udce9",
}

REFUSED = """
NoOperator: a b
NoLocalName: a:
OpenBraces: Q{u
OpenString: a = "b
NoVariableName: $
NoToken: a ; b
Unexpected: a[
NoAxis: decendant::a
NoFunction: ends-with(a)
ArgumentCount: not()
TooLong: LONG
TooLarge: LARGE
TooDeep: DEEP
TooManyPredicates: MANY
NoNodeSet: count(1)
NoVariable: $x
NoPrefix: m:a
ComputedDocument: doc(a)
BadUri: a:a
""".strip().splitlines()

OVER_LIMITS = {
    "LONG": " " * (TEXT_BYTES_MAX + 1),
    "LARGE": "|".join("a" * (NODES_MAX // 2 + 1)),
    "DEEP": "(" * (DEPTH_MAX + 1),
    "MANY": "a" + "[1]" * 17,
}


def papers_read(text: str) -> object:
    written = parser.parse(text)
    if static.nesting(written) > 2 * DEPTH_MAX:
        raise QuerySyntaxError(
            "query.too_deep", query=text, offset=0, maximum=DEPTH_MAX, reason="nests too deep"
        )
    return static.resolve(written, text, NAMESPACES)


def outcome(
    read: Callable[[str], object], tuples: Callable[[object], object], text: str
) -> tuple[str, object]:
    """The tree as tuples, or all that is said of a refusal."""
    try:
        return "read", tuples(read(text))
    except QuerySyntaxError as error:
        return error.code, (type(error), error.params)


def kernel_read(text: str) -> object:
    return read_query(text, NAMESPACES)


def texts(seed: int, count: int) -> Iterator[str]:
    generator = random.Random(seed)
    for _ in range(count):
        write = generator.choice((random_query, random_expression))
        text = write(generator, ALPHABET_WITH_NAMESPACES)
        yield text
        yield mutated(generator, text)
        yield mutated(generator, text)
        yield random_tokens(generator)


def test_kernel_and_papers_read_alike() -> None:
    outcomes: Counter[str] = Counter()
    for text in texts(23, 700):
        assert outcome(parse, of_product, text) == outcome(parser.parse, of_papers, text)
        expected = outcome(papers_read, of_papers, text)
        assert outcome(kernel_read, of_product, text) == expected
        outcomes[expected[0]] += 1
    wanted = {"read", "XPST0003", "XPST0008", "XPST0017", "XPST0081", "XPTY0004"}
    assert wanted | {"query.unsupported"} <= set(outcomes)
    assert outcomes["read"] > 500


def test_the_fast_path_takes_nothing_that_the_reader_refuses() -> None:
    namespaces = {prefix: uri for prefix, uri in NAMESPACES.items() if prefix != "c"}
    taken = refused = 0
    for text in texts(29, 5000):
        is_taken = native.canonical_form(text, namespaces) is not None
        try:
            read_query(text, namespaces)
        except QuerySyntaxError:
            refused += 1
            assert not is_taken, text
        taken += is_taken
    assert taken > 2000
    assert refused > 2000


@pytest.mark.parametrize("case", REFUSED)
def test_every_reason_has_a_sentence(case: str) -> None:
    reason, _, text = case.partition(": ")
    text = OVER_LIMITS.get(text, text)
    with pytest.raises(native.QueryRefusal) as raised:
        native.read_query(text, dict(NAMESPACES))
    assert raised.value.args[1] == reason
    with pytest.raises(QuerySyntaxError) as rendered:
        read_query(text, NAMESPACES)
    assert rendered.value.params["reason"]


def test_every_sentence_has_a_reason() -> None:
    reasons = {case.partition(": ")[0] for case in REFUSED}
    assert reasons == {*refusals.LIMITS, *refusals.SENTENCES}


def test_a_number_beyond_a_double_nests_as_its_canonical_form_does() -> None:
    levels = 2 * DEPTH_MAX // 7
    text = "1 or 1 and 1 = 1 < 1 + 1 * -(" * levels + "-(1 * 9)" + ")" * levels
    read_query(text, {})
    with pytest.raises(QuerySyntaxError) as raised:
        read_query(text.replace("9", "9" * 400), {})
    assert raised.value.code == "query.too_deep"
