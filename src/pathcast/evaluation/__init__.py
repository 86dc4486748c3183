"""One query on one message tree, in Python: for explanations, steps and the peers of a ring.

- `xpath`: an XPath 1.0 expression at a node.
- `fragment`: what a location step adds to an automaton.

Messages in number are the kernel's.
"""
