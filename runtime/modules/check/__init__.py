"""The native module ``check``: expectations that programs state about their values, and the runner of check functions.

Imports: ``hal``, ``formats``, the VM's execution and native modules, ``runtime/values``,
``runtime/modules/hal``.

Read: report, values, module, checks.
"""
