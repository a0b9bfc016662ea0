"""The reference device: the meaning of every tensor operation in NumPy, and a device that runs programs by it.

Read: program, elementwise, structures, reductions, linear_algebra, random_bits, operations; program_format;
logical_device, layout, buffer, semaphore, executable, command_buffer, queue, device.
"""
