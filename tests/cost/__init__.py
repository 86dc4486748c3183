"""The search for messages and queries that cost more than they may.

In reading order: `messages` (shapes of messages), `queries` (families of queries), `candidate`
(both and how they are asked), `gauge` (what a candidate costs), `search` (hill climbing on
time per byte).

    python -m cost --seed 7 --seconds 600
    python -m cost --replay GENOME

Example:
    >>> candidate = STARTS["values that nothing has"]
    >>> candidate.queries()[1], candidate.shape.message(30)[:12]
    ('//a[@x="1"]//b[@y="1"]', b'<r><a><a><a>')

Everything stays within the default limits, and one message is sent at a time, through the public
calls. It needs lxml, whose parse is the yardstick, and `/proc`. It checks no answers: engines are
compared on candidates elsewhere.
"""

from __future__ import annotations

from cost.candidate import STARTS, Candidate, mutated, random_candidate
from cost.gauge import Cost, Gauge
from cost.search import (
    Suspect,
    climbed,
    is_runaway,
    judged,
    replay_command,
    starts,
    suspects,
)

__all__ = [
    "STARTS",
    "Candidate",
    "Cost",
    "Gauge",
    "Suspect",
    "climbed",
    "is_runaway",
    "judged",
    "mutated",
    "random_candidate",
    "replay_command",
    "starts",
    "suspects",
]
