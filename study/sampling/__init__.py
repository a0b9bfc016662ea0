"""Samples the points of a device interleaved, until each has enough samples.

Read: passes, side, point_run, stopping, turns, pair_run, single_run, sampler.
"""
