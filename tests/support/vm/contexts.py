"""Helpers of tests of contexts."""

from __future__ import annotations

from pumice.vm import Context

__all__ = ["is_idle"]


def is_idle(context: Context) -> bool:
    """Whether no invocation is left: no ticket, and nothing that closing would abort."""
    admission = context.gate
    return not (admission.in_flight or admission.waiting or admission.holder or context.invocations)
