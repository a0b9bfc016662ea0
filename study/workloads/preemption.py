"""Whether the measuring thread was taken off its core: involuntary context switches, as the operating system counts them."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["preemption_counter"]


def preemption_counter() -> Callable[[], int] | None:
    """Reads how often the calling thread was preempted so far; ``None`` where the platform does not tell.

    Source: getrusage(2), ``RUSAGE_THREAD`` and ``ru_nivcsw``, on Linux.
    """
    try:
        import resource
    except ImportError:  # Windows
        return None
    who = getattr(resource, "RUSAGE_THREAD", None)
    if who is None:
        return None
    return lambda: resource.getrusage(who).ru_nivcsw
