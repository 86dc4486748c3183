"""The same subscriptions and messages in every deployment there is: what each costs.

Read in this order: `definition` (the data), `inputs` (subscriptions, messages and what has to
come), `measured` (what is asked of each), `alone` (one process), `pipelines` (Spark), `processes`
(brokers and peers on loopback), `run`, then `page`.

Everything runs on one machine, so that nothing is said of the network between machines.
"""
