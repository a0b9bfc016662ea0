"""Workloads: the code that runs for one sample of a point, by kind of target; the devices and clocks of a run.

Read: workload, clock, openers, kernel, kernel_settings, kernel_bindings, kernel_values, host_wait, module, copy,
pipeline, semaphore, submit, timed_commands, thread_delays, peaks, reference_kernel, study_files.
"""
