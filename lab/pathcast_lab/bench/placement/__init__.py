"""Figure 9 of the paper on dissemination at Internet scale, and placements of realistic queries.

Queries are registered and messages matched by the engine; nothing is simulated. Read in this
order: `definition` (the data), `pattern_queries` (Figure 9), `realistic` (payments and alerts),
`visits` (more queries than are held at once, partition by partition), `run`, then `plot`, `page`
and `statements`.

Example:
    >>> from pathcast_lab.bench.placement.definition import PatternParameters
    >>> PatternParameters(queries=10).values
    200

Source: Diao, Rizvi and Franklin, VLDB 2004, section 4.4.
"""
