"""ONYX: a network of brokers, as a pure protocol: nothing here reads a socket, a file or a clock.

Content, in reading order: `disjuncts` (a
profile as entries of routing tables), `origins` and `interest` (what each neighbour is told),
`covered` (which entry covers which), `generalisation` (entries made fewer and wider), `table` (who
wants a message), `arriving_routes` (who wants one that is arriving, by the tables of `table`),
`xml_content` (all of it, as the protocol wants it).

Protocol: `messages`, `link` (in order and once), `announcements` and `trees` (control plane),
`query_plane`, `streams` and `parts` (data plane), `broker` (the planes together) and `broker_node`,
which is a `pathcast.protocol.Node` that `pathcast.transport` and the simulator carry. Beside it,
`registration`: the service that sources and users turn to first. Both need the extra `net`; content
does not.

Source: Diao, Rizvi and Franklin, VLDB 2004. What differs stands in docs/fidelity.md; how it works,
and when a subscription is in force, in docs/overlay.md.
"""
