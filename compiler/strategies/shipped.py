"""What tuning found on devices that were at hand, for all devices of their family.

Patterns of classes (``shape_class``), in which ``*`` stands for anything, and strategies, of which the first that takes
a region counts. What tuning finds on a device itself comes before. An entry is here only where it was measured to be
faster than what is estimated to be (``benchmarks/generated_kernels.py --tune``); the families that are not listed have
the tables of the strategies, ordered by estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SHIPPED: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {}
"""By the family of devices."""
