"""ONYX: a network of brokers, as a pure protocol.

Nothing here reads a socket, a file or a clock: its nodes are `pathcast.protocol.Node`s. Needs the
extra `net`.

Source: paper 001 (ONYX), section 3.1. What differs from it stands in docs/fidelity.md, how it works
in docs/overlay.md.
"""
