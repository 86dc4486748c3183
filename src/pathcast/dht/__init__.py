"""A structured overlay and the automaton on it, as pure protocols: no socket, no file, no clock.

In reading order. Below: `identifiers` (the circle, and the keys of states), `messages`, `asking`
(questions and the dead), `ring` (Chord, with the operations that are proved correct), `records`
(what is kept under keys, and where its copies are), `peer` (all of it, as a
`pathcast.protocol.Node`).

Above: `gates` (under which paths a query is found), `events` (the part of a message that travels),
`piece_records` (what is kept under a key), `piece_messages`, `substrate` (what is asked of the
layer below), `courier` and `piece_store`; `piece_indexing` and `subscriptions` (queries come and
go), `piece_cutting`, `piece_running`, `piece_publishing`, `publishing` and `credit` (an execution
and its end), `matching` and `decisions` (from accepting states to subscribers); `hosting` (virtual
nodes), `filtering` (all of it, as a node).

Needs the extra `net`; `identifiers` and `gates` do not.

Source: Miliaraki, Kaoudi and Koubarakis, WWW 2008, whose procedures are in
`pathcast_papers.dht`; pieces are not in the paper. Differences stand in docs/fidelity.md; how it
works in docs/dht.md.
"""
