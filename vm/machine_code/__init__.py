"""The second tier: machine code, by llvmlite (extra ``jit``), for functions of scalars and buffers.

Only `llvm` imports llvmlite, when the first function is compiled.

Read: operations, layout, homes, function_writer, llvm, settings, unit.
"""
