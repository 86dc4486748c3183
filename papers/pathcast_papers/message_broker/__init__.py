"""PathSharing-F, -FW and -FWR, and FLWR subscriptions evaluated one by one.

In reading order: `xquery` (FLWR subscriptions, exactly), `standing_subscription`,
`dissemination` (the engine around it), `restructuring` and `stepped` (steps that are done first);
`pathsharing` (the paper's plans).

Source: Diao and Franklin: Query Processing for High-Volume XML Message Brokering, VLDB 2003.
"""
