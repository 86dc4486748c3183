"""Figures 10 to 12 and Tables A1 and A3 of the paper on chunking, measured again.

In the paper's setting, one XPath after another (by lxml), and with the kernel, which shares what
queries have in common. No time is reported before chunked and unchunked evaluation have selected
the same for every query. Beside the paper: how far the greedy scheme is from the optimal one.

Read in this order: `definition` (the data), `inputs` (schemes and chunks of a scenario),
`experiments`, `run`, then `page`, `plot` and `statements`.

Example:
    >>> from pathcast_lab.bench.chunking.definition import ChunkingFigure
    >>> ChunkingFigure(name="11", title="t", kind="times", sets={}).caption
    'Figure 11'

Source: Lehner and Irmert, BTW 2003, section 5. Its times are of an 800 MHz Athlon and Jaxen: shares
can be compared, not milliseconds.
"""
