"""A module as a C program on Vulkan: a file and its header, which need the Vulkan loader and the C library alone.

Calling sequence: ``write_c(module, stem, source)`` → files by name.

Read: `writer`; `exports`, `interface`; `function`, `host_values`, `calls`, `command_calls`, `arguments`, `expressions`,
`types`; `executables`, `support` and the C in `support/`.
"""

from .writer import write_c

__all__ = ["write_c"]
