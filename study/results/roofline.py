"""Points under the roofline of their device: what limits them, and how far from the ridge they are."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple


class RoofPlace(NamedTuple):
    """The place of a point under the roofline.

    Attributes:
        intensity: arithmetic intensity, flop/byte.
        ridge: the intensity at which the device's bandwidth and arithmetic limit equally.
        share: GFLOP/s over the roof at this intensity; above 1 if caches serve the point.
    """

    intensity: float
    ridge: float
    share: float

    @property
    def limit(self) -> Literal["memory", "compute"]:
        """Returns the limit of the rate at this intensity; ``"compute"`` at the ridge itself."""
        return "memory" if self.intensity < self.ridge else "compute"

    @property
    def distance(self) -> float:
        """The intensity over that of the ridge: below 1 for points that memory limits."""
        return self.intensity / self.ridge


def place_on_roof(figures: Mapping[str, float], peaks: Mapping[str, float]) -> RoofPlace | None:
    """Places a point with these figures (``bytes``, ``flops``, ``GFLOP/s``) under the roof of a device with these peaks
    (``GB/s``, ``GFLOP/s``); None if one of them is unknown.
    """
    known = [figures.get(name, math.nan) for name in ("bytes", "flops", "GFLOP/s")]
    known += [peaks.get(name, math.nan) for name in ("GB/s", "GFLOP/s")]
    if not all(math.isfinite(value) and value > 0 for value in known):
        return None
    nbytes, flops, reached, memory, arithmetic = known
    intensity = flops / nbytes
    return RoofPlace(intensity, arithmetic / memory, reached / min(memory * intensity, arithmetic))
