"""Figures 7 to 12 and Tables 2 to 5 of the paper on message brokers, measured again.

PathSharing-F, -FW and -FWR, with the optimisations and with plan sharing, are plain Python and run
at sizes that Python can bear; the kernel runs at the paper's sizes and ten times those. What is
measured is the paper's MQPT, from a parsed message to the last result in
groupSequence-listSequence form, always beside `lxml.etree.fromstring` on the same messages in the
same run; no time is reported before all that are compared have given the same groups.

Read in this order: `definition` (the data), `inputs` (queries and messages), `reference_subject`
and `kernel_subject` (who is measured), `experiments`, `run`, then `plot`, `page` and
`statements` (what the paper says, and whether it holds here).

Example:
    >>> from pathcast_lab.bench.broker.definition import BrokerParameters
    >>> BrokerParameters(queries=5_000).changed(x="predicates", value=3).predicates
    3

Source: Diao and Franklin, VLDB 2003, section 6. Its times are of a Pentium III and Java: shapes can
be compared, not milliseconds.
"""
