"""Fourier transforms by rows in registers, compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.regions import Array, called

import pumice
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text


def transform(shape: str, length: int, kind: str = "FFT", element: str = "f32") -> str:
    """Returns a transform of complex numbers along the last dimension."""
    type = f"tensor<{shape}xcomplex<{element}>>"
    return f"""func.func @main(%x: {type}) -> {type} {{
      %0 = stablehlo.fft %x, type = {kind}, length = [{length}] : ({type}) -> {type}
      return %0 : {type}
    }}"""


def numbers(*shape: int) -> Array:
    rng = np.random.default_rng(0)
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


@pytest.mark.sample(6)
@pytest.mark.parametrize("length", [2, 7, 12, 13, 15, 16, 36, 1000, 8192])
@pytest.mark.parametrize("kind", ["FFT", "IFFT"])
def test_every_radix_has_the_error_of_its_type(gpu: pumice.Device, length: int, kind: str) -> None:
    value = numbers(3, length).astype(np.complex64)
    actual = called(gpu, transform(f"3x{length}", length, kind), value)[0]
    wanted = getattr(np.fft, kind.lower())(value.astype(np.complex128))
    np.testing.assert_allclose(actual, wanted, 0, 4e-7 * np.abs(wanted).max())


@pytest.mark.slow
@pytest.mark.features("shaderFloat64")
def test_doubles_are_transformed_as_such(gpu: pumice.Device) -> None:
    value = numbers(2, 8192)
    actual = called(gpu, transform("2x8192", 8192, element="f64"), value)[0]
    wanted = np.fft.fft(value)
    np.testing.assert_allclose(actual, wanted, 0, 1e-15 * np.abs(wanted).max())


def test_what_follows_is_computed_where_elements_go(gpu: pumice.Device) -> None:
    type, real = "tensor<5x48xcomplex<f32>>", "tensor<48x5xf32>"
    text = f"""func.func @main(%x: {type}, %y: {real}) -> {real} {{
      %0 = stablehlo.fft %x, type = FFT, length = [48] : ({type}) -> {type}
      %1 = stablehlo.transpose %0, dims = [1, 0] : ({type}) -> tensor<48x5xcomplex<f32>>
      %2 = stablehlo.abs %1 : (tensor<48x5xcomplex<f32>>) -> {real}
      %3 = stablehlo.subtract %2, %y : {real}
      return %3 : {real}
    }}"""
    assert regions(text) == 2
    value, other = numbers(5, 48).astype(np.complex64), numbers(48, 5).real.astype(np.float32)
    wanted = np.abs(np.fft.fft(value.astype(np.complex128))).T - other
    np.testing.assert_allclose(called(gpu, text, value, other)[0], wanted, 1e-5, 1e-5)


def regions(text: str) -> int:
    """Counts the dispatches of a program."""
    return compile_text(text, "x", Target(), "regions").program.text().count("iree.dispatch_region")


@pytest.mark.parametrize(("length", "passes"), [(16, 1), (256, 2), (1024, 3), (4096, 3), (1 << 20, 5)])
def test_a_pass_for_each_factor(length: int, passes: int) -> None:
    assert regions(transform(f"2x{length}", length)) == passes


@pytest.mark.slow
def test_a_result_of_halves_is_another_kernel(gpu: pumice.Device) -> None:
    type = "tensor<4x16xcomplex<f32>>"
    text = f"""func.func @main(%x: {type}) -> tensor<4x16xf16> {{
      %0 = stablehlo.fft %x, type = FFT, length = [16] : ({type}) -> {type}
      %1 = stablehlo.real %0 : ({type}) -> tensor<4x16xf32>
      %2 = stablehlo.convert %1 : (tensor<4x16xf32>) -> tensor<4x16xf16>
      return %2 : tensor<4x16xf16>
    }}"""
    value = numbers(4, 16).astype(np.complex64)
    np.testing.assert_allclose(called(gpu, text, value)[0], np.fft.fft(value).real, 2e-3, 2e-3)
