"""Registers of HLSL as bindings of Vulkan.

HLSL numbers registers of each kind from 0, where Vulkan has one row of bindings a set. A register is the binding of its
number; where registers of several kinds share a number, those of each kind are shifted apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from .includes import without_comments

_REGISTER: Final = re.compile(rb"\bregister\s*\(\s*([tusb])(\d+)\s*(?:,\s*space(\d+)\s*)?\)")
_APART: Final[Mapping[str, int]] = {"t": 0, "u": 100, "s": 200, "b": 300}


def register_shifts(texts: Iterable[bytes]) -> dict[str, int]:
    """Returns the offsets added to register numbers, by kind, for these source texts."""
    places: dict[tuple[bytes, bytes], bytes] = {}
    for text in texts:
        for kind, number, space in _REGISTER.findall(without_comments(text)):
            if places.setdefault((number, space or b"0"), kind) != kind:
                return dict(_APART)
    return dict.fromkeys(_APART, 0)
