"""Parameters for images, with or without a sampler, samplers, and arrays read as texels."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from ....formats.image_format import ImageFormat
from ....hal_vulkan import Binding, DeviceLimits
from ....hal_vulkan.images.format_features import LINEAR_FILTER, format_features
from ....hal_vulkan.pipelines.resources import check_resource
from ....spirv.reflection.reflection_types import ImageType
from ....status import InvalidArgumentError
from ...arrays.array import DeviceArray
from ...arrays.array_device import ArrayDevice
from ...arrays.spec import ArraySpec
from ...arrays.transfer import Transfer
from ...images.bound import Bound, HostImage
from ...images.image import DeviceImage, new_image
from ...images.layout import ImageLayout, as_dtype, check_gives, checked_shape, declared_dim, expected_shape
from ...images.pool import ImagePool, Lease
from ...images.sampler import Sampler
from ...images.texel_array import TexelArray, texel_format
from .parameter import BufferParameter, KernelArgument, Parameter, Prepared

if TYPE_CHECKING:
    from ....hal_vulkan import Buffer, CombinedImageSampler, ImageView
    from ....hal_vulkan.images.sampler import Compare

_COMBINED: Final = 1  # VkDescriptorType


class ImageParameter(Parameter):
    """A storage or sampled image, or an image with a sampler; accepts images, arrays, and pairs with a sampler."""

    __slots__ = ("_combined", "_declared_format", "_image", "dim")

    device_types: tuple[type[DeviceImage], type[DeviceArray]] = (DeviceImage, DeviceArray)

    def __init__(self, index: int, binding: Binding, limits: DeviceLimits) -> None:
        super().__init__(index, binding, limits)
        assert binding.image is not None
        self._image: ImageType = binding.image
        self._combined = binding.descriptor_type == _COMBINED
        self._declared_format = ""
        if self._image.storage and self._image.format != "unknown":
            self._declared_format = self._image.format
            self.dtype: np.dtype[np.generic] | None = ImageFormat.parse(self._declared_format).dtype
        self.dim: str = declared_dim(self._image)

    def declared(self) -> str:
        image = self._image
        samples = "multisampled " if image.multisampled else ""
        if image.storage:
            return f"a {samples}{self.dim} image of {self._declared_format or 'any format'}"
        compared = ", read with a comparison" if image.depth else ""
        texels = {"float": "floats", "int": "signed integers", "uint": "unsigned integers"}[image.sampled.kind]
        return (
            f"a {samples}{self.dim} image {'with a sampler' if self._combined else 'to sample'}, of {texels}{compared}"
        )

    def prepare(self, value: KernelArgument, kernel: str) -> DeviceImage | HostImage:
        where = f"{kernel}: {self.label}"
        sampler: Sampler | None = None
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Sampler):
            value, sampler = value  # type: ignore[assignment]
            if not self._combined:
                raise InvalidArgumentError(f"{where} takes {self.declared()}, and no sampler with it")
        if isinstance(value, DeviceImage):
            value._check_open()
            return value if sampler is None else value.with_sampler(sampler)
        if isinstance(value, ArraySpec):
            if not self.written:
                raise InvalidArgumentError(
                    f"{where} got {value}, but the kernel only reads it; give it an image or an array"
                )
            # What is read as well has no values that nobody wrote.
            return self._host(np.zeros(value.shape, value.dtype) if self.binding.readable else value, None, where)
        if value is None or isinstance(value, (str, bytes, Sampler, DeviceArray, TexelArray)):
            raise InvalidArgumentError(
                f"{where} takes {self.declared()}, as an image or a NumPy array; got {_named(value)}"
                + ("; give device.asimage(x.numpy())" if isinstance(value, DeviceArray) else "")
            )
        if self._image.multisampled:
            raise InvalidArgumentError(
                f"{where} takes {self.declared()}; no array is one, make it with device.empty_image(…, samples=4)"
            )
        try:
            array = np.asarray(value, None if isinstance(value, (np.ndarray, np.generic)) else self._listed_dtype())
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidArgumentError(
                f"{where} takes {self.declared()}; {type(value).__name__} cannot become that: {error}"
            ) from None
        return self._host(array, sampler, where)

    def _listed_dtype(self) -> np.dtype[np.generic]:
        """Returns the dtype for Python numbers."""
        return self.dtype or np.dtype({"float": np.float32, "int": np.int32}.get(self._image.sampled.kind, np.uint32))

    def _host(self, value: np.ndarray | ArraySpec, sampler: Sampler | None, where: str) -> HostImage:
        declared = ImageFormat.parse(self._declared_format) if self._declared_format else None
        channels = declared.channels if declared is not None else None
        if channels == 4 and value.shape[-1:] == (3,) and isinstance(value, np.ndarray) and not self.written:
            channels = None  # alpha is added
        layout = ImageLayout.of(value.shape, channels, self.dim, where)
        if declared is None:
            channel_count = value.shape[-1] if len(value.shape) > len(layout.grid) else 1
            if self._image.depth and channel_count == 1 and value.dtype in (np.float32, np.uint16):
                declared = ImageFormat.parse("d32float" if value.dtype == np.float32 else "d16unorm")
            else:
                try:
                    declared = ImageFormat.of_dtype(
                        value.dtype, 4 if channel_count == 3 else channel_count, self._image.sampled.kind
                    )
                except InvalidArgumentError as error:
                    raise InvalidArgumentError(f"{where} takes {self.declared()}: {error.message}") from None
        if self.written:
            check_gives(declared, value.dtype, where)
        if isinstance(value, np.ndarray):
            value = checked_shape(value, layout, declared, where)
        return HostImage(value, declared, layout, sampler)

    def check(self, value: Prepared, kernel: str) -> None:
        if not isinstance(value, DeviceImage):
            return
        wanted, layout = self.dim, value.layout
        base = layout.dim.removesuffix("_array")
        arrayed = wanted.endswith("_array")
        dim = wanted.removesuffix("_array")
        single = layout.layers == (6 if dim == "cube" else 1)
        if not (base == dim or (base == "cube" and dim == "2d")) or not (arrayed or single):
            raise InvalidArgumentError(
                f"{kernel}: {self.label} takes {self.declared()}, shape {expected_shape(wanted)}; got a {layout.dim} "
                f"image of shape {value.shape}. image.view(dim=…, layers=…) sees one image as another"
            )
        if self._declared_format and value.format.spirv_name != self._declared_format:
            expected = ImageFormat.parse(self._declared_format)
            hint = (
                f"image.view(format={expected.name!r}) reads the same bytes so"
                if expected.texel_bytes == value.format.texel_bytes
                else f"make it with format={expected.name!r}"
            )
            raise InvalidArgumentError(
                f"{kernel}: {self.label} takes {self.declared()}, got a {value.format} image; {hint}"
            )

    def bring(self, transfer: Transfer, value: Prepared, into: np.ndarray | None) -> None:
        if isinstance(value, DeviceImage):
            transfer.carry(value, value if self.written else None)
            return
        assert isinstance(value, HostImage)
        kept = transfer.to_host or into is not None or not self.written
        pool = ImagePool.of(transfer.device)
        image = (pool.take if kept else functools.partial(new_image, transfer.device))(value.layout, value.format)
        lease = Lease(pool, image) if kept else image
        image.sampler = value.sampler
        if value.array is not None:
            try:
                image.fill(value.array, self.label)
            except BaseException:
                lease.close()
                raise
        if not self.written:
            transfer.carry(image, None, owner=lease)
        elif not kept:
            transfer.carry(image, image)
        else:
            result = into if into is not None else np.empty(value.shape, value.dtype)

            def finish() -> None:
                result[...] = as_dtype(image.texels(), image.format, result.dtype).reshape(result.shape)

            transfer.carry(image, result, owner=lease, finish=finish)

    def bind(self, placed: object, value: Prepared, device: ArrayDevice, kernel: str) -> Bound:
        assert isinstance(placed, DeviceImage)
        known = placed.resources.get(self)
        if known is not None and not known.is_closed:
            return Bound(known, placed.layout.grid, placed.nbytes)
        _check_device(placed.device, device, "image", "asimage", self, kernel)
        image = self._image
        view = placed.hal_view(self.dim.removesuffix("_array"), arrayed=image.arrayed, single_level=image.storage)
        resource: ImageView | CombinedImageSampler = view
        if self._combined:
            if placed.sampler is not None:
                sampler = placed.sampler.hal
            else:
                linear = format_features(view.device, view.format).image & LINEAR_FILTER
                compare: Compare | None = "less_or_equal" if image.depth else None
                sampler = ImagePool.of(device).sampler("linear" if linear else "nearest", compare)
            resource = view.with_sampler(sampler)
        check_resource(kernel, self.label, view.device, self.binding.descriptor_type, self.binding, resource)
        placed.resources[self] = resource
        return Bound(resource, placed.layout.grid, placed.nbytes)


class SamplerParameter(Parameter):
    """A separate sampler."""

    __slots__ = ()

    device_types: tuple[()] = ()

    def declared(self) -> str:
        return "a sampler"

    def prepare(self, value: KernelArgument, kernel: str) -> Sampler:
        if not isinstance(value, Sampler):
            raise InvalidArgumentError(
                f"{kernel}: {self.label} takes a sampler, made by device.sampler(); got {_named(value)}"
            )
        value.check_open()
        return value

    def check(self, value: Prepared, kernel: str) -> None:
        """Accepts any sampler."""

    def bring(self, transfer: Transfer, value: Prepared, into: np.ndarray | None) -> None:
        assert isinstance(value, Sampler)
        transfer.carry(value, None)

    def bind(self, placed: object, value: Prepared, device: ArrayDevice, kernel: str) -> Bound:
        assert isinstance(placed, Sampler)
        _check_device(placed.device, device, "sampler", "sampler", self, kernel)
        placed.check_open()
        return Bound(placed.hal, (), 0)


class TexelParameter(BufferParameter):
    """A texel buffer, which accepts arrays; the format is the shader's, the ``TexelArray``'s, or the dtype's."""

    __slots__ = ("_declared_format", "_image")

    device_types: tuple[type[DeviceArray], type[TexelArray]] = (DeviceArray, TexelArray)

    def __init__(self, index: int, binding: Binding, limits: DeviceLimits) -> None:
        super().__init__(index, binding, limits)
        assert binding.image is not None
        self._image = binding.image
        self._declared_format = "" if binding.image.format == "unknown" else binding.image.format
        if self._declared_format:
            self.dtype: np.dtype[np.generic] | None = ImageFormat.parse(self._declared_format).stored_dtype

    def declared(self) -> str:
        texels = self._declared_format or f"{self._image.sampled.kind} texels"
        return f"an array as a texel buffer of {texels}"

    def prepare(self, value: KernelArgument, kernel: str) -> Prepared:
        if isinstance(value, TexelArray):
            value.array._check_open()
            return value
        if isinstance(value, (DeviceImage, Sampler)):
            raise InvalidArgumentError(f"{kernel}: {self.label} takes {self.declared()}, got {_named(value)}")
        return super().prepare(value, kernel)

    def check(self, value: Prepared, kernel: str) -> None:
        self._format(value, kernel)  # not added to ``accepted``, as an array is bound by a view

    def _format(self, value: Prepared, kernel: str) -> ImageFormat:
        where = f"{kernel}: {self.label}"
        if isinstance(value, TexelArray):
            return value.format
        if not self._declared_format:
            try:
                return texel_format(value.dtype, value.shape, self._image.sampled.kind)
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"{where} takes {self.declared()}: {error.message}") from None
        declared = ImageFormat.parse(self._declared_format)
        if value.dtype != declared.stored_dtype and value.dtype != np.uint8:
            raise InvalidArgumentError(
                f"{where} takes {self.declared()}, whose channels are {declared.stored_dtype}; got dtype {value.dtype}"
            )
        if value.nbytes % declared.texel_bytes or not value.nbytes:
            raise InvalidArgumentError(
                f"{where} takes {self.declared()}, {declared.texel_bytes} bytes each; got {value.nbytes} bytes"
            )
        return declared

    def bring(self, transfer: Transfer, value: Prepared, into: np.ndarray | None) -> None:
        if isinstance(value, TexelArray):
            transfer.carry(value.array, value if self.written else None)
        else:
            super().bring(transfer, value, into)

    def bind(self, placed: object, value: Prepared, device: ArrayDevice, kernel: str) -> Bound:
        array = placed.array if isinstance(placed, TexelArray) else placed
        assert isinstance(array, DeviceArray)
        _check_device(array.device, device, "array", "asarray", self, kernel)
        texels = self._format(value if isinstance(value, TexelArray) else array, kernel)
        resource = device.vulkan.texel_buffer(cast("Buffer", array.buffer), texels)
        check_resource(kernel, self.label, resource.device, self.binding.descriptor_type, self.binding, resource)
        return Bound(resource, (array.nbytes // texels.texel_bytes,), array.nbytes)


def _check_device(
    owner: ArrayDevice, device: ArrayDevice, noun: str, maker: str, parameter: Parameter, kernel: str
) -> None:
    if owner is not device:
        raise InvalidArgumentError(
            f"{kernel} runs on {device.name}; {parameter.label} got {noun} on another device, "
            f"{owner.name}: make it with device.{maker}()"
        )


def _named(value: object) -> str:
    if isinstance(value, Sampler):
        return "a sampler"
    if isinstance(value, (DeviceArray, TexelArray)):
        return f"an array of shape {value.shape} on the device"
    if isinstance(value, DeviceImage):
        return f"a {value.dim} image of {value.format}"
    return type(value).__name__
