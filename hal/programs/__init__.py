"""The host side of compiled programs: submissions, waits, uploads and read-backs, however their host code runs.

The VM's ``hal`` module (``runtime/modules/hal``) uses it, as does the Python of ``pumice codegen --hal``.

Read: checks, fence, mirror, device_context, file, views, transfers, host_values, host_program.
"""
