"""Benchmarks: what building, parsing, matching and collecting cost, beside a yardstick.

Every time is a ratio to `lxml.etree.fromstring` over the same messages, taken alternately in the
same run, with its spread; and no time is reported before the matches behind it were checked against
the reference engine and the plain NFA. What is measured, with which numbers and which bound, is
data (`lab/benchmarks/*.toml`); the modules here know how.

Read in this order: `definitions` (the data), `inputs` (queries and messages), `timing`, `measures`
and `rounds` (how time is taken), `checking` (right answers first), then a module for each benchmark
(`filtering`, `door`, `records`, `compression`, `registration`, `threads`, `conditions`, `mixed`,
`adversarial`, `pipeline`, `customise`), and `run`, `record`, `report`, `plot`. The papers' figures
are in `figures` and `broker`.

Example:
    >>> from pathcast_lab.bench.timing import Spread
    >>> Spread.of([3.0, 1.0, 2.0])
    Spread(median=2.0, least=1.0, most=3.0)

Nothing else in Pathcast but the command line knows this room. It compares with no other engine than
Pathcast's own: the peers were measured elsewhere, once.
"""
