"""``pumice view``.

Read: `command`.
"""
