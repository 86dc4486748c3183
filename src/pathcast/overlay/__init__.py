"""A network of brokers: who wants what, told along the links, and where a message goes.

In reading order: `reference` (the paper's operator network, the oracle), `disjuncts` (a profile as
entries of routing tables), `origins` and `interest` (what each neighbour is told), `covered` (which
entry covers which), `generalisation` (entries made fewer and wider), `table` (who wants a message).

Nothing here reads a clock, a socket or a file.

Source: Diao, Rizvi and Franklin, VLDB 2004.
"""
