"""The plans of path sharing: which operators a query gets, and what queries share.

If these fail, results may still be right, but a plan has work in it that the paper's does not, or
queries no longer share what section 5 of the paper says they do.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from path_sharing_queries import (
    BIB,
    BIB_DTD,
    BOOK_DTD,
    expected_groups,
    paper_query,
    random_message,
    random_query,
)
from pathcast.limits import Limits
from pathcast.schema import parse_dtd
from pathcast_papers.language.xquery import PaperQuery, Target
from pathcast_papers.language.xquery.syntax import Comparator, NameTest
from pathcast_papers.message import parse_message
from pathcast_papers.message_broker.pathsharing import (
    BrokerQuery,
    OperatorKind,
    Optimisation,
    PathSharing,
    PathSharingF,
    PathSharingFW,
    PathSharingFWR,
    PlanSharing,
    Profiler,
)
from pathcast_papers.message_broker.pathsharing.broker_query import (
    Constant,
    Signature,
    SimplePredicate,
)
from pathcast_papers.message_broker.pathsharing.operators import MessageRun
from pathcast_papers.message_broker.pathsharing.optimisation import (
    facts_of,
    rewritten,
    rewritten_query,
)
from pathcast_papers.message_broker.pathsharing.paths import navigation_path, path_text
from pathcast_papers.message_broker.pathsharing.reliance import Apart, NoLoop, OnlyWay
from pathcast_papers.message_broker.pathsharing.schema_paths import SchemaPaths
from pathcast_papers.message_broker.pathsharing.shared_selection import (
    ConstantIndex,
    PredicateSignature,
    SharedSelection,
)

pytest.importorskip("lxml", reason="lxml is not installed: pip install 'pathcast[workload]'")

LIMITS = Limits()
KIND = OperatorKind

# Sections 3.1 and 3.2 of the paper.
QUERY_2 = paper_query("//section[@id<=2]//figure", [("title", "=", "XML processing")], ["image"])
QUERY_3 = paper_query(
    "//section",
    [("title", "=", "XML"), ("figure/title", "=", "XML processing")],
    ["//section//title", "figure"],
)


def book() -> SchemaPaths:
    return SchemaPaths(parse_dtd(BOOK_DTD), root="book")


def kinds(algorithm: type[PathSharing], optimisation: Optimisation, query: PaperQuery) -> list[str]:
    paths = algorithm(optimisation, book())
    paths.subscribe("q", query)
    return [operator.kind.value for operator in paths.plan("q").operators]


def test_plan_of_query_2_under_f() -> None:
    assert kinds(PathSharingF, Optimisation.NONE, QUERY_2) == [
        "Selection",
        "DupElim (scan)",
        "Where-Filter",
        "Return-Select",
    ]


def test_plan_of_query_3_under_fw() -> None:
    assert kinds(PathSharingFW, Optimisation.NONE, QUERY_3) == [
        "DupElim (scan)",
        "Selection",
        "semijoin (hash)",
        "Selection",
        "semijoin (hash)",
        "Return-Select",
    ]


def test_plan_of_query_3_under_fwr_without_optimisation() -> None:
    assert kinds(PathSharingFWR, Optimisation.NONE, QUERY_3) == [
        "DupElim (scan)",
        "Selection",
        "semijoin (hash)",
        "Selection",
        "semijoin (hash)",
        "DupElim (hash)",
        "DupElim (hash)",
        "OuterJoin-Select (hash)",
    ]


def test_query_alone_spares_all_dup_elims_of_query_3_but_one() -> None:
    # Section 4: all can be removed except the one for //section//title.
    found = Counter(kinds(PathSharingFWR, Optimisation.QUERY, QUERY_3))
    assert found["DupElim (scan)"] + found["DupElim (hash)"] == 1
    assert found["DupElim (hash)"] == 1


def test_dtd_makes_every_join_of_query_2_a_merge() -> None:
    # Section 4: claim 5 succeeds, so all streams are in order of the binding field.
    assert kinds(PathSharingFWR, Optimisation.QUERY, QUERY_2)[-1] == "OuterJoin-Select (hash)"
    assert kinds(PathSharingFWR, Optimisation.QUERY_AND_DTD, QUERY_2) == [
        "Selection",
        "DupElim (scan)",
        "Selection",
        "semijoin (merge)",
        "DupElim (scan)",
        "OuterJoin-Select (merge)",
    ]


@pytest.mark.parametrize("algorithm", [PathSharingF, PathSharingFW, PathSharingFWR, PlanSharing])
def test_messages_without_recursion_need_neither_dup_elim_nor_hashing(
    algorithm: type[PathSharing],
) -> None:
    # Section 6.3: for the Bib DTD, Opt(q+dtd) can avoid both completely.
    random = Random(3)
    paths = algorithm(Optimisation.QUERY_AND_DTD, SchemaPaths(parse_dtd(BIB_DTD), root="bib"))
    for number in range(200):
        paths.subscribe(f"q{number}", random_query(random, BIB, wildcards=0.0))
    operators = paths.plan_statistics().operators
    assert operators
    for kind in operators:
        assert "hash" not in kind.value
        assert "DupElim" not in kind.value


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("//figure//image", "//figure/image"),
        ("//author", "/book/author"),
        ("//figure/title", "//figure/title"),
        ("//section//p", "//section//p"),
        ("//book", "/book"),
        ("/book//author", "/book/author"),
        ("//title//emph", "//title/emph"),
        ("//*//image", "//*//image"),
        ("/book//figure//image", "/book//figure/image"),
        ("//nowhere//image", "//nowhere//image"),
    ],
)
def test_canonical_form_of_paths(path: str, canonical: str) -> None:
    assert path_text(rewritten(navigation_path(path), book())) == canonical


def test_a_single_path_of_several_steps_is_written_out() -> None:
    elements = SchemaPaths(
        parse_dtd(
            "<!ELEMENT a (b*)><!ELEMENT b (c?, d?)><!ELEMENT c (e)><!ELEMENT d (e?)>"
            "<!ELEMENT e EMPTY>"
        ),
        root="a",
    )
    assert path_text(rewritten(navigation_path("//c"), elements)) == "/a/b/c"
    assert path_text(rewritten(navigation_path("/a//e"), elements)) == "/a//e", "two ways"
    # Predicates stay on the step they are on.
    both = rewritten_query(BrokerQuery.of(paper_query("//c[@k<1]//e", [], [()])), elements)
    assert path_text(both.binding) == "/a/b/c/e"
    assert [level for level, _ in both.selections] == [3]


def test_queries_of_one_canonical_form_share_a_plan() -> None:
    for algorithm in (PathSharingFWR, PlanSharing):
        paths = algorithm(Optimisation.QUERY_AND_DTD, book())
        paths.subscribe("long", paper_query("//figure", [], ["//image"]))
        paths.subscribe("short", paper_query("//figure", [], ["image"]))
        assert paths.plan_statistics().plans == 1
        apart = algorithm(Optimisation.QUERY)
        apart.subscribe("long", paper_query("//figure", [], ["//image"]))
        apart.subscribe("short", paper_query("//figure", [], ["image"]))
        assert apart.plan_statistics().plans == 2


def test_conditions_in_another_order_share_a_plan() -> None:
    paths = PathSharingF(Optimisation.NONE)
    one, other = ("title", "=", "x"), ("image", "!=", 2.0)
    paths.subscribe("one", paper_query("//figure", [one, other], [()]))
    paths.subscribe("other", paper_query("//figure", [other, one], [()]))
    assert paths.plan_statistics().plans == 1


def test_plans_rely_on_a_dtd_where_it_changes_them() -> None:
    elements = book()
    section, figure, image = ("", "section"), ("", "figure"), ("", "image")
    assert facts_of(BrokerQuery.of(QUERY_2), elements) == {NoLoop(figure)}
    assert facts_of(BrokerQuery.of(paper_query("//figure", [], ["//image"])), elements) == {
        OnlyWay(figure, image, (image,)),
        NoLoop(figure),
    }
    assert not facts_of(BrokerQuery.of(paper_query("/book/section", [], ["title"])), elements)
    apart = facts_of(BrokerQuery.of(paper_query("//section//section", [], ["p"])), elements)
    assert NoLoop(section) not in apart


@pytest.mark.parametrize(
    ("message", "is_trusted"),
    [
        (b"<book><section><figure><image/></figure></section></book>", True),
        # What breaks the DTD elsewhere does not matter.
        (b"<book><other/><section><other><figure><image/></figure></other></section></book>", True),
        (b"<image/>", True),
        (b"<other><figure/></other>", True),
        (b"<book><figure><other><image/></other></figure></book>", False),
        (b"<book><figure><other><figure/></other></figure></book>", False),
    ],
)
def test_a_message_is_trusted_if_what_plans_rely_on_is_true_of_it(
    message: bytes, is_trusted: bool
) -> None:
    tree = parse_message(message, LIMITS)
    query = paper_query("//figure", [], ["//image"])
    for algorithm in (PathSharingF, PathSharingFW, PathSharingFWR, PlanSharing):
        paths = algorithm(Optimisation.QUERY_AND_DTD, book())
        plain = algorithm(Optimisation.QUERY)
        paths.subscribe("q", query)
        plain.subscribe("q", query)
        assert paths.process(tree) == plain.process(tree)
        assert (paths._fallback is None) is is_trusted


@pytest.mark.parametrize(
    ("message", "is_trusted"),
    [
        (b"<a><other/><b><c/><b><c/></b></b></a>", True),
        # Now a and b are on one loop, and the c elements come in another order than their b.
        (b"<a><b><a><b><c/></b></a><c/></b></a>", False),
    ],
)
def test_elements_that_the_dtd_keeps_apart_may_meet(message: bytes, is_trusted: bool) -> None:
    elements = SchemaPaths(
        parse_dtd("<!ELEMENT a (a|b)*><!ELEMENT b (b|c)*><!ELEMENT c EMPTY>"), root="a"
    )
    query = paper_query("//a/b", [], ["c"])
    assert Apart(("", "a"), ("", "b")) in facts_of(BrokerQuery.of(query), elements)
    tree = parse_message(message, LIMITS)
    for algorithm in (PathSharingFWR, PlanSharing):
        paths = algorithm(Optimisation.QUERY_AND_DTD, elements)
        paths.subscribe("q", query)
        assert paths.process(tree) == {"q": expected_groups(query, tree)}
        assert paths.distrusted == (not is_trusted)


def test_what_is_relied_on_leaves_with_the_last_query_that_does() -> None:
    tree = parse_message(b"<book><figure><other><image/></other></figure></book>", LIMITS)
    paths = PathSharingFWR(Optimisation.QUERY_AND_DTD, book())
    for id in ("one", "other"):
        paths.subscribe(id, paper_query("//figure", [], ["//image"]))
    paths.subscribe("plain", paper_query("/book/figure", [], ["title"]))
    assert paths.process(tree) == {"one": (((3,),),), "other": (((3,),),), "plain": (((),),)}
    paths.unsubscribe("one")
    assert paths.process(tree) == {"other": (((3,),),), "plain": (((),),)}
    assert paths.distrusted == 2
    paths.unsubscribe("other")
    assert paths.process(tree) == {"plain": (((),),)}
    assert paths.distrusted == 2


def operators_of(queries: list[PaperQuery]) -> Counter[OperatorKind]:
    paths = PlanSharing(Optimisation.QUERY_AND_DTD, book())
    for number, query in enumerate(queries):
        paths.subscribe(f"q{number}", query)
    return Counter(dict(paths.plan_statistics().operators))


def test_queries_that_differ_in_a_constant_share_everything_but_the_last_operator() -> None:
    # Figure 6: join, selection and GroupBy are there once; each query has its OuterJoin-Select.
    found = operators_of(
        [paper_query("//section", [("title", "=", f"t{n}")], ["figure"]) for n in range(50)]
    )
    assert found == {
        KIND.SHARED_JOIN_HASH: 1,
        KIND.SHARED_SELECTION: 1,
        KIND.GROUP_BY_HASH: 1,
        KIND.OUTER_JOIN_GROUPED: 50,
    }


def test_queries_that_differ_in_return_paths_share_joins_and_selections() -> None:
    condition = ("title", "=", "t")
    found = operators_of(
        [
            paper_query("//section", [condition], ["figure", "p"]),
            paper_query("//section", [condition], ["figure"]),
            paper_query("//section", [condition], ["p", "figure"]),
        ]
    )
    assert found[KIND.SHARED_JOIN_HASH] + found[KIND.SHARED_JOIN_MERGE] == 1
    assert found[KIND.SHARED_SELECTION] == 1
    assert found[KIND.GROUP_BY_HASH] + found[KIND.GROUP_BY_SCAN] == 2


def test_queries_with_several_predicate_paths_share_the_joins_of_each() -> None:
    titles = [("title", "=", f"t{n}") for n in range(3)]
    images = [("figure/image", "=", f"i{n}") for n in range(3)]
    found = operators_of(
        [paper_query("//section", [one, other], ["p"]) for one in titles for other in images]
    )
    assert found[KIND.SHARED_JOIN_HASH] + found[KIND.SHARED_JOIN_MERGE] == 2
    assert found[KIND.SHARED_SELECTION] == 2
    assert found[KIND.SEMIJOIN_MERGE] == 9
    assert found[KIND.SEMIJOIN_HASH] == 0, "outputs of shared selections are in order"


def test_operators_of_different_comparisons_are_apart() -> None:
    found = operators_of(
        [
            paper_query("//section", [("title", "=", "1")], ["p"]),
            paper_query("//section", [("title", "=", 1.0)], ["p"]),
            paper_query("//section", [("title", "<", 1.0)], ["p"]),
            paper_query("//section", [("@id", "=", 1.0)], ["p"]),
        ]
    )
    assert found[KIND.SHARED_SELECTION] == 4


def test_profiler_counts_what_operators_did() -> None:
    ticks = iter(range(1000))
    profiler = Profiler(clock=lambda: float(next(ticks)))
    paths = PathSharingFWR(Optimisation.NONE)
    paths.subscribe("q", QUERY_2)
    message = (
        b"<book><section id='1'><section id='2'><figure><title>XML processing</title><image/>"
        b"</figure></section></section></book>"
    )
    assert paths.process(parse_message(message, LIMITS), profiler) == {"q": (((5,),),)}
    assert profiler.tuples == {
        KIND.PATH_MATCHING: 6,  # Two for each of the paths, since the section is in a section.
        KIND.SELECTION: 4,
        KIND.DUP_ELIM_SCAN: 1,
        KIND.DUP_ELIM_HASH: 1,
        KIND.SEMIJOIN_HASH: 1,
        KIND.OUTER_JOIN_HASH: 1,
    }
    assert profiler.runs[KIND.SELECTION] == 2
    assert profiler.seconds[KIND.SELECTION] == 2.0, "a tick for each run"
    assert profiler.executor_seconds > 0


def test_profiler_changes_no_result() -> None:
    random = Random(5)
    for algorithm in (PathSharingF, PathSharingFW, PathSharingFWR, PlanSharing):
        paths = algorithm(Optimisation.QUERY)
        for number in range(20):
            paths.subscribe(f"q{number}", random_query(random, BIB))
        tree = parse_message(random_message(random, BIB), LIMITS)
        assert paths.process(tree) == paths.process(tree, Profiler())


VALUES = ("", "1", "1.0", " 2", "3", "x", "y", "NaN", "INF", "1e1", "-0")


@pytest.mark.parametrize("operator", [None, *Comparator])
@pytest.mark.parametrize("is_number", [False, True])
def test_index_of_constants_finds_those_that_pass(
    operator: Comparator | None, is_number: bool
) -> None:
    random = Random(11)
    signature = Signature((), Target.ATTRIBUTE, NameTest("", "k"), operator, is_number)
    constants: list[Constant] = [0.0, 1.0, 2.0, 3.0, 10.0] if is_number else ["1", "2", "x", ""]
    if operator is None:
        constants = [None]
    selection = SharedSelection(lambda: [(0,)], [PredicateSignature(1, signature)], 1)
    present = [constant for constant in constants if random.random() < 0.8] or constants[:1]
    for constant in constants:
        selection.insert((constant,))
    for constant in constants:
        if constant not in present:
            selection.delete((constant,))
    for value in (*VALUES, None):
        attribute = "" if value is None else f" k='{value}'"
        run = MessageRun(parse_message(f"<a{attribute}/>".encode(), LIMITS))
        selection.run(run)
        for constant in constants:
            passes = constant in present and run.values.column(signature.compared).passes(
                0, SimplePredicate(signature, constant)
            )
            assert bool(selection.list_of((constant,))) == passes, (value, constant)


def test_index_of_constants_takes_several_values() -> None:
    # Existential, as XQuery's general comparisons are: text() of one element may be several.
    index = ConstantIndex(Comparator.NE)
    for constant in ("a", "b"):
        index.insert(constant)
    assert sorted(map(str, index.passed(("a", "b")))) == ["a", "b"]
    assert index.passed(("a",)) == ["b"]
    assert index.passed(()) == []
    order = ConstantIndex(Comparator.GT)
    order.insert(1.0)
    order.insert(5.0)
    assert order.passed((0.0, 3.0, float("nan"))) == [1.0]


def test_outputs_of_a_shared_selection_come_and_go() -> None:
    def signature(attribute: str) -> PredicateSignature:
        name = NameTest("", attribute)
        return PredicateSignature(1, Signature((), Target.ATTRIBUTE, name, Comparator.LE, True))

    run = MessageRun(parse_message(b"<a k='1' m='1'/>", LIMITS))
    selection = SharedSelection(lambda: [(0,)], [signature("k"), signature("m")], 1)
    pairs = [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0), (0.0, 1.0)]
    present: set[tuple[float, float]] = set()
    random = Random(2)
    for _ in range(200):
        pair = random.choice(pairs)
        if pair in present:
            selection.delete(pair)
            present.remove(pair)
        else:
            selection.insert(pair)
            present.add(pair)
        selection.run(run)
        assert len(selection) == len(present)
        found = {pair for pair in pairs if selection.list_of(pair)}
        assert found == present - {(0.0, 1.0)}


def test_tuples_of_one_bound_node_all_meet_the_shared_selection() -> None:
    # Section 5.2: DupElim cannot come before the selection, for the second tuple may pass.
    elements = book()
    message = (
        b"<book><section id='3'><section id='1'><figure><title>XML processing</title><image/>"
        b"</figure></section></section></book>"
    )
    for optimisation in Optimisation:
        paths = PlanSharing(optimisation, elements)
        paths.subscribe("q", QUERY_2)
        assert paths.process(parse_message(message, LIMITS)) == {"q": (((5,),),)}
