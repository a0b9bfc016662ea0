"""Calling conventions: how tensors cross the boundary of a compiled module.

Imports: compiler.ir, compiler.dialects, compiler.conversion, base, status.
Read: function_abi, type_converter, calling_convention, entry_points.
"""
