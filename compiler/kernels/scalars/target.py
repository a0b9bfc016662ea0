"""What a kernel may use of a device, and the errors of regions that cannot be compiled for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from ....status import InvalidArgumentError
from ...ir.operation import Operation, origin_of
from ...ir.source import CompileError

KINDS: Final = ("vulkan", "reference")
"""Kinds of devices."""

FEATURES: Final = ("shaderInt64",)
"""Features of Vulkan devices that executables of their own are made for, as in ``vulkan:shaderInt64``."""


class CooperativeMatrix(NamedTuple):
    """Products of matrices that a subgroup computes together, ``a @ b + c`` (``VK_KHR_cooperative_matrix``).

    Attributes:
        m, n, k: rows of a, columns of b, and what they have in common.
        a, b, c, result: types of elements, such as ``"f16"``, ``"f32"``, ``"s8"``, ``"u8"``, ``"s32"``.
    """

    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    result: str


@dataclass(frozen=True, slots=True)
class Target:
    """What a module is made for; without arguments, what every Vulkan device has, and ``float64``.

    ``device_target.target_of`` has that of one device.

    Attributes:
        kinds: of devices that the module has executables for, of ``KINDS``, with features after a colon, joined by
            ``+``; the other attributes are about Vulkan devices. Of several that a device takes, the one with the most
            features counts.
        float64: ``shaderFloat64``. It is used where the program has f64, which is not emulated.
        int64: ``shaderInt64``. Without it 64-bit integers are pairs of words.
        float16: ``shaderFloat16``, where conversions to f16 round to nearest even and keep subnormals. Without it they
            are done with integers. Arithmetic is in f32 either way.
        float_controls: whether conversions to f16 do so where a kernel asks for that, for floats of every width.
        workgroup_size: invocations of a workgroup.
        max_groups: workgroups of each dimension of a dispatch.
        max_loop_iterations: of all loops of an invocation together. lavapipe ends loops after 65,535.
        family: of devices that are alike: ``"cpu"``, ``"nvidia"``, …, of ``device_target.FAMILY_NAMES``.
        compute_units: that run workgroups at a time: multiprocessors, or threads of a CPU.
        subgroup_size: invocations of a subgroup; 1 where nothing is known of it.
        subgroup_operations: groups of subgroup operations that compute shaders may use, sorted, as
            ``VkSubgroupFeatureFlagBits`` names them: ``"arithmetic"``, ``"shuffle"``, ….
        shared_memory: bytes that the invocations of a workgroup share.
        max_workgroup_invocations: of a workgroup, in its first dimension too.
        int8_dot: ``shaderIntegerDotProduct``.
        cooperative_matrices: that subgroups multiply.
        whole_vectors: whether what is at addresses that are the same for a subgroup is loaded for all at once, where
            the driver sees it from push constants alone, which may be indexed by a subgroup's number
            (``subgroup_access``).
        tuned: what was measured to be fast on the device: classes of regions (``strategies.shape_class``), and the text
            of a strategy for each.
    """

    kinds: tuple[str, ...] = ("vulkan",)
    float64: bool = True
    int64: bool = False
    float16: bool = False
    float_controls: bool = False
    workgroup_size: int = 64
    max_groups: int = 65_535
    max_loop_iterations: int = 60_000
    family: str = "default"
    compute_units: int = 8
    subgroup_size: int = 1
    subgroup_operations: tuple[str, ...] = ()
    shared_memory: int = 16_384
    max_workgroup_invocations: int = 128
    int8_dot: bool = False
    cooperative_matrices: tuple[CooperativeMatrix, ...] = ()
    whole_vectors: bool = False
    tuned: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.kinds:
            raise InvalidArgumentError(f"expected targets among {', '.join(KINDS)}, got none")
        for each in self.kinds:
            kind, _, features = each.partition(":")
            if kind not in KINDS:
                raise InvalidArgumentError(f"expected targets among {', '.join(KINDS)}, got {each or 'an empty one'}")
            if ":" in each and (kind != "vulkan" or not set(features.split("+")) <= set(FEATURES)):
                raise InvalidArgumentError(
                    f"expected features among {', '.join(FEATURES)} after vulkan: with + between them, got {each}"
                )

    def variants(self) -> Iterator[tuple[str, tuple[str, ...], Target]]:
        """Kinds in the order in which a device is asked for them, with their features, and the target of each."""
        listed = [each.partition(":") for each in dict.fromkeys(self.kinds)]
        found = [(kind, tuple(features.split("+")) if features else ()) for kind, _, features in listed]
        for kind, features in sorted(found, key=lambda each: (KINDS.index(each[0]), -len(each[1]))):
            made = Target.of_features({"shaderFloat64", *features})
            yield kind, features, replace(self, int64=made.int64) if features else self

    @classmethod
    def of_features(cls, features: Collection[str]) -> Target:
        """The target of a device with these features, and properties of float controls, by their Vulkan names."""
        widths = (16, 32, 64) if "shaderFloat64" in features else (16, 32)
        modes = {f"shader{mode}Float{width}" for mode in ("RoundingModeRTE", "DenormPreserve") for width in widths}
        half = {"shaderFloat16", *modes} <= set(features)
        return cls(
            float64="shaderFloat64" in features,
            int64="shaderInt64" in features,
            float16=half,
            float_controls=half,
        )


class NeedsSplitError(CompileError):
    """A region that is too much for one kernel.

    Attributes:
        operation: the one to compute in a region of its own, or, if it is a reduction, to split.
    """

    def __init__(self, operation: Operation, message: str) -> None:
        error = compile_error(operation, message)
        super().__init__(error.message, error.file_name, error.line, error.column, error.offset)
        self.operation = operation


def compile_error(operation: Operation, message: str) -> CompileError:
    """An error at an operation, which whoever has the program's text gives its place."""
    text = f"{operation.name}: {message}{origin_of(operation)}"
    return CompileError(text, "", 0, 0, offset=operation.location.offset)
