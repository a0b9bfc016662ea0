"""What runs as one dispatch, apart from when it runs.

Imports: ir, dialects, passes.canonical.
Read: cluster, regions, in_place, outline.
"""
