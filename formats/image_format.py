"""Formats of image texels: their names, their numbers in Vulkan, and the layout of a texel's bytes.

A format's name is its channels, the bits of each, and how they are read: ``rgba8unorm``, ``rg32float``, ``r16sint``,
``rgba8srgb``, ``rgb10a2unorm``. Vulkan's names (``r8g8b8a8_unorm``), those of SPIR-V and GLSL (``rgba8``, ``rgba32f``,
``r11f_g11f_b10f``) and WebGPU's (``rgba8unorm-srgb``) name the same formats.

Block-compressed formats are named alike (``bc1rgbaunorm``, ``bc6hrgbufloat``, ``etc2rgb8srgb``, ``astc8x5unorm``); no
shader writes them. The numbers and layouts are those of the Vulkan specification, "Formats" (VkFormat). Formats of
several planes are left out: only samplers fixed in a pipeline's layout read them.
"""

from __future__ import annotations

import functools
from typing import Final, Literal

import numpy as np

from ..base.lazy_dataclass import dataclass
from ..status import InvalidArgumentError, close_to, shorten, shown

Kind = Literal["unorm", "snorm", "uscaled", "sscaled", "uint", "sint", "srgb", "float", "ufloat"]

Aspect = Literal["color", "depth", "stencil"]

_SCALARS: Final[dict[Kind, Literal["float", "int", "uint"]]] = {"uint": "uint", "sint": "int"}


@dataclass(frozen=True, slots=True)
class ImageFormat:
    """One format.

    Attributes:
        name: the format's name, as the module describes.
        vulkan_name: the Vulkan name, in lower case and without ``vk_format_``.
        spirv_name: the SPIR-V name in lower case, ``""`` where a storage image cannot declare it.
        vk: the ``VkFormat`` value.
        kind: the meaning of a channel's bits; ``"ufloat"`` is floating point without a sign.
        fields: the channel and the number of bits of each field, in the order of memory, or from the lowest bit of a
            packed word.
        packed: whether the channels share one word.
        block: the width and height in texels of a stored unit; more than one texel is a compressed block, whose
            channels have no bits of their own.
        block_bytes: the number of bytes of a compressed block, else 0.
    """

    name: str
    vulkan_name: str
    spirv_name: str
    vk: int
    kind: Kind
    fields: tuple[tuple[str, int], ...]
    packed: bool
    block: tuple[int, int] = (1, 1)
    block_bytes: int = 0

    @property
    def channels(self) -> int:
        """The number of channels; the shared exponent of ``rgb9e5float`` is not one."""
        return sum(channel != "e" for channel, _ in self.fields)

    @property
    def texel_bytes(self) -> int:
        """Bytes a texel, of compressed formats a block."""
        return self.block_bytes or sum(bits for _, bits in self.fields) // 8

    @property
    def scalar(self) -> Literal["float", "int", "uint"]:
        """The scalar kind that a shader reads and writes, as in ``ScalarType.kind``."""
        return _SCALARS.get(self.kind, "float")

    @property
    def is_depth(self) -> bool:
        """Whether it is a depth format."""
        return self.fields[0][0] == "d"

    @property
    def is_compressed(self) -> bool:
        """Whether several texels are stored together."""
        return self.block_bytes > 0

    @property
    def is_plain(self) -> bool:
        """Whether arrays hold its texels: it is not compressed, and has no stencil or unused bits beside depth."""
        return not self.is_compressed and (self.fields[0][0] != "d" or len(self.fields) == 1)

    @property
    def aspects(self) -> tuple[Aspect, ...]:
        """The aspects that views and copies may select: ``("color",)``, or depth, stencil or both."""
        named: dict[str, Aspect] = {"d": "depth", "s": "stencil"}
        return tuple(named[channel] for channel, _ in self.fields if channel in named) or ("color",)

    def aspect_bytes(self, aspect: Aspect) -> int:
        """Returns bytes a texel, or a block, of one aspect when copied to a buffer."""
        if aspect == "stencil":
            return 1
        depth = self.fields[0][1]
        return (2 if depth == 16 else 4) if aspect == "depth" else self.texel_bytes

    def aspect_scalar(self, aspect: Aspect) -> Literal["float", "int", "uint"]:
        """Returns the scalar kind that a shader reads of one aspect."""
        return "uint" if aspect == "stencil" else self.scalar

    @property
    def channel_bits(self) -> int:
        """Bits of the widest channel."""
        return max(bits for _, bits in self.fields)

    @property
    def stored_dtype(self) -> np.dtype[np.generic]:
        """The dtype of the texels in memory: a channel's, the packed word's, or bytes where no array holds them."""
        if not self.is_plain:
            return np.dtype(np.uint8)
        if self.packed:
            return np.dtype(f"u{self.texel_bytes}")
        bits = self.fields[0][1]
        if self.kind == "float":
            return np.dtype(f"f{bits // 8}")
        return np.dtype(f"{'i' if self.kind in ('snorm', 'sint', 'sscaled') else 'u'}{bits // 8}")

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The dtype of an array of its texels: the stored channels', or for a packed format the values'."""
        if not self.packed:
            return self.stored_dtype
        return np.dtype({"uint": np.uint32, "sint": np.int32}.get(self.kind, np.float32))

    def texel_shape(self) -> tuple[int, ...]:
        """Returns the trailing shape of one texel in an array: ``(channels,)``, or ``()`` for one channel."""
        return (self.channels,) if self.channels > 1 else ()

    @classmethod
    def parse(cls, name: str) -> ImageFormat:
        """Returns the format of a name.

        Raises:
            InvalidArgumentError: there is no such format; the message lists all formats.
        """
        if not isinstance(name, str):
            raise InvalidArgumentError(f"a format is a name such as 'rgba8unorm', got {shown(name)}")
        image_format = _by_name().get(_plain(name).removeprefix("vkformat"))
        if image_format is None:
            rare = ("scaled", "pack32")
            known = [
                candidate.name
                for candidate in FORMATS
                if not candidate.is_compressed and not candidate.name.endswith(rare)
            ]
            close = close_to(_plain(name), known)
            guess = f"; did you mean {' or '.join(close)}?" if close else "."
            raise InvalidArgumentError(
                f"expected an image format, got {shown(name)}{guess} Known are {', '.join(known)}, and the compressed "
                "bc1rgbunorm to bc7rgbasrgb, etc2rgb8unorm to eacrg11snorm and astc4x4unorm to astc12x12float"
            )
        return image_format

    @classmethod
    def is_name(cls, name: str) -> bool:
        """Whether ``parse`` knows the name."""
        return _plain(name).removeprefix("vkformat") in _by_name()

    @classmethod
    def of_dtype(
        cls, dtype: np.dtype[np.generic], channels: int, scalar: str | None = None, kind: Kind | None = None
    ) -> ImageFormat:
        """Returns the format whose texels are ``channels`` values of a dtype.

        Args:
            dtype: the elements' dtype. 8- and 16-bit integers are ``unorm`` and ``snorm``, wider integers ``uint`` and
                ``sint``, floats ``float``.
            channels: the number of channels, 1 to 4.
            scalar: the component type that the shader reads, if known: ``"float"``, ``"int"`` or ``"uint"``.
            kind: the kind, in place of these rules.

        Raises:
            InvalidArgumentError: no format holds these channels and dtype.
        """
        bits = 8 * dtype.itemsize
        if kind is None:
            if dtype.kind == "f":
                kind = "float"
            elif dtype.kind in "iu":
                signed = dtype.kind == "i"
                normalized = bits <= 16 if scalar is None else scalar == "float"
                kind = ("snorm" if signed else "unorm") if normalized else ("sint" if signed else "uint")
        if kind is not None and 1 <= channels <= 4:
            image_format = _by_name().get(f"{'rgba'[:channels]}{bits}{kind}")
            if image_format is not None and image_format.stored_dtype == dtype:
                return image_format
        wanted = f" read as {scalar}" if scalar else ""
        raise InvalidArgumentError(
            f"no image format has texels of {channels} x {dtype}{f' of kind {kind}' if kind else ''}{wanted}; name a "
            "format, or convert the array to uint8, int8, uint16, int16, uint32, int32, float16 or float32 with 1 to 4 "
            "channels"
        )

    def __str__(self) -> str:
        return self.name


def _array_formats() -> list[ImageFormat]:
    """Returns the formats whose channels are 8, 16, 32 or 64 bits each; Vulkan numbers them in this order."""
    kinds: dict[int, tuple[Kind, ...]] = {
        8: ("unorm", "snorm", "uscaled", "sscaled", "uint", "sint", "srgb"),
        16: ("unorm", "snorm", "uscaled", "sscaled", "uint", "sint", "float"),
        32: ("uint", "sint", "float"),
        64: ("uint", "sint", "float"),
    }
    suffixes = {"unorm": "", "snorm": "snorm", "uint": "ui", "sint": "i", "float": "f"}
    made, vk = [], 9
    for bits, several in kinds.items():
        orders = ("r", "rg", "rgb", "bgr", "rgba", "bgra", "abgr") if bits == 8 else ("r", "rg", "rgb", "rgba")
        for order in orders:
            for kind in several:
                suffix = f"_s{kind}" if kind == "float" else f"_{kind}"
                word = order == "abgr"  # of a little-endian host: the bytes of rgba
                vulkan = "".join(f"{channel}{bits}" for channel in order) + suffix + ("_pack32" if word else "")
                storable = order in ("r", "rg", "rgba") and kind in suffixes and (bits < 64 or order == "r")
                spirv = f"{order}{bits}{suffixes.get(kind, '')}" if storable and (bits, kind) != (64, "float") else ""
                fields = tuple((channel, bits) for channel in (reversed(order) if word else order))
                name = vulkan if word else f"{order}{bits}{kind}"
                made.append(ImageFormat(name, vulkan, spirv, vk, kind, fields, packed=False))
                vk += 1
            if bits == 8 and order == "abgr":
                vk += 12  # the packed formats of 10 and 2 bits
    return made


def _packed(vk: int, name: str, vulkan: str, spirv: str, kind: Kind, fields: str) -> ImageFormat:
    """Returns a packed format; ``fields`` from the lowest bit, as ``"b5 g6 r5"``."""
    pairs = tuple((text[0], int(text[1:])) for text in fields.split())
    return ImageFormat(name, vulkan, spirv, vk, kind, pairs, packed=True)


def _packed_formats() -> list[ImageFormat]:
    made = [
        _packed(1, "rg4unorm", "r4g4_unorm_pack8", "", "unorm", "g4 r4"),
        _packed(2, "rgba4unorm", "r4g4b4a4_unorm_pack16", "", "unorm", "a4 b4 g4 r4"),
        _packed(3, "bgra4unorm", "b4g4r4a4_unorm_pack16", "", "unorm", "a4 r4 g4 b4"),
        _packed(4, "r5g6b5unorm", "r5g6b5_unorm_pack16", "", "unorm", "b5 g6 r5"),
        _packed(5, "b5g6r5unorm", "b5g6r5_unorm_pack16", "", "unorm", "r5 g6 b5"),
        _packed(6, "rgb5a1unorm", "r5g5b5a1_unorm_pack16", "", "unorm", "a1 b5 g5 r5"),
        _packed(7, "bgr5a1unorm", "b5g5r5a1_unorm_pack16", "", "unorm", "a1 r5 g5 b5"),
        _packed(8, "a1rgb5unorm", "a1r5g5b5_unorm_pack16", "", "unorm", "b5 g5 r5 a1"),
        _packed(122, "rg11b10float", "b10g11r11_ufloat_pack32", "r11fg11fb10f", "ufloat", "r11 g11 b10"),
        _packed(123, "rgb9e5float", "e5b9g9r9_ufloat_pack32", "", "ufloat", "r9 g9 b9 e5"),
    ]
    kinds: tuple[Kind, ...] = ("unorm", "snorm", "uscaled", "sscaled", "uint", "sint")
    spirv = {"unorm": "rgb10a2", "uint": "rgb10a2ui"}
    for vk, kind in enumerate(kinds, 58):
        made.append(
            _packed(vk, f"bgr10a2{kind}", f"a2r10g10b10_{kind}_pack32", "", kind, "b10 g10 r10 a2"),
        )
        made.append(
            _packed(
                vk + 6, f"rgb10a2{kind}", f"a2b10g10r10_{kind}_pack32", spirv.get(kind, ""), kind, "r10 g10 b10 a2"
            ),
        )
    return made


_DEPTH: Final = (
    ImageFormat("d16unorm", "d16_unorm", "", 124, "unorm", (("d", 16),), packed=False),
    ImageFormat("d32float", "d32_sfloat", "", 126, "float", (("d", 32),), packed=False),
)
_STENCIL: Final = (
    ImageFormat("d24unorm", "x8_d24_unorm_pack32", "", 125, "unorm", (("d", 24), ("x", 8)), packed=True),
    ImageFormat("s8uint", "s8_uint", "", 127, "uint", (("s", 8),), packed=False),
    ImageFormat("d16unorms8uint", "d16_unorm_s8_uint", "", 128, "unorm", (("d", 16), ("s", 8)), packed=False),
    ImageFormat("d24unorms8uint", "d24_unorm_s8_uint", "", 129, "unorm", (("d", 24), ("s", 8)), packed=False),
    ImageFormat("d32floats8uint", "d32_sfloat_s8_uint", "", 130, "float", (("d", 32), ("s", 8)), packed=False),
)
_ASTC_HDR: Final = 1000066000
_ASTC_BLOCKS: Final = tuple(
    f"{width}x{height}"
    for width, heights in {4: (4,), 5: (4, 5), 6: (5, 6), 8: (5, 6, 8), 10: (5, 6, 8, 10), 12: (10, 12)}.items()
    for height in heights
)


def _compressed_formats() -> list[ImageFormat]:
    """Returns the formats of compressed blocks, in the order of their numbers."""
    families: list[tuple[str, str, str, int, tuple[Kind, ...]]] = [
        ("bc1rgb", "bc1_rgb", "rgb", 8, ("unorm", "srgb")),
        ("bc1rgba", "bc1_rgba", "rgba", 8, ("unorm", "srgb")),
        ("bc2rgba", "bc2", "rgba", 16, ("unorm", "srgb")),
        ("bc3rgba", "bc3", "rgba", 16, ("unorm", "srgb")),
        ("bc4r", "bc4", "r", 8, ("unorm", "snorm")),
        ("bc5rg", "bc5", "rg", 16, ("unorm", "snorm")),
        ("bc6hrgb", "bc6h", "rgb", 16, ("ufloat", "float")),
        ("bc7rgba", "bc7", "rgba", 16, ("unorm", "srgb")),
        ("etc2rgb8", "etc2_r8g8b8", "rgb", 8, ("unorm", "srgb")),
        ("etc2rgb8a1", "etc2_r8g8b8a1", "rgba", 8, ("unorm", "srgb")),
        ("etc2rgba8", "etc2_r8g8b8a8", "rgba", 16, ("unorm", "srgb")),
        ("eacr11", "eac_r11", "r", 8, ("unorm", "snorm")),
        ("eacrg11", "eac_r11g11", "rg", 16, ("unorm", "snorm")),
    ]
    families += [(f"astc{size}", f"astc_{size}", "rgba", 16, ("unorm", "srgb")) for size in _ASTC_BLOCKS]
    numbered = list(enumerate(((*family[:4], kind) for family in families for kind in family[4]), 131))
    numbered += [
        (_ASTC_HDR + index, (f"astc{size}", f"astc_{size}", "rgba", 16, "float"))
        for index, size in enumerate(_ASTC_BLOCKS)
    ]
    made = []
    for vk, (name, vulkan, channels, size, kind) in numbered:
        width, height = map(int, name.removeprefix("astc").split("x")) if name.startswith("astc") else (4, 4)
        fields = tuple((channel, 0) for channel in channels)
        vulkan += f"_{'sfloat' if kind == 'float' else kind}_block"
        made.append(ImageFormat(f"{name}{kind}", vulkan, "", vk, kind, fields, False, (width, height), size))
    return made


FORMATS: Final[tuple[ImageFormat, ...]] = tuple(
    sorted(
        [*_array_formats(), *_packed_formats(), *_DEPTH, *_STENCIL, *_compressed_formats()],
        key=lambda entry: entry.vk,
    )
)
"""All formats, by number."""


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "") if len(name) < 80 else shorten(name)


@functools.cache
def _by_name() -> dict[str, ImageFormat]:
    names: dict[str, ImageFormat] = {}
    for image_format in FORMATS:
        for name in (image_format.name, image_format.vulkan_name, image_format.spirv_name):
            if name:
                names[_plain(name)] = image_format
        if image_format.kind == "srgb" and (image_format.is_compressed or image_format.fields[0][1] == 8):
            names[image_format.name.replace("srgb", "unormsrgb")] = image_format  # WebGPU's
    names["rg11b10ufloat"], names["rgb9e5ufloat"] = names["rg11b10float"], names["rgb9e5float"]
    names["depth16unorm"], names["depth32float"] = _DEPTH
    names["stencil8"] = _STENCIL[1]
    return names
