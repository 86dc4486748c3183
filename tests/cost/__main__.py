"""Searches for messages and queries that cost too much, or measures one candidate again."""

from __future__ import annotations

import argparse
import sys

from cost.candidate import Candidate
from cost.search import is_runaway, judged, suspects


def main() -> int:
    """1 if a candidate runs away."""
    parser = argparse.ArgumentParser(prog="python -m cost", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the choices that are made")
    parser.add_argument("--seconds", type=float, default=600, help="how long is searched")
    parser.add_argument("--engine", default="kernel", choices=("kernel", "nfa"))
    parser.add_argument("--replay", metavar="GENOME", help="a candidate to be measured again")
    arguments = parser.parse_args()
    if arguments.replay:
        candidate = Candidate.model_validate_json(arguments.replay)
        cost = judged(candidate, arguments.engine)
        for text in candidate.queries()[:3]:
            print(text)
        print(cost)
        return int(is_runaway(cost))
    is_found = False
    for suspect in suspects(arguments.seed, arguments.seconds, engine=arguments.engine):
        if is_runaway(suspect.cost):
            is_found = True
            print(suspect, flush=True)
    return int(is_found)


if __name__ == "__main__":
    sys.exit(main())
