"""The syntax of ``pumice run`` options that name a kernel's bindings and set their values."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ...base.lazy_dataclass import dataclass
from ...formats.element_type import ElementType
from ...status import shown
from ..errors import usage_error

Array: TypeAlias = npt.NDArray[np.generic]

_KEY: Final = re.compile(r"(?:(?:([0-9]{1,9})\.)?([0-9]{1,9})|([A-Za-z_]\w*))(?:\[([0-9]{1,9})\])?", re.ASCII)


@dataclass(frozen=True, slots=True)
class BindingKey:
    """An option's name for a binding: ``set`` and ``binding``, or ``name`` if that is not empty.

    ``element`` is the index within an array of descriptors; ``text`` is the key as written.
    """

    text: str
    set: int
    binding: int
    name: str
    element: int


@dataclass(frozen=True, slots=True)
class BufferArgument:
    """A binding's shape and element type, and its data if the text has any."""

    key: BindingKey
    shape: tuple[int, ...]
    element_type: ElementType
    data: Array | None


def split_key(option: str, text: str, example: str) -> tuple[BindingKey, str]:
    """Returns the key and the rest of ``KEY=…``; ``example`` is for messages."""
    name, equals, value = text.partition("=")
    match = _KEY.fullmatch(name.strip())
    if match is None or not equals:
        raise usage_error(
            f"{option} {shown(text)}: expected BINDING=VALUE such as {example}; a binding is its number, SET.NUMBER or "
            "its name"
        )
    set_index, binding, binding_name, element = match.groups()
    return BindingKey(match[0], int(set_index or 0), int(binding or 0), binding_name or "", int(element or 0)), value
