"""kernel == reference == Saxon through the registry, on generated subscriptions and messages.

If one of these fails, a subscriber gets another result, or none, or one too many: the gate, the
shared plans, an interpreter or the serialiser of the engine is at fault. Seeds are fixed, so a
failure replays; PATHCAST_NIGHTLY=<examples> makes the nightly run longer.
"""

from __future__ import annotations

import os
import random
import re
from collections.abc import Sequence
from functools import cache

import pytest

from customised_cases import (
    GENEROUS,
    Opinion,
    Skipped,
    agree,
    by_broker,
    by_reference,
    by_saxon,
)
from every_engine import engines
from generators import (
    VOCABULARIES,
    FlwrWidth,
    GeneratedFlwr,
    MessageTemper,
    random_flwr,
    random_flwr_message,
    random_split,
)
from oracles import saxon_missing_reason
from oracles.engines import EngineName, made_by
from pathcast.model import Subscription
from pathcast.registry import Registry

NIGHTLY_EXAMPLES = int(os.environ.get("PATHCAST_NIGHTLY", "20000"))

vocabularies = pytest.mark.parametrize("vocabulary", sorted(VOCABULARIES))

ALL_WIDTHS = tuple(FlwrWidth)


class Cases:
    """Subscriptions of all widths and messages for them, from one seed.

    Attributes:
        flwrs: Id -> subscription.
        messages: From tame to wild.
    """

    def __init__(self, vocabulary: str, seed: int, flwrs: int = 48, messages: int = 8) -> None:
        chosen = VOCABULARIES[vocabulary]
        self.random = random.Random(f"broker {vocabulary} {seed}")
        self.flwrs: dict[str, GeneratedFlwr] = {
            f"{width.value}-{number}": random_flwr(self.random, chosen, width)
            for number in range(flwrs // 3)
            for width in ALL_WIDTHS
        }
        self.messages = [
            random_flwr_message(
                self.random, chosen, MessageTemper(hostility=(0.0, 0.15, 0.3, 0.6)[number % 4])
            )
            for number in range(messages)
        ]
        self._truth: dict[tuple[str, int], Opinion] = {}

    def subscriptions(self, ids: Sequence[str] | None = None) -> list[Subscription]:
        return [
            Subscription(name, f"of {name}", flwr.text, namespaces=flwr.namespaces)
            for name, flwr in self.flwrs.items()
            if ids is None or name in ids
        ]

    def truth(self, name: str, number: int) -> Opinion:
        """What the reference interpreter says, asked once."""
        if (name, number) not in self._truth:
            flwr = self.flwrs[name]
            self._truth[name, number] = by_reference(
                flwr.text, self.messages[number], flwr.namespaces
            )
        return self._truth[name, number]

    def check(
        self,
        found: Sequence[dict[str, Opinion]],
        names: Sequence[str] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> int:
        """Compares what a registry said with the reference; returns how much was delivered."""
        numbers = range(len(self.messages)) if numbers is None else numbers
        names = list(self.flwrs) if names is None else names
        delivered = 0
        for said, number in zip(found, numbers, strict=True):
            assert said.keys() <= set(names)
            for name in names:
                wanted = self.truth(name, number)
                assert said.get(name) == wanted, (
                    f"{name}\n{self.flwrs[name].text}\n{dict(self.flwrs[name].namespaces)}\n"
                    f"message {self.messages[number].decode()}\n"
                    f"wanted {wanted!r}\nfound  {said.get(name)!r}"
                )
                delivered += wanted is not None
        return delivered


@cache
def cases_of(vocabulary: str, seed: int) -> Cases:
    """The same for every engine, so that the reference interpreter is asked once."""
    return Cases(vocabulary, seed)


def broker_of(
    engine: EngineName, subscriptions: Sequence[Subscription], threads: int = 1
) -> Registry:
    registry = made_by(engine, Registry, limits=GENEROUS, threads=threads)
    report = registry.add(subscriptions)
    assert not report.rejected, {name: str(error) for name, error in report.rejected.items()}
    return registry


@engines
@vocabularies
def test_many_subscriptions_at_once(engine: EngineName, vocabulary: str) -> None:
    cases = cases_of(vocabulary, 1)
    found = by_broker(broker_of(engine, cases.subscriptions()), cases.messages)
    pairs = len(cases.flwrs) * len(cases.messages)
    assert cases.check(found) > pairs // 10, "too little is delivered to prove much"


@engines
@vocabularies
def test_a_history_of_subscriptions(engine: EngineName, vocabulary: str) -> None:
    """They come and go between batches; none leaves anything behind or takes anything along."""
    cases = cases_of(vocabulary, 2)
    generator = random.Random(f"history {vocabulary}")
    registry = broker_of(engine, [])
    present: list[str] = []
    delivered = 0
    for _ in range(12):
        absent = [name for name in cases.flwrs if name not in present]
        coming = generator.sample(absent, min(len(absent), generator.randrange(25)))
        assert not registry.add(cases.subscriptions(coming)).rejected
        present += coming
        going = generator.sample(present, min(len(present), generator.randrange(20)))
        registry.remove(going)
        present = [name for name in present if name not in going]
        assert len(registry) == len(present)
        numbers = generator.sample(range(len(cases.messages)), 3)
        found = by_broker(registry, [cases.messages[number] for number in numbers])
        delivered += cases.check(found, present, numbers)
    assert delivered > 20


@engines
def test_neighbours_batches_threads_and_snapshots_change_nothing(engine: EngineName) -> None:
    cases, others = cases_of("book", 3), cases_of("book", 4)
    generator = random.Random(3)
    mixed = cases.subscriptions() + [
        Subscription(f"other {it.id}", it.subscriber, it.query, namespaces=it.namespaces)
        for it in others.subscriptions()
    ]
    generator.shuffle(mixed)
    registry = broker_of(engine, mixed, threads=2)
    for answering in (registry, made_by(engine, Registry.of, registry.freeze())):
        found: list[dict[str, Opinion]] = []
        for batch in random_split(generator, cases.messages):
            found += by_broker(answering, batch)
        own = [{name: said[name] for name in said if name in cases.flwrs} for said in found]
        cases.check(own)
    for name in generator.sample(list(cases.flwrs), 10):
        alone = by_broker(broker_of(engine, cases.subscriptions([name])), cases.messages)
        cases.check(alone, [name])


@engines
def test_what_is_delivered_does_not_depend_on_how(engine: EngineName) -> None:
    """As fragments, as the message or as ids alone: the same messages reach a subscriber.

    Only where nothing is built a value may be false, and then nothing but the fragment comes.
    """
    cases = cases_of("orders", 5)
    built = [it for it in cases.subscriptions() if it.query.rstrip().endswith(">")]
    assert len(built) > 20
    ways = {
        deliver: broker_of(engine, [it._replace(deliver=deliver) for it in built]).deliver(
            cases.messages, [str(number) for number in range(len(cases.messages))]
        )
        for deliver in ("fragment", "message", "ids")
    }
    reached = {
        deliver: {
            (row["message_id"], row["subscription_id"])
            for row in batch.table.select(["message_id", "subscription_id"]).to_pylist()
        }
        for deliver, batch in ways.items()
    }
    errors = {
        (str(row["row"]), row["subscription_id"]) for row in ways["fragment"].verdicts.to_pylist()
    }
    assert len(reached["fragment"]) > 50
    assert reached["message"] == reached["ids"]
    # A filter need not build what it does not deliver, so it meets fewer construction errors.
    assert reached["fragment"] <= reached["ids"] <= reached["fragment"] | errors
    for row in ways["message"].table.to_pylist():
        assert row["fragment"] == cases.messages[int(row["message_id"])]
        assert row["result_number"] == 0
    assert ways["ids"].table.column("fragment").null_count == len(ways["ids"])


@engines
def test_the_encoding_of_a_message_changes_nothing(engine: EngineName) -> None:
    """What is copied out of a message is UTF-8, whatever the message came in."""
    for vocabulary in ("words", "orders"):
        cases = cases_of(vocabulary, 1)
        registry = broker_of(engine, cases.subscriptions())
        numbers = [number for number, it in enumerate(cases.messages) if b"<?xml" not in it]
        assert numbers
        for encoding in ("utf-8-sig", "utf-16", "utf-16-be", "iso-8859-1", "us-ascii"):
            batch = [in_encoding(cases.messages[number], encoding) for number in numbers]
            assert cases.check(by_broker(registry, batch), numbers=numbers) > 0, encoding


def in_encoding(message: bytes, encoding: str) -> bytes:
    """A message without XML declaration, in another encoding, with one where it needs it.

    Characters that the encoding lacks become references; those in markup declarations, comments and
    names have none, so such a message stays as it is.
    """
    text = message.decode()
    if encoding.startswith("utf-16-"):
        return b"\xfe\xff" + text.encode(encoding)
    if encoding.startswith("utf"):
        return text.encode(encoding)
    name = re.compile(r"<[^!?>]*?[^\x00-\x7f][^>]*>|<!DOCTYPE")
    if name.search(re.sub(r"=('[^']*'|\"[^\"]*\")", "", text)) or "<![CDATA[" in text:
        return message
    declared = f"<?xml version='1.0' encoding='{encoding}'?>{text}"
    return declared.encode(encoding, "xmlcharrefreplace")


@pytest.mark.skipif(saxon_missing_reason() is not None, reason=str(saxon_missing_reason()))
@engines
def test_engines_agree_with_saxon(engine: EngineName) -> None:
    """Asked directly, so that the two oracles cannot fail together unseen."""
    asked = 0
    for vocabulary in VOCABULARIES:
        cases = Cases(vocabulary, 6, flwrs=30, messages=3)
        found = by_broker(broker_of(engine, cases.subscriptions()), cases.messages)
        for said, message in zip(found, cases.messages, strict=True):
            for name, flwr in cases.flwrs.items():
                saxons = by_saxon(flwr.text, message, flwr.namespaces, flwr.delivered)
                assert agree(said.get(name), saxons) is not None, (flwr.text, message, saxons)
                asked += not isinstance(saxons, Skipped)
    assert asked > 350


@pytest.mark.nightly
@pytest.mark.parametrize("engine", ["kernel", "nfa"])
@vocabularies
def test_engines_agree_at_length(engine: EngineName, vocabulary: str) -> None:
    """More than ten thousand pairs for each engine."""
    wanted = max(20_000, NIGHTLY_EXAMPLES) // len(VOCABULARIES)
    pairs = seed = 0
    while pairs < wanted:
        cases = Cases(vocabulary, 1000 + seed, flwrs=90, messages=8)
        cases.check(by_broker(broker_of(engine, cases.subscriptions()), cases.messages))
        pairs += len(cases.flwrs) * len(cases.messages)
        seed += 1
    assert pairs >= wanted
