"""Carriers: what runs a node of `pathcast.protocol` with real connections, a real clock and a disk.

In reading order: `frames` (what travels), `disk` (what is kept), `connection` (two ends of a stream
of frames), `neighbours` (connections kept and made again), `carrier` (a node and all of that),
`memory` and `grpc_streams` (two kinds of stream), `deliveries` and `webhooks` (how subscribers get
theirs), `service` (what a broker process offers), `settings` and `process` (that process),
`network` (many of them on one machine), `proxy` (delay, loss and partitions for tests).

It decides nothing about routes, trees or subscriptions: a node does. Needs the extra `net`.
"""
