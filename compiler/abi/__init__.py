"""Calling conventions: how tensors cross the boundary of a compiled module.

Read: function_abi, type_converter, calling_convention, entry_points.
"""
