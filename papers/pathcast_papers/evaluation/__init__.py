"""One query on one message tree, in Python: for explanations, steps and the peers of a ring.

- `xpath`: an XPath 1.0 expression at a node.
- `places`: the elements of a message that a path or query selects, as places in its bytes.
- `fragment`: what a location step adds to an automaton.
- `comparison`: whether a value satisfies a comparison.

Messages in number are the kernel's.
"""
