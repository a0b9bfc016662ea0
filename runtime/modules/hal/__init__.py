"""The native module ``hal``: how compiled programs use devices.

Imports: ``hal_vulkan``, ``formats``, ``spirv``, the VM's native modules, types and waits, ``runtime/values``.

Read: reference, fence, buffer, executable, mirror, command_buffer, device_context, file; then the ``*_exports`` and
module. For profiles: timed_recordings, timed_queue.
"""
