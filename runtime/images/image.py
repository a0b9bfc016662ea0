"""Images on a device: textures, which kernels read through samplers, and storage images, which they read and write.

A ``DeviceImage`` is like an array: work that writes it may still be in flight, reading it waits, and its memory is
freed when it is garbage-collected or closed. A view of some of its levels or layers, or with another format or dim, is
also a ``DeviceImage``, with the same texels.

Thread rule: an image may be used from any thread; the caller orders concurrent writes to one image.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np
import numpy.typing as npt

from ...base.closeable import Closeable
from ...formats.image_format import ImageFormat
from ...formats.image_texels import check_plain, to_texels
from ...hal.buffer import Buffer
from ...status import ClosedError, InvalidArgumentError, UnimplementedError, shown
from ...waits.awaitable import await_source
from ..arrays.array_device import READBACK, UPLOAD, ArrayDevice, check_timeout
from ..arrays.recorder import open_recorders, recorder_of, refuse_recording
from ..arrays.spec import check_dtype, check_out, raw_bytes
from ..arrays.uses import Uses
from .layout import AXES, ImageLayout, as_dtype, between, checked_shape
from .sampler import Sampler

if TYPE_CHECKING:
    from ...hal_vulkan import CombinedImageSampler, CommandBuffer, ImageView
    from ...hal_vulkan import Image as HalImage
    from ...hal_vulkan.images.image import Image
    from ...hal_vulkan.images.image_view import Dim


class DeviceImage(Closeable):
    """An image, or a view of one. Made by ``Device.asimage``, ``Device.empty_image`` and kernels.

    Attributes:
        device: the image's device.
        hal: the HAL image behind it.
        format: the format of the texels.
        layout: the kind of dimensions, and the axes of the first level.
        shape: the shape of the array that ``numpy()`` returns: layers, depth, height, width and channels, if the image
            has them.
        dtype: the dtype of that array.
        nbytes: the number of bytes of the first level's texels.
        levels: the number of levels.
        sampler: the sampler through which kernels read the image; ``None`` means the default.
        token: an object that no other image has, for keys that keep no image alive.
        uses: the work that uses its texels; shared with its views. For the runtime.
    """

    __slots__ = (
        "_base",
        "device",
        "dtype",
        "first_layer",
        "first_level",
        "format",
        "hal",
        "layout",
        "levels",
        "nbytes",
        "resources",
        "sampler",
        "shape",
        "token",
        "uses",
    )

    # NumPy's binary operators raise TypeError for mixed expressions instead of copying the image silently.
    __array_ufunc__ = None

    def __init__(
        self,
        device: ArrayDevice,
        hal: HalImage,
        image_format: ImageFormat,
        layout: ImageLayout,
        *,
        levels: int = 1,
        first_level: int = 0,
        first_layer: int = 0,
        base: DeviceImage | None = None,
        sampler: Sampler | None = None,
    ) -> None:
        self.device: ArrayDevice = device
        self.hal: Image = hal
        self.format: ImageFormat = image_format
        self.layout: ImageLayout = layout
        self.levels: int = levels
        self.first_level: int = first_level
        self.first_layer: int = first_layer
        self.sampler: Sampler | None = sampler
        self.resources: dict[object, ImageView | CombinedImageSampler] = {}  # by the binding parameter
        self.shape: tuple[int, ...] = layout.shape(image_format)
        self.dtype: np.dtype[np.generic] = image_format.dtype
        self.nbytes: int = math.prod(layout.stored_shape(image_format)) * image_format.stored_dtype.itemsize
        self._base = base
        self.token: object = object()
        self.uses: Uses = Uses(device.mark_lock) if base is None else base.uses

    # -- shape ---------------------------------------------------------------------------------------

    @property
    def dim(self) -> str:
        """The kind of dimensions: ``"1d"``, ``"2d"``, ``"3d"``, ``"cube"``, ``"1d_array"``, ``"2d_array"`` or
        ``"cube_array"``.
        """
        return self.layout.dim

    @property
    def ndim(self) -> int:
        """Number of axes of the array."""
        return len(self.shape)

    # -- views ---------------------------------------------------------------------------------------

    def view(
        self,
        *,
        dim: str | None = None,
        format: str | None = None,
        levels: int | slice | None = None,
        layers: int | slice | None = None,
    ) -> DeviceImage:
        """Returns a view of some of the texels, or of the same texels in another dim or format.

        Args:
            dim: the other kind of dimensions: ``"2d_array"`` of a cube, ``"cube"`` of six layers, ``"2d"`` of one.
            format: another format with texels of the same size, ``"r32uint"`` for ``"rgba8unorm"``.
            levels: a level, or a slice of them.
            layers: a layer, which gives an image without layers, or a slice of them.

        Raises:
            InvalidArgumentError: the image has no such dim, format, level or layer.
        """
        chosen = self.format if format is None else ImageFormat.parse(format)
        if chosen.texel_bytes != self.format.texel_bytes or chosen.is_depth != self.format.is_depth:
            raise InvalidArgumentError(
                f"view: {self.format} has {self.format.texel_bytes} bytes a texel, {chosen} {chosen.texel_bytes}; a "
                "view keeps the texels' bytes"
            )
        first_level, level_count, _ = _part(levels, self.levels, "level")
        layout = self.layout.level(first_level)
        first_layer, layer_count, is_single = _part(layers, layout.layers, "layer")
        if layers is not None and not layout.has_layers:
            raise InvalidArgumentError(f"view: a {self.dim} image has no layers")
        sizes = layout.grid[1:] if layout.has_layers else layout.grid
        whole = layer_count == layout.layers and not is_single
        if dim is None:
            base = "1d" if layout.dim == "1d_array" else "2d"
            dim = layout.dim if whole else base if is_single else f"{base}_array"
        elif dim not in AXES:
            raise InvalidArgumentError(f"view: dim is one of {', '.join(AXES)}; got {shown(dim)}")
        layered = dim.endswith("array") or dim == "cube"
        if AXES[dim] - layered != len(sizes) or (dim == "3d") != (layout.dim == "3d"):
            raise InvalidArgumentError(f"view: a {self.dim} image cannot be seen as {dim}")
        if not layered and layer_count != 1:
            raise InvalidArgumentError(f"view: a {dim} view has one layer, got {layer_count}; choose one with layers=")
        grid = (layer_count, *sizes) if layered else sizes
        return DeviceImage(
            self.device,
            self.hal,
            chosen,
            ImageLayout.of(grid, 1, dim, "view"),
            levels=level_count,
            first_level=self.first_level + first_level,
            first_layer=self.first_layer + first_layer,
            base=self if self._base is None else self._base,
            sampler=self.sampler,
        )

    def level(self, level: int) -> DeviceImage:
        """Returns a view of one level, 0 for the largest."""
        return self.view(levels=level)

    def layer(self, layer: int) -> DeviceImage:
        """Returns a view of one layer, or of one face of a cube, as an image without layers."""
        return self.view(layers=layer)

    def with_sampler(self, sampler: Sampler) -> DeviceImage:
        """Returns a view that kernels read through this sampler, if they declare image and sampler as one binding."""
        if not isinstance(sampler, Sampler):
            raise InvalidArgumentError(f"with_sampler takes what Device.sampler made, got {type(sampler).__name__}")
        if sampler.device is not self.device:
            raise InvalidArgumentError(
                f"with_sampler: the sampler is on {sampler.device.name}, the image on {self.device.name}"
            )
        seen = self.view()
        seen.sampler = sampler
        return seen

    def hal_view(self, dim: str, *, arrayed: bool, single_level: bool) -> ImageView:
        """Returns the HAL view for a binding of this dim. For the runtime."""
        return self.hal.view(
            dim=cast("Dim", dim),
            arrayed=arrayed,
            format=self.format,
            base_level=self.first_level,
            levels=1 if single_level else self.levels,
            base_layer=self.first_layer,
            layers=self.layout.layers,
        )

    # -- order ---------------------------------------------------------------------------------------

    @property
    def ready(self) -> int:
        """The payload at which the last write is done. For the runtime."""
        return self.uses.ready

    def mark(self, payload: int, *, written: bool) -> None:
        """Notes a use by submitted work. For the runtime."""
        self.uses.note(payload, written=written)

    def wait(self, timeout: float | None = None) -> DeviceImage:
        """Blocks until work that writes it is done; returns itself.

        Args:
            timeout: the longest wait in seconds; ``None`` waits forever.

        Raises:
            DeadlineExceededError: the time passed first; a later wait may succeed.
        """
        check_timeout(timeout)
        if open_recorders:
            self._check_read()
        if self.ready:
            self.device.finish(self.ready, timeout)
        return self

    def __await__(self) -> Generator[Any, Any, DeviceImage]:
        """Suspends a coroutine until work that writes it is done; returns itself. Errors are those of ``wait``."""
        if open_recorders:
            self._check_read()
        if self.ready:
            yield from await_source(self.device.stream.at(self.ready))
        return self.wait()

    def _check_read(self) -> None:
        recorder = recorder_of(self.device)
        if recorder is not None:
            recorder.check_read(self.uses, f"this image of shape {self.shape}")

    # -- the host ------------------------------------------------------------------------------------

    def numpy(self, out: np.ndarray | None = None, *, dtype: npt.DTypeLike | None = None) -> np.ndarray:
        """Returns a copy of the first level as a NumPy array, once work that writes it is done.

        Args:
            out: a C-contiguous array of the image's shape to copy into, which is returned.
            dtype: the image's own by default: stored channels (uint8 for ``rgba8unorm``), values of packed formats. A
                float dtype gives the values that kernels read, sRGB as linear light.
        """
        check_plain(self.format, "numpy")
        if out is None:
            return as_dtype(self.texels(), self.format, self.dtype if dtype is None else check_dtype(dtype))
        if dtype is not None and check_dtype(dtype) != getattr(out, "dtype", None):
            raise InvalidArgumentError(f"numpy: out has dtype {getattr(out, 'dtype', None)}, not {dtype}")
        check_out(out, self.shape, getattr(out, "dtype", self.dtype), "out")
        out[...] = as_dtype(self.texels(), self.format, out.dtype)
        return out

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an image on a device cannot become a NumPy array without a copy")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def texels(self) -> np.ndarray:
        """Returns the first level's texels as in memory: words for packed formats, blue before red for ``bgra8unorm``.

        The shape is (…, channels), or (…) for one channel and for packed formats. Compressed formats have blocks, and
        the shape (…, rows, columns, bytes per block).
        """
        self._check_open()
        if not self.format.is_compressed:
            check_plain(self.format, "texels")
        if self.hal.samples > 1:
            raise UnimplementedError("an image of several samples is not copied; read its samples in a kernel")
        out = np.empty(self.layout.stored_shape(self.format), self.format.stored_dtype)
        self.wait()
        with self.device.hal.create_buffer(out.nbytes, memory_type=READBACK) as staged:
            self.device.reach(self.read_to(staged))
            staged.read_into(raw_bytes(out))
        return out

    def copy_from(self, source: npt.ArrayLike | DeviceImage) -> DeviceImage:
        """Overwrites the first level with an array of its shape, converted as by ``Device.asimage``; returns itself.

        Compressed formats take blocks, in the form of ``texels``.

        Raises:
            InvalidArgumentError: the array has another shape, or a dtype that the format cannot take.
        """
        if isinstance(source, DeviceImage):
            same = source.format == self.format
            source = source.texels() if same else source.numpy(dtype=between(source.format, self.format))
        return self.fill(np.asarray(source), "copy_from")

    def fill(self, array: np.ndarray, where: str) -> DeviceImage:
        """Overwrites the first level with an array; ``where`` is for messages. For the runtime."""
        self._check_open()
        if self.hal.samples > 1:
            raise UnimplementedError(f"{where}: an image of several samples is not copied; write them in a kernel")
        blocks = self.format.is_compressed and array.shape == self.layout.stored_shape(self.format)
        if blocks and array.dtype == np.uint8:
            texels = np.ascontiguousarray(array)
        else:
            texels = to_texels(checked_shape(array, self.layout, self.format, where), self.format, where)
        with self.device.hal.create_buffer(texels.nbytes, memory_type=UPLOAD) as staged:
            staged.write(raw_bytes(texels))
            payload = self._copy(lambda commands: self._write(commands, staged), "upload")
        self.mark(payload, written=True)
        return self

    def read_to(self, target: Buffer) -> int:
        """Copies the first level's texels to a buffer, after the work in flight; returns the payload. For tools."""
        self._check_open()
        return self._copy(lambda commands: self._read(commands, target), "download")

    def _read(self, commands: CommandBuffer, target: Buffer) -> None:
        level, layer, count = self.first_level, self.first_layer, self.layout.layers
        commands.copy_image_to_buffer(self.hal, target, level=level, base_layer=layer, layers=count)

    def _write(self, commands: CommandBuffer, source: Buffer) -> None:
        level, layer, count = self.first_level, self.first_layer, self.layout.layers
        commands.copy_buffer_to_image(source, self.hal, level=level, base_layer=layer, layers=count)

    def generate_mips(self) -> DeviceImage:
        """Fills each level except the first from the previous one at half the size; returns itself.

        Raises:
            InvalidArgumentError: the image is a view.
            UnimplementedError: the device cannot average texels of this format.
        """
        self._check_open()
        if self.levels > 1:
            if self._base is not None:
                raise InvalidArgumentError("generate_mips: call it on the image itself, of which this is a view")
            self.mark(self._copy(lambda commands: commands.generate_mips(self.hal), "mips"), written=True)
        return self

    def _copy(self, record: Callable[[CommandBuffer], None], name: str) -> int:
        refuse_recording(self.device, f"a copy of an image ({name})", "fill and read images outside of the recording")
        commands = self.device.vulkan.create_command_buffer(one_shot=True, name=name)
        try:
            record(commands.begin())
            payload = self.device.submit((commands.end(),))
        except BaseException:
            commands.close()
            raise
        self.mark(payload, written=False)
        return payload

    def __reduce__(self) -> NoReturn:
        raise TypeError("an image on a device is not pickled: pickle x.numpy(), and give that to device.asimage()")

    # -- end -----------------------------------------------------------------------------------------

    @property
    def is_closed(self) -> bool:
        """Whether the image, or the image of which it is a view, was closed."""
        return self.hal.is_closed

    def _check_open(self) -> None:
        if self.hal.is_closed:
            raise ClosedError(f"this image of shape {self.shape} was closed")

    def close(self) -> None:
        """Frees the memory, once work in flight is done; idempotent. Views of it are closed with it."""
        self.hal.close()

    def __del__(self) -> None:
        # For convenience only. The garbage collector may run under any lock, so the device's next call closes it.
        if getattr(self, "_base", self) is None and not self.hal.is_closed:
            self.device.hal.dropped.append(self.hal)

    def __repr__(self) -> str:
        levels = f", levels={self.levels}" if self.levels > 1 else ""
        state = ", closed" if self.is_closed else ""
        return f"DeviceImage(shape={self.shape}, format={self.format}, dim={self.dim}{levels}{state})"


def new_image(
    device: ArrayDevice, layout: ImageLayout, image_format: ImageFormat, *, levels: int = 1, samples: int = 1
) -> DeviceImage:
    """Creates an image of undefined contents; ``levels`` 0 means all."""
    hal = device.vulkan.create_image(
        image_format,
        layout.extent,
        dim=cast("Dim", layout.dim.removesuffix("_array")),
        layers=layout.layers,
        levels=levels,
        samples=samples,
        mutable_format=not image_format.is_depth,
    )
    return DeviceImage(device, hal, image_format, layout, levels=hal.levels)


def _part(part: int | slice | None, count: int, noun: str) -> tuple[int, int, bool]:
    """Returns the first level or layer in ``part``, their count, and whether ``part`` is an int."""
    if part is None:
        return 0, count, False
    if isinstance(part, slice):
        first, stop, step = part.indices(count)
        if step != 1 or stop <= first:
            raise InvalidArgumentError(f"view: {noun}s {part} of {count} are none, or not next to each other")
        return first, stop - first, False
    if isinstance(part, bool) or not isinstance(part, (int, np.integer)):
        raise InvalidArgumentError(f"view: a {noun} is an int or a slice, got {shown(part)}")
    if not -count <= part < count:
        raise InvalidArgumentError(f"view: the image has {count} {noun}(s), got {part}")
    return int(part) % count, 1, True
