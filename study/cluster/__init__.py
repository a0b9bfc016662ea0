"""Runs a study on the workers of a Dask cluster.

Read: client, worker, chunks, devices, workers, scheduler, run.
"""
