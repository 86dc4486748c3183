"""Carriers: what runs a node of `pathcast.protocol` with real connections, a real clock and a disk.

In reading order: `frames` (what travels), `disk` (what is kept), `connection` (two ends of a stream
of frames), `neighbours` (connections kept and made again), `carrier` (a node and all of that),
`grpc_streams` (its streams), `security` (who may call), `connection_guard`
(how much of a listener each may hold), `starting`, `service` and `client` (what a broker process
offers, and the other end), `webhooks` (deliveries that are posted), `broker` (the overlay's broker
as a kind of node), `settings` and `process` (a broker process), `hosted` and `fencing` (several
processes that are one broker, one at a time), `network` and `network_map` (many brokers on one
machine).

It decides nothing about routes, trees or subscriptions: a node does. Needs the extra `net`.
"""

import os

# Who forks to run another program, as PySpark does, needs no gRPC there; its handlers for that
# end the fork when other threads are calling.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
