"""What depends on nothing of the message is constant, however it is written.

If one of these fails, every message is sent something that says nothing of it; or a subscription
that asks for something is refused.
"""

from __future__ import annotations

import random

import pytest

from customised_cases import GENEROUS, by_broker
from every_engine import engines
from generators import (
    VOCABULARIES,
    FlwrWidth,
    MessageTemper,
    Vocabulary,
    random_constant,
    random_flwr_message,
)
from generators.flwr_expressions import ExpressionWriter
from oracles.engines import EngineName, made_by
from pathcast.errors import UnsupportedQueryError
from pathcast.model import DeliverMode, Subscription
from pathcast.query.xquery import parse
from pathcast.registry import Registry
from pathcast_papers.language import xquery as reference
from pathcast_papers.language.xquery.frame import content_expressions

CONSTANTS = (
    "-1",
    "10 + 10",
    "string-length('x')",
    "if (1 = 1) then 'a' else 'b'",
    "let $x := 1 return $x",
    "let $x := //a return 1",
    "let $x := //a, $x := 2 return $x",
    "some $x in (1, 2) satisfies $x = 2",
    "every $x in () satisfies $x",
    "(1, 2)[. > 1][position() = last()]",
    "true(), false(), position(), last()",
    "concat('a', string(1)), ()",
    "<b c='{1}'>{2}</b>",
    "for $i in (1, 2) order by -$i return <i n='{$i}'/>",
    "()",
    "()/a",
)
OF_THE_MESSAGE = (
    "/",
    ".",
    "$msg",
    "doc('x')",
    "string()",
    "name(.)",
    "lang('en')",
    "id('x')",
    "count(//a) * 0",
    "(1, 2)[//a]",
    "let $x := //a return $x",
    "let $x := 1, $y := ($x, //a) return $y",
    "for $x in //a return 1",
    "for $x in //a return ()",
    "for $x in 1 where //a return $x",
    "for $x in (1, 2) order by //a return $x",
    "if (//a) then 1 else 1",
    "some $x in 1 satisfies //a",
    "<b c='{//a}'/>, //a",
)


@pytest.mark.parametrize("text", CONSTANTS)
def test_constants(text: str) -> None:
    for body in (f"<r>{{{text}}}</r>", f"<r><s>{{{text}}}</s>{{{text}}}</r>", f"({text}), ()"):
        with pytest.raises(UnsupportedQueryError) as caught:
            parse(body)
        assert caught.value.code == "subscription.constant", body
    assert len(content_expressions(reference.parse(f"<r>{{{text}}}{{//a}}</r>"))) == 1


@pytest.mark.parametrize("text", OF_THE_MESSAGE)
def test_what_is_of_the_message(text: str) -> None:
    assert len(content_expressions(reference.parse(f"<r>{{{text}}}</r>"))) == 1


def expressions(vocabulary: Vocabulary, seeds: range) -> list[tuple[str, bool]]:
    """Expressions, constant and not, and whether the writer reached for the message."""
    found = []
    for seed in seeds:
        found.append((random_constant(random.Random(seed), vocabulary), False))
        write = ExpressionWriter(random.Random(seed), vocabulary, FlwrWidth.WHOLE)
        text = write.anything(2)
        found.append((text, write.message_uses > 0))
    return found


@pytest.mark.parametrize("name", sorted(VOCABULARIES))
def test_generated_expressions(name: str) -> None:
    """Whoever wrote an expression knows whether it reaches for the message."""
    vocabulary = VOCABULARIES[name]
    constant = 0
    for text, is_of_message in expressions(vocabulary, range(150)):
        body = f"<r>{{{text}}}</r>"
        if is_of_message:
            assert content_expressions(reference.parse(body, vocabulary.namespaces)), body
            continue
        constant += 1
        with pytest.raises(UnsupportedQueryError) as caught:
            parse(body, vocabulary.namespaces)
        assert caught.value.code == "subscription.constant", body
    assert 150 <= constant < 250


@engines
def test_constants_decide_nothing(engine: EngineName) -> None:
    """With constants beside it, a path is delivered for the messages that it is delivered for."""
    delivered = 0
    ways: tuple[DeliverMode, ...] = ("fragment", "ids")
    for name, vocabulary in VOCABULARIES.items():
        generator = random.Random(f"constants {name}")
        write = ExpressionWriter(generator, vocabulary, FlwrWidth.SIMPLE)
        messages = [
            random_flwr_message(generator, vocabulary, MessageTemper(hostility=0.2))
            for _ in range(4)
        ]
        subscriptions = []
        for number in range(30):
            path, constant = write.binding_path(0).text, random_constant(generator, vocabulary)
            written = f"<r>{{{path}}}</r>", f"<r>{{{constant}}}<s>{{{path}}}{{{constant}}}</s></r>"
            for deliver in ways:
                for beside, text in zip(("alone", "beside"), written, strict=True):
                    subscriptions.append(
                        Subscription(
                            f"{number} {deliver} {beside}",
                            "desk",
                            text,
                            deliver,
                            dict(vocabulary.namespaces),
                        )
                    )
        registry = made_by(engine, Registry, limits=GENEROUS)
        assert registry.add(subscriptions).rejected == {}
        for said in by_broker(registry, messages):
            for subscription in subscriptions:
                alone = subscription.id.replace("beside", "alone")
                assert (subscription.id in said) == (alone in said), subscription.query
            delivered += len(said)
    assert delivered > 200
