"""The machine that a study runs on: clocks, counters, energy, and what disturbs samples.

Imports: study.definition, study.results, study.workloads, base, status.
Read: nvml, device_clocks, clock_lock, counters, energy, pipelines, disturbances, machine_state, watch, environment.
"""
