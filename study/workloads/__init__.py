"""Workloads: the code that runs for one sample of a point, by kind of target; the devices and clocks of a run.

Read: clock, thread_delays, timed_commands, peaks, workload, copy, graph, kernel_settings, kernel_bindings, kernel,
module, pipeline, reference_kernel, semaphore, study_files, submit, openers.
"""
