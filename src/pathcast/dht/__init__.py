"""A ring of peers, as a pure protocol: nothing here reads a socket, a file or a clock.

In reading order: `identifiers` (the circle, and the keys of states), `messages`, `asking`
(questions and the dead), `ring` (Chord, with the operations that are proved correct), `invariant`
(what must hold of it), `records` (what is kept under keys, and where its copies are), `peer` (all
of it, as a `pathcast.protocol.Node`), `hops` (how far look-ups go, by arithmetic).

Needs the extra `net`; `identifiers` and `hops` do not.

Source: Miliaraki, Kaoudi and Koubarakis, WWW 2008. What differs stands in docs/fidelity.md; how it
works in docs/dht.md.
"""
