"""Front ends: programs of other frameworks become StableHLO.

Read: building, graphdef.
"""
