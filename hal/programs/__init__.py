"""The host side of compiled programs: submissions, waits, uploads and read-backs, whoever runs their host code.

The VM's ``hal`` module (``runtime/modules/hal``) is one such, the Python that ``pumice codegen --hal`` writes another.

Read: checks, fence, mirror, device_context, file, views, transfers, host_values, host_program.
"""
