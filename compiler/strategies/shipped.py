"""What tuning found on devices that were at hand, for all devices of their family.

Patterns of classes (``shape_class``), in which ``*`` stands for anything, and strategies, of which the first that takes
a region counts. What tuning finds on a device itself comes before. An entry is here only where it was measured to be
faster than what is estimated to be (``benchmarks/generated_kernels.py --tune``); the families that are not listed have
the tables of the strategies, ordered by estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..kernels.strategy import Strategy
from .contraction.contraction_tile import ContractionTile

SHIPPED: Final[Mapping[str, tuple[tuple[str, Strategy], ...]]] = {
    # lavapipe of Mesa 22.3.6, two cores: in the other 17 classes of the benchmark's programs the estimate is the best.
    "cpu": (
        # Eight rows, as of the steps of a recurrent network: 0.74 and 0.83 of the time of tiles with four rows.
        ("dot_general 8x*/64xf32 */64x*/64xf32 * -> 8x*/64xf32", ContractionTile(8, 4, 8, 1, 8, 1)),
    ),
}
"""By the family of devices. Brackets in a pattern stand for one of some characters (``fnmatch``): write ``*``."""
