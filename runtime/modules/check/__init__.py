"""The native module ``check``: expectations that programs state about their values, and the runner of check functions.

Read: report, values, module, checks.
"""
