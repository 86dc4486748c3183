"""The figures and tables of the paper, measured again: its algorithms, and the kernel beside them.

Figures 11 to 18 and Tables 3 to 5 (structure), 22 to 24 (value predicates), 26, 27 and Table 6
(nested paths). The reference algorithms are plain Python and run at sizes that Python can bear; the
kernel runs at the paper's sizes and beyond. What is measured is the paper's MQPT, the time of
filtering without parsing, always with the time of `lxml.etree.fromstring` on the same messages in
the same run; and no time is reported before all that are compared have given the same answers.

Read in this order: `definition` (the data), `inputs` (queries and messages), `point` (what is
measured), `reference_subject` and `kernel_subject` (who is measured), `sweep` and `tables` (the
experiments), `run`, then `output` (record and CSV), `plot`, `page` (docs/figures.md).

Example:
    >>> from pathcast_lab.bench.figures.definition import Parameters
    >>> Parameters(queries=1000, depth_max=6).changed(x="wildcard", value=0.4).wildcard
    0.4

Source: Diao et al., TODS 2003, sections 4, 5.3 and 6.4. Times of the paper are of a Pentium III and
Java: shapes can be compared, not milliseconds.
"""
