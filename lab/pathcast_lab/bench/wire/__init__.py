"""Figures 7 and 8 of the paper on networks of brokers: size and delay of wire formats.

Beside the paper: zstd; which format is there first on a link of some bandwidth; and what a
connection that is set up for each message costs. No time is reported before every format has given
back the messages, and their element streams the same answers.

Read in this order: `definition` (the data), `experiments`, `run`, then `page`, `plot` and
`statements`.

Example:
    >>> from pathcast_lab.bench.wire.definition import WireFigure
    >>> WireFigure(name="7", title="t", kind="size", sets={}).caption
    'Figure 7'

Source: Diao, Rizvi, Franklin, VLDB 2004, 4.3.2. Its times are of Java on machines of 2004.
"""
