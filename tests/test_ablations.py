"""The table of `pathcast_lab.sim.ablations` fits the product, and what it changes is changed back.

If an entry does not fit, the product has moved on and the table has not. That each safeguard is
missed is shown where its protocol is tested.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import pytest

pytest.importorskip("msgspec")

from pathcast.overlay.streams import Stream
from pathcast_lab.sim import ablations
from pathcast_lab.sim.ablations import ABLATIONS, Ablation, changed_code, without


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_entry_fits_the_product(name: str) -> None:
    for one in ABLATIONS[name]:
        code = changed_code(one.module, one.function, [one])
        assert code.co_name == one.function.rpartition(".")[2]
    with without(name):
        pass


class Base:
    def one(self) -> int:
        return 1


class Derived(Base):
    def one(self) -> int:
        def inner() -> int:
            return 10 * self.number

        return super().one() + inner()

    number = 5


@functools.cache
def top(number: int) -> int:
    return number + 1


@dataclass(frozen=True, slots=True)
class Slotted:
    number: int = 5
    __hidden: int = 7

    @property
    def twice(self) -> int:
        return 2 * self.number

    @staticmethod
    def fixed() -> int:
        return 3

    @classmethod
    def named(cls) -> str:
        return cls.__name__

    @functools.cache  # noqa: B019
    def hidden(self) -> int:
        return self.__hidden + 0

    class Inside:
        def deep(self, number: int = 4) -> int:
            return number + 1


HERE = {
    "super": [Ablation(__name__, "Derived.one", "return 10", "return 20")],
    "property": [Ablation(__name__, "Slotted.twice", "2 * ", "3 * ")],
    "static": [Ablation(__name__, "Slotted.fixed", "return 3", "return 4")],
    "class": [Ablation(__name__, "Slotted.named", "cls.__name__", "cls.__qualname__.lower()")],
    "decorated": [Ablation(__name__, "Slotted.hidden", "+ 0", "+ 1")],
    "inside": [Ablation(__name__, "Slotted.Inside.deep", "+ 1", "+ 2")],
    "function": [Ablation(__name__, "top", "+ 1", "+ 2")],
    "absent": [Ablation(__name__, "top", "+ 7", "+ 2")],
    "twice": [Ablation(__name__, "top", "number", "3")],
}


@pytest.fixture(autouse=True)
def _with_these(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ablations, "ABLATIONS", {**ABLATIONS, **HERE})


def seen() -> list[object]:
    slotted = Slotted()
    top.cache_clear()
    Slotted.hidden.cache_clear()
    return [
        Derived().one(),
        slotted.twice,
        Slotted.fixed(),
        Slotted.named(),
        slotted.hidden(),
        Slotted.Inside().deep(),
        top(1),
    ]


def test_every_kind_of_function_is_changed_and_changed_back() -> None:
    before = [51, 10, 3, "Slotted", 7, 5, 2]
    assert seen() == before
    with without("super", "property", "static", "class", "decorated", "inside", "function"):
        assert seen() == [101, 15, 4, "slotted", 8, 6, 3]
    assert seen() == before
    with pytest.raises(KeyError), without("function"):
        raise KeyError
    assert seen() == before


@pytest.mark.parametrize(("name", "count"), [("absent", 0), ("twice", 2)])
def test_a_text_that_is_not_there_once_is_refused(name: str, count: int) -> None:
    refused = pytest.raises(ValueError, match=rf"top: the text '.*' occurs {count} times")
    with refused, without("super", name):
        pytest.fail("it was applied")
    assert seen()[0] == 51, "nothing else is changed either"


def test_two_that_change_one_function_are_given_together() -> None:
    refused = pytest.raises(ValueError, match="_take is changed already")
    with without("sessions", "order", "deduplicate"), refused, without("order"):
        pytest.fail("it was applied")
    before = Stream.rewind.__code__
    with without("rewind"):
        assert Stream.rewind.__code__ is not before
    assert Stream.rewind.__code__ is before
