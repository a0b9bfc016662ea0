"""Runs a study on the workers of a Dask cluster.

Read: run, scheduler, chunks, worker, workers, client, devices.
"""
