"""Parameters of programs: readers of ``.irpa``, ``.safetensors``, ``.gguf``, ``.npy`` and ``.npz``, and indices.

Imports: formats, files, status.
Read: entry, irpa, safetensors, gguf, numpy, files, index.
"""

from typing import TYPE_CHECKING

from ...lazy import lazy_exports

if TYPE_CHECKING:
    from .index import ParameterIndex

__all__ = ["ParameterIndex"]

__getattr__, __dir__ = lazy_exports(__name__, {".index": ("ParameterIndex",)})
