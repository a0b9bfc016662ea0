"""Profiles of a session's calls: the device time of each dispatch, and the host's time by activity.

Read: call, native, clock, entry, device, shares, report, trace_writer, trace, profile.
"""
