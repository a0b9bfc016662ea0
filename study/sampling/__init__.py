"""Samples the points of a device interleaved, until each has enough samples.

Read: passes, stopping, turns, pair_run, point_run, single_run, sampler.
"""
