"""Compiles and runs the sources of ``e2e_tree``; has the native modules that its generated tests call.

A generated product or convolution comes as two modules: the one under test, and one whose functions make random
operands, call the first and have the result checked. What makes and checks is a native module of IREE's test
programs, written anew here in NumPy: ``matmul_test`` and ``conv2d_test`` (``tools/testing/e2e/``).
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from conformance.iree.e2e_tree import E2ESource
from support.iree_releases import CompileError, Compiler

from pumice.hal_vulkan import BufferView, Device, ElementType
from pumice.runtime.modules.check.checks import run_checks
from pumice.runtime.modules.check.report import CheckResult, Outcome
from pumice.runtime.opening import open_device
from pumice.status import FailedPreconditionError
from pumice.vm.execution.bytecode_module import BytecodeModule
from pumice.vm.native.module import NativeModule

__all__ = ["CompiledSource", "compile_source", "run_source"]


@dataclass(frozen=True)
class CompiledSource:
    """A source and what the compiler made of it: one module, for generated ones two, or an error."""

    source: E2ESource
    paths: tuple[Path, ...] = ()
    error: str | None = None


def compile_source(source: E2ESource, compiler: Compiler) -> CompiledSource:
    """Compiles a source that is known to compile for Vulkan."""
    texts = [source.text] if source.calls is None else [source.text, source.calls]
    try:
        return CompiledSource(source, tuple(compiler.compile(text, source.flags) for text in texts))
    except CompileError as error:
        return CompiledSource(source, error=str(error))


def run_source(compiled: CompiledSource) -> list[CheckResult]:
    """Runs every check function of a compiled source; an error that keeps them from running is a result as well."""
    if compiled.error is not None:
        return [CheckResult("(compile)", Outcome.ERROR, error=compiled.error, error_type="CompileError")]
    with ExitStack() as stack:
        modules: list[NativeModule | BytecodeModule] = []
        if len(compiled.paths) == 2:
            tested = BytecodeModule.open(compiled.paths[0])
            stack.callback(tested.close)
            modules = [matmul_test(), conv2d_test(), tested]
        device = stack.enter_context(open_device())
        report = run_checks(compiled.paths[-1], device=device.hal, modules=modules)
    return [result for file in report.files for result in file.results]


def _random_view(device: Device, shape: tuple[int, ...], element_type: int, seed: int) -> BufferView:
    """Small whole numbers, whose products and sums every type holds exactly."""
    kind = ElementType(element_type)
    values = np.random.default_rng(seed).integers(-2, 3, shape).astype(kind.dtype)
    buffer = device.create_buffer(max(values.nbytes, 4))
    buffer.write(values.tobytes())
    return BufferView(buffer, shape, kind)


def _require_same(what: str, actual: np.ndarray, expected: np.ndarray) -> None:
    if actual.shape != expected.shape:
        raise FailedPreconditionError(f"{what}: expected the shape {expected.shape}, got {actual.shape}")
    wrong = np.argwhere(actual.astype(np.float64) != expected)
    if len(wrong):
        at = tuple(wrong[0])
        raise FailedPreconditionError(
            f"{what}: {len(wrong)} of {expected.size} elements are wrong, the first at {[int(i) for i in at]}: "
            f"expected {expected[at]}, got {actual[at]}"
        )


def _wide(view: BufferView) -> np.ndarray:
    return view.read().astype(np.float64)


def matmul_test() -> NativeModule:
    """The native module ``matmul_test``."""
    module = NativeModule("matmul_test")

    @module.function("generate_random_matrix", "0rIIii_r")
    def generate(device: Device, rows: int, columns: int, element_type: int, seed: int) -> BufferView:
        return _random_view(device, (rows, columns), element_type, seed)

    @module.function("check_matmul_results", "0rIIIirrrr_v")
    def check(
        device: Device,
        m: int,
        k: int,
        n: int,
        transpose_rhs: int,
        lhs: BufferView,
        rhs: BufferView,
        accumulator: BufferView | None,
        actual: BufferView,
    ) -> None:
        right = _wide(rhs).T if transpose_rhs else _wide(rhs)
        expected = _wide(lhs) @ right + (0 if accumulator is None else _wide(accumulator))
        _require_same(f"product of {m}x{k} and {k}x{n}", actual.read(), expected)

    return module


def conv2d_test() -> NativeModule:
    """The native module ``conv2d_test``: NCHW images with FCHW kernels, unpadded."""
    module = NativeModule("conv2d_test")

    @module.function("generate_random_tensor", "0rIIIIii_r")
    def generate(device: Device, d0: int, d1: int, d2: int, d3: int, element_type: int, seed: int) -> BufferView:
        return _random_view(device, (d0, d1, d2, d3), element_type, seed)

    @module.function("check_conv2d_results", "0rIIIIIIIIIIIrrrr_v")
    def check(device: Device, *arguments: object) -> None:
        sizes, views = arguments[:11], arguments[11:]
        stride_h, stride_w, dilation_h, dilation_w = (int(str(size)) for size in sizes[7:])
        image, kernel, accumulator, actual = (view for view in views if view is None or isinstance(view, BufferView))
        assert image is not None
        assert kernel is not None
        assert actual is not None
        taps = _wide(kernel)
        extent = ((taps.shape[2] - 1) * dilation_h + 1, (taps.shape[3] - 1) * dilation_w + 1)
        windows = np.lib.stride_tricks.sliding_window_view(_wide(image), extent, axis=(2, 3))
        windows = windows[:, :, ::stride_h, ::stride_w, ::dilation_h, ::dilation_w]
        expected = np.einsum("nchwij,fcij->nfhw", windows, taps, optimize=True)
        if accumulator is not None:
            expected = expected + _wide(accumulator)
        _require_same("convolution", actual.read(), expected)

    return module
