"""Filtering with an automaton whose states lie on a ring of peers.

`automaton` has the states and visits by definition, `state_ring` the procedures of the paper.
The product has the same automaton in pieces (`pathcast.dht`): keys of states, gates, events and
identifiers are shared with it.

Needs the extra `net`; `automaton` does not.

Source: Miliaraki, Kaoudi and Koubarakis, WWW 2008 ("000").
"""
