"""Dispatch regions: operations that run as one dispatch.

Read: cluster, outline, regions.
"""
