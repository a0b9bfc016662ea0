"""Duels: two kernels for one region, measured in turn until one is known to be faster, or the time is over."""

from __future__ import annotations

import functools
import math
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..base.closeable import Closeable
from ..base.lazy_dataclass import dataclass
from ..compiler.ir.types import ShapedType
from ..compiler.kernels.kernel import Kernel
from ..compiler.kernels.region import KernelRegion
from ..compiler.kernels.subgroup_access import PUSHED_NUMBERS
from ..runtime.device import Device
from ..spirv.reflection.reflect import reflect
from ..study.definition.point import Point
from ..study.definition.sample import Sample
from ..study.definition.settings import Sampling
from ..study.definition.target_settings import KINDS
from ..study.results.storage.rows import Value
from ..study.results.storage.sink import Sink
from ..study.sampling.point_run import PointRun
from ..study.statistics.comparison import Comparison, compare
from ..study.workloads.kernel import KernelWorkload
from ..study.workloads.workload import DevicePool, WorkloadContext

_ENDLESS: Final = 1 << 40
_SAMPLING: Final = Sampling(
    warmup_count=1,
    warmup_time=0.0,
    min_samples=_ENDLESS,
    max_samples=_ENDLESS,
    time_limit=1e9,
    block=1,
    reference=False,
)
_MIN_ROUNDS: Final = 6
"""The number of samples of each kernel that a comparison at this level needs."""
_MAX_ROUNDS: Final = 36
_MAX_SECONDS: Final = 2.0
_HOPELESS: Final = {1: 2.0, 3: 1.2}
"""From each of these rounds on, a challenger is dropped if its time is more than this many times the holder's."""
_CONFIDENCE: Final = 0.95
_WORTH: Final = 0.02
"""The smallest relative gain in time that makes another strategy worthwhile."""
_TOLERANCES: Final = {"f16": 2e-2, "f32": 1e-3, "f64": 1e-6}
"""Tolerances relative to the largest result, by element type: sums in another order differ."""

Words = npt.NDArray[np.int32]


class Contestant(Closeable):
    """A kernel on a device, with its own arguments; its times are in nanoseconds.

    Calling sequence: ``Contestant`` → ``results``, ``take_block`` → ``close``.
    """

    def __init__(self, kernel: Kernel, bindings: Sequence[Mapping[str, Any]], pool: DevicePool, uri: str, folder: Path):
        """Makes the kernel and runs it once.

        Args:
            kernel: the kernel of a region without symbols.
            bindings: the bindings from ``bindings_of``, in the same folder.
            pool, uri: the device.
            folder: the folder for files; it has to exist until ``close``.

        Raises:
            PumiceError: the device refuses the kernel.
        """
        source = folder / f"{random.randbytes(8).hex()}.spv"
        source.write_bytes(kernel.code)
        wide = _wide_bindings(kernel)
        bound = [
            _in_pairs(described) if number in wide else described
            for number, (described, binding) in enumerate(zip(bindings, kernel.bindings, strict=True))
            if binding.is_read or binding.is_written
        ]
        assert isinstance(kernel.workgroup_count, tuple)
        changed = {"source": source.name, "bindings": bound, "groups": list(kernel.workgroup_count)}
        if kernel.pushes_addresses:
            changed |= {"descriptors": "address", "push": list(range(PUSHED_NUMBERS))}
        settings = {setting.name: setting.default for setting in KINDS["kernel"].settings} | changed
        context = WorkloadContext(pool, uri, folder)
        self._times = _Times(measure := _measure(pool.open(uri)))
        self._count = sum(binding.is_written for binding in kernel.bindings)
        point = Point(0, "kernel", uri, settings=settings, measure=measure)
        self._run = PointRun("kernel", point, context, _SAMPLING, self._times)
        self._next_block = 0
        try:
            self._run.start()
        except BaseException:
            self._run.close()
            raise

    @functools.cached_property
    def results(self) -> tuple[Words, ...]:
        """The kernel's results, in words."""
        workload = self._run.workload
        assert isinstance(workload, KernelWorkload)
        return tuple(values.view(np.int32) for values in workload.results()[-self._count :])

    def take_block(self) -> None:
        """Measures one call."""
        self._run.take_block(self._next_block, _SAMPLING.block)
        self._next_block += 1

    @property
    def times(self) -> Sequence[float]:
        """Times of all measured calls, in ns."""
        return self._times.values

    @property
    def blocks(self) -> Sequence[int]:
        """The block of each measured call."""
        return self._times.blocks

    def close(self) -> None:
        """Releases everything; idempotent."""
        self._run.close()


@dataclass
class _Times(Sink):
    """A sink that keeps the times of one kernel."""

    measure: str
    values: list[float] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)

    def write(self, table: str, doing: str, rows: Sequence[Mapping[str, Value]]) -> None:
        """Does nothing: only times are kept."""

    def add_samples(
        self, point: int, block: int, phase: str, samples: Sequence[Sample], flags: Sequence[int] | None = None
    ) -> None:
        """Keeps the times of measured calls."""
        if phase == "sample":
            self.values += [float(getattr(sample, self.measure)) for sample in samples]
            self.blocks += [block] * len(samples)


def duel(holder: Contestant, challenger: Contestant, deadline: float) -> Comparison | None:
    """Compares two kernels by turns; returns None if the deadline comes before there are enough samples.

    Args:
        deadline: the time on the clock of ``time.monotonic``, in seconds, at which to give up.
    """
    end = time.monotonic() + _MAX_SECONDS
    for count in range(1, _MAX_ROUNDS + 1):
        for contestant in random.sample((holder, challenger), 2):
            contestant.take_block()
        now, ratio = time.monotonic(), np.median(challenger.times) / np.median(holder.times)
        if ratio > min((most for first, most in _HOPELESS.items() if count >= first), default=math.inf):
            break
        if count >= _MIN_ROUNDS and now > end:
            break
        if count < _MIN_ROUNDS and now > deadline:
            return None
    return compare(
        holder.times,
        challenger.times,
        confidence=_CONFIDENCE,
        threshold=_WORTH,
        blocks_a=holder.blocks,
        blocks_b=challenger.blocks,
    )


def same_results(types: Sequence[ShapedType], holder: Contestant, challenger: Contestant) -> bool:
    """Whether two kernels have the same results: floats within a tolerance, since sums may be in another order."""
    for type, first, second in zip(types, holder.results, challenger.results, strict=True):
        tolerance = _TOLERANCES.get(str(type.scalar))
        if tolerance is None:
            if not np.array_equal(first, second):
                return False
            continue
        ours, theirs = (words.view(type.scalar.dtype) for words in (first, second))
        with np.errstate(invalid="ignore", over="ignore"):
            largest = float(np.abs(ours, where=np.isfinite(ours), out=np.zeros_like(ours)).max(initial=0.0))
            far = ~(np.abs(ours - theirs) <= tolerance * largest)
        ours, theirs = ours[far], theirs[far]
        if not np.array_equal(ours, theirs, equal_nan=True):
            return False
    return True


def bindings_of(region: KernelRegion, kernel: Kernel, folder: Path) -> list[Mapping[str, Any]]:
    """Returns a study's bindings for kernels of a region: results, and random arguments, written to ``folder``."""
    rng = np.random.default_rng(0)
    described: list[Mapping[str, Any]] = []
    for number, binding in enumerate(kernel.bindings):
        words = binding.size // 4
        if number < len(region.block.arguments):
            values = _words(region.block.arguments[number].tensor, words, rng)
            (folder / f"{number}.bin").write_bytes(values.data)
        init = f"@{number}.bin" if number < len(region.block.arguments) else "zeros"
        described.append({"shape": [words], "dtype": "i32", "init": init})
    return described


def _wide_bindings(kernel: Kernel) -> set[int]:
    """Returns the bindings that a kernel declares as 64-bit integers only."""
    entry = reflect(kernel.code).entry_point(kernel.entry_point)
    elements = {binding.binding: [block.element for block in binding.blocks] for binding in entry.bindings}
    return {
        number
        for number, declared in elements.items()
        if all(
            element is not None and element.dtype is not None and element.dtype.itemsize == 8 for element in declared
        )
    }


def _in_pairs(described: Mapping[str, Any]) -> Mapping[str, Any]:
    """Describes the same bytes as 64-bit integers."""
    (words,) = described["shape"]
    return {**described, "shape": [words // 2], "dtype": "i64"}


def _words(type: ShapedType, count: int, rng: np.random.Generator) -> Words:
    """Returns random numbers that stay in range in sums and as indices, as the words of a buffer."""
    dtype = type.scalar.dtype
    if type.scalar.kind == "float" and dtype.itemsize > 1:
        values = rng.standard_normal(count * 4 // dtype.itemsize, np.float32).astype(dtype)
    elif type.scalar.kind == "complex":
        values = rng.standard_normal(count * 8 // dtype.itemsize, np.float32).astype(dtype)
    else:
        values = rng.integers(0, 2, count * 4 // dtype.itemsize).astype(dtype)
    return np.resize(values.view(np.uint8), count * 4).view(np.int32)


def _measure(device: Device) -> str:
    """Returns the measure to compare: the device's time, or the host's if the device has no timestamps."""
    return "execute" if device.vulkan.plan.timestamp_bits else "total"
