"""The features of a device that a kernel may use, and errors for regions that cannot be compiled for it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Final

from ....spirv.checks.matrix_shapes import MatrixProduct
from ....status import InvalidArgumentError
from ...ir.operation import Operation, origin_of
from ...ir.source import CompileError

KINDS: Final = ("vulkan", "reference")
"""Kinds of devices."""

FEATURES: Final = ("shaderInt64",)
"""Vulkan features for which a module may have separate executables, as in ``vulkan:shaderInt64``."""


@dataclass(frozen=True, slots=True)
class Target:
    """The devices that a module is made for; by default all Vulkan devices that have ``float64``.

    ``device_target.target_of`` returns the target of one device.

    Attributes:
        kinds: the kinds of devices that get executables, of ``KINDS``, with features after a colon, joined by ``+``.
            The other attributes concern Vulkan devices. A device gets the executable with the most features among those
            that it supports.
        float64: whether the device has ``shaderFloat64``. It is used if the program has f64, which is not emulated.
        int64: whether the device has ``shaderInt64``. Without it 64-bit integers are pairs of words.
        float16: whether the device has ``shaderFloat16``, and its conversions to f16 round to nearest even and keep
            subnormals. Without it conversions use integers. Arithmetic is in f32 either way.
        float_controls: whether conversions to f16 round this way if a kernel requests it, for floats of every width.
        workgroup_size: the number of invocations in a workgroup.
        max_groups: the largest number of workgroups in each dimension of a dispatch.
        max_loop_iterations: the largest number of iterations of all loops of an invocation. lavapipe ends loops after
            65,535.
        family: a group of similar devices: ``"cpu"``, ``"nvidia"``, …, of ``device_target.FAMILY_NAMES``.
        compute_units: the number of units that run workgroups at a time: multiprocessors, or threads of a CPU.
        subgroup_size: the number of invocations in a subgroup; 1 if unknown.
        subgroup_operations: the groups of subgroup operations available in compute shaders, sorted, by their names in
            ``VkSubgroupFeatureFlagBits``: ``"arithmetic"``, ``"shuffle"``, ….
        shared_memory: the number of bytes that the invocations of a workgroup share.
        max_workgroup_invocations: the largest number of invocations of a workgroup, in total and in its first
            dimension.
        int8_dot: whether the device has ``shaderIntegerDotProduct``.
        cooperative_matrices: the matrix shapes that subgroups multiply.
        whole_vectors: whether a load from a subgroup-uniform address is one load for all invocations. The driver must
            derive uniformity from push constants, which may be indexed by a subgroup's number (``subgroup_access``).
        tuned: the results of tuning on the device: classes of regions (``strategies.choice``), each with a strategy as
            text.
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
    cooperative_matrices: tuple[MatrixProduct, ...] = ()
    whole_vectors: bool = False
    tuned: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if not self.kinds:
            raise InvalidArgumentError(f"expected targets among {', '.join(KINDS)}, got none")
        for text in self.kinds:
            kind, _, features = text.partition(":")
            if kind not in KINDS:
                raise InvalidArgumentError(f"expected targets among {', '.join(KINDS)}, got {text or 'an empty one'}")
            if ":" in text and (kind != "vulkan" or not set(features.split("+")) <= set(FEATURES)):
                raise InvalidArgumentError(
                    f"expected features among {', '.join(FEATURES)} after vulkan: with + between them, got {text}"
                )

    def variants(self) -> Iterator[tuple[str, tuple[str, ...], Target]]:
        """Yields the kinds of devices with their features and targets, in the order of preference."""
        listed = [text.partition(":") for text in dict.fromkeys(self.kinds)]
        variants = [(kind, tuple(features.split("+")) if features else ()) for kind, _, features in listed]
        for kind, features in sorted(variants, key=lambda variant: (KINDS.index(variant[0]), -len(variant[1]))):
            made = Target.of_features({"shaderFloat64", *features})
            yield kind, features, replace(self, int64=made.int64) if features else self

    @classmethod
    def of_features(cls, features: Collection[str]) -> Target:
        """Returns the target of a device with these features and float-controls properties, by their Vulkan names."""
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
    """A region that is too large for one kernel.

    Attributes:
        operation: the operation to compute in a region of its own, or to split if it is a reduction.
    """

    def __init__(self, operation: Operation, message: str) -> None:
        error = compile_error(operation, message)
        super().__init__(error.message, error.file_name, error.line, error.column, error.offset)
        self.operation = operation


def compile_error(operation: Operation, message: str) -> CompileError:
    """Creates an error at an operation; a caller with the program's text adds line and column."""
    text = f"{operation.name}: {message}{origin_of(operation)}"
    return CompileError(text, "", 0, 0, offset=operation.location.offset)
