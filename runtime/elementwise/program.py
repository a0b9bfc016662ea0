"""Generated GLSL: bindings and constants, loads and stores, compilation and runs."""

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
"""Invocations of a workgroup; every device has this many."""
_EXTENSIONS: Final = ("GL_GOOGLE_cpp_style_line_directive",)


def quoted(name: str, text: str) -> str:
    """Returns a user's text for generated code, with line directives so that messages refer to its own lines.

    If something is missing at its end, such as a bracket, the compiler reports it "after" the text's last line.
    """
    last = text.count("\n") + 1
    return f'\n#line 1 "{name}"\n{text}\n#line {last} "after {name}"\n'


def indexed(text: str, sizes: Mapping[str, str]) -> str:
    """Replaces CuPy's ``_ind.size()`` and similar calls in a user's text."""
    for name, value in sizes.items():
        text = re.sub(rf"\b{name}\s*\.\s*size\s*\(\s*\)", value, text)
    return text


class Program:
    """A compute shader under construction. Calling sequence: declare → ``load`` → ``run`` the kernel."""

    def __init__(self, preamble: str, parts: Mapping[str, str]) -> None:
        """Takes the user's texts as ``parts``, by the names in their line directives (``quoted``)."""
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
        """Defines the types of letters."""
        self._types += [f"#define {name} {self.use(ELEMENTS[dtype]).computed}" for name, dtype in letters.items()]

    def buffer(self, name: str, stored: str, access: str = "") -> None:
        """Declares the next binding as an array of that name."""
        at = len(self._buffers)
        self._buffers.append(
            f"layout(std430, set = 0, binding = {at}) {access} buffer _Block{at} {{ {stored} {name}[]; }};"
        )

    def block(self, members: Sequence[str]) -> None:
        """Declares the next binding as a structure of values."""
        at = len(self._buffers)
        members_text = " ".join(members)
        self._buffers.append(
            f"layout(std430, set = 0, binding = {at}) readonly buffer _Block{at} {{ {members_text} }};"
        )

    def member(self, name: str, kind: str) -> None:
        """Declares a push constant."""
        self._members.append(f"{kind} {name};")

    def text(self, body: str) -> str:
        """Returns the source."""
        lines = [
            "#version 450",
            *(f"#extension {name} : require" for name in self._extensions),
            *self._types,
            quoted("preamble", self._preamble),  # before any declaration, so that it can enable extensions
            f"layout(local_size_x = {LANES}) in;",
            *self._buffers,
            f"layout(push_constant) uniform _Push {{ {' '.join(self._members)} }};",
            "uint _group() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }",
            body,
        ]
        return "\n".join(lines)

    def load(self, device: Device, body: str, name: str) -> Kernel:
        """Loads the kernel with this body.

        Raises:
            InvalidArgumentError: a user's text does not compile; the location is that in the text.
        """
        parts = {"preamble": self._preamble, **self._parts}
        parts |= {f"after {part}": text for part, text in parts.items()}
        code = compile_source(
            self.text(body), Language.GLSL, target_env=f"vulkan1.{device.profile.version[1]}", parts=parts
        )
        return Kernel(device, code, name=name)


def run(kernel: Kernel, arrays: Iterable[DeviceArray], groups: int, push: Mapping[str, int | float | bool]) -> None:
    """Runs a kernel with ``groups`` workgroups, in two dimensions if needed."""
    most = kernel.device.vulkan.profile.limits.max_compute_work_group_count[0]
    wide = min(groups, most)
    kernel(*map(_bindable, arrays), groups=(wide, -(-groups // wide)), push=dict(push))


def _bindable(array: DeviceArray) -> DeviceArray:
    """Returns the array, or one element for an empty array, as Vulkan cannot bind empty ranges."""
    return array if array.nbytes else array.device.empty(1, array.dtype)  # type: ignore[attr-defined]
