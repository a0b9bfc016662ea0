"""Runs a study on the workers of a Dask cluster.

Read: client, worker, chunks, workers, scheduler, run.
"""
