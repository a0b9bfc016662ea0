"""Samplers: reads between texels and past an image's edge.

Calling sequence: ``Device.create_sampler`` → bind it, or ``ImageView.with_sampler`` → ``close``. A sampler is immutable
and may be used from any thread.
"""

from __future__ import annotations

import math
import struct
import threading
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypedDict, Unpack, get_args

from ...base.closeable import Closeable
from ...status import InvalidArgumentError, OutOfRangeError, ResourceExhaustedError, UnimplementedError, shown
from ..memory.allocator import Allocator
from ..vulkan.functions import CData, chain, handle_value, new

if TYPE_CHECKING:
    from ..instance.logical_device import LogicalDevice

Filter = Literal["nearest", "linear"]
"""Between texels: the nearest one, or a weighted mean."""
Address = Literal["repeat", "mirrored_repeat", "clamp_to_edge", "clamp_to_border", "mirror_clamp_to_edge"]
"""Past the edges: VkSamplerAddressMode."""
Compare = Literal["never", "less", "equal", "less_or_equal", "greater", "not_equal", "greater_or_equal", "always"]
"""The comparison of depths: VkCompareOp."""
Border = Literal["transparent_black", "opaque_black", "opaque_white"]
"""The colour of ``clamp_to_border``: VkBorderColor."""
Reduction = Literal["average", "min", "max"]
"""The combination of the texels of a filter: VkSamplerReductionMode."""

NO_CLAMP: Final = 1000.0  # VK_LOD_CLAMP_NONE
_DESCRIPTOR: Final = struct.Struct("=QQQQ")


class SamplerOptions(TypedDict, total=False):
    """Options for the creation of a sampler.

    Attributes:
        filter: the filter between texels, ``"nearest"`` or ``"linear"``; ``min_filter`` applies where the image appears
            smaller.
        mip_filter: the filter between mip levels.
        address: the addressing outside the image, one mode for all dimensions or one for each: ``"repeat"``,
            ``"mirrored_repeat"``, ``"clamp_to_edge"``, ``"clamp_to_border"`` or ``"mirror_clamp_to_edge"``.
        lod_bias, min_lod, max_lod: the bias and the bounds of the level of detail; ``None`` means no upper bound.
        anisotropy: the largest number of samples along the steeper direction.
        compare: the comparison with a reference value, for shadow samplers: ``"less"``, ``"greater_or_equal"``, …
        border: the colour outside the image with ``clamp_to_border``. It has the type that shaders read, which is
            unknown for samplers bound without a view; ``integer_border`` declares that these sample images of ints.
        reduction: the combination of the texels under a filter: ``"average"``, ``"min"`` or ``"max"``.
        unnormalized: whether coordinates count texels.
    """

    filter: Filter
    min_filter: Filter | None
    mip_filter: Filter
    address: Address | tuple[Address, ...]
    lod_bias: float
    min_lod: float
    max_lod: float | None
    anisotropy: float
    compare: Compare | None
    border: Border
    integer_border: bool
    reduction: Reduction
    unnormalized: bool


class SampledView(Protocol):
    """A view that is bound together with samplers."""

    def drop_sampler(self, sampler: Sampler) -> None:
        """Drops descriptors of a sampler that is being destroyed."""


_FILLED_IN: Any = None


class SamplerSettings(NamedTuple):
    """The options of a sampler; see ``SamplerOptions``. ``_checked`` fills in the defaults."""

    filter: str = "linear"
    min_filter: str = _FILLED_IN
    mip_filter: str = "nearest"
    address: tuple[str, ...] = ("clamp_to_edge",)
    lod_bias: float = 0.0
    min_lod: float = 0.0
    max_lod: float = _FILLED_IN
    anisotropy: float = 1.0
    compare: Compare | None = None
    border: str = "transparent_black"
    integer_border: bool = False
    reduction: str = "average"
    unnormalized: bool = False


class Sampler(Closeable):
    """A VkSampler.

    Attributes:
        is_linear: whether the sampler averages texels or mip levels.
        compare: the comparison with a reference, or ``None``.
        reduction: the combination of several texels.
        unnormalized: whether coordinates count texels.
        settings: the sampler's options.
        descriptor: the data that update templates read, and a serial, which makes it the key of the sampler in caches.
        combined: the views bound together with the sampler, by the serials of the descriptors.
    """

    bindable: Final = False

    def __init__(self, allocator: Allocator, **options: Unpack[SamplerOptions]) -> None:
        self.device: LogicalDevice
        device = self.device = allocator.device
        device.check_usable()
        self._allocator = allocator
        self.settings: SamplerSettings
        chosen = self.settings = _checked(device, SamplerSettings(**options))  # type: ignore[arg-type]  # None is filled in
        # Comparisons and reductions are limited by other features of formats.
        filters = chosen.filter, chosen.min_filter, chosen.mip_filter
        self.is_linear: bool = "linear" in filters and chosen.compare is None and chosen.reduction == "average"
        self.compare = chosen.compare
        self.reduction: str = chosen.reduction
        self.unnormalized: bool = chosen.unnormalized
        self._lock = threading.Lock()
        self._twin: CData | None = None
        self.handle: CData = self._create(chosen.integer_border)
        self.serial: int = allocator.new_serial()
        self.descriptor: bytes = _DESCRIPTOR.pack(handle_value(self.handle), 0, 0, self.serial)
        self.combined: dict[int, SampledView] = {}
        self._closed = False

    def _create(self, integer_border: bool) -> CData:
        device = self.device
        most = device.profile.limits.max_sampler_allocation_count
        if device.sampler_count >= most:
            raise ResourceExhaustedError(
                f"{device.profile.name} has up to {most} samplers, and so many are open; close some, or use one in "
                "several places"
            )
        chosen = self.settings
        u, v, w = (_index(Address, mode) for mode in chosen.address)
        info = new(
            "VkSamplerCreateInfo",
            magFilter=_index(Filter, chosen.filter),
            minFilter=_index(Filter, chosen.min_filter),
            mipmapMode=_index(Filter, chosen.mip_filter),
            addressModeU=u,
            addressModeV=v,
            addressModeW=w,
            mipLodBias=chosen.lod_bias,
            anisotropyEnable=chosen.anisotropy > 1,
            maxAnisotropy=chosen.anisotropy,
            compareEnable=chosen.compare is not None,
            compareOp=0 if chosen.compare is None else _index(Compare, chosen.compare),
            minLod=chosen.min_lod,
            maxLod=chosen.max_lod,
            borderColor=2 * _index(Border, chosen.border) + integer_border,
            unnormalizedCoordinates=chosen.unnormalized,
        )
        reduced = None
        if chosen.reduction != "average":
            mode = _index(Reduction, chosen.reduction)
            reduced = new("VkSamplerReductionModeCreateInfo", reductionMode=mode)
        handle = device.create("sampler", chain(info, reduced))
        device.sampler_count += 1
        return handle

    def handle_for(self, scalar: str) -> CData:
        """Returns the VkSampler for an image read as ``"float"``, ``"int"`` or ``"uint"``, with a border of that type.

        A further VkSampler is made where needed.
        """
        chosen = self.settings
        if "clamp_to_border" not in chosen.address or (scalar != "float") == chosen.integer_border:
            return self.handle
        with self._lock:
            if self._twin is None:
                self._twin = self._create(not chosen.integer_border)
            return self._twin

    @property
    def is_closed(self) -> bool:
        """Whether it or its device was closed."""
        return self._closed or self.device.is_closed

    def close(self) -> None:
        """Destroys it, once queues that use it have retired; idempotent."""
        if self.is_closed:
            return
        self._closed = True
        self.device.note_closed()
        self.device.defer(self._destroy)

    def _destroy(self) -> None:
        for view in list(self.combined.values()):
            view.drop_sampler(self)
        self.combined.clear()
        self._allocator.forget(self.serial)
        for handle in (self.handle, self._twin):
            if handle is not None:
                self.device.destroy("sampler", handle)
                self.device.sampler_count -= 1

    def describe(self) -> str:
        return "a sampler that compares" if self.compare else "a sampler"

    def __repr__(self) -> str:
        return f"<{'closed ' if self.is_closed else ''}Sampler>"


def _checked(device: LogicalDevice, asked: SamplerSettings) -> SamplerSettings:
    """Returns the settings with defaults filled in; raises for wrong options."""
    profile, limits, features = device.profile, device.profile.limits, device.plan.features
    address: object = asked.address
    requested = (address,) * 3 if isinstance(address, str) else address
    if not isinstance(requested, (tuple, list)) or not 1 <= len(requested) <= 3:
        raise InvalidArgumentError(f"a sampler's address is one mode, or one to three, got {shown(address)}")
    modes: tuple[str, ...] = (*requested, "clamp_to_edge", "clamp_to_edge")[:3]
    for option in ("lod_bias", "min_lod", "max_lod", "anisotropy"):
        value = getattr(asked, option)
        if value is not None and not (isinstance(value, (int, float)) and math.isfinite(value)):
            raise InvalidArgumentError(f"a sampler's {option} is a finite number, got {shown(value)}")
    limit = NO_CLAMP if asked.max_lod is None else asked.max_lod
    highest = 0.0 if asked.unnormalized and asked.max_lod is None else limit
    chosen = asked._replace(address=modes, min_filter=asked.min_filter or asked.filter, max_lod=highest)
    for option, value, choices in (
        *(("address", mode, Address) for mode in modes),
        ("filter", asked.filter, Filter),
        ("min_filter", chosen.min_filter, Filter),
        ("mip_filter", asked.mip_filter, Filter),
        *((("compare", asked.compare, Compare),) if asked.compare is not None else ()),
        ("border", asked.border, Border),
        ("reduction", asked.reduction, Reduction),
    ):
        if not isinstance(value, str) or value not in get_args(choices):
            raise InvalidArgumentError(
                f"a sampler's {option} is one of {', '.join(get_args(choices))}, got {shown(value)}"
            )
    if "mirror_clamp_to_edge" in modes and "samplerMirrorClampToEdge" not in features:
        raise UnimplementedError(f"{profile.name} lacks address mode mirror_clamp_to_edge; use another one")
    if not asked.anisotropy >= 1:
        raise InvalidArgumentError(f"anisotropy is 1 (none) or more, got {asked.anisotropy!r}")
    most = limits.max_sampler_anisotropy if "samplerAnisotropy" in features else 1.0
    if asked.anisotropy > max(most, 1.0):
        raise UnimplementedError(f"{profile.name} has anisotropy up to {most:g}, got {asked.anisotropy:g}")
    if abs(asked.lod_bias) > limits.max_sampler_lod_bias:
        raise OutOfRangeError(
            f"{profile.name} biases the level of detail by up to {limits.max_sampler_lod_bias:g}, got "
            f"{asked.lod_bias:g}"
        )
    if asked.reduction != "average" and "samplerFilterMinmax" not in features:
        raise UnimplementedError(f"{profile.name} has no samplers of minima and maxima (samplerFilterMinmax)")
    if asked.reduction != "average" and asked.compare is not None:
        raise InvalidArgumentError(f"a sampler that compares has no reduction, got {asked.reduction!r}")
    if limit < asked.min_lod:
        raise InvalidArgumentError(f"max_lod is at least min_lod ({asked.min_lod:g}), got {limit:g}")
    # VUID-VkSamplerCreateInfo-unnormalizedCoordinates-01072 to -01077
    if asked.unnormalized and (
        asked.filter != chosen.min_filter
        or asked.mip_filter != "nearest"
        or asked.min_lod
        or highest
        or asked.compare is not None
        or asked.anisotropy > 1
        or not {*modes[:2]} <= {"clamp_to_edge", "clamp_to_border"}
    ):
        raise InvalidArgumentError(
            "a sampler with unnormalized coordinates has one filter, mip_filter='nearest', no levels of detail, "
            "comparison or anisotropy, and an address mode of clamp_to_edge or clamp_to_border"
        )
    return chosen


def _index(choices: object, value: str) -> int:
    return list(get_args(choices)).index(value)
