"""Every shader that a test here compiles is valid for Vulkan 1.1, and declares what it uses and nothing else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.compiler.regions import shader_declarations, shader_needs

import pumice
from pumice.spirv.binary.builder import Builder
from pumice.spirv.checks.validation import ensure_valid

_EXTENSIONS = {
    "CooperativeMatrixKHR": "SPV_KHR_cooperative_matrix",
    "DenormPreserve": "SPV_KHR_float_controls",
    "DotProduct": "SPV_KHR_integer_dot_product",
    "PhysicalStorageBufferAddresses": "SPV_KHR_physical_storage_buffer",
}


@pytest.fixture
def opened() -> Iterator[pumice.Device]:
    with pumice.open_device() as device:
        yield device


@pytest.fixture
def gpu() -> Iterator[pumice.Device]:
    with pumice.open_device("vulkan") as device:
        yield device


@pytest.fixture(params=[pytest.param("vulkan", marks=pytest.mark.vulkan), "reference"])
def session(request: pytest.FixtureRequest) -> Iterator[pumice.Session]:
    """A session on each device."""
    with pumice.Session(device=request.param) as opened:
        yield opened


@pytest.fixture(scope="session", autouse=True)
def every_shader_is_valid() -> Iterator[None]:
    finish = Builder.finish

    def checked(self: Builder, name: str, workgroup_size: tuple[int, int, int]) -> bytes:
        code = finish(self, name, workgroup_size)
        ensure_valid(code, "vulkan1.1")
        needs = shader_needs(code)
        extensions = {extension for capability, extension in _EXTENSIONS.items() if capability in needs}
        assert shader_declarations(code) == (needs, extensions)
        return code

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Builder, "finish", checked)
        yield
