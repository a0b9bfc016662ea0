"""Module files of schedules and executables.

Read: rodata, imports, context, function_builder, allocation, lengths, views, scalars, parameters, argument_values,
dynamic_call, recording, declaration, synchronous, sequence, emit.
"""
