"""Demonstrations: deployments as processes on this machine, compared with one process.

`pathcast-lab demo net`, `registry` and `ring` run them; their input is generated. A demonstration
says what was lost, doubled or foreign, and ends with 1 if anything was. They measure nothing:
all processes share the cores of one machine.
"""
