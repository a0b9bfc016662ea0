"""The machine that a study runs on: clocks, counters, energy, and disturbances of samples.

Read: nvml, device_clocks, clock_lock, counters, energy, pipelines, disturbances, machine_state, watch, environment.
"""
