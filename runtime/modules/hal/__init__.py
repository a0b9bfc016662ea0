"""The native module ``hal``: how compiled programs use devices.

Imports: ``hal`` (what it submits with is in ``hal/programs``), ``formats``, the VM's native modules, types and waits,
``runtime/values``.

Read: fence_exports, reference, buffer_exports, command_exports, device_exports, queue_exports, module.
"""
