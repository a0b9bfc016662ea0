"""Python that runs a program on the HAL: a class with a method for each export.

Read: expressions, functions, lines, names, lift, module, operands, calls, signatures, statements,
structure, module_writer.
"""
