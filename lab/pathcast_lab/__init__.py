"""What proves Pathcast and is not shipped with it: benchmarks, figures, demonstrations, simulators.

- `bench`: benchmarks, and the figures and tables of the papers; `pathcast-lab bench` runs them.
- `workload`: the papers' workloads, beside the generators of `pathcast.workload`.
- `demos`: networks and rings of processes beside one process; `pathcast-lab demo` runs them.
- `sim`: networks of brokers and rings of peers under seeded faults.

Definitions and records of runs are in `lab/benchmarks`.
"""
