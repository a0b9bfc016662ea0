"""Python that runs a program on the HAL: a class with a method for each export.

Imports: `codegen.program`, `formats`, `hal.memory`, `vm.translation`, and the ground files at the root.

Read: `lift`; `data`, `names`, `module`, `expressions`; `operands`, `command_calls`, `queue_calls`, `calls`; `lines`,
`statements`, `structure`; `functions`, `signatures`, `module_writer`.
"""
