"""Samples the points of a device interleaved, until each has enough samples.

Read: sampler, turns, single_run, pair_run, side, point_run, stopping, passes.
"""
