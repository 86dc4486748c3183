"""A message shape, families of queries and the way they are asked: one candidate for a runaway.

Example:
    >>> candidate = STARTS["positions"]
    >>> candidate.queries()[:1]
    ['//a[2]//a[1]//b']
    >>> Candidate.model_validate_json(candidate.model_dump_json()) == candidate
    True

A candidate is its own record: its JSON gives the same message and the same queries anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from types import MappingProxyType
from typing import Annotated, Final, Literal

from pydantic import Field

from cost.messages import Block, Gene, Shape, mutated_shape, random_shape
from cost.queries import (
    ABSENT,
    ANY,
    QUERIES_MAX,
    Family,
    Predicate,
    Step,
    mutated_family,
    random_family,
)
from pathcast.model import Query, Subscription

FAMILIES_MAX: Final = 4
"""Families of a candidate."""

Way = Literal["frozen", "live", "broker"]
"""How queries are asked: a snapshot's matcher, an index's matcher, a broker."""

Deliver = Literal["fragment", "ids", "message"]


class Candidate(Gene):
    """What is measured.

    Attributes:
        shape: Of the message.
        families: Of the queries.
        way: How they are asked.
        deliver: What a broker delivers for XPath.
    """

    shape: Shape
    families: Annotated[tuple[Family, ...], Field(min_length=1)]
    way: Way = "frozen"
    deliver: Deliver = "fragment"

    def queries(self, most: int = QUERIES_MAX) -> list[str]:
        """The texts, at most so many, of each family its share; XQuery only for a broker."""
        texts: list[str] = []
        left = most
        for place, family in enumerate(self.families):
            count = min(family.count, max(1, left // (len(self.families) - place)))
            form = family.form if self.way == "broker" or not family.is_flwr else "path"
            asked = family.model_copy(update={"form": form})
            texts += [asked.query(number) for number in range(count)]
            left -= count
        return texts

    def standing(self, most: int = QUERIES_MAX) -> list[Query]:
        """The queries, for an index."""
        return [Query(f"q{at}", text) for at, text in enumerate(self.queries(most))]

    def subscriptions(self, most: int = QUERIES_MAX) -> list[Subscription]:
        """The queries, for a broker."""
        return [
            Subscription(f"s{at}", "all", text, "fragment" if text[0] == "<" else self.deliver)
            for at, text in enumerate(self.queries(most))
        ]


def random_candidate(random: Random) -> Candidate:
    """A candidate with one family or two."""
    return Candidate(
        shape=random_shape(random),
        families=tuple(random_family(random) for _ in range(random.choice((1, 1, 2)))),
        way=random.choice(("frozen", "live", "broker")),
        deliver=random.choice(("fragment", "ids", "message")),
    )


def mutated(candidate: Candidate, random: Random) -> Candidate:
    """A candidate beside this one: its message or one family is another."""
    change = random.random()
    families = list(candidate.families)
    if change < 0.4:
        return candidate.model_copy(update={"shape": mutated_shape(candidate.shape, random)})
    if change < 0.5:
        return candidate.model_copy(
            update={
                "way": random.choice(("frozen", "live", "broker")),
                "deliver": random.choice(("fragment", "ids", "message")),
            }
        )
    if change < 0.55 and len(families) < FAMILIES_MAX:
        families.append(random_family(random))
    elif change < 0.6 and len(families) > 1:
        del families[random.randrange(len(families))]
    else:
        at = random.randrange(len(families))
        families[at] = mutated_family(families[at], random)
    return candidate.model_copy(update={"families": tuple(families)})


def _predicate(kind: str, value: int = 1, *path: Step) -> Predicate:
    return Predicate.model_validate({"kind": kind, "value": value, "path": path})


def _deep(name: int, *predicates: Predicate) -> Step:
    return Step(name=name, is_deep=True, predicates=predicates)


_A, _B = 0, 1
_NESTS: Final = Shape(blocks=(Block(name=_A, depth=120, attributes=2, values=3),))
_NESTS_WITH_TEXT: Final = Shape(blocks=(Block(name=_A, depth=120, text=6, values=50),))
_NESTS_IN_A_NEST: Final = Shape(around=100, blocks=(Block(name=_A, depth=150),))
_FLAT: Final = Shape(blocks=(Block(name=_A, attributes=1, text=20, values=500),))
_PROSE: Final = Shape(blocks=(Block(name=_A, text=4000, values=1000),))

STARTS: Final[Mapping[str, Candidate]] = MappingProxyType(
    {
        "positions": Candidate(
            shape=_NESTS,
            families=(
                Family(
                    steps=(
                        _deep(_A, _predicate("position", 2)),
                        _deep(_A, _predicate("position", 1)),
                        _deep(_B),
                    )
                ),
            ),
        ),
        "attributes": Candidate(
            shape=_NESTS,
            families=(
                Family(
                    steps=(
                        _deep(_A, _predicate("attribute", 0)),
                        _deep(_A, _predicate("attribute", 1)),
                        _deep(_B),
                    )
                ),
            ),
            way="live",
        ),
        "positions, absent ends": Candidate(
            shape=_NESTS,
            families=(
                Family(
                    steps=(
                        _deep(_A, _predicate("position", 2)),
                        _deep(_A, _predicate("position", 1)),
                        _deep(ABSENT),
                    ),
                    count=100,
                ),
            ),
        ),
        "positions of anything": Candidate(
            shape=_NESTS_WITH_TEXT,
            families=(
                Family(
                    steps=(*([_deep(ANY, _predicate("position", 1))] * 3), _deep(ABSENT)),
                    count=100,
                ),
            ),
        ),
        "values that nothing has": Candidate(
            shape=_NESTS_IN_A_NEST,
            families=(
                Family(
                    steps=(
                        _deep(_A, _predicate("attribute is its number", 0)),
                        _deep(_B, _predicate("attribute is its number", 1)),
                    ),
                    count=QUERIES_MAX,
                ),
            ),
        ),
        "large results": Candidate(
            shape=_FLAT,
            families=(
                Family(
                    form="flwr",
                    steps=(_deep(_A, _predicate("attribute above its number")),),
                    count=QUERIES_MAX,
                ),
            ),
            way="broker",
        ),
        "results over their budget": Candidate(
            shape=_NESTS.model_copy(
                update={"blocks": (Block(name=_A, depth=200, attributes=1, values=4096),)}
            ),
            families=(
                Family(steps=(_deep(_A, _predicate("attribute above its number")),), count=200),
            ),
            way="broker",
        ),
        "quadratic in depth": Candidate(
            shape=_NESTS,
            families=(
                Family(form="count", steps=(_deep(_A),)),
                Family(steps=(_deep(_A, _predicate("position", 2)),)),
                Family(steps=(_deep(ANY, _predicate("is", 1)),)),
            ),
        ),
        "strings": Candidate(
            shape=_PROSE,
            families=(
                Family(steps=(_deep(_A, _predicate("contains its number")),), count=QUERIES_MAX),
            ),
        ),
        "string values": Candidate(
            shape=_NESTS_WITH_TEXT,
            families=(Family(steps=(_deep(_A, _predicate("normalized")),), count=100),),
            way="live",
        ),
        "joins of string values": Candidate(
            shape=_NESTS,
            families=(
                Family(
                    form="quantified",
                    steps=(
                        _deep(_A, _predicate("contains", 1)),
                        _deep(_A, _predicate("contains its number")),
                    ),
                    other=(_deep(_A),),
                    count=100,
                ),
            ),
            way="broker",
        ),
        "negations in programs": Candidate(
            shape=_NESTS,
            families=(
                Family(
                    form="nested",
                    steps=(
                        _deep(
                            _A,
                            _predicate(
                                "no path", 1, _deep(_A, _predicate("attribute is its number", 0))
                            ),
                        ),
                    ),
                    other=(_deep(_A),),
                    count=100,
                ),
            ),
            way="broker",
        ),
        "equal programs": Candidate(
            shape=_NESTS_WITH_TEXT,
            families=(
                Family(
                    form="nested",
                    steps=(
                        _deep(_A, _predicate("length", 50)),
                        _deep(_A, _predicate("length", 60)),
                    ),
                    other=(_deep(_A),),
                    count=100,
                ),
            ),
            way="broker",
        ),
        "nested paths": Candidate(
            shape=_NESTS,
            families=(
                Family(
                    steps=(
                        _deep(_A, _predicate("path", 1, _deep(_A), _deep(_B))),
                        _deep(_A, _predicate("no path", 1, _deep(_B))),
                    ),
                    count=100,
                ),
            ),
            way="live",
        ),
        "joins": Candidate(
            shape=_FLAT,
            families=(
                Family(form="quantified", steps=(_deep(_A),), other=(_deep(_A),)),
                Family(form="ordered", steps=(_deep(_A),)),
            ),
            way="broker",
        ),
    }
)
"""Where a search begins: families that have been costly, by what is bad about them."""
