"""The command that writes code which runs without the virtual machine.

Imports: `tools.errors`, `tools.input_files`, `tools.output_files`, `tools.programs`, `codegen`, `vm.bytecode`.

Read: `command`.
"""
