"""``pumice compile`` and ``pumice build``.

Read: build, tuning, command.
"""
