"""Front ends: programs of other frameworks become StableHLO.

Read: graphdef.
"""
