"""Networks of brokers: what tables take and forward in vain, what links carry, what changes cost.

Read in this order: `definition` (the data). Tables: `budgets` (table bytes against bytes wrongly
forwarded), `forms` (linear paths against whole patterns), `state` (tables for each neighbour
against tables for each root). A thousand brokers: `topology` (trees, and what lies behind their
links), `quotes` (the paper's stock quotes), `population` (ten million profiles by their distinct
ones), `links` (bytes on links), `pareto` (budgets in a network), `changes` (what they cost, and
when they are in force), `host_brokers` (Figure 9), `capacity` (the arithmetic of section 2.2). Then
`run`, `plot`, `page` and `statements`.

No protocol is run but by `changes`, which holds its arithmetic to the simulator, and `capacity`.

Source: Diao, Rizvi and Franklin, VLDB 2004, sections 2.2, 4.2.1 and 4.4.
"""
