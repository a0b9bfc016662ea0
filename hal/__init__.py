"""The common part of all devices: the protocol that ``runtime/`` uses, and device-independent data.

``hal_vulkan/`` and ``hal_reference/`` implement it. Its classes are base classes, not structural protocols: the virtual
machine distinguishes the kinds of references by class, and ``isinstance`` of a plain class is the fastest check.
Abstract methods are marked for type checkers; a test checks that every device has all of them.

Read: logical_device, memory, timeouts, clock, semaphore, fence, buffer, buffer_view, command_buffer, mirror, program,
queue, device, programs.
"""
