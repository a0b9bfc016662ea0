"""Kernels with images: Sascha Willems' filters, niagara's depth pyramid, ExecuTorch's and MNN's tensors in textures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from conformance.shaders.kernel_cases import Loader, close, kernel_case
from scipy import ndimage

Floats = np.ndarray


# -- filters of pictures -----------------------------------------------------------------------------


def _filter(name: str, reference: Callable[[Floats], Floats]) -> None:
    @kernel_case("willems", f"shaders-glsl-computeshader-{name}.comp", images=True)
    def check(load: Loader, random: np.random.Generator) -> None:
        picture = random.integers(0, 256, (48, 64, 4), np.uint8)
        with load() as kernel:
            got = np.asarray(kernel(picture, np.zeros_like(picture), groups=(4, 3, 1)))
            wanted = np.clip(reference(picture[..., :3] / 255), 0, 1) * 255
            # One level of rounding; reads past the edge are the device's.
            difference = np.abs(got[1:-1, 1:-1, :3].astype(int) - wanted[1:-1, 1:-1])
            assert difference.max() <= 1, difference.max()
            assert (got[..., 3] == 255).all()


def _weighed(values: Floats, weights: list[float]) -> Floats:
    # The shaders count x in their outer loop.
    return ndimage.correlate(values, np.array(weights).reshape(3, 3).T)


def _grey(picture: Floats, weights: list[float], divisor: float, offset: float) -> Floats:
    return np.repeat((_weighed(picture.mean(-1), weights) / divisor + offset)[..., None], 3, -1)


_EDGES = [-1 / 8] * 4 + [1.0] + [-1 / 8] * 4
_EMBOSS = [-1.0, 0, 0, 0, -1, 0, 0, 0, 2]
_SHARPEN = [-1.0] * 4 + [9.0] + [-1.0] * 4
_filter("edgedetect", lambda x: _grey(x, _EDGES, 0.1, 0.0))
_filter("emboss", lambda x: _grey(x, _EMBOSS, 1.0, 0.5))
_filter("sharpen", lambda x: np.stack([_weighed(x[..., c], _SHARPEN) for c in range(3)], -1))


@kernel_case("niagara", "src-shaders-depthreduce.comp.glsl", images=True)
def _depth_reduce(load: Loader, random: np.random.Generator) -> None:
    """One level of a depth pyramid, through a sampler that takes the least of four texels."""
    depth = random.random((64, 96), np.float32)
    device = load.device
    with load() as kernel, device.asimage(depth) as image, device.sampler("linear", reduction="min") as sampler:
        got = kernel(outImage=np.zeros((32, 48), np.float32), inImage=image, depthSampler=sampler, imageSize=[48, 32])
        close(got, depth.reshape(32, 2, 48, 2).min((1, 3)))


# -- ExecuTorch: four channels a texel of a 3D texture -----------------------------------------------


def _packed(x: Floats) -> Floats:
    """Channels first to (channels / 4, height, width, 4)."""
    return np.ascontiguousarray(x.reshape(-1, 4, *x.shape[1:]).transpose(0, 2, 3, 1))


def _unpacked(x: object) -> Floats:
    texels = np.asarray(x)
    return texels.transpose(0, 3, 1, 2).reshape(-1, *texels.shape[1:3])


def _executorch(load: Loader, channels: int, height: int, width: int, *arguments: object, **options: object) -> Floats:
    """Calls a kernel whose first binding is its result, with an invocation for each texel."""
    result = load.device.empty_image((channels // 4, height, width), "rgba32f", dim="3d")
    with load(**options) as kernel, result:
        size = kernel.pipeline.local_size
        counts = tuple(-(-n // s) for n, s in zip((width, height, channels // 4), size, strict=True))
        kernel(result, *arguments, groups=counts)
        return _unpacked(result.numpy())


def _limits(channels: int, height: int, width: int) -> np.ndarray:
    return np.array([width, height, channels // 4, 0], np.int32)[:3]


_WINDOW = {"kernel_size": [2, 2], "stride": [2, 2], "padding": [0, 0], "dilation": [1, 1]}


@kernel_case("executorch", "avg_pool2d_float", images=True)
def _average_pool(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((8, 12, 16), np.float32)
    sizes = np.array([16, 12, 8, 1], np.int32)
    divisors = {"divisor_override": 0, "count_include_pad": 0}
    got = _executorch(load, 8, 6, 8, _packed(x), _limits(8, 6, 8), sizes, _WINDOW, divisors)
    close(got, x.reshape(8, 6, 2, 8, 2).mean((2, 4)))


@kernel_case("executorch", "max_pool2d_float", images=True)
def _max_pool(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((8, 12, 16), np.float32)
    sizes = np.array([16, 12, 8, 1], np.int32)
    with load.device.empty_image((2, 6, 8), "rgba32i", dim="3d") as places:
        got = _executorch(load, 8, 6, 8, places, _packed(x), _limits(8, 6, 8), sizes, _WINDOW)
        windows = x.reshape(8, 6, 2, 8, 2)
        close(got, windows.max((2, 4)))
        flat = windows.transpose(0, 1, 3, 2, 4).reshape(8, 6, 8, 4).argmax(-1)
        row, column = 2 * np.arange(6)[:, None] + flat // 2, 2 * np.arange(8) + flat % 2
        np.testing.assert_array_equal(_unpacked(places.numpy()), row * 16 + column)


@kernel_case("executorch", "batchnorm_float", images=True)
def _batch_norm(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((8, 9, 10), np.float32)
    parameters = random.uniform(0.5, 2, (4, 8)).astype(np.float32)
    textures = [p.reshape(1, 1, 2, 4) for p in parameters]
    eps, batch = np.array([1e-5], np.float32), np.array([2], np.int32)
    got = _executorch(load, 8, 9, 10, _packed(x), *textures, _limits(8, 9, 10), eps, batch)
    weight, bias, mean, variance = (p[:, None, None] for p in parameters)
    close(got, (x - mean) / np.sqrt(variance + 1e-5) * weight + bias, rtol=1e-4, atol=1e-4)


@kernel_case("executorch", "upsample_nearest2d_float", images=True)
def _upsample(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((4, 6, 7), np.float32)
    scales = np.array([0.5, 0.5], np.float32)
    got = _executorch(load, 4, 12, 14, _packed(x), _limits(4, 12, 14), _limits(4, 6, 7), scales)
    close(got, x.repeat(2, 1).repeat(2, 2))


@kernel_case("executorch", "binary_add_texture3d_float", images=True)
def _binary_add(load: Loader, random: np.random.Generator) -> None:
    """Tensors packed along the width, as the shader's default layout says."""
    x, y = random.standard_normal((2, 5, 6, 16), np.float32)
    device = load.device
    texels = (5, 6, 4)
    with load() as kernel, device.empty_image(texels, "rgba32f", dim="3d") as result:
        about = {"sizes": [16, 6, 5, 1], "limits": [4, 6, 5], "axis_map": [0, 1, 2, 2], "packed_dim": 0}
        block = {kernel.parameters[3].binding.members[0].name: about}
        blocks = [{p.binding.members[0].name: about} for p in kernel.parameters[3:]]
        assert block == blocks[0]
        layout = 0x11000000 | 0x3210  # packed along dim 0 of axes 0, 1, 2
        named = dict.fromkeys(("out_layout", "in_layout", "other_layout"), layout)
        with load(specialization=named) as wide:
            arrays = [a.reshape(5, 6, 4, 4) for a in (x, y)]
            wide(result, *arrays, *blocks, groups=(4, 6, 5), alpha=2.0)
        close(result.numpy().reshape(5, 6, 16), x + 2 * y)


@kernel_case("executorch", "conv2d_dw_float", images=True)
def _depthwise(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((8, 10, 11), np.float32)
    weight, bias = random.standard_normal((8, 3, 3), np.float32), random.standard_normal(8).astype(np.float32)
    taps = _packed(weight).reshape(2, 9, 4)  # a row for each four channels
    window = {"kernel_size": [3, 3], "stride": [1, 1], "padding": [0, 0], "dilation": [1, 1]}
    device = load.device
    with load() as kernel, device.empty_image((2, 8, 9), "rgba32f", dim="3d") as result:
        kernel(
            *(result, _packed(x), taps, bias.reshape(1, 2, 4), _limits(8, 8, 9), np.array([11, 10, 8, 1], np.int32)),
            *(window, {"overlay_region": [3, 3], "in_group_size": 1}),
            groups=(9 * 8 * 2, 1, 1),
        )
        windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (1, 2))
        wanted = np.einsum("chwij,cij->chw", windows, weight) + bias[:, None, None]
        close(_unpacked(result.numpy()), wanted, rtol=1e-4, atol=1e-4)


# -- MNN: four channels a texel, blocks of channels side by side -------------------------------------


def _mnn(name: str) -> Callable[..., Callable[..., None]]:
    return kernel_case("mnn", f"image-{name}", images=True)


@_mnn("binaryImage_ADD")
def _add(load: Loader, random: np.random.Generator) -> None:
    x, y = random.standard_normal((2, 12, 20, 4), np.float32)
    sizes = {"stride00": [20, 12, 1, 240], "posLimit": [1, 1, 0, 0], "activationType": 1}
    with load() as kernel, load.device.empty_image((12, 20), "rgba32f") as result:
        kernel(result, x, y, sizes, groups=1)
        close(result.numpy(), np.maximum(x + y, 0))


@_mnn("maxpool")
def _pool(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((12, 20, 4), np.float32)
    sizes = {"inputSize": [20, 12, 1, 1], "outputSize": [10, 6, 1, 1], "pad": [0, 0]}
    with load() as kernel, load.device.empty_image((6, 10), "rgba16f") as result:
        kernel(result, x, {**sizes, "kernelSize": [2, 2], "stride": [2, 2]}, groups=(2, 1, 1))
        close(result.numpy(), x.reshape(6, 2, 10, 2, 4).max((1, 3)), rtol=1e-3, atol=1e-3)


@_mnn("relu")
def _relu(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((30, 40, 4), np.float32)
    with load() as kernel, load.device.empty_image((30, 40), "rgba32f") as result:
        kernel(result, x, {"imgSize": [40, 30, 1, 1], "slope": [0.1, 0.2, 0.3, 0.4]}, groups=(3, 2, 1))
        close(result.numpy(), np.where(x > 0, x, x * np.array([0.1, 0.2, 0.3, 0.4], np.float32)))


@_mnn("resizeBilinear")
def _resize(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((9, 13, 4), np.float32)
    sizes = {"inImgSize": [13, 9, 1, 1], "outImgSize": [26, 18, 1, 1], "scale": [0.5, -0.25, 0.5, -0.25]}
    with load() as kernel, load.device.empty_image((18, 26), "rgba32f") as result:
        kernel(x, result, sizes, groups=(2, 2, 1))
        wanted = np.stack([ndimage.zoom(x[..., c], 2, order=1, mode="nearest", grid_mode=True) for c in range(4)], -1)
        close(result.numpy(), wanted, rtol=1e-4, atol=1e-4)


# MNN's softmaxImage is left out: it writes shared memory that others may still read, and lavapipe shows it.


@_mnn("avgpool")
def _mean_pool(load: Loader, random: np.random.Generator) -> None:
    x = random.standard_normal((12, 20, 4), np.float32)
    sizes = {"inputSize": [20, 12, 1, 1], "outputSize": [10, 6, 1, 1], "pad": [0, 0]}
    with load() as kernel, load.device.empty_image((6, 10), "rgba32f") as result:
        kernel(result, x, {**sizes, "kernelSize": [2, 2], "stride": [2, 2]}, groups=(2, 1, 1))
        close(result.numpy(), x.reshape(6, 2, 10, 2, 4).mean((1, 3)))
