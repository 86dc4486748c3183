"""A structured overlay and the automaton on it, as pure protocols: no socket, no file, no clock.

In reading order. Below: `identifiers` (the circle, and the keys of states), `messages`, `asking`
(questions and the dead), `ring` (Chord, with the operations that are proved correct), `records`
(what is kept under keys, and where its copies are), `peer` (all of it, as a
`pathcast.protocol.Node`).

Above: `automaton` (states and visits, by definition), `states` (what is kept under a key), `events`
(what of a message travels), `guards` (predicates on the way), `state_messages`, `substrate` (what
is asked of what lies below), `courier` and `state_store`; `indexing` and `subscriptions` (Procedure
1 and its end), `visiting`, `publishing` and `credit` (Procedure 4 and its end), `iterative`
(Procedures 2 and 3), `matching` and `decisions` (from accepting states to subscribers); `shedding`,
`hosting` (virtual nodes), `filtering` (all of it, as a node), `safeguards`.

Needs the extra `net`; `identifiers` and `automaton` do not.

Source: Miliaraki, Kaoudi and Koubarakis, WWW 2008. What differs stands in docs/fidelity.md; how it
works in docs/dht.md.
"""
