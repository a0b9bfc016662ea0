"""Kernels of public projects, called as a user would and held against NumPy.

A case names a shader of ``projects`` and a function that loads it, calls it and compares. Cases register in
``CASES`` when their module is imported: ``ggml_kernels``, ``image_kernels``, ``other_kernels``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from pumice import Device
from pumice.runtime.kernels.kernel import Kernel

CASES: Final[list[KernelCase]] = []


@dataclass(frozen=True)
class Loader:
    """Loads one shader's SPIR-V on a device."""

    device: Device
    code: bytes

    def __call__(self, **options: Any) -> Kernel:
        """A kernel; options of ``Device.load_kernel``."""
        return self.device.load_kernel(self.code, **options)


@dataclass(frozen=True)
class KernelCase:
    """A kernel and the check of its results.

    Attributes:
        project: of ``projects.PROJECTS``.
        shader: the variant's name there.
        images: whether it binds images.
        check: loads, calls and compares; raises AssertionError where results differ.
    """

    project: str
    shader: str
    images: bool
    check: Callable[[Loader, np.random.Generator], None]

    @property
    def name(self) -> str:
        return f"{self.project}-{self.shader}"

    def run(self, device: Device, modules: Path) -> None:
        """Runs it with the module in ``modules/<project>/<shader>.spv``."""
        code = (modules / self.project / f"{self.shader}.spv").read_bytes()
        self.check(Loader(device, code), np.random.default_rng(1))


def kernel_case(
    project: str, shader: str, *, images: bool = False
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers a check of one shader."""

    def register(check: Callable[[Loader, np.random.Generator], None]) -> Callable[..., None]:
        CASES.append(KernelCase(project, shader, images, check))
        return check

    return register


def close(got: object, wanted: np.ndarray, *, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    """Asserts that results are NumPy's."""
    np.testing.assert_allclose(np.asarray(got).reshape(wanted.shape), wanted, rtol=rtol, atol=atol)


def given(kernel: Kernel, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that the kernel's push constants have names for; the others are 0."""
    block = kernel.pipeline.entry.push_constants
    assert block is not None
    unknown = values.keys() - {member.name for member in block.members}
    assert not unknown, f"no push constants {unknown}"
    zeros = {
        m.name: np.zeros((*m.array_shape, m.components) if m.components > 1 else m.array_shape) for m in block.members
    }
    return {**zeros, **values}
