"""What the paper says of hosts and of one central server, and whether a run says the same.

Example:
    >>> judge("host_brokers", [])[0].answer.name
    'UNMEASURED'

Source: Diao, Rizvi and Franklin, VLDB 2004, sections 2.2 and 4.4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from pathcast.cli.columns import number
from pathcast_lab.bench.figures.point import Value
from pathcast_lab.bench.figures.verdicts import (
    WIDE,
    Answer,
    Found,
    Judgement,
    Statement,
    Verdict,
    judged,
)
from pathcast_lab.bench.overlay.host_brokers import CONTENT, HOSTS, LINKS, NEAREST
from pathcast_lab.bench.placement.statements import SMALL

PATTERNS: Final = 10


def judge(name: str, values: Sequence[Value]) -> list[Verdict]:
    """The statements about a figure.

    Args:
        name: Of the figure.
        values: Of it, in one run.
    """
    return judged(STATEMENTS.get(name, ()), values)


def _nearest_is_random(found: Found) -> Judgement:
    hosts = found.at(NEAREST, x=SMALL, measure=HOSTS)
    links = found.at(NEAREST, x=SMALL, measure=LINKS)
    detail = (
        f"{number(hosts)} % of the host brokers, {number(links)} % of the links at {SMALL:g} "
        "repetitions"
    )
    return Answer.of(hosts >= 90), detail


def _content_reaches_fewer(found: Found) -> Judgement:
    told, few = [], []
    for x in found.places(CONTENT, measure=HOSTS):
        ratio = found.at(NEAREST, x=x, measure=HOSTS) / found.at(CONTENT, x=x, measure=HOSTS)
        told.append(f"{number(ratio)} times at {x:g}")
        few += [ratio] if x <= SMALL else []
    return Answer.of(min(few) >= WIDE), f"nearest : by content = {', '.join(told)}"


def _links_follow(found: Found) -> Judgement:
    told = []
    for x in found.places(CONTENT, measure=LINKS):
        if x <= SMALL:
            told.append(
                found.at(NEAREST, x=x, measure=LINKS) / found.at(CONTENT, x=x, measure=LINKS)
            )
    span = f"{number(min(told))} to {number(max(told))}"
    return Answer.of(min(told) >= WIDE), f"nearest : by content = {span} times, links"


def _more_than_one(found: Found) -> Judgement:
    variant = "brokers that it takes"
    brokers = found.at("by content", variant, 0.0, "brokers")
    return Answer.of(brokers > 1), f"{number(brokers)} brokers of one core, by content"


STATEMENTS: Final[Mapping[str, tuple[Statement, ...]]] = MappingProxyType(
    {
        "host_brokers": (
            Statement(
                "a system that assigns user queries to the closest brokers will end up doing "
                "random partitioning, leading to many messages being exchanged between the brokers",
                "4.4",
                _nearest_is_random,
            ),
            Statement(
                "PEP leads to many fewer matches (here: of host brokers)",
                "4.4",
                _content_reaches_fewer,
            ),
            Statement(
                "not the paper's: by content, many fewer links are used as well", "", _links_follow
            ),
        ),
        "capacity": (
            Statement(
                "disseminating this volume of data from a central server can be prohibitively "
                "expensive (here: takes more than one broker)",
                "2.2",
                _more_than_one,
            ),
        ),
    }
)
