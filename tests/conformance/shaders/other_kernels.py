"""Buffer kernels of uVkCompute, Kompute, ncnn, MNN, Vulkan-Samples and Sascha Willems' examples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from conformance.shaders.kernel_cases import Loader, close, given, kernel_case
from scipy import special

Floats = np.ndarray


# -- uVkCompute --------------------------------------------------------------------------------------


@kernel_case("uvkcompute", "one_workgroup_reduce_loop_shader")
def _reduce_loop(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal(4096, np.float32)
    with load(specialization={"totalCount": x.size}) as kernel:
        close(kernel(x.reshape(-1, 4), np.zeros(1, np.float32), groups=1), x.sum(keepdims=True), atol=1e-3)


@kernel_case("uvkcompute", "one_workgroup_argmax_loop_shader")
def _argmax_loop(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal(3000, np.float32)
    with load(specialization={"totalCount": x.size}) as kernel:
        np.testing.assert_array_equal(kernel(x, np.zeros(1, np.uint32), groups=1), x.argmax())


@kernel_case("uvkcompute", "matmul_tiled_shader_f32_valhall-0")
def _matmul(load: Loader, random: np.random.Generator) -> None:
    m, n, k = 64, 128, 96
    a, b = random.standard_normal((m, k), np.float32), random.standard_normal((k, n), np.float32)
    with load(specialization={"M": m, "N": n, "K": k}) as kernel:
        # The first permutation has tiles of 2 by 64.
        close(kernel(a, b, np.zeros((m, n), np.float32), groups=(n // 64, m // 2, 1)), a @ b, rtol=1e-4, atol=1e-4)


@kernel_case("uvkcompute", "copy_storage_buffer_vector_shader")
def _copy(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((4096, 4), np.float32)
    with load() as kernel:
        close(kernel(x, np.zeros_like(x), groups=4096 // kernel.pipeline.local_size[0]), x)


# -- Kompute -----------------------------------------------------------------------------------------


@kernel_case("kompute", "src-shaders-glsl-ShaderOpMult.comp")
def _multiply(load: Loader, random: np.random.Generator) -> None:
    a, b = random.standard_normal((2, 1000), np.float32)
    with load() as kernel:
        close(kernel(a, b, out=np.empty_like(a)), a * b)


@kernel_case("kompute", "src-shaders-glsl-ShaderLogisticRegression.comp")
def _logistic_regression(load: Loader, random: np.random.Generator) -> None:
    count = 50
    xi, xj = random.standard_normal((2, count), np.float32)
    y = random.integers(0, 2, count).astype(np.float32)
    weights, bias = np.array([0.3, -0.2], np.float32), np.array([0.1], np.float32)
    outs = [np.zeros(count, np.float32) for _ in range(4)]
    with load(specialization={"m": float(count)}) as kernel:
        got = kernel(xi, xj, y, weights, outs[0], outs[1], bias, outs[2], outs[3], groups=count)
        predicted = special.expit(weights[0] * xi + weights[1] * xj + bias)
        slope = (predicted - y) / count
        losses = -(y * np.log(predicted) + (1 - y) * np.log(1 - predicted))
        for result, wanted in zip(got, (xi * slope, xj * slope, slope, losses), strict=True):
            close(result, wanted, rtol=1e-4)


# -- ncnn --------------------------------------------------------------------------------------------


def _ncnn_unary(name: str, reference: Callable[[Floats], Floats], dtype: type, **tolerance: float) -> None:
    @kernel_case("ncnn", name)
    def check(load: Loader, random: np.random.Generator) -> None:
        """In place, four values an invocation; ncnn sets the local size by editing modules, here it is 1."""
        x = random.standard_normal((300, 4)).astype(dtype)
        with load() as kernel:
            binding = kernel.parameters[0].binding.element
            assert binding is not None
            given_as = x if binding.dtype == x.dtype else x.view(binding.dtype)  # halves packed in words
            got = np.asarray(kernel(given_as, groups=300, n=300)).view(dtype).reshape(x.shape)
            close(got, reference(x.astype(np.float32)), **tolerance)


_ncnn_unary("sigmoid-fp32", special.expit, np.float32)
_ncnn_unary("tanh-fp32", np.tanh, np.float32)
_ncnn_unary("mish-fp32", lambda x: x * np.tanh(np.logaddexp(0, x)), np.float32)
_ncnn_unary("sigmoid-fp16p", special.expit, np.float16, rtol=2e-3, atol=1e-3)
_ncnn_unary("absval-fp16sa", np.abs, np.float16)


@kernel_case("ncnn", "eltwise-fp32")
def _eltwise(load: Loader, random: np.random.Generator) -> None:
    a, b = random.standard_normal((2, 300, 4), np.float32)
    with load(specialization={"op_type": 1, "coeff_term": 1}) as kernel:
        got = kernel(a, b, out=np.empty_like(a), groups=300, n=300, coeff0=2.0, coeff1=-0.5)
        close(got, 2 * a - 0.5 * b)


@kernel_case("ncnn", "innerproduct-fp32")
def _inner_product(load: Loader, random: np.random.Generator) -> None:
    x, weight = random.standard_normal(200, np.float32), random.standard_normal((30, 200), np.float32)
    bias = random.standard_normal(30, np.float32)
    with load(specialization={"bias_term": 1, "activation_type": 1}) as kernel:
        push = given(kernel, {"dims": 1, "w": 200, "h": 1, "c": 1, "outdims": 1, "outw": 30, "outh": 1, "outc": 1})
        got = kernel(x, np.empty(30, np.float32), weight, bias, groups=30, push=push)
        close(got, np.maximum(weight @ x + bias, 0), rtol=1e-4, atol=1e-4)


@kernel_case("ncnn", "pooling-fp32")
def _pooling(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((3, 12, 16), np.float32)
    options = {"pooling_type": 1, "kernel_w": 2, "kernel_h": 2, "stride_w": 2, "stride_h": 2}
    with load(specialization={**options, "avgpool_count_include_pad": 1}) as kernel:
        shapes = {"dims": 3, "w": 16, "h": 12, "c": 3, "cstep": 192}
        results = {"outdims": 3, "outw": 8, "outh": 6, "outc": 3, "outcstep": 48}
        got = kernel(x, np.empty((3, 6, 8), np.float32), groups=(8, 6, 3), push=given(kernel, shapes | results))
        close(got, x.reshape(3, 6, 2, 8, 2).mean((2, 4)))


@kernel_case("ncnn", "permute-fp32")
def _permute(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((3, 5, 7), np.float32)  # channels, height, width
    with load(specialization={"order_type": 5}) as kernel:
        shapes = {"dims": 3, "w": 7, "h": 5, "d": 1, "c": 3, "cstep": 35}
        results = {"outdims": 3, "outw": 3, "outh": 5, "outd": 1, "outc": 7, "outcstep": 15}
        got = kernel(x, np.empty((7, 5, 3), np.float32), groups=(3, 5, 7), push=given(kernel, shapes | results))
        close(got, x.transpose(2, 1, 0))


# -- MNN ---------------------------------------------------------------------------------------------


def _mnn_unary(name: str, reference: Callable[[Floats], Floats]) -> None:
    @kernel_case("mnn", name)
    def check(load: Loader, random: np.random.Generator) -> None:
        x = random.standard_normal((1000, 4), np.float32)
        with load() as kernel:
            got = kernel(np.empty_like(x), x, {"size": [1000, 1, 1, 1], "slope": [0, 0, 0, 0]}, groups=4)
            close(got, reference(x), rtol=1e-4)


_mnn_unary("buffer-unary_SIGMOID", special.expit)
_mnn_unary("buffer-unary_GELU", lambda x: 0.5 * x * (1 + np.tanh(0.79788458 * (0.044715 * x**3 + x))))


@kernel_case("mnn", "buffer-softmaxHeight_NHWC")
def _softmax(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((5, 40, 12), np.float32)
    with load() as kernel:
        got = kernel(x, x, {"w": 12, "h": 40, "c": 5}, groups=(1, 2, 1))
        close(got, special.softmax(x, 1))


@kernel_case("mnn", "buffer-range")
def _range(load: Loader, random: np.random.Generator) -> None:
    with load() as kernel:
        start, delta = np.array([1.5], np.float32), np.array([0.25], np.float32)
        got = kernel(np.empty(700, np.float32), start, delta, {"size": [0, 0, 0, 700]}, groups=3)
        close(got, 1.5 + 0.25 * np.arange(700))


@kernel_case("mnn", "buffer-reduce_VMAX")
def _reduce(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((6, 90, 4), np.float32)
    with load() as kernel:
        sizes = {"w": 4, "h": 90, "c": 6, "k": 1.0, "reduceAxis": 32}
        got = kernel(np.empty((6, 4), np.float32), x, sizes, groups=3)
        close(got, x.max(1))


# -- graphics samples --------------------------------------------------------------------------------


@kernel_case("vulkan-samples", "shaders-compute_nbody-glsl-particle_integrate.comp")
def _integrate(load: Loader, random: np.random.Generator) -> None:
    particles = random.standard_normal((512, 2, 4), np.float32)
    with load(specialization={0: 64}) as kernel:
        got = kernel(particles.copy(), {"deltaT": 0.5, "particleCount": 512}, groups=8)
        wanted = particles.copy()
        wanted[:, 0] += 0.5 * 0.05 * particles[:, 1]
        close(got, wanted)


@kernel_case("willems", "shaders-slang-computeheadless-headless.comp-built")
def _fibonacci(load: Loader, random: np.random.Generator) -> None:
    numbers = np.arange(32, dtype=np.uint32)
    with load(specialization={0: 32}) as kernel:
        sequence = [0, 1]
        for _ in range(30):
            sequence.append(sequence[-1] + sequence[-2])
        np.testing.assert_array_equal(kernel(numbers, groups=32), np.array(sequence, np.uint32))
