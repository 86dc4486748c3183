"""A network of brokers: who wants what, told along the links, and where a message goes.

`disjuncts` makes entries of routing tables from profiles, `interest` keeps what each neighbour is
told.

Nothing here reads a clock, a socket or a file.

Source: Diao, Rizvi and Franklin, VLDB 2004.
"""
