"""An executable for one target, as it goes into a module."""

from __future__ import annotations

from dataclasses import dataclass

from ..kernels.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Variant:
    """An executable for one target.

    Attributes:
        kind: the kind of devices, such as ``"SPIRV"``; their executables may have several formats.
        format: the name of the format of ``data`` for modules and devices.
        data: the bytes that the device loads.
        kernel: its entry point, workgroups and bindings; only the workgroups differ between targets.
        features: the features that it is made for, by Vulkan's names; a device without one gets another variant.
        needs: the features that its code declares.
    """

    kind: str
    format: str
    data: bytes
    kernel: Kernel
    features: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
