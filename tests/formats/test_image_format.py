"""Image formats: names and numbers against the Vulkan binding's, conversions against float16, and as round trips."""

from __future__ import annotations

import re

import numpy as np
import pytest
import vulkan

from pumice import InvalidArgumentError
from pumice.formats.image_format import FORMATS, ImageFormat
from pumice.formats.image_texels import from_texels, linear_to_srgb, srgb_to_linear, to_texels, values_of


def test_names_and_numbers_are_vulkans() -> None:
    known = {name.lower(): value for name, value in vars(vulkan).items() if name.startswith("VK_FORMAT_")}
    numbers = {one.name: one.vk for one in FORMATS}
    assert numbers == {one.name: known[f"vk_format_{one.vulkan_name}"] for one in FORMATS}
    # The core formats of Vulkan 1.0 are numbered to 184; one of those is VK_FORMAT_UNDEFINED.
    assert sorted(numbers.values())[:184] == list(range(1, 185))
    assert len(set(numbers.values())) == len(FORMATS) == 198
    for one in FORMATS:
        assert ImageFormat.parse(one.name) is one
        assert ImageFormat.parse(f"VK_FORMAT_{one.vulkan_name.upper()}") is one
        assert sum(bits for _, bits in one.fields) == 8 * one.texel_bytes or one.is_compressed


def test_compressed_blocks_are_vulkans() -> None:
    # "Compatible formats of block-compressed": 8 bytes where a block has one channel or bc1's and etc2's colors.
    for one in FORMATS:
        assert one.is_compressed == one.vulkan_name.endswith("_block") == (one.block != (1, 1))
        if one.is_compressed:
            small = one.name.startswith(("bc1", "bc4", "etc2rgb8", "eacr11"))
            assert one.texel_bytes == (8 if small else 16)
            sizes = re.search(r"astc_(\d+)x(\d+)", one.vulkan_name)
            assert one.block == (tuple(map(int, sizes.groups())) if sizes else (4, 4))
    assert [ImageFormat.parse(name).vk for name in ("bc7-rgba-unorm-srgb", "BC1_RGB_UNORM_BLOCK")] == [146, 131]


@pytest.mark.parametrize("name", ["bc7rgbaunorm", "d24unorms8uint", "d24unorm"])
def test_no_array_holds_blocks_or_stencils(name: str) -> None:
    one = ImageFormat.parse(name)
    with pytest.raises(InvalidArgumentError, match=f"no array holds texels of {name}"):
        to_texels(np.zeros((4, 4), np.uint8), one)
    assert one.aspects == (("color",) if one.is_compressed else ("depth", "stencil") if "s8" in name else ("depth",))


@pytest.mark.parametrize(
    ("name", "known_as"),
    [
        ("rgba8", "rgba8unorm"),
        ("rgba8_snorm", "rgba8snorm"),
        ("Rgba32f", "rgba32float"),
        ("r11f_g11f_b10f", "rg11b10float"),
        ("rgb10_a2ui", "rgb10a2uint"),
        ("r64ui", "r64uint"),
        ("rgba8unorm-srgb", "rgba8srgb"),
        ("rg11b10ufloat", "rg11b10float"),
        ("depth32float", "d32float"),
    ],
)
def test_other_names(name: str, known_as: str) -> None:
    assert ImageFormat.parse(name).name == known_as


def test_spirv_names_are_those_of_the_specification() -> None:
    # SPIR-V 1.6, "Image Format": 39 formats, and the two of SPV_EXT_shader_image_int64.
    names = [one.spirv_name for one in FORMATS if one.spirv_name]
    assert len(names) == len(set(names)) == 41


@pytest.mark.parametrize("name", ["", "rgba", "rgba9unorm", "rgba8unorm ", "r64", "x" * 200])
def test_unknown_names_are_answered_with_those_there_are(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="rgba8unorm"):
        ImageFormat.parse(name)
    assert not ImageFormat.is_name(name)


@pytest.mark.parametrize(
    ("dtype", "channels", "scalar", "name"),
    [
        ("u1", 4, None, "rgba8unorm"),
        ("u1", 4, "uint", "rgba8uint"),
        ("i1", 2, None, "rg8snorm"),
        ("u2", 1, "float", "r16unorm"),
        ("f2", 4, "float", "rgba16float"),
        ("f4", 1, None, "r32float"),
        ("u4", 1, None, "r32uint"),
        ("i4", 3, "int", "rgb32sint"),
        ("u8", 1, "uint", "r64uint"),
    ],
)
def test_formats_of_dtypes(dtype: str, channels: int, scalar: str | None, name: str) -> None:
    assert ImageFormat.of_dtype(np.dtype(dtype), channels, scalar).name == name


@pytest.mark.parametrize(("dtype", "channels"), [("f4", 5), ("f4", 0), ("c8", 1), ("?", 1), ("M8[s]", 1)])
def test_dtypes_without_a_format(dtype: str, channels: int) -> None:
    with pytest.raises(InvalidArgumentError, match="no image format has texels"):
        ImageFormat.of_dtype(np.dtype(dtype), channels)


def every_code(one: ImageFormat) -> np.ndarray:
    """Texels of a format with all codes of channels up to 16 bits, random ones of wider texels."""
    dtype, count = one.stored_dtype, 1 << 12
    shape = () if one.packed else one.texel_shape()
    if dtype.itemsize > 2 or len(shape):
        data = np.random.default_rng(one.vk).integers(0, 256, (count, one.texel_bytes), np.uint8)
        return data.reshape(-1).view(dtype).reshape(count, *shape)
    return np.arange(1 << (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype)


@pytest.mark.parametrize("one", [one for one in FORMATS if one.is_plain], ids=str)
def test_every_code_survives_its_value(one: ImageFormat) -> None:
    texels = every_code(one)
    if one.fields[0][1] < 64:
        values = values_of(texels, one)
        with np.errstate(invalid="ignore"):
            if one.scalar != "float":
                values = values.astype(np.int64)
            back = to_texels(values, one)
        assert back.dtype == one.stored_dtype and back.shape == texels.shape
        # Codes that share a value: NaN, -1 of snorm, and rgb9e5 with small mantissas.
        assert np.array_equal(values_of(back, one), values, equal_nan=one.scalar == "float")
    array = from_texels(texels, one)
    assert array.dtype == one.dtype and array.shape == (texels.shape[0], *one.texel_shape())
    again = from_texels(to_texels(array, one), one)
    assert np.array_equal(again, array, equal_nan=one.scalar == "float")


def test_small_floats_are_the_upper_bits_of_halves() -> None:
    one = ImageFormat.parse("rg11b10float")
    codes = np.arange(1 << 11, dtype=np.uint32)
    expected = (codes << 4).astype(np.uint16).view(np.float16).astype(np.float64)
    words = codes | codes << np.uint32(11) | (codes >> 1) << np.uint32(22)
    values = values_of(words, one)
    assert np.array_equal(values[:, 0], expected, equal_nan=True)
    assert np.array_equal(values[:, 1], expected, equal_nan=True)
    blue = (codes >> 1 << 5).astype(np.uint16).view(np.float16).astype(np.float64)
    assert np.array_equal(values[:, 2], blue, equal_nan=True)


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("r8unorm", 2.0, 255),
        ("r8unorm", -1.0, 0),
        ("r8unorm", np.nan, 0),
        ("r8unorm", 0.5, 128),
        ("r8snorm", -7.0, -127),
        ("r16unorm", np.inf, 65535),
        ("r8srgb", 0.5, 188),
        ("r16float", 65520.0, np.inf),
    ],
)
def test_values_are_clamped_and_rounded(name: str, value: float, expected: float) -> None:
    assert to_texels(np.array([value], np.float32), ImageFormat.parse(name))[0] == expected


def test_rgb9e5_takes_one_exponent_from_the_largest() -> None:
    one = ImageFormat.parse("rgb9e5float")
    values = np.array([[1.0, 0.5, 0.25], [65408.0, 1e9, -3.0], [0, 0, 0], [2**-24, 0, 0], [511.9, 1, 0]], np.float32)
    got = values_of(to_texels(values, one), one)
    assert got.tolist() == [[1, 0.5, 0.25], [65408, 65408, 0], [0, 0, 0], [2**-24, 0, 0], [512, 2, 0]]


def test_srgb_curves_are_inverse() -> None:
    codes = np.arange(256) / 255
    assert np.allclose(linear_to_srgb(srgb_to_linear(codes)), codes, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "array", "match"),
    [
        ("rgba8unorm", np.zeros((2, 2, 4), np.uint16), "takes no uint16; give uint8"),
        ("rgba32float", np.zeros((2, 2, 4), np.uint8), r"a / np\.float32\(255\)"),
        ("r8uint", np.array([300]), "holds 0 to 255, got 300"),
        ("r8sint", np.array([-129]), "holds -128 to 127"),
        ("r32uint", np.zeros(2, np.float32), "convert it with .astype"),
        ("rgb10a2uint", np.full((1, 4), 5), "channel a of rgb10a2uint holds 0 to 3, got 5"),
    ],
)
def test_arrays_that_a_format_cannot_take(name: str, array: np.ndarray, match: str) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        to_texels(array, ImageFormat.parse(name))
