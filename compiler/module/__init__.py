"""Module files of schedules and executables.

Imports: compiler.function_abi, compiler.ir, compiler.passes, compiler.targets, formats, vm.bytecode, vm.assembly.
Read: rodata, function_text, allocation, lengths, views, scalars, parameters, argument_values, dynamic_call, recording,
declaration, sequence, synchronous, emit.
"""
