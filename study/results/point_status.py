"""The status of a point."""

from __future__ import annotations

import enum


class PointStatus(enum.StrEnum):
    """The status of a point; results store every change, and the latest counts."""

    PENDING = "pending"
    """Not begun: no status is stored yet."""

    SAMPLING = "sampling"
    """Begun and not ended; after a kill it resumes from the stored samples."""

    DONE = "done"
    """Sampled until its stop rule was met."""

    NOISY = "noisy"
    """Ended with more noise than the study allows."""

    FAILED = "failed"
    """Ended by an error, which is the reason."""

    SKIPPED = "skipped"
    """Cannot be measured, for example because the device lacks a feature; the reason says why."""

    @property
    def is_final(self) -> bool:
        """Whether a resumed study does not measure the point again."""
        return self in (PointStatus.DONE, PointStatus.NOISY, PointStatus.SKIPPED)
