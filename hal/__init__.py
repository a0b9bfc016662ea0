"""What devices have in common: the protocol that ``runtime/`` uses, and the data that is of no device.

``hal_vulkan/`` and ``hal_reference/`` implement it. Its classes are base classes, not structural protocols: the virtual
machine tells the kinds of references apart by class, and ``isinstance`` of a plain class is the fastest check there is.
What is abstract is marked so, for type checkers; a test holds that every device has all of it.

Imports: `formats` and the ground files at the root.

Read: `logical_device`, `memory`, `timeouts`, `clock`, `semaphore`, `fence`, `buffer`, `buffer_view`, `command_buffer`,
`mirror`, `program`, `queue`, `device`; then the room `programs`.
"""
