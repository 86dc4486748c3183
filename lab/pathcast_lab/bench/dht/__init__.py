"""Figures 3 to 7 of the paper on the automaton on a structured overlay: trace once, replay many.

One execution of the automaton gives the visits, which do not depend on the ring (`trace`); numpy
maps them to the peers of any ring (`replay`, `loads`), and counts what fewer messages would do
(`savings`). The simulator runs the protocol itself on small rings, and must count the same.

Read in this order: `definition` (the data), `documents`, `trace`, `ring`, `replay`, `pieces`,
`peer_cuts`, `savings`, `loads`, `inputs`, `experiments`, `run`, then `page`, `plot` and
`statements`.

Source: Miliaraki, Kaoudi and Koubarakis, WWW 2008, section 6.
"""
