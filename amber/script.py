"""A script as data: its declarations, and its commands in order."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from typing import Final, Literal, TypeAlias

from ..base.lazy_dataclass import dataclass
from .source import Position
from .types import DataType, Layout, Standard, layout_of
from .values import Value

BUFFER_KINDS: Final = ("uniform", "storage", "uniform_dynamic", "storage_dynamic")
TEXEL_KINDS: Final = ("uniform_texel_buffer", "storage_texel_buffer")
IMAGE_KINDS: Final = ("storage_image", "sampled_image", "combined_image_sampler")
WHOLE: Final = (1 << 64) - 1
"""The ``DESCRIPTOR_RANGE`` that reaches the buffer's end."""

RequirementKind = Literal["feature", "property", "device extension", "instance extension"]
REQUIREMENT_WORDS: Final[Mapping[RequirementKind, str]] = {
    "feature": "DEVICE_FEATURE",
    "property": "DEVICE_PROPERTY",
    "device extension": "DEVICE_EXTENSION",
    "instance extension": "INSTANCE_EXTENSION",
}
SpecializationType = Literal["uint32", "int32", "float"]
SizeChoice: TypeAlias = int | Literal["MIN", "MAX"] | None
Comparator = Literal["EQ", "NE", "LT", "LE", "GT", "GE"]
BufferComparator = Literal["EQ_BUFFER", "RMSE_BUFFER", "EQ_HISTOGRAM_EMD_BUFFER"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """A requirement that the device must meet."""

    kind: RequirementKind
    name: str
    position: Position


@dataclass(frozen=True, slots=True)
class Shader:
    """A shader's source.

    Attributes:
        kind: ``"compute"`` or ``"multi"``.
        format: ``GLSL``, ``HLSL``, ``SPIRV-ASM``, ``SPIRV-HEX``, ``SPIRV-BIN`` or ``OPENCL-C``.
        source: the source text, or the bytes of a module.
        target_env: the target environment that the script names, or ``""``.
        first_line: the script's line where the text begins, or 0 if it is in a file.
        file: the path of that file, or the name of a virtual one.
    """

    name: str
    kind: str
    format: str
    source: str | bytes
    target_env: str
    position: Position
    first_line: int = 0
    file: str = ""


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of a buffer used as an image: 1 to 3 dimensions, texels along each, mip levels, samples a texel."""

    dimensions: int
    width: int
    height: int = 1
    depth: int = 1
    mip_levels: int = 1
    samples: int = 1

    @property
    def texels(self) -> int:
        """Texels of the first mip level."""
        return self.width * self.height * self.depth


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer or image with its first contents; ``standard`` lays out its elements."""

    name: str
    type: DataType
    standard: Standard
    data: bytes
    position: Position
    extent: Extent | None = None

    @property
    def layout(self) -> Layout:
        """The layout of an element."""
        return layout_of(self.type, self.standard)


@dataclass(frozen=True, slots=True)
class Sampler:
    """A sampler; names are the script's."""

    name: str
    position: Position
    mag_filter: str = "nearest"
    min_filter: str = "nearest"
    address_mode_u: str = "repeat"
    address_mode_v: str = "repeat"
    address_mode_w: str = "repeat"
    border_color: str = "float_transparent_black"
    min_lod: float = 0.0
    max_lod: float = 1.0
    normalized: bool = True
    compare: bool = False
    compare_op: str = "never"


@dataclass(frozen=True, slots=True)
class Binding:
    """The resources bound at a set and binding.

    Attributes:
        kind: one of ``BUFFER_KINDS``, ``TEXEL_KINDS``, ``IMAGE_KINDS`` or ``"sampler"``.
        resources: the buffers by name, or samplers; several for an array of descriptors.
        samplers: the sampler of each image of a ``combined_image_sampler``.
        base_mip_level: the first level that is seen.
        offsets: the dynamic offset of each buffer, in bytes.
        descriptor_offsets, ranges: the offset and the size of each buffer's range, in bytes; the size ``WHOLE`` reaches
            to the buffer's end.
    """

    kind: str
    resources: tuple[str, ...]
    set: int
    binding: int
    position: Position
    samplers: tuple[str, ...] = ()
    base_mip_level: int = 0
    offsets: tuple[int, ...] = ()
    descriptor_offsets: tuple[int, ...] = ()
    ranges: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Specialization:
    """A specialization constant's value: its 32 bits, and the type that they were written in."""

    type: SpecializationType
    value: Value
    bits: int


@dataclass(frozen=True, slots=True)
class Subgroups:
    """Subgroup-size control: ``full`` launches all invocations, ``varying`` lets the size vary, ``size`` fixes it."""

    full: bool = False
    varying: bool = False
    size: SizeChoice = None


@dataclass(slots=True)
class Pipeline:
    """A compute pipeline; ``push_constants`` names a buffer."""

    name: str
    position: Position
    shader: str = ""
    entry_point: str = ""
    specialization: dict[int, Specialization] = field(default_factory=dict)
    optimizations: tuple[str, ...] = ()
    subgroups: Subgroups = Subgroups()
    push_constants: str = ""
    bindings: dict[tuple[int, int], Binding] = field(default_factory=dict)

    def derived(self, name: str, position: Position) -> Pipeline:
        """Returns a copy under another name."""
        return dataclasses.replace(
            self, name=name, position=position, specialization=dict(self.specialization), bindings=dict(self.bindings)
        )


@dataclass(frozen=True, slots=True)
class Run:
    """Dispatches ``groups`` workgroups of a pipeline; ``entry_point`` if it is not the pipeline's."""

    pipeline: str
    groups: tuple[int, int, int]
    timed: bool
    position: Position
    entry_point: str = ""


@dataclass(frozen=True, slots=True)
class Write:
    """Writes bytes into a buffer, between runs."""

    buffer: str
    offset: int
    data: bytes
    position: Position


@dataclass(frozen=True, slots=True)
class Copy:
    """Copies all of a buffer to another."""

    source: str
    target: str
    position: Position


@dataclass(frozen=True, slots=True)
class Tolerance:
    """The largest deviation of a value, absolute or in percent of the expected value."""

    value: float
    percent: bool


@dataclass(frozen=True, slots=True)
class ExpectValues:
    """Compares elements from byte ``offset`` on, read by ``layout``, with values."""

    buffer: str
    offset: int
    comparator: Comparator
    values: tuple[Value, ...]
    layout: Layout
    position: Position
    tolerances: tuple[Tolerance, ...] = ()


@dataclass(frozen=True, slots=True)
class ExpectTexels:
    """Compares the texels of a rectangle with a colour, whose channels are from 0 to 255; alpha may be left out."""

    buffer: str
    x: int
    y: int
    width: int
    height: int
    color: tuple[int, ...]
    position: Position
    tolerances: tuple[Tolerance, ...] = ()


@dataclass(frozen=True, slots=True)
class ExpectBuffer:
    """Compares two buffers: byte by byte, by root mean square error, or by the distance of their histograms."""

    buffer: str
    other: str
    comparator: BufferComparator
    tolerance: float
    position: Position


@dataclass(frozen=True, slots=True)
class Repeat:
    """Runs commands several times."""

    count: int
    commands: tuple[Command, ...]
    position: Position


Expectation: TypeAlias = ExpectValues | ExpectTexels | ExpectBuffer
Command: TypeAlias = Run | Write | Copy | ExpectValues | ExpectTexels | ExpectBuffer | Repeat


@dataclass(frozen=True, slots=True)
class Script:
    """A script, read and checked: every name that it uses is declared.

    Attributes:
        path: the path of the script, for messages.
        requirements: the features and extensions that the device needs, in order.
        target_env: the target environment of shaders that name none.
        timeout: the time limit of its work in seconds, if it has one.
    """

    path: str
    requirements: tuple[Requirement, ...]
    shaders: Mapping[str, Shader]
    buffers: Mapping[str, Buffer]
    samplers: Mapping[str, Sampler]
    pipelines: Mapping[str, Pipeline]
    commands: tuple[Command, ...]
    virtual_files: Mapping[str, str] = field(default_factory=dict)
    target_env: str = "spv1.0"
    timeout: float | None = None

    @property
    def expectations(self) -> int:
        """The number of comparisons in a run."""
        return _count(self.commands)


def _count(commands: tuple[Command, ...]) -> int:
    return sum(
        command.count * _count(command.commands) if isinstance(command, Repeat) else isinstance(command, Expectation)
        for command in commands
    )
