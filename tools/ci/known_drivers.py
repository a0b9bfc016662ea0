"""Versions of drivers and layers that were reported to be broken for compute, with where that was.

The table has what somebody saw and wrote down; a version that is not in it may be broken as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class KnownFault(NamedTuple):
    """A range of versions (`DriverRange`), what goes wrong, what to do, and the report."""

    drivers: str
    fault: str
    remedy: str
    source: str


DRIVERS: Final = (
    KnownFault(
        "llvmpipe>=26.0,<26.1",
        "compiling compute shaders ends the process, in LLVM",
        "install Mesa 25.3, or 26.1 and later",
        "github.com/cataclysmbn/Cataclysm-BN/issues/9470, github.com/mmozeiko/build-mesa/issues/20, "
        "github.com/gfx-rs/wgpu/pull/9903",
    ),
    KnownFault(
        "NVIDIA<527",
        "push descriptors go wrong, so that pumice uses none there",
        "nothing has to be done; a newer driver is somewhat faster",
        "hal_vulkan/instance/plan.py",
    ),
)

LAYERS: Final[Mapping[tuple[int, ...], KnownFault]] = {
    (1, 3, 239): KnownFault(
        "VK_LAYER_KHRONOS_validation 1.3.239",
        "opening or closing devices in one thread while others use theirs crashes now and then",
        "let the threads of a test share a device, or install newer layers",
        "github.com/KhronosGroup/Vulkan-ValidationLayers/issues/4391",
    )
}
