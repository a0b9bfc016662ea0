"""The machine that a study runs on: clocks, energy, and disturbances of samples.

Read: device_clocks, clock_lock, observers, disturbances, machine_state, environment.
"""
