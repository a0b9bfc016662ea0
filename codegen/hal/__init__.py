"""Python that runs a program on the HAL: a class with a method for each export.

Read: `lift`; `data`, `names`, `module`, `expressions`; `operands`, `command_calls`, `queue_calls`, `calls`; `lines`,
`statements`, `structure`; `functions`, `signatures`, `module_writer`.
"""
