"""Code that runs a module without the virtual machine: Python on the HAL, or C on Vulkan.

Calling sequence: ``program.reader.read_program`` → ``hal.module_writer.write_hal`` or ``c.write_c``.

Imports: `formats`, `spirv`, `hal.memory`, `vm.bytecode`, `vm.translation`, and the ground files at the root.

Read: the room `program`; then `hal`, or `c`.
"""
