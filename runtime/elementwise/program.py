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
from .types import ELEMENTS, Element

if TYPE_CHECKING:
    from ..device import Device

LANES: Final = 128
"""Invocations of a workgroup: as many as every device has."""
_EXTENSIONS: Final = ("GL_GOOGLE_cpp_style_line_directive",)


def quoted(name: str, text: str) -> str:
    """A user's text within generated code, with places of its own in messages.

    What it lacks at its end, such as a bracket, is found missing in what follows, whose place is "after" its last line.
    """
    last = text.count("\n") + 1
    return f'\n#line 1 "{name}"\n{text}\n#line {last} "after {name}"\n'


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
        self._members.append(f"{kind} {name};")

    def text(self, body: str) -> str:
        """The source."""
        lines = [
            "#version 450",
            *(f"#extension {name} : require" for name in self._extensions),
            *self._types,
            quoted("preamble", self._preamble),  # before any declaration, so that it may enable extensions
            f"layout(local_size_x = {LANES}) in;",
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
        parts |= {f"after {part}": text for part, text in parts.items()}
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
