"""Devices as users see them: arrays, images and kernels, on top of the HAL of any device.

A device runs its work in the order of the calls. Calls return before the work is done; reading a result waits for it.

Thread rule: a device may be used from any thread.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from ..base.calling_code import name_in_code
from ..base.notebook import html_table
from ..status import InvalidArgumentError, UnimplementedError
from .arrays.array import ArrayLike, DeviceArray, array_of, new_array
from .arrays.array_device import ArrayDevice
from .arrays.recorder import ZeroStep, recorder_of
from .arrays.spec import check_dtype, check_shape

if TYPE_CHECKING:
    from ..hal_vulkan import Device as VulkanDevice
    from ..hal_vulkan import DeviceProfile, SpecializationValue
    from ..hal_vulkan.images.sampler import Address, Border, Compare, Filter, Reduction
    from ..spirv.reflection.block_names import Layouts
    from .images.image import DeviceImage
    from .images.sampler import Sampler
    from .images.texel_array import TexelArray
    from .kernels.kernel import Kernel
    from .kernels.parameters.push import Defaults
    from .recordings.recording import Recording


class Device(ArrayDevice):
    """A device with arrays, images and kernels.

    Calling sequence: ``open_device`` → ``load_kernel``, ``asarray``, ``asimage`` → call kernels → ``close`` (or a
    ``with`` block).

    Attributes:
        hal: the HAL device underneath, for command buffers and semaphores.
        name: the driver's name for it.
        uri: the URI that opens the same device again.
    """

    @property
    def vulkan(self) -> VulkanDevice:
        """The ``hal`` of a Vulkan device, for pipelines, timestamps and memory statistics.

        Raises:
            UnimplementedError: the device is the reference device.
        """
        from ..hal_vulkan import Device as VulkanDevice

        if not isinstance(self.hal, VulkanDevice):
            raise UnimplementedError(
                f"the {self.name} device has no Vulkan: it runs compiled programs, no kernels, and has no profile and "
                "no timestamps; open a Vulkan device for them"
            )
        return self.hal

    @property
    def profile(self) -> DeviceProfile:
        """The properties of a Vulkan device; UnimplementedError for the reference device."""
        return self.vulkan.profile

    @property
    def names_lines(self) -> bool:
        """Whether sources are compiled with line numbers for shaders' reports, at no cost."""
        return self.vulkan.plan.loop_guard or self.vulkan.plan.sanitize

    def _repr_html_(self) -> str:
        """Returns the table for notebooks, without a query of the device."""
        from ..hal_vulkan import Device as VulkanDevice
        from ..hal_vulkan.instance.profile import HeapFlag

        rows = [("URI", self.uri), ("kind", self.hal.kind)]
        if isinstance(self.hal, VulkanDevice):
            profile = self.hal.profile
            local = sum(heap.size for heap in profile.memory_heaps if heap.flags & HeapFlag.DEVICE_LOCAL)
            rows += [
                ("Vulkan", ".".join(map(str, profile.api_version))),
                ("driver", f"{profile.driver_name} {profile.driver_info}".strip()),
                ("device memory", f"{local / 2**30:.1f} GiB"),
            ]
        state = "closed" if self.is_closed else "lost" if self.hal.lost else "open"
        return html_table(("", ""), [*rows, ("state", state)], title=self.name, texts=("",))

    def empty(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """Creates an array of undefined contents.

        Raises:
            InvalidArgumentError: a length is negative, or the dtype is of Python objects.
            ResourceExhaustedError: there is no memory; the message has sizes and heaps.
        """
        return new_array(self, check_shape(shape), check_dtype(dtype))

    def zeros(self, shape: int | Sequence[int], dtype: npt.DTypeLike = np.float32) -> DeviceArray:
        """Creates an array of zeros, filled on the device."""
        array = self.empty(shape, dtype)
        recorder = recorder_of(self)
        if recorder is not None and array.nbytes:
            recorder.add(ZeroStep(array))
        elif array.nbytes:
            commands = self.hal.create_command_buffer(one_shot=True, name="zeros").begin()
            commands.fill(array.buffer, b"\0")
            array.mark(self.submit((commands.end(),)), written=True)
        return array

    def asarray(self, a: ArrayLike, dtype: npt.DTypeLike | None = None) -> DeviceArray:
        """Returns an array on this device with the contents of ``a``.

        Args:
            a: an array, or a value that NumPy converts to an array. A DeviceArray of this device is returned unchanged
                (unless the dtype differs); an array of another device is copied through the host.
            dtype: the dtype, to which the host converts first.
        """
        if isinstance(a, DeviceArray):
            if a.device is self and (dtype is None or a.dtype == check_dtype(dtype)):
                return a
            a = a.numpy()
        return array_of(self, a, dtype)

    def record(self, name: str = "recording") -> Recording:
        """Returns a recording: calls in its ``with`` block are collected, and run later as one submission.

        ``name`` is the name in messages, profiles and debug labels; see ``Recording``.
        """
        from .recordings.recording import Recording

        return Recording(self, name)

    # -- images --------------------------------------------------------------------------------------

    def asimage(
        self,
        a: npt.ArrayLike | DeviceArray | DeviceImage,
        format: str | None = None,
        *,
        dim: str | None = None,
        mips: bool | int = False,
    ) -> DeviceImage:
        """Returns an image on this device with the contents of ``a``.

        Args:
            a: an array of shape (height, width) or (height, width, channels), with layers, faces or depth before those;
                red, green and blue get an opaque alpha if the format has four channels.
            format: a name such as ``"rgba8unorm"``, or only the way in which channels are read (``"uint"``,
                ``"srgb"``). ``None`` follows from dtype and channels: uint8 and uint16 are ``unorm``, int8 and int16
                ``snorm``, 32-bit integers ``uint`` and ``sint``. Floats are clamped and rounded to the format's values.
            dim: the kind of dimensions: ``"1d"``, ``"2d"``, ``"3d"``, ``"cube"`` (six faces), ``"1d_array"``,
                ``"2d_array"`` or ``"cube_array"``; needed if the shape is ambiguous.
            mips: whether to make all smaller levels by halving, or the number of levels in all.

        Raises:
            InvalidArgumentError: the shape does not fit this dim, or the format cannot take the dtype.
            UnimplementedError: the device has no images of this format; the message lists those it has.
        """
        from .images.making import image_of

        return image_of(self, a, format, dim=dim, mips=mips)

    def empty_image(
        self,
        shape: int | Sequence[int],
        format: str,
        *,
        dim: str | None = None,
        mips: bool | int = False,
        samples: int = 1,
    ) -> DeviceImage:
        """Creates an image of undefined contents; see ``asimage``.

        Args:
            shape: the shape, (height, width), or the array's shape with channels.
            format: a name such as ``"rgba8unorm"``.
            dim: the kind of dimensions, as for ``asimage``.
            mips: whether it has all smaller levels, or the number of levels in all.
            samples: the number of samples per texel; only kernels write images with several samples.
        """
        from .images.making import empty_image

        return empty_image(self, shape, format, dim=dim, mips=mips, samples=samples)

    def sampler(
        self,
        filter: Filter = "linear",
        address: Address | Sequence[Address] = "clamp_to_edge",
        *,
        min_filter: Filter | None = None,
        mip_filter: Filter | None = None,
        lod_bias: float = 0.0,
        min_lod: float = 0.0,
        max_lod: float | None = None,
        anisotropy: float = 1.0,
        compare: Compare | None = None,
        border: Border = "transparent_black",
        reduction: Reduction = "average",
        unnormalized: bool = False,
    ) -> Sampler:
        """Creates a sampler, which filters between an image's texels and addresses beyond its edges.

        Args:
            filter: the nearest texel, or interpolation between the surrounding texels.
            address: the addressing past the edges: ``"clamp_to_edge"``, ``"repeat"``, ``"mirrored_repeat"``,
                ``"clamp_to_border"`` or ``"mirror_clamp_to_edge"``; or one for each of x, y and z.
            min_filter: the filter where texels are smaller than the distance of reads, if different.
            mip_filter: the filter between levels; ``None`` means the same as ``filter``.
            lod_bias, min_lod, max_lod: the number added to the level of detail, and the range of the level.
            anisotropy: the most reads along the longer side of a texel's footprint.
            compare: the comparison of reads with a reference: ``"less"``, ``"less_or_equal"``, ``"greater"``, …
            border: the colour past the edges with ``"clamp_to_border"``: ``"transparent_black"``, ``"opaque_black"`` or
                ``"opaque_white"``.
            reduction: the combination of the texels under a filter: ``"average"``, ``"min"`` or ``"max"``.
            unnormalized: whether coordinates are in texels.

        Raises:
            InvalidArgumentError: a value is unknown, or values exclude each other.
            UnimplementedError: the device has no such sampler.
        """
        from .images.sampler import Sampler

        return Sampler(
            self,
            self.vulkan.create_sampler(
                filter=filter,
                address=cast("Address | tuple[Address, ...]", address if isinstance(address, str) else tuple(address)),
                min_filter=min_filter,
                mip_filter=mip_filter or filter if not unnormalized else "nearest",
                lod_bias=lod_bias,
                min_lod=min_lod,
                max_lod=max_lod,
                anisotropy=anisotropy,
                compare=compare,
                border=border,
                reduction=reduction,
                unnormalized=unnormalized,
            ),
        )

    def texel_buffer(self, a: ArrayLike, format: str | None = None) -> TexelArray:
        """Returns an array that kernels read and write as texels: GLSL's ``samplerBuffer`` and ``imageBuffer``.

        Args:
            a: an array; an array of this device is used in place.
            format: a name. The array has the format's stored dtype, or its bits as bytes (``uint8``) or as texel words.
                ``None`` infers it from the dtype, and from a last axis of 2 to 4 channels.
        """
        from ..formats.image_format import ImageFormat
        from .images.texel_array import TexelArray, texel_format

        named = None if format is None else ImageFormat.parse(format)
        array = self.asarray(a)
        return TexelArray(array, named or texel_format(array.dtype, array.shape, None))

    # -- kernels -------------------------------------------------------------------------------------

    def load_kernel(
        self,
        source: str | Path | bytes,
        *,
        entry_point: str | None = None,
        specialization: Mapping[int | str, SpecializationValue] | None = None,
        defines: Mapping[str, str | int] | None = None,
        include_dirs: Sequence[str | Path] = (),
        language: str | None = None,
        debug: bool = False,
        subgroup_size: int | None = None,
        push_defaults: Defaults = None,
        layouts: Layouts | None = None,
        sanitize: bool | None = None,
    ) -> Kernel:
        """Loads a kernel from a source or from SPIR-V.

        Messages and profiles call it by its entry point, or if that is ``main``, by the file. A text's kernel has the
        name of the variable that it is assigned to.

        Args:
            source: the path of a file of SPIR-V (``.spv``), GLSL (``.comp``, ``.glsl``), HLSL (``.hlsl``), Slang
                (``.slang``), WGSL (``.wgsl``) or SPIR-V assembly (``.spvasm``); the text of a source, which has several
                lines; or the bytes of a SPIR-V module.
            entry_point: the entry point's name; ``None`` for a module with a single entry point.
            specialization: the values of specialization constants by id or by name. Ids that the module lacks, and
                names of its source that the compiler dropped, are ignored with a note in the log. In WGSL they are
                overrides, and others are an error.
            defines: the preprocessor macros, for GLSL, HLSL and Slang.
            include_dirs: the folders that ``#include`` searches after the including file's own.
            language: the source's language: ``glsl``, ``hlsl``, ``slang``, ``wgsl`` or ``spvasm``; ``None`` infers it
                from the file's name, and takes texts as GLSL.
            debug: whether to keep names of files and line numbers in the module.
            subgroup_size: the subgroup size to ask the driver for.
            push_defaults: the values of push constants that calls may leave out, by name; or 0, for zeros in all of
                them except pointers.
            layouts: the names of block members that a stripped module lacks: GLSL's declarations of the blocks as text,
                or a mapping of bindings, (set, binding) or ``"push"`` to their members as text (``"uint n; float
                scale[4];"``), to lists of names, or to mappings of names to types. Types are checked.
            sanitize: whether to report invalid accesses, as for ``open_device``; ``None`` means the device's setting.

        Raises:
            NotFoundError: there is no such file, entry point or constant; the message lists those that exist.
            InvalidArgumentError: the source does not compile, or the SPIR-V is damaged or breaks a rule.
            UnavailableError: no compiler of the language is installed; the message says what to install.
            UnimplementedError: the device lacks a capability, which the message names; the reference device runs no
                kernels.
        """
        if subgroup_size is not None and (type(subgroup_size) is not int or subgroup_size < 1):
            raise InvalidArgumentError(f"subgroup_size is a positive int, got {subgroup_size!r}")
        from ..spirv.sources.language import SourceOptions, parse_language
        from .kernels.kernel import Kernel
        from .kernels.shader_source import has_overrides, load_shader, source_text

        minor = self.profile.version[1]
        written_in = None if language is None else parse_language(language)
        overrides: Mapping[int | str, SpecializationValue] = {}
        if specialization and has_overrides(source, written_in):
            overrides, specialization = specialization, None
        options = SourceOptions(
            language=written_in,
            entry_point=entry_point,
            defines=defines or {},
            include_dirs=include_dirs,
            debug=debug or bool(sanitize) or self.names_lines,
            overrides=overrides,
        )
        code, name = load_shader(source, options, minor=minor)
        return Kernel(
            self,
            code,
            name=name or name_in_code(sys._getframe(1)),
            entry_point=entry_point,
            specialization=specialization,
            subgroup_size=subgroup_size,
            push_defaults=push_defaults,
            layouts=layouts,
            source=lambda: source_text(source, options),
            sanitize=sanitize,
        )
