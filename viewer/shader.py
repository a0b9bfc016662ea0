"""A compute shader as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from ..base.files import reading_errors
from ..base.lazy_dataclass import dataclass
from ..formats.image_format import ImageFormat
from ..formats.picture import decode_picture, picture_to_array
from ..hal_vulkan import Buffer, CommandBuffer, DeviceType
from ..hal_vulkan.images.format_features import STORAGE_WRITE_WITHOUT_FORMAT, format_features
from ..runtime import DeviceArray, DeviceImage
from ..runtime.device import Device
from ..runtime.kernels.kernel import Kernel
from ..runtime.kernels.parameters.parameter import Parameter
from ..runtime.kernels.parameters.push import PushValue, pack_push
from ..runtime.kernels.shader_source import load_shader
from ..spirv.reflection.block_dtype import member_names
from ..spirv.reflection.reflection_types import ImageType
from ..spirv.sources.compile import compile_source
from ..spirv.sources.includes import read_source
from ..spirv.sources.language import Language, SourceOptions, language_of
from ..spirv.sources.shadertoy import CHANNELS, PICTURE, SET, UNIFORMS, WIDEST_GROUP, viewed_source
from ..status import InvalidArgumentError
from .picture import Picture, Size
from .uniforms import NAMES, UNIFORM_BYTES, Uniforms

if TYPE_CHECKING:
    from ..hal_vulkan.pipelines.reports import ReportSlot

PREVIOUS: Final = "previous"
"""In place of a channel's file: the picture of the frame before."""

_BUFFERS: Final = (6, 7)  # VkDescriptorType: uniform and storage buffers
_RGBA8: Final = ImageFormat.parse("rgba8unorm")
_BGRA8: Final = ImageFormat.parse("bgra8unorm")
_WORDS: Final = "r32uint"
_RGBA32F: Final = ImageFormat.parse("rgba32float")

_State = dict[object, DeviceImage | DeviceArray]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShaderOptions:
    """The options of compiling a shader, and its inputs.

    Attributes:
        defines: the macros by name.
        include_dirs: the folders for ``#include``, after the shader's own.
        channels: the files of pictures for ``iChannel0`` to ``iChannel3`` by number, or ``PREVIOUS``.
        push: the push constants by name. Without a value, those that have names of Shadertoy's get the frame's.
        shown: the name of the binding that is shown, where a shader writes several.
        language: the source's language, where the file's name does not tell it. ``main`` and uniforms are added to
            GLSL; other sources stay as they are.
    """

    defines: Mapping[str, str | int] = field(default_factory=dict)
    include_dirs: Sequence[Path] = ()
    channels: Mapping[int, str] = field(default_factory=dict)
    push: Mapping[str, PushValue] = field(default_factory=dict)
    shown: str | None = None
    language: Language | None = None


class ShaderPicture(Picture):
    """A compute shader that writes an image, or a buffer of colours.

    Its other bindings are its state: zeros at first, and kept from frame to frame.
    """

    def __init__(self, device: Device, path: Path, options: ShaderOptions | None = None) -> None:
        """Compiles and loads it.

        Args:
            device: the picture's device.
            path: the source's path.
            options: the options to compile it, and its inputs.

        Raises:
            InvalidArgumentError: the shader does not compile, or writes no picture; the location is file and line.
        """
        self.device = device
        options = self._options = options or ShaderOptions()
        # The frame before is read by the coordinates that it was written by, and without rounding.
        self._has_previous = PREVIOUS in options.channels.values()
        language = options.language or language_of(path)
        if language not in (None, Language.GLSL) or path.suffix == ".spv":
            self._has_main, self.counts_upward, self._is_packed = True, False, False
            code = self._compile_as_it_is(path)
        else:
            code = self._compile_viewed(path)
        self.is_upward: bool = self.counts_upward and self._has_previous
        self._kernel = Kernel(device, code, name=path.stem)
        self._check_push(path)
        report = self._kernel.pipeline.report
        self.reports: tuple[ReportSlot, ...] = () if report is None else (report,)
        for parameter in self._kernel.parameters:
            _check(parameter, path)
        self._target = self._find_target(path)
        self._black = device.asimage(np.zeros((1, 1, 4), np.uint8))
        self._uniforms = device.zeros(UNIFORM_BYTES, np.uint8)
        self._files = {i: self._picture(name) for i, name in options.channels.items() if name != PREVIOUS}
        self._state: _State = {}

    def _compile_as_it_is(self, path: Path) -> bytes:
        """Returns the module of a source that nothing is added to."""
        options, device = self._options, self.device
        sources = SourceOptions(
            language=options.language,
            defines=options.defines,
            include_dirs=options.include_dirs,
            debug=device.names_lines,
        )
        return load_shader(path, sources, minor=device.profile.version[1])[0]

    def _compile_viewed(self, path: Path) -> bytes:
        """Returns the module of a GLSL source, with Shadertoy's names and a ``main`` if it has none."""
        options, profile = self._options, self.device.profile
        operations = profile.subgroup.supported_operations if profile.subgroup.compute_stage else ()
        source = viewed_source(
            read_source(path).decode("utf-8", "replace"),
            str(path),
            picture_format="rgba32f" if self._has_previous else "rgba8",
            formatless="shaderStorageImageWriteWithoutFormat" in self.device.vulkan.plan.features,
            upward=self._has_previous,
            quads="quad" in operations,
            on_cpu=profile.device_type is DeviceType.CPU
            and "shuffle" in operations
            and profile.limits.max_compute_work_group_invocations >= WIDEST_GROUP,
        )
        self.counts_upward: bool
        self._has_main, self.counts_upward = source.entry == "main", source.entry == "mainImage"
        self._tile, self._is_packed = source.tile, source.is_packed
        return compile_source(
            source.text,
            Language.GLSL,
            defines=options.defines,
            include_dirs=[path.parent, *options.include_dirs],
            target_env=f"vulkan1.{profile.version[1]}",
            debug=self.device.names_lines,
            parts=source.parts,
        )

    def _check_push(self, path: Path) -> None:
        """Raises for push constants without a value, and for values that the shader lacks."""
        block = self._kernel.entry.push_constants
        members = member_names(block.members) if block is not None else {}
        self._told = {name: member.components for name, member in members.items() if name in NAMES}
        values = self._options.push
        wrong = [f"has no push constant {name}" for name in values.keys() - members.keys()]
        wrong += [f"needs the push constant {name}" for name in members.keys() - values.keys() - NAMES]
        if wrong:
            raise InvalidArgumentError(
                f"the shader {' and '.join(sorted(wrong))}; those with names of Shadertoy's are given, others by "
                "ShaderOptions(push=…), --push NAME=VALUE",
                location=str(path),
            )

    def _find_target(self, path: Path) -> Parameter:
        """Returns the parameter that is the picture."""
        shown = self._options.shown
        written = [
            parameter
            for parameter in self._kernel.parameters
            if parameter.written
            and (_shows(parameter) or self._is_ours(parameter))
            and shown in (None, parameter.binding.name, parameter.binding.block)
        ]
        if not written:
            wanted = "a picture" if shown is None else f"a picture by the name of {shown}"
            raise InvalidArgumentError(
                f"expected a shader that writes {wanted}: a storage image of two dimensions, or a buffer of vec4 or "
                "uint with a pixel each; its bindings are "
                f"{', '.join(p.label for p in self._kernel.parameters) or 'none'}",
                location=str(path),
            )
        # A binding that is only written is the picture; one that is read too is more likely state.
        target = min(written, key=lambda parameter: (parameter.binding.image is None, parameter.binding.readable))
        self._is_packed = self._is_ours(target)
        return target

    def _is_ours(self, parameter: Parameter) -> bool:
        """Whether a binding is the added picture of packed texels."""
        return self._is_packed and (parameter.binding.set, parameter.binding.binding) == (SET, PICTURE)

    def _picture(self, name: str) -> DeviceImage:
        """Returns the picture of a file, as Shadertoy reads it."""
        with reading_errors(Path(name)):
            data = Path(name).read_bytes()
        array = picture_to_array(decode_picture(data, name), _RGBA8, name)
        image = self.device.asimage(np.flipud(array) if self.counts_upward else array, _RGBA8.name, mips=True)
        return image.with_sampler(self.device.sampler("linear", "repeat"))

    # -- sizes and state -----------------------------------------------------------------------------

    def take_over(self, before: Picture) -> None:
        if isinstance(before, ShaderPicture):
            self._state = dict(before._state)

    def resize(self, size: Size, image_format: str = "rgba8unorm") -> None:
        self.size = size
        self._format = self._format_for(ImageFormat.parse(image_format))
        kept, self._state = self._state, {}
        self._channels = [self._channel(number, kept) for number in range(len(CHANNELS))]
        self._channel_sizes = tuple((image.shape[1], image.shape[0]) for image in self._channels)
        values = [self._value(parameter, kept) for parameter in self._kernel.parameters]
        target = values[self._target.index]
        self._colors = target if isinstance(target, DeviceArray) else None
        self.image: DeviceImage = (
            target if isinstance(target, DeviceImage) else self._image("colors", self._format, kept)
        )
        if self._is_packed:
            values[self._target.index] = self.image.view(format=_WORDS)
        self._dispatch = self._kernel.prepare(*values, groups=self._groups(), push=self._push(Uniforms()))
        self.recorded: object | None = None if self._told else object()  # push constants are part of the commands

    def _format_for(self, wanted: ImageFormat) -> ImageFormat:
        """Returns the picture's format: the declared one, or where that is open the wanted one."""
        if self._is_packed:
            return _BGRA8
        image = self._target.binding.image
        if image is None:
            return _RGBA32F if self._target.dtype == np.float32 else _RGBA8
        if image.format != "unknown":
            return ImageFormat.parse(image.format)
        if self._has_previous:
            return _RGBA32F
        has_it = format_features(self.device.vulkan, wanted).image & STORAGE_WRITE_WITHOUT_FORMAT
        return wanted if has_it else _RGBA8

    def _groups(self) -> tuple[int, int]:
        """Returns workgroup counts with one invocation for each pixel."""
        width, height = self.size
        across, down, _ = self._kernel.pipeline.local_size if self._has_main else (*self._tile, 1)
        if self._colors is not None and down == 1:
            return -(-width * height // across), 1
        return -(-width // across), -(-height // down)

    def _channel(self, number: int, kept: _State) -> DeviceImage:
        name = self._options.channels.get(number)
        if name == PREVIOUS:
            return self._image(PREVIOUS, self._format, kept)
        return self._black if name is None else self._files[number]

    def _value(self, parameter: Parameter, kept: _State) -> DeviceImage | DeviceArray:
        binding = parameter.binding
        if (binding.set, binding.binding) == (SET, UNIFORMS):
            return self._uniforms
        if binding.set == SET and binding.binding in CHANNELS:
            return self._channels[CHANNELS.index(binding.binding)]
        key = (binding.set, binding.binding, binding.name)
        if binding.image is not None:
            if parameter is self._target:
                return self._image(key, self._format, kept)
            declared = binding.image.format
            return self._image(key, _RGBA8 if declared == "unknown" else ImageFormat.parse(declared), kept)
        is_endless = binding.element is not None and binding.element.array == "runtime"
        pixels = self.size[0] * self.size[1] * parameter.stride if is_endless else 0
        return self._bytes(key, binding.fixed_size + pixels, kept)

    def _image(self, name: object, image_format: ImageFormat, kept: _State) -> DeviceImage:
        """Returns the image of this name, as large as the picture; black where there was none like it."""
        key = (name, image_format, self.size)
        if key in kept:
            self._state[key] = kept[key]
        elif key not in self._state:  # a frame before may be several channels
            self._state[key] = self.device.empty_image(self.size[::-1], image_format.name)
            self._clear([self._state[key]])
        return cast("DeviceImage", self._state[key])

    def _bytes(self, name: object, size: int, kept: _State) -> DeviceArray:
        """Returns the buffer of this name and size; zeros where there was none."""
        key = (name, size)
        self._state[key] = kept[key] if key in kept else self.device.zeros(size, np.uint8)
        return cast("DeviceArray", self._state[key])

    def restart(self) -> None:
        self._clear(list(self._state.values()))

    def _clear(self, resources: Sequence[DeviceImage | DeviceArray]) -> None:
        commands = self.device.vulkan.create_command_buffer(one_shot=True, name="clear").begin()
        for resource in resources:
            if isinstance(resource, DeviceImage):
                commands.clear_image(resource.hal)
            else:
                commands.fill(resource.buffer, b"\0")
        self.device.submit((commands.end(),))

    # -- frames --------------------------------------------------------------------------------------

    def pack(self, uniforms: Uniforms) -> bytes:
        return uniforms.pack(self.size, self._channel_sizes)

    def record(self, commands: CommandBuffer, uniforms: Uniforms, told: Buffer) -> None:
        # In the commands and not by the host: frames before this one may still be under way.
        commands.copy(told, self._uniforms.buffer, UNIFORM_BYTES)
        commands.execution_barrier()
        commands.dispatch(*self._dispatch[:2], self._dispatch.groups, self._push(uniforms))
        if self._colors is not None:
            commands.execution_barrier()
            commands.copy_buffer_to_image(self._colors.buffer, self.image.hal)
        if self._has_previous:
            previous = next(
                channel for i, channel in enumerate(self._channels) if self._options.channels.get(i) == PREVIOUS
            )
            commands.execution_barrier()
            commands.copy_image(self.image.hal, previous.hal)

    def _push(self, uniforms: Uniforms) -> bytes:
        """Returns the push constants of a frame; vectors may be shorter than Shadertoy's."""
        block = self._kernel.entry.push_constants
        if block is None:
            return b""
        values: dict[str, PushValue] = {}
        for name, value in uniforms.named(self.size).items():
            if name in self._told:
                values[name] = value[: self._told[name]] if isinstance(value, tuple) else value
        return pack_push(block, values | dict(self._options.push), {}, self._kernel.name)

    def close(self) -> None:
        self._kernel.close()


def _check(parameter: Parameter, path: Path) -> None:
    """Raises for a binding whose size does not follow from that of the picture."""
    binding = parameter.binding
    has_size = binding.descriptor_type in _BUFFERS if binding.image is None else _is_plane(binding.image)
    if binding.count != 1 or not has_size:
        raise InvalidArgumentError(
            f"{parameter.label}: a shader's own bindings are buffers and images of two dimensions, which get the "
            f"picture's size; this is {parameter.declared()}",
            location=str(path),
        )


def _is_plane(image: ImageType) -> bool:
    return image.dim == "2d" and not image.arrayed and not image.multisampled


def _shows(parameter: Parameter) -> bool:
    image, element = parameter.binding.image, parameter.binding.element
    if image is not None:
        return image.storage and _is_plane(image) and image.sampled.kind == "float"
    if element is None or element.array != "runtime" or parameter.binding.fixed_size:
        return False
    return (parameter.dtype, element.components) in ((np.dtype(np.float32), 4), (np.dtype(np.uint32), 1))
