"""Profiles of a session's calls: the device time of each dispatch, and where the host's time went.

Read: call, native, clock, entry, device, shares, report, trace_writer, trace, profile.
"""
