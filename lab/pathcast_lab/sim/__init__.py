"""A seeded network with a clock and faults, in which any `pathcast.protocol.Node` runs.

Nothing here knows what the nodes do: brokers and the peers of a ring run in the same `Network`. The
same seed gives the same run, message for message, in any process; a run that broke an invariant is
run again from its seed, with fewer and fewer steps (`shrunk`), and printed.

Example:
    >>> from pathcast.protocol import Deliver, Send
    >>> class Greeter:
    ...     def __init__(self, peer: str) -> None:
    ...         self.peer = peer
    ...     def start(self, now):
    ...         return [Send(self.peer, "hello")]
    ...     def receive(self, sender, message, now):
    ...         return [Deliver("operator", f"{message} from {sender}")]
    ...     def wake(self, timer, now):
    ...         return []
    ...     def neighbour(self, name, up, now):
    ...         return []
    >>> network = Network(seed=1)
    >>> network.add("a", lambda disk, incarnation: Greeter("b"))
    >>> network.add("b", lambda disk, incarnation: Greeter("a"))
    >>> network.run(until=1.0)
    >>> [(name, given.what) for name, given in network.delivered]
    [('a', 'hello from b'), ('b', 'hello from a')]
"""

from pathcast_lab.sim.faults import NO_FAULTS, Faults
from pathcast_lab.sim.network import Factory, Network
from pathcast_lab.sim.steps import Step, shrunk

__all__ = ["NO_FAULTS", "Factory", "Faults", "Network", "Step", "shrunk"]
