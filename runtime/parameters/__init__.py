"""Parameters of programs: readers of ``.irpa``, ``.safetensors``, ``.gguf``, ``.npy`` and ``.npz``, and indices.

Read: entry, irpa, safetensors, gguf, numpy, files, index.
"""

from .index import ParameterIndex

__all__ = ["ParameterIndex"]
