"""Samplers: how shaders read between texels and past an image's edge.

Calling sequence: ``Device.create_sampler`` → bind it, or ``ImageView.with_sampler`` → ``close``. A sampler is immutable
and may be used from any thread.
"""

from __future__ import annotations

import math
import struct
import threading
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypedDict

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
"""What is made of the texels of a filter: VkSamplerReductionMode."""

_FILTERS: Final = ("nearest", "linear")
_ADDRESSES: Final = ("repeat", "mirrored_repeat", "clamp_to_edge", "clamp_to_border", "mirror_clamp_to_edge")
_COMPARES: Final = (
    "never",
    "less",
    "equal",
    "less_or_equal",
    "greater",
    "not_equal",
    "greater_or_equal",
    "always",
)
_BORDERS: Final = ("transparent_black", "opaque_black", "opaque_white")
_REDUCTIONS: Final = ("average", "min", "max")
NO_CLAMP: Final = 1000.0  # VK_LOD_CLAMP_NONE
_DESCRIPTOR: Final = struct.Struct("=QQQQ")


class SamplerOptions(TypedDict, total=False):
    """Options for the creation of a sampler.

    Attributes:
        filter: ``"nearest"`` or ``"linear"`` between texels; ``min_filter`` where the image appears smaller.
        mip_filter: between mip levels.
        address: outside the image, one for all dimensions or one each: ``"repeat"``, ``"mirrored_repeat"``,
            ``"clamp_to_edge"``, ``"clamp_to_border"`` or ``"mirror_clamp_to_edge"``.
        lod_bias, min_lod, max_lod: of the level of detail; ``None`` is no upper bound.
        anisotropy: most samples along the steeper direction.
        compare: with a reference value, for shadow samplers: ``"less"``, ``"greater_or_equal"``, …
        border: for ``clamp_to_border``. It is of the type that shaders read; only for samplers that are bound alone
            nobody knows it, so ``integer_border`` says that these are for images of ints.
        reduction: ``"average"``, ``"min"`` or ``"max"`` of the texels that a filter takes in.
        unnormalized: coordinates count texels.
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
        """The sampler is being destroyed."""


class SamplerSettings(NamedTuple):
    """The options that a sampler was created with; see ``SamplerOptions``."""

    filter: str
    min_filter: str
    address: tuple[str, ...]
    min_lod: float
    max_lod: float
    anisotropy: float
    compare: Compare | None
    border: str
    integer_border: bool
    reduction: str
    unnormalized: bool
    mip_filter: str
    lod_bias: float


class Sampler(Closeable):
    """A VkSampler.

    Attributes:
        is_linear: whether it averages texels or mip levels.
        compare: how it compares with a reference, or ``None``.
        reduction: what it makes of several texels.
        unnormalized: whether coordinates count texels.
        settings: what it was made with.
        descriptor: what update templates read, and a serial, which makes it the key of the sampler in caches.
        combined: views bound together with it, by the serials of the descriptors.
    """

    bindable: Final = False

    def __init__(
        self,
        allocator: Allocator,
        *,
        filter: Filter = "linear",
        min_filter: Filter | None = None,
        mip_filter: Filter = "nearest",
        address: Address | tuple[Address, ...] = "clamp_to_edge",
        lod_bias: float = 0.0,
        min_lod: float = 0.0,
        max_lod: float | None = None,
        anisotropy: float = 1.0,
        compare: Compare | None = None,
        border: Border = "transparent_black",
        integer_border: bool = False,
        reduction: Reduction = "average",
        unnormalized: bool = False,
    ) -> None:
        """See ``Device.create_sampler`` and ``SamplerOptions``."""
        self.device: LogicalDevice
        device = self.device = allocator.device
        device.check_usable()
        self._allocator = allocator
        profile, limits, features = device.profile, device.profile.limits, device.plan.features
        requested = (address,) * 3 if isinstance(address, str) else address
        if not isinstance(requested, (tuple, list)) or not 1 <= len(requested) <= 3:
            raise InvalidArgumentError(f"a sampler's address is one mode, or one to three, got {shown(address)}")
        modes = (*requested, "clamp_to_edge", "clamp_to_edge")[:3]
        for what, value in (
            ("lod_bias", lod_bias),
            ("min_lod", min_lod),
            ("max_lod", max_lod),
            ("anisotropy", anisotropy),
        ):
            if value is not None and not (isinstance(value, (int, float)) and math.isfinite(value)):
                raise InvalidArgumentError(f"a sampler's {what} is a finite number, got {shown(value)}")
        smaller = filter if min_filter is None else min_filter
        numbers = [_choice("address", mode, _ADDRESSES) for mode in modes]
        if "mirror_clamp_to_edge" in modes and "samplerMirrorClampToEdge" not in features:
            raise UnimplementedError(f"{profile.name} lacks address mode mirror_clamp_to_edge; use another one")
        if not anisotropy >= 1:
            raise InvalidArgumentError(f"anisotropy is 1 (none) or more, got {anisotropy!r}")
        if anisotropy > 1:
            most = limits.max_sampler_anisotropy if "samplerAnisotropy" in features else 1.0
            if anisotropy > most:
                raise UnimplementedError(f"{profile.name} has anisotropy up to {most:g}, got {anisotropy:g}")
        if abs(lod_bias) > limits.max_sampler_lod_bias:
            raise OutOfRangeError(
                f"{profile.name} biases the level of detail by up to {limits.max_sampler_lod_bias:g}, got {lod_bias:g}"
            )
        if reduction != "average" and "samplerFilterMinmax" not in features:
            raise UnimplementedError(f"{profile.name} has no samplers of minima and maxima (samplerFilterMinmax)")
        if reduction != "average" and compare is not None:
            raise InvalidArgumentError(f"a sampler that compares has no reduction, got {reduction!r}")
        highest = NO_CLAMP if max_lod is None else max_lod
        if highest < min_lod:
            raise InvalidArgumentError(f"max_lod is at least min_lod ({min_lod:g}), got {highest:g}")
        if unnormalized:
            # VUID-VkSamplerCreateInfo-unnormalizedCoordinates-01072 to -01077
            if max_lod is None:
                highest = 0.0
            if (
                filter != smaller
                or mip_filter != "nearest"
                or min_lod
                or highest
                or compare is not None
                or anisotropy > 1
                or not {*modes[:2]} <= {"clamp_to_edge", "clamp_to_border"}
            ):
                raise InvalidArgumentError(
                    "a sampler with unnormalized coordinates has one filter, mip_filter='nearest', no levels of "
                    "detail, comparison or anisotropy, and an address mode of clamp_to_edge or clamp_to_border"
                )
        # What compares or reduces is limited by other features of formats.
        self.is_linear: bool = "linear" in (filter, smaller, mip_filter) and compare is None and reduction == "average"
        self.compare = compare
        self.reduction = reduction
        self.unnormalized = unnormalized
        self._chosen: dict[str, object] = {
            "magFilter": _choice("filter", filter, _FILTERS),
            "minFilter": _choice("min_filter", smaller, _FILTERS),
            "mipmapMode": _choice("mip_filter", mip_filter, _FILTERS),
            "addressModeU": numbers[0],
            "addressModeV": numbers[1],
            "addressModeW": numbers[2],
            "mipLodBias": lod_bias,
            "anisotropyEnable": anisotropy > 1,
            "maxAnisotropy": anisotropy,
            "compareEnable": compare is not None,
            "compareOp": 0 if compare is None else _choice("compare", compare, _COMPARES),
            "minLod": min_lod,
            "maxLod": highest,
            "unnormalizedCoordinates": unnormalized,
        }
        self.settings: SamplerSettings = SamplerSettings(
            filter,
            smaller,
            modes,
            min_lod,
            highest,
            anisotropy,
            compare,
            border,
            integer_border,
            reduction,
            unnormalized,
            mip_filter,
            lod_bias,
        )
        self._border = _choice("border", border, _BORDERS)
        self._integer_border = integer_border
        self._has_border = "clamp_to_border" in modes
        self._reduction = _choice("reduction", reduction, _REDUCTIONS)
        self._lock = threading.Lock()
        self._twin: CData | None = None
        self.handle: CData = self._create(integer_border)
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
        info = new("VkSamplerCreateInfo", borderColor=2 * self._border + integer_border, **self._chosen)
        reduced = None
        if self._reduction:
            reduced = new("VkSamplerReductionModeCreateInfo", reductionMode=self._reduction)
        handle = device.create("sampler", chain(info, reduced))
        device.sampler_count += 1
        return handle

    def handle_for(self, scalar: str) -> CData:
        """Returns the VkSampler for an image that is read as ``"float"``, ``"int"`` or ``"uint"``: its border is of
        that type.

        Another one is made where it is needed.
        """
        if not self._has_border or (scalar != "float") == self._integer_border:
            return self.handle
        with self._lock:
            if self._twin is None:
                self._twin = self._create(not self._integer_border)
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
        """Describes it, for messages."""
        return "a sampler that compares" if self.compare else "a sampler"

    def __repr__(self) -> str:
        return f"<{'closed ' if self.is_closed else ''}Sampler>"


def _choice(what: str, value: object, choices: tuple[str, ...]) -> int:
    if not isinstance(value, str) or value not in choices:
        raise InvalidArgumentError(f"a sampler's {what} is one of {', '.join(choices)}, got {shown(value)}")
    return choices.index(value)
