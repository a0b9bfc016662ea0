"""The native module ``hal``: how compiled programs use devices.

Imports: ``hal_vulkan``, ``formats``, ``spirv``, the VM's native modules, types and waits, ``runtime/values``.

Read: semaphore, fence, buffer, executable, mirror, command_buffer, device_context, file; then reference, device_table,
the ``*_exports`` and module. For profiles: timed_recordings, timed_queue.
"""
