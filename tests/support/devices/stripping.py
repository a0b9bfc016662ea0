"""SPIR-V without its debug names, as ``spirv-opt --strip-debug`` leaves it, for any version and capability."""

from __future__ import annotations

import numpy as np

_NAMES = (5, 6)  # OpName, OpMemberName


def without_names(code: bytes) -> bytes:
    """The module without ``OpName`` and ``OpMemberName``."""
    words = np.frombuffer(code, np.uint32)
    kept, at = [words[:5]], 5
    while at < len(words):
        count = int(words[at] >> 16)
        if words[at] & 0xFFFF not in _NAMES:
            kept.append(words[at : at + count])
        at += count
    return np.concatenate(kept).tobytes()
