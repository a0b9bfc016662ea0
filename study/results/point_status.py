"""How far the measuring of a point has come."""

from __future__ import annotations

import enum

__all__ = ["PointStatus"]


class PointStatus(enum.StrEnum):
    """The status of a point; results keep every change of it, and the latest counts."""

    PENDING = "pending"
    """Not begun: no status was kept yet."""

    SAMPLING = "sampling"
    """Begun and not ended; after a kill it goes on from the samples that are there."""

    DONE = "done"
    """Sampled until its stop rule was met."""

    NOISY = "noisy"
    """Ended with more noise than the study allows."""

    FAILED = "failed"
    """Ended by an error, which is the reason."""

    SKIPPED = "skipped"
    """Cannot be measured here, such as for a feature that the device lacks; the reason says which."""

    @property
    def is_final(self) -> bool:
        """Whether a resumed study leaves the point as it is."""
        return self in (PointStatus.DONE, PointStatus.NOISY, PointStatus.SKIPPED)
