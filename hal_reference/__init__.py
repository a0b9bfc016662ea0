"""The reference device: the meaning of every tensor operation in NumPy, and a device that runs programs by it.

Read: logical_device, program, elementwise, layout, buffer, linear_algebra, random_bits, semaphore, structures,
reductions, operations, program_format, executable, command_buffer, queue, device.
"""
