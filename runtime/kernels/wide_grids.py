"""Calls with more workgroups in x than a device dispatches."""

from __future__ import annotations

from ...status import ResourceExhaustedError
from .parameters.arguments import Counts


class WideGridError(ResourceExhaustedError):
    """There are more workgroups in x than the device dispatches, and the rest fits in y.

    Attributes:
        counts: the workgroup counts.
    """

    def __init__(self, kernel: str, counts: Counts) -> None:
        super().__init__(
            f"{kernel}: {counts} workgroups are more than the device dispatches in x, and only calls are split over y: "
            "give fewer, and let the shader index by gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * "
            "gl_NumWorkGroups.x * gl_WorkGroupSize.x"
        )
        self.counts: Counts = counts
