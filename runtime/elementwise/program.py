"""Generated GLSL: its bindings and constants, what is loaded and stored, and how it is compiled and run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from ...spirv.sources.compile import compile_source
from ...spirv.sources.language import Language
from ..arrays.array import DeviceArray
from ..kernels.kernel import Kernel
from .arguments import Value
from .geometry import Geometry, Mode
from .types import ELEMENTS, Element

if TYPE_CHECKING:
    from ..device import Device

LANES: Final = 256
_EXTENSIONS: Final = ("GL_GOOGLE_cpp_style_line_directive",)
_SIZES: Final = {"double": 8, "int64_t": 8, "uint64_t": 8}


def quoted(name: str, text: str) -> str:
    """A user's text within generated code, with places of its own in messages."""
    return f'\n#line 1 "{name}"\n{text}\n#line 1 "generated"\n'


def indexed(text: str, sizes: Mapping[str, str]) -> str:
    """A user's text with ``_ind.size()`` and the like, which CuPy's expressions have, replaced."""
    for name, value in sizes.items():
        text = re.sub(rf"\b{name}\s*\.\s*size\s*\(\s*\)", value, text)
    return text


class Program:
    """A compute shader as it is written. Calling sequence: declare → ``load`` → ``run`` the kernel."""

    def __init__(self, preamble: str, parts: Mapping[str, str]) -> None:
        """``parts`` are the user's texts, by the names that ``quoted`` gives them."""
        self._preamble = preamble
        self._parts = parts
        self._extensions = dict.fromkeys(_EXTENSIONS)
        self._types: list[str] = []
        self._buffers: list[str] = []
        self._members: list[str] = ["uint _n;"]
        self.push_bytes = 4

    def use(self, element: Element) -> Element:
        self._extensions |= dict.fromkeys(element.extensions)
        return element

    def alias(self, letters: Mapping[str, np.dtype[np.generic]]) -> None:
        """Gives letters the types that they stand for."""
        self._types += [f"#define {name} {self.use(ELEMENTS[dtype]).computed}" for name, dtype in letters.items()]

    def buffer(self, name: str, stored: str, access: str = "") -> None:
        """The next binding: an array of that name."""
        at = len(self._buffers)
        self._buffers.append(
            f"layout(std430, set = 0, binding = {at}) {access} buffer _Block{at} {{ {stored} {name}[]; }};"
        )

    def block(self, members: Sequence[str]) -> None:
        """The next binding: a structure of values."""
        at = len(self._buffers)
        members_text = " ".join(members)
        self._buffers.append(
            f"layout(std430, set = 0, binding = {at}) readonly buffer _Block{at} {{ {members_text} }};"
        )

    def member(self, name: str, kind: str) -> None:
        """A push constant."""
        size = _SIZES.get(kind, 4)
        self.push_bytes = -(-self.push_bytes // size) * size + size
        self._members.append(f"{kind} {name};")

    def text(self, body: str) -> str:
        """The source."""
        lines = [
            "#version 450",
            *(f"#extension {name} : require" for name in self._extensions),
            f"layout(local_size_x = {LANES}) in;",
            *self._types,
            quoted("preamble", self._preamble),
            *self._buffers,
            f"layout(push_constant) uniform _Push {{ {' '.join(self._members)} }};",
            "uint _group() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }",
            body,
        ]
        return "\n".join(lines)

    def load(self, device: Device, body: str, name: str) -> Kernel:
        """The kernel with this body.

        Raises:
            InvalidArgumentError: a user's text does not compile; the place is that in the text.
        """
        minor = min(device.profile.api_version[1], 3)
        parts = {"preamble": self._preamble, **self._parts}
        code = compile_source(self.text(body), Language.GLSL, target_env=f"vulkan1.{minor}", parts=parts)
        return Kernel(device, code, name=name)


def run(kernel: Kernel, arrays: Iterable[DeviceArray], groups: int, push: Mapping[str, int | float | bool]) -> None:
    """Runs a kernel with so many workgroups, in two dimensions where one does not hold them."""
    most = kernel.device.vulkan.profile.limits.max_compute_work_group_count[0]
    wide = min(groups, most)
    kernel(*map(_bindable, arrays), groups=(wide, -(-groups // wide)), push=dict(push))


def _bindable(array: DeviceArray) -> DeviceArray:
    """The array; one element for an empty one, as Vulkan binds no empty range."""
    return array if array.nbytes else array.device.empty(1, array.dtype)  # type: ignore[attr-defined]


class Loads:
    """How values reach an expression: numbers by push constants, elements by their indices.

    Attributes:
        modes: of each value, how it is indexed; ``None`` for a number and a raw array.
    """

    def __init__(self, values: Sequence[Value], geometry: Geometry, budget: int, results: Sequence[Value] = ()) -> None:
        """
        Args:
            geometry: of the arrays of ``values`` that are not raw, then of ``results``.
            budget: bytes of push constants; numbers that these do not hold come from memory.
            results: arrays that are stored to at the same numbers.
        """
        self.values = list(values)
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
        """What the source depends on."""
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
            one, element = value.declared, program.use(ELEMENTS[value.dtype])
            if value.array is None:
                kind = "uint" if element.computed == "bool" else element.computed
                if one.name in self._in_push:
                    program.member(f"_{one.name}", kind)
                else:
                    members.append(f"{kind} _{one.name};")
            elif one.is_raw:
                program.buffer(one.name, element.stored, "" if one.is_writable or writable else "readonly")
            else:
                program.buffer(f"_{one.name}", element.stored, "readonly")
        if members:
            program.block(members)
        if self._strided:
            program.buffer("_table", "uint", "readonly")

    def arrays(self, device: Device) -> list[DeviceArray]:
        """The arrays in the order of `declare`."""
        found = [value.array for value in self.values if value.array is not None]
        if self._in_memory:
            found.append(device.asarray(np.frombuffer(_packed(self._in_memory), np.uint8)))
        return [*found, *([device.asarray(self.geometry.table())] if self._strided else [])]

    def push(self) -> dict[str, int | float | bool]:
        return {f"_{v.declared.name}": v.number for v in self.values if v.declared.name in self._in_push}

    def indices(self, number: str) -> str:
        """Statements for the index ``_at_NAME`` of each strided array at an element's number."""
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
        """The element of an array that belongs to a number."""
        mode = self.modes[name]
        return f"_{name}[{number if mode == 'flat' else '0' if mode == 'one' else f'_at_{name}'}]"

    def statements(self, number: str) -> str:
        """Statements that declare each value that is not raw as a variable of its name."""
        lines = []
        for value in self.values:
            one, element = value.declared, ELEMENTS[value.dtype]
            if one.is_raw:
                continue
            if value.array is None:
                loaded = f"bool(_{one.name})" if element.computed == "bool" else f"_{one.name}"
            else:
                loaded = element.loaded(self.place(one.name, number))
            lines.append(f"{element.computed} {one.name} = {loaded};")
        return self.indices(number) + "\n".join(lines) + "\n"


def _packed(values: Sequence[Value]) -> bytes:
    """Numbers as the members of a structure: each aligned to its size."""
    packed = b""
    for value in values:
        size = _SIZES.get(ELEMENTS[value.dtype].computed, 4)
        kind = np.dtype(f"{value.dtype.kind.replace('b', 'u')}{size}")
        packed += b"\0" * (-len(packed) % size) + np.array(value.number, kind).tobytes()
    return packed
