"""Python that runs a program on the HAL: a class with a method for each export.

Imports: `codegen.program`, `formats`, `hal.memory`, `vm.translation`, and the ground files at the root.

Read: `lift`, `expressions`, `names`, `calls`, `statements`, `structure`, `signatures`, `data`, `module_writer`.
"""
