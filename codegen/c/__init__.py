"""A module as a C program on Vulkan: a file and its header, which need only the Vulkan loader and the C library.

Calling sequence: ``write_c(module, stem, source)`` → files by name.

Read: expressions, executables, statements, support, exports, types, arguments, calls, function, interface, writer.
"""

from .writer import write_c

__all__ = ["write_c"]
