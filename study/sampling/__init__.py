"""Runs a study on this machine: samples its points interleaved, until each has enough samples.

Imports: ``study.definition``, ``study.statistics``, ``study.workloads``, ``study.results``, ``runtime`` and
``hal_vulkan``.

Read: runner, sampler, single_run, pair_run, side, point_run, stopping, environment, device_clocks, taken_files.
"""
