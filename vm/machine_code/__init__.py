"""The second tier: functions that stay in scalars and buffers as machine code, by llvmlite (extra ``jit``).

Only `llvm` imports llvmlite, when the first function is compiled.

Read: `settings`, `operations`, `layout`, `homes`, `function_writer`, `unit`, `llvm`.
"""
