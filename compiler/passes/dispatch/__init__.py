"""Dispatch regions: which operations run as one dispatch.

Read: cluster, regions, in_place, outline.
"""
