"""Module files of schedules and executables.

Imports: compiler.ir, compiler.passes, compiler.targets, formats, vm.bytecode, vm.assembly.
Read: rodata, function_text, lengths, argument_values, dynamic_call, recording, sequence, emit.
"""
