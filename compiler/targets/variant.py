"""An executable for one target, as it goes into a module."""

from __future__ import annotations

from dataclasses import dataclass

from ..kernels.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Variant:
    """An executable for one target.

    Attributes:
        kind: of devices, such as ``"SPIRV"``; their executables may have several formats.
        format: how modules and devices name what ``data`` is.
        data: what the device loads.
        kernel: its entry point, workgroups and bindings, which are the same for all targets but for the workgroups.
        features: what it is made for, by Vulkan's names; a device without one is given another variant.
        needs: what its code declares.
    """

    kind: str
    format: str
    data: bytes
    kernel: Kernel
    features: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
