"""Loads of arguments in expressions: numbers from constants, elements of arrays by their indices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ..arrays.array import DeviceArray
from .arguments import Value
from .geometry import Geometry, Mode
from .program import Program
from .types import ELEMENTS

if TYPE_CHECKING:
    from ..device import Device

_SIZES: Final = {"double": 8, "int64_t": 8, "uint64_t": 8}


class Loads:
    """The values of a call in the generated code.

    Calling sequence: ``declare`` and ``statements`` for the source → ``arrays`` and ``push`` for a run.

    Attributes:
        modes: the addressing of each non-raw array, by name.
    """

    def __init__(self, values: Sequence[Value], geometry: Geometry, budget: int, results: Sequence[Value] = ()) -> None:
        """Args:
        geometry: of the arrays of ``values`` that are not raw, then of ``results``.
        budget: bytes of push constants; numbers beyond it come from memory.
        results: arrays that are written at the same indices.
        """
        self.values: list[Value] = list(values)
        self._results = tuple((value.declared.name, value.dtype) for value in results)
        self.geometry = geometry
        self.modes: dict[str, Mode] = {}
        self._in_push: set[str] = set()
        self._in_memory: list[Value] = []
        for value in self.values:
            if value.array is None:
                size = _SIZES.get(ELEMENTS[value.dtype].computed, 4)
                if budget >= size + 4:
                    budget -= size + 4
                    self._in_push.add(value.declared.name)
                else:
                    self._in_memory.append(value)
        shaped = [value for value in self.values if value.array is not None and not value.declared.is_raw]
        shaped += results
        for value, mode in zip(shaped, geometry.modes, strict=True):
            self.modes[value.declared.name] = mode
        self._strided = [name for name, mode in self.modes.items() if mode == "strided"]

    @property
    def key(self) -> tuple[object, ...]:
        """The part of the kernel's key that its source depends on."""
        kinds = [
            (v.declared.name, v.dtype, self.modes.get(v.declared.name, ""), v.declared.name in self._in_push)
            for v in self.values
        ]
        modes = [self.modes[name] for name, _ in self._results]
        return (*kinds, *self._results, *modes, len(self.geometry.lengths) if self._strided else 0)

    def declare(self, program: Program, writable: bool = False) -> None:
        """Declares buffers and constants; numbers in memory and the table of the geometry come last."""
        members: list[str] = []
        for value in self.values:
            parameter, element = value.declared, program.use(ELEMENTS[value.dtype])
            if value.array is None:
                kind = "uint" if element.computed == "bool" else element.computed
                if parameter.name in self._in_push:
                    program.member(f"_{parameter.name}", kind)
                else:
                    members.append(f"{kind} _{parameter.name};")
            elif parameter.is_raw:
                program.buffer(parameter.name, element.stored, "" if parameter.is_writable or writable else "readonly")
            else:
                program.buffer(f"_{parameter.name}", element.stored, "readonly")
        if members:
            program.block(members)
        if self._strided:
            program.buffer("_table", "uint", "readonly")

    def arrays(self, device: Device) -> list[DeviceArray]:
        """Returns the arrays in the order of `declare`."""
        arrays = [value.array for value in self.values if value.array is not None]
        if self._in_memory:
            arrays.append(device.asarray(np.frombuffer(_packed(self._in_memory), np.uint8)))
        return [*arrays, *([device.asarray(self.geometry.table())] if self._strided else [])]

    def push(self) -> dict[str, int | float | bool]:
        return {f"_{v.declared.name}": v.number for v in self.values if v.declared.name in self._in_push}

    def indices(self, number: str) -> str:
        """Returns statements that compute the index ``_at_NAME`` in each strided array from an element's number."""
        if not self._strided:
            return ""
        count = len(self.geometry.lengths)
        lines = [f"uint _rest = {number};", *(f"uint _at_{name} = 0u;" for name in self._strided)]
        for axis in reversed(range(count)):
            coordinate = "_rest" if axis == 0 else f"(_rest % _table[{axis}])"
            lines += [
                f"_at_{name} += {coordinate} * _table[{(row + 1) * count + axis}];"
                for row, name in enumerate(self._strided)
            ]
            if axis:
                lines.append(f"_rest /= _table[{axis}];")
        return "\n".join(lines) + "\n"

    def place(self, name: str, number: str) -> str:
        """Returns the element of an array for an element's number."""
        mode = self.modes[name]
        return f"_{name}[{number if mode == 'flat' else '0' if mode == 'one' else f'_at_{name}'}]"

    def statements(self, number: str) -> str:
        """Returns statements that declare each value, except raw arrays, as a variable with its name."""
        lines = []
        for value in self.values:
            parameter, element = value.declared, ELEMENTS[value.dtype]
            if parameter.is_raw:
                continue
            if value.array is None:
                loaded = f"bool(_{parameter.name})" if element.computed == "bool" else f"_{parameter.name}"
            else:
                loaded = element.loaded(self.place(parameter.name, number))
            lines.append(f"{element.computed} {parameter.name} = {loaded};")
        return self.indices(number) + "\n".join(lines) + "\n"


def _packed(values: Sequence[Value]) -> bytes:
    """Packs numbers as the members of a structure, each aligned to its size."""
    packed = b""
    for value in values:
        size = _SIZES.get(ELEMENTS[value.dtype].computed, 4)
        kind = np.dtype(f"{value.dtype.kind.replace('b', 'u')}{size}")
        packed += b"\0" * (-len(packed) % size) + np.array(value.number, kind).tobytes()
    return packed
