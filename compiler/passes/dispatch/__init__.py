"""Dispatch regions: which operations run as one dispatch.

Read: cluster, outline, regions.
"""
