"""Tables of brokers: what they take, and what they forward that nobody wants.

Read in this order: `definition` (the data), `budgets` (table bytes against bytes wrongly
forwarded), `forms` (linear paths against whole patterns), `state` (tables for each neighbour
against tables for each root), `run`, then `plot` and `page`. Contents only: no protocol is run.

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.2.1, which has no figure of it.
"""
