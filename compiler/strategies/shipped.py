"""Results of tuning on available devices, for all devices of their family.

Each entry is a pattern of classes (``shape_class``), in which ``*`` stands for anything, and a strategy. The first that
takes a region is used. Results of tuning on the device itself take precedence. An entry is here only if it was measured
to be faster than the strategy that the estimate chooses (``benchmarks/generated_kernels.py --tune``). Other families
use the tables of the strategies, ordered by estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..kernels.strategy import Strategy
from .contraction.contraction_tile import ContractionTile

SHIPPED: Final[Mapping[str, tuple[tuple[str, Strategy], ...]]] = {
    # lavapipe of Mesa 22.3.6, two cores: in the other 17 classes of the benchmark's programs the estimate is the best.
    "cpu": (
        # Eight rows, as in the steps of a recurrent network: 0.74 and 0.83 of the time of tiles with four rows.
        ("dot_general 8x*/64xf32 */64x*/64xf32 * -> 8x*/64xf32", ContractionTile(8, 4, 8, 1, 8, 1)),
    ),
}
"""By the family of devices. Brackets in a pattern are a set of characters (``fnmatch``): write ``*`` instead."""
