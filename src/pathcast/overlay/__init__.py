"""ONYX: a network of brokers, as a pure protocol.

Nothing here reads a socket, a file or a clock: `BrokerNode` is a `pathcast.protocol.Node`, which
`pathcast.transport` and `pathcast.sim` carry. Needs the extra `net` (msgspec).

Content, in reading order: `reference` (the paper's operator network, the oracle), `disjuncts` (a
profile as entries of routing tables), `origins` and `interest` (what each neighbour is told),
`covered` (which entry covers which), `table` (who wants a message), `xml_content` (all of that as
the protocol sees it).

Source: paper 001 (ONYX), sections 3.2, 4.2.1 and 5. What differs from it stands in
docs/fidelity.md, when a subscription is in force in docs/overlay.md.
"""
