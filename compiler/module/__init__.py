"""Module files of schedules and executables.

Read: imports, context, function_builder, lengths, memory, parameters, dynamic_call, recording, declaration, sequence,
emit.
"""
