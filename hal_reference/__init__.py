"""The reference device: every tensor operation defined in NumPy, and a device that runs programs by these definitions.

Read: logical_device, program, elementwise, layout, buffer, linear_algebra, random_bits, semaphore, structures,
reductions, operations, program_format, executable, command_buffer, queue, device.
"""
