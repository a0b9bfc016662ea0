"""Runs a study on the workers of a Dask cluster.

Imports: the other rooms but ``report``, ``hal_vulkan`` and ``runtime``.

Read: run, scheduler, chunks, worker, workers, client, devices.
"""
