"""Subscriptions, files and the demonstration's input.

If these fail, the demonstration shows nothing (or everything), or a reader gets half a file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pathcast.errors import ConfigError
from pathcast.query import CostClass, compile_query
from pathcast.workload import (
    DOMAINS,
    DemoParameters,
    DocumentParameters,
    GeneratedMessage,
    GeneratedSubscription,
    SubscriptionParameters,
    demo_messages,
    domain_graph,
    domain_named,
    generate_messages,
    generate_subscriptions,
    write_demo,
    write_message_files,
    write_message_parquet,
    write_subscriptions,
)
from pathcast.workload.templates import KINDS, SHARES, SLOTS, TEMPLATES
from pathcast_lab.workload import ADVERSARIES, Adversary

etree = pytest.importorskip(
    "lxml.etree", reason="lxml is not installed: pip install 'pathcast[workload]'"
)


def test_subscriptions_are_accepted() -> None:
    rows = list(generate_subscriptions(SubscriptionParameters(skew=0, distinct_share=1)))
    texts = {row.query for row in rows}
    assert len(texts) > 4000
    for text in texts:
        etree.XPath(text)


def shape(text: str) -> str:
    """A query or template without its values; the same for all queries of one template."""
    filled = re.sub(r"\{\w+\}", "0", text)
    return re.sub(r"'[^']*'|(?<![\w-])\d+(\.\d+)?", "?", filled)


SHAPES = {
    shape(template): kind
    for domain in TEMPLATES.values()
    for kind, templates in domain.items()
    for template in templates
}
"""Shape of a template -> its kind."""


def test_each_kind_costs_what_it_is_meant_to_and_has_its_share() -> None:
    """If an exact query were indexed, or another one not, the mixture would not be one."""
    rows = list(generate_subscriptions(SubscriptionParameters(queries=6_000, distinct_share=1)))
    kinds = Counter(SHAPES[shape(row.query)] for row in rows)
    assert kinds.keys() == set(KINDS) == set(SHARES)
    for kind, share in SHARES.items():
        assert 0.7 * share < kinds[kind] / len(rows) < 1.4 * share, kind
    costs: dict[str, set[CostClass]] = {}
    for text in {row.query for row in rows[::5]} | {
        row.query for row in rows if SHAPES[shape(row.query)] == "exact"
    }:
        costs.setdefault(SHAPES[shape(text)], set()).add(compile_query(text).cost)
    assert costs.pop("exact") == {CostClass.CANDIDATE_CHECKED}
    assert set.union(*costs.values()) == {CostClass.INDEXED}


def test_every_slot_is_used_and_filled() -> None:
    templates = "".join(
        template for domain in TEMPLATES.values() for kind in domain.values() for template in kind
    )
    assert TEMPLATES.keys() == DOMAINS.keys()
    assert [slot for slot in SLOTS if f"{{{slot}}}" not in templates] == []
    for row in generate_subscriptions(SubscriptionParameters(queries=2000)):
        assert "{" not in row.query
        assert "}" not in row.query


def test_ids_are_unique_and_popularity_is_skewed() -> None:
    rows = list(generate_subscriptions(SubscriptionParameters()))
    assert len({row.query_id for row in rows}) == len(rows) == 10_000
    subscribers = Counter(row.subscriber for row in rows)
    assert 950 <= len(subscribers) <= 1000
    assert subscribers.most_common(1)[0][1] > 50, "some subscribers have many queries"
    texts = Counter(row.query for row in rows)
    assert texts.most_common(1)[0][1] > 20, "some queries are popular"
    assert len(texts) > 3000
    assert rows == list(generate_subscriptions(SubscriptionParameters()))
    assert rows != list(generate_subscriptions(SubscriptionParameters(seed=1)))


def test_uniform_popularity() -> None:
    rows = generate_subscriptions(SubscriptionParameters(queries=5000, subscribers=10, skew=0))
    assert max(Counter(row.subscriber for row in rows).values()) < 600


def test_domains_are_chosen() -> None:
    parameters = SubscriptionParameters(queries=300, domains=("alerts",), skew=1)
    roots = ("/warning", "//")
    assert all(row.query.startswith(roots) for row in generate_subscriptions(parameters))
    with pytest.raises(ConfigError, match="domain"):
        domain_named("cooking")


def test_share_of_matches() -> None:
    # Under 1 % of the queries match a message: enough to see something, and most hardly ever.
    messages = [
        message
        for message in demo_messages(DemoParameters(messages=90, broken_ratio=0))
        if message.fault is None
    ]
    texts = Counter(row.query for row in generate_subscriptions(SubscriptionParameters()))
    compiled = [(etree.XPath(text), count) for text, count in texts.items()]
    matches: Counter[str] = Counter()
    for message in messages:
        tree = etree.fromstring(message.message)
        domain = message.id.partition("-")[0]
        matches[domain] += sum(count for select, count in compiled if select(tree))
    assert matches.keys() == DOMAINS.keys()
    for domain, count in matches.items():
        assert 20 < count / 30 < 200, domain


@pytest.mark.parametrize("family", ADVERSARIES.values(), ids=list(ADVERSARIES))
def test_adversaries_are_what_they_say(family: Adversary) -> None:
    """Distinct queries, the same first ones whatever the number, and messages that meet some."""
    queries = list(family.queries(2_000))
    assert len(set(queries)) == 2_000
    assert list(family.queries(10)) == queries[:10]
    messages = family.messages(8, seed=1)
    assert family.messages(3, seed=1) == messages[:3]
    assert family.messages(3, seed=2) != messages[:3]
    trees = [etree.fromstring(message) for message in messages]
    met = [any(etree.XPath(text)(tree) for tree in trees) for text in queries[:300]]
    assert 0 < sum(met) < 300
    assert len(list(family.queries(10**9))) == 100_000


def test_demo_is_written(tmp_path: Path) -> None:
    written = write_demo(tmp_path, messages=300, queries=500, subscribers=40, seed=3)
    files = sorted(written.messages.iterdir())
    assert len(files) == written.message_count == 300
    assert sum(file.stat().st_size for file in files) == written.bytes
    assert written.messages_by_domain == {"alerts": 100, "news": 100, "payments": 100}
    assert 0 < sum(written.faults.values()) < 20
    lines = written.subscriptions.read_text("utf-8").splitlines()
    assert lines[0] == "subscriber\tquery_id\tquery"
    rows = [line.split("\t") for line in lines[1:]]
    assert len(rows) == written.query_count == 500
    assert len({row[0] for row in rows}) == written.subscriber_count <= 40
    assert len({row[2] for row in rows}) == written.distinct_query_count
    again = write_demo(tmp_path / "again", messages=300, queries=500, subscribers=40, seed=3)
    assert again.subscriptions.read_bytes() == written.subscriptions.read_bytes()
    for file in files:
        assert (again.messages / file.name).read_bytes() == file.read_bytes()


def test_demo_as_parquet_holds_the_same_messages(tmp_path: Path) -> None:
    packed = write_demo(tmp_path / "a", messages=60, queries=10, subscribers=5, packing="parquet")
    files = write_demo(tmp_path / "b", messages=60, queries=10, subscribers=5)
    table = pq.read_table(packed.messages / "messages.parquet")
    assert table.schema.names == ["message_id", "message"]
    assert [str(kind) for kind in table.schema.types] == ["string", "binary"]
    for row in table.to_pylist():
        assert (files.messages / f"{row['message_id']}.xml").read_bytes() == row["message"]
    assert table.num_rows == 60
    assert packed.bytes == files.bytes


def test_parquet_in_several_groups(tmp_path: Path) -> None:
    parameters = DocumentParameters(count=2500, depth_max=1, values="plausible")
    messages = generate_messages(domain_graph("alerts"), parameters)
    assert write_message_parquet(messages, tmp_path / "m.parquet") == 2500
    file = pq.ParquetFile(tmp_path / "m.parquet")
    assert file.metadata.num_row_groups == 3
    assert file.metadata.num_rows == 2500


def test_failed_writing_leaves_nothing_behind(tmp_path: Path) -> None:
    def failing() -> Iterator[GeneratedMessage]:
        yield GeneratedMessage("m-1", b"<a/>", None)
        raise RuntimeError("full disk")

    with pytest.raises(RuntimeError):
        write_message_parquet(failing(), tmp_path / "m.parquet")
    with pytest.raises(RuntimeError):
        write_message_files(failing(), tmp_path / "files")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["m-1.xml"]


ROWS = [GeneratedSubscription("s1", "q1", "/a[@b='ü']"), GeneratedSubscription("s2", "q2", "//c")]


def test_subscriptions_as_parquet(tmp_path: Path) -> None:
    path = write_subscriptions(ROWS, tmp_path / "s.parquet")
    assert pq.read_table(path).to_pylist() == [row._asdict() for row in ROWS]


@pytest.mark.parametrize("query", ["/a\t/b", "/a\n", "/a\r"])
def test_what_tsv_cannot_hold_is_refused(tmp_path: Path, query: str) -> None:
    with pytest.raises(ConfigError, match="q9"):
        write_subscriptions([*ROWS, GeneratedSubscription("s", "q9", query)], tmp_path / "s.tsv")
    assert list(tmp_path.iterdir()) == []


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"\.tsv"):
        write_subscriptions(ROWS, tmp_path / "s.csv")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("queries", -1),
        ("subscribers", 0),
        ("seed", "x"),
        ("domains", ()),
        ("domains", ("cooking",)),
        ("skew", -1),
        ("distinct_share", 0),
    ],
)
def test_subscription_parameters_are_checked(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name):
        SubscriptionParameters(**{name: value})


@pytest.mark.parametrize(("name", "value"), [("messages", -1), ("packing", "zip"), ("queries", -1)])
def test_demo_parameters_are_checked(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=name):
        DemoParameters(**{name: value})
