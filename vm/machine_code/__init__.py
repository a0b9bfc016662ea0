"""The second tier: functions that stay in scalars and buffers as machine code, by llvmlite (extra ``jit``).

Only `llvm` imports llvmlite, when the first function is compiled.

Read: operations, layout, homes, function_writer, llvm, settings, unit.
"""
