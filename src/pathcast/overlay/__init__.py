"""ONYX: a network of brokers, as a pure protocol.

Nothing here reads a socket, a file or a clock: `BrokerNode` is a `pathcast.protocol.Node`, which
`pathcast.transport` and `pathcast.sim` carry. Needs the extra `net` (msgspec).

Source: paper 001 (ONYX), sections 3.2, 4.2.1 and 5. What differs from it stands in
docs/fidelity.md, when a subscription is in force in docs/overlay.md.
"""
