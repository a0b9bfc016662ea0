"""The native module ``hal``: how compiled programs use devices.

Imports: ``hal``, ``formats``, the VM's native modules, types and waits, ``runtime/values``.

Read: reference, fence, mirror, device_context, file; then the ``*_exports`` and module.
"""
