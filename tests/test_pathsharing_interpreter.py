"""Path sharing against the exact interpreter: the same messages come out, byte for byte.

If these fail, a query of the paper's class means one thing to path sharing and another to XQuery.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest

from generators.flwr_messages import random_flwr_message
from generators.flwr_text import BOOK as BOOK_VOCABULARY
from generators.flwr_text import FlwrWidth, random_flwr
from path_sharing_queries import (
    BIB,
    BIB_DTD,
    BOOK,
    BOOK_DTD,
    Shape,
    disorderly,
    random_message,
    random_query,
)
from pathcast.errors import ConstructionError
from pathcast.limits import Limits
from pathcast.schema import parse_dtd
from pathcast_papers.language.xquery import (
    PaperCondition,
    PaperQuery,
    PaperReturn,
    PaperStep,
    Program,
    Target,
    paper_form,
    parse,
)
from pathcast_papers.message import parse_message
from pathcast_papers.message_broker.pathsharing import (
    Optimisation,
    PathSharing,
    PathSharingF,
    PathSharingFW,
    PathSharingFWR,
    PlanSharing,
    message_factory,
    results,
)
from pathcast_papers.message_broker.pathsharing.schema_paths import SchemaPaths
from pathcast_papers.message_broker.xquery import evaluate

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")

ALGORITHMS = (PathSharingF, PathSharingFW, PathSharingFWR, PlanSharing)
LIMITS = Limits()

# Queries 1 to 3 of the paper (of Query 3 the text keeps only the end).
QUERY_1 = """<sections> { for $s in document("doc.xml")//section
  where $s//figure/title = "XML processing"
  return <section> { $s/title } { $s//figure } </section> } </sections>"""
QUERY_2 = """<figures> { for $f in document("doc.xml")//section[@id<=2]//figure
  where $f/title = "XML processing" return <figure> { $f/image } </figure> } </figures>"""
QUERY_3 = """<sections> { for $s in document("doc.xml")//section
  where $s/title = "XML" and $s/figure/title = "XML processing"
  return <section> { $s//section//title } { $s/figure } </section> } </sections>"""


def test_queries_of_the_paper() -> None:
    message = (
        b"<book><section id='1'><title>XML</title><section id='2'><title>In</title>"
        b"<figure><title>XML processing</title><image id='i1'/></figure></section>"
        b"<figure><title>XML processing</title><image id='i2'/></figure></section></book>"
    )
    inner = b"<title>XML processing</title>"
    figure_1 = b"<figure>" + inner + b'<image id="i1"/></figure>'
    figure_2 = b"<figure>" + inner + b'<image id="i2"/></figure>'
    expected = {
        QUERY_1: b"<sections><section><title>XML</title>" + figure_1 + figure_2 + b"</section>"
        b"<section><title>In</title>" + figure_1 + b"</section></sections>",
        QUERY_2: b'<figures><figure><image id="i1"/></figure><figure><image id="i2"/></figure>'
        b"</figures>",
        QUERY_3: b"<sections><section><title>In</title>"
        + inner
        + figure_2
        + b"</section></sections>",
    }
    elements = SchemaPaths(parse_dtd(BOOK_DTD), root="book")
    tree = parse_message(message, LIMITS)
    for text, result in expected.items():
        query = paper_form(parse(text))
        assert query is not None
        for algorithm in ALGORITHMS:
            for optimisation in Optimisation:
                paths = algorithm(optimisation, elements)
                paths.subscribe("q", query)
                assert message_factory(query, paths.process(tree)["q"], tree) == result


def compare(
    programs: Sequence[Program], variants: Sequence[PathSharing], messages: Sequence[bytes]
) -> int:
    """Whether all variants give what the interpreter gives; how many results there were."""
    queries = [paper_form(program) for program in programs]
    pairs = [(p, q) for p, q in zip(programs, queries, strict=True) if q is not None]
    for variant in variants:
        for number, (_, query) in enumerate(pairs):
            variant.subscribe(str(number), query)
    found = 0
    for message in messages:
        tree = parse_message(message, LIMITS)
        expected = [_expected(program, message) for program, _ in pairs]
        found += sum(map(bool, expected))
        for variant in variants:
            groups = variant.process(tree)
            for number, (program, query) in enumerate(pairs):
                try:
                    given: object = results(query, groups.get(str(number), ()), tree)
                except ConstructionError as error:
                    given = error.code
                assert given == expected[number], (variant.name, variant.optimisation, program)
    return found


def _expected(program: Program, message: bytes) -> object:
    try:
        return evaluate(program, parse_message(message, LIMITS)).results
    except ConstructionError as error:
        return error.code


def generated(seed: int) -> int:
    """Subscriptions and messages of the generator, with namespaces; no DTD knows all of them.

    What stands for a DTD is the graph of the first message: the others may break it anywhere.
    """
    random = Random(seed)
    programs = []
    for _ in range(12):
        flwr = random_flwr(random, BOOK_VOCABULARY, FlwrWidth.PAPER)
        programs.append(parse(flwr.text, flwr.namespaces))
    assert sum(paper_form(program) is not None for program in programs) >= 6
    messages = [random_flwr_message(random, BOOK_VOCABULARY) for _ in range(3)]
    first = parse_message(messages[0], LIMITS)
    elements = SchemaPaths.of_message(first.name, first.parent)
    variants = [
        algorithm(optimisation, elements)
        for algorithm in ALGORITHMS
        for optimisation in Optimisation
    ]
    return compare(programs, variants, messages)


def shaped(seed: int) -> int:
    """Queries and messages that follow a DTD, or break it, for all variants."""
    random = Random(seed)
    found = 0
    for shape, dtd in ((BOOK, BOOK_DTD), (BIB, BIB_DTD)):
        elements = SchemaPaths(parse_dtd(dtd), root=shape.root)
        programs = []
        for _ in range(12):
            query = random_query(random, shape)
            text = query_text(random, query)
            program = parse(text)
            understood = paper_form(program)
            assert understood is not None, text
            assert understood.binding == query.binding, text
            assert set(understood.predicates) == set(query.predicates), text
            programs.append(program)
        messages = [
            random_message(random, shape),
            random_message(random, shape),
            random_message(random, disorderly(shape)),
        ]
        variants = [
            algorithm(optimisation, elements)
            for algorithm in ALGORITHMS
            for optimisation in Optimisation
        ]
        found += compare(programs, variants, messages)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_generated_subscriptions_give_what_the_interpreter_gives(seed: int) -> None:
    assert generated(seed) > 0


@pytest.mark.parametrize("seed", range(4))
def test_queries_with_a_dtd_give_what_the_interpreter_gives(seed: int) -> None:
    assert shaped(seed) > 5


@pytest.mark.nightly
def test_many_queries_give_what_the_interpreter_gives() -> None:
    assert sum(generated(seed) + shaped(seed) for seed in range(1000, 1200)) > 5000


# Queries as text.


def query_text(random: Random, query: PaperQuery) -> str:
    """A query with a template around its return paths, which may end in text or attributes."""
    where = " and ".join(_condition(condition, "$v") for condition in query.predicates)
    body = f"for $v in $msg{_steps(query.binding)} {f'where {where} ' if where else ''}return "
    body += _template(random, [_return(random, path) for path in query.returns])
    return body if random.random() < 0.2 else f"<out x='1'>{{ {body} }}</out>"


def _template(random: Random, returns: list[str]) -> str:
    if random.random() < 0.15:
        return f"({', '.join(returns)})"
    attribute = f" a='v{{{returns[0]}}}'" if random.random() < 0.3 else ""
    content = "".join(
        random.choice(("", " ", "text ", "<c/>")) + random.choice(("{%s}", "<d>{%s}</d>")) % path
        for path in returns
    )
    return f"<item{attribute}>{content}</item>"


def _return(random: Random, path: PaperReturn) -> str:
    text = f"$v{_steps(path.steps)}"
    return text + random.choice(("", "", "", "", "/text()", "/@id", "/@*"))


def _condition(condition: PaperCondition, origin: str) -> str:
    path = _steps(condition.steps)
    match condition.target:
        case Target.ATTRIBUTE:
            assert condition.attribute is not None
            path += f"/@{condition.attribute.local or '*'}"
        case Target.TEXT:
            path += "/text()"
    left = origin + path
    if condition.operator is None:
        return left
    constant = condition.constant
    right = f'"{constant}"' if isinstance(constant, str) else str(constant)
    return f"{left} {condition.operator.value} {right}"


def _steps(steps: Sequence[PaperStep]) -> str:
    return "".join(
        f"{'//' if step.is_descendant else '/'}{step.name.local or '*'}"
        + "".join(f"[{_condition(condition, '.')}]" for condition in step.conditions)
        for step in steps
    )


def test_text_between_text_stays_in_document_order() -> None:
    # The text nodes of nested elements are not those of one element after those of the other.
    query = paper_form(parse("<r>{for $a in /a return <x>{$a//b/text()}</x>}</r>"))
    assert query is not None
    tree = parse_message(b"<a><b>1<b>2</b>3</b></a>", LIMITS)
    for algorithm in ALGORITHMS:
        paths = algorithm(Optimisation.QUERY)
        paths.subscribe("q", query)
        assert message_factory(query, paths.process(tree)["q"], tree) == b"<r><x>123</x></r>"


def test_groups_without_content_deliver_nothing() -> None:
    query = paper_form(parse("<r>{for $a in //a return $a/b}</r>"))
    assert query is not None
    tree = parse_message(b"<a/>", LIMITS)
    paths = PathSharingFWR(Optimisation.QUERY)
    paths.subscribe("q", query)
    groups = paths.process(tree)["q"]
    assert groups == (((),),)
    assert results(query, groups, tree) == ()


def test_shape_is_a_vocabulary_of_its_dtd() -> None:
    for shape, dtd in ((BOOK, BOOK_DTD), (BIB, BIB_DTD)):
        elements = SchemaPaths(parse_dtd(dtd), root=shape.root)
        for above, names in _edges(shape):
            assert ("", names) in elements.children(("", above)), (above, names)


def _edges(shape: Shape) -> list[tuple[str, str]]:
    return [(name, child) for name, children in shape.children.items() for child in children]
