"""`pipeline`: `pathcast run` under the clock, each figure beside the floor below it.

Read in this order: `definition` (how much is done), `inputs` (messages and subscriptions), `runner`
(a pipeline in a process of its own, and what came of it), `floor` (the same job with tasks that
read and do nothing else), `engines` (what delivers without Spark, and the right counts), `cases`
and `stream` (figures of what was measured), `model` (what more workers would do), `run`.
"""
