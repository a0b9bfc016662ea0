"""What runs for one sample of a point, by kind of target, and the devices and clocks of a run.

Imports: ``study.definition``, ``runtime``, ``hal_vulkan`` and ``shaders``.

Read: workload, clock, openers, kernel, kernel_settings, kernel_bindings, host_wait, module, copy, pipeline, semaphore,
submit, timed_commands, peaks, reference_kernel, study_files.
"""
