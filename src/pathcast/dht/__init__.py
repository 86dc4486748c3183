"""A structured overlay and the automaton on it, as pure protocols: no socket, no file, no clock.

In reading order. Below: `identifiers` (the circle, and the keys of states), `messages`, `asking`
(questions and the dead), `ring` (Chord, with the operations that are proved correct), `invariant`
(what must hold of it), `records` (what is kept under keys, and where its copies are), `peer` (all
of it, as a `pathcast.protocol.Node`), `hops` (how far look-ups go, by arithmetic); `kademlia` and
`static_ring` in its place.

Above: `automaton` (states and visits, by definition), `states` (what is kept under a key), `events`
(what of a message travels), `guards` (predicates on the way), `state_messages`, `substrate` (what
is asked of what lies below), `courier` and `state_store`; `indexing` and `subscriptions` (Procedure
1 and its end), `visiting`, `publishing` and `credit` (Procedure 4 and its end), `iterative`
(Procedures 2 and 3), `matching` and `decisions` (from accepting states to subscribers); `shedding`,
`hosting` (virtual nodes), `filtering` (all of it, as a node), `safeguards`. For arithmetic:
`state_table` (all states as arrays), `pieces` (the automaton cut by cost).

Needs the extra `net`; `identifiers`, `automaton`, `hops`, `state_table` and `pieces` do not.

Source: Miliaraki, Kaoudi and Koubarakis, WWW 2008. What differs stands in docs/fidelity.md; how it
works in docs/dht.md.
"""
