"""A few messages at once, without arrays: what engines answer then is what they answer in arrays.

If these fail, a registry answers otherwise than a batch of the same messages does.
"""

from __future__ import annotations

import random

import pyarrow as pa

from broker_engines import broker_engines
from every_engine import engines
from generators import FamilyShape, random_family, random_valued_message
from oracles.engines import made_by
from pathcast import Query, Registry, Subscription
from pathcast.limits import Limits

SHORT = Limits(evaluation_steps_max=40, message_steps_max=400)
REFUSED = [b"", b"<a", b"<a/><b/>"]


def messages_of(chosen: random.Random) -> list[bytes]:
    return [random_valued_message(chosen) for _ in range(30)] + REFUSED


@engines
def test_few_messages_match_as_many_do(engine: str) -> None:
    found = undecided = 0
    for seed in range(3):
        chosen = random.Random(seed)
        index = made_by(engine, Registry, limits=SHORT)
        texts = random_family(chosen, 20, FamilyShape(has_alternatives=True))
        texts += ["count(//*[count(.//*) > 1]) > 1"]
        index.add([Query(str(number), text) for number, text in enumerate(texts)])
        matcher, messages = index, messages_of(chosen)
        few = matcher.match(messages)
        many = matcher.match(pa.array(messages, pa.binary()))
        one_by_one = list(map(matcher.match, messages))
        for answer in (one_by_one, few, many):
            numbers = [list(result.query_numbers) for result in answer]
            assert numbers == few.matches.to_pylist() == list(many.lists())
            errors = [result.error and result.error.to_dict() for result in answer]
            assert errors == few.errors.to_pylist() == many.errors.to_pylist()
            names = [sorted(result.verdicts) for result in answer]
            assert names == [sorted(result.verdicts) for result in many]
        assert few.verdicts == many.verdicts
        found += sum(map(len, few.lists()))
        undecided += len(few.verdicts)
    assert found > 20
    assert undecided > 5
    assert list(matcher.match([]).lists()) == []


@broker_engines
def test_few_messages_are_delivered_as_many_are(engine: str) -> None:
    found = undecided = 0
    for seed in range(3):
        chosen = random.Random(seed)
        texts = random_family(chosen, 12, FamilyShape())
        rows = [
            Subscription(f"{deliver}-{number}", "ann", text, deliver)
            for number, text in enumerate(texts)
            for deliver in ("fragment", "message", "ids")
        ]
        rows.append(Subscription("slow", "bob", "//*[count(.//*) > 1][count(.//*) > 2]"))
        registry = made_by(engine, Registry, limits=SHORT)
        registry.add(rows)
        messages = messages_of(chosen)
        few = registry.deliver(messages)
        many = registry.deliver(pa.array(messages, pa.binary()))
        names, numbers = many.subscription_ids, many.numbers.to_pylist()
        assert few.results == many.results
        assert few.results == [
            (row["row"], names[row["subscription"]], row["result_number"], row["fragment"])
            for row in numbers
        ]
        assert few.table.equals(many.table)
        one_by_one = [registry.deliver(message) for message in messages]
        assert [len(each) for each in one_by_one] == [
            len(few.deliveries(row)) for row in range(len(messages))
        ]
        assert [each for own in one_by_one for each in own] == [
            each for row in range(len(messages)) for each in many.deliveries(row)
        ]
        assert few.errors.equals(many.errors)
        assert few.verdicts.equals(many.verdicts)
        verdicts = many.verdicts.to_pylist()
        assert [(row, name, error.code) for row, name, error in few.undecided] == [
            (each["row"], each["subscription_id"], each["code"]) for each in verdicts
        ]
        found += len(few)
        undecided += len(verdicts)
    assert found > 20
    assert undecided > 5
