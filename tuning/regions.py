"""The regions of a program that several strategies can compute."""

from __future__ import annotations

from typing import Final

from ..base.lazy_dataclass import dataclass
from ..compiler.abi.calling_convention import CallingConvention
from ..compiler.kernels.kernel import symbols_in
from ..compiler.kernels.region import KernelRegion
from ..compiler.kernels.scalars.target import Target
from ..compiler.kernels.strategy import Strategy
from ..compiler.origin import Origin
from ..compiler.passes.dispatch.outline import entry_of
from ..compiler.pipeline import compile_data
from ..compiler.stages import Program
from ..compiler.strategies.choice import class_of, ranked
from ..compiler.targets.vulkan import STRATEGY, kernel_region

_MOST: Final = 16
"""The largest number of strategies that are measured for a region, those with the lowest estimates."""

_UNLIKELY: Final = 16.0
"""A strategy whose estimated cost is more than this many times the lowest is not measured: no estimate is so wrong, and
a call cannot be interrupted.
"""


@dataclass(frozen=True)
class TunableRegion:
    """A region, and the strategies that can compute it.

    Attributes:
        name: the region's class.
        candidates: the candidates by estimated time, the fastest first.
    """

    name: str
    region: KernelRegion
    candidates: tuple[Strategy, ...]


def tunable_regions(
    data: bytes, file_name: str, target: Target, origin: Origin, convention: CallingConvention | None = None
) -> list[TunableRegion]:
    """Returns the regions of a program that can be tuned, one for each class.

    Regions are left out if their strategy is fixed, if their lengths depend on the call, or if they compute nothing.

    Raises: as for ``compiler.pipeline.compile_data``.
    """
    if not any(kind.startswith("vulkan") for kind in target.kinds):
        return []
    program = compile_data(data, file_name, target, origin, "ll_seq", convention=convention).program
    assert isinstance(program, Program)
    regions: dict[str, TunableRegion] = {}
    for executable in program.executables:
        _, function = entry_of(executable)
        region = kernel_region(function, target)
        is_empty = any(value.tensor.count == 0 for value in region.results)
        if STRATEGY in function.attributes or symbols_in(region.block) or is_empty:
            continue
        name = class_of(region)
        costs = ranked(region)
        likely = [strategy for cost, strategy in costs if cost <= _UNLIKELY * costs[0][0]]
        candidates = tuple(dict.fromkeys(likely))[:_MOST]
        if name not in regions and len(candidates) > 1:
            regions[name] = TunableRegion(name, region, candidates)
    return list(regions.values())
