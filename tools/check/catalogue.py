"""All cases of ``pumice check``, in the order of their runs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from .calls import call_cases
from .case import AREAS, Case
from .facts import fact_cases
from .images import image_cases
from .kernels import kernel_cases
from .memory import memory_cases
from .programs import program_cases
from .speed import speed_cases
from .subgroups import subgroup_cases
from .timing import timing_cases


def cases() -> Sequence[Case]:
    """Returns the cases with areas interleaved, so that a run that is short of time covers each area."""
    makers = (
        *(fact_cases, program_cases, kernel_cases, subgroup_cases, image_cases),
        *(call_cases, timing_cases, memory_cases, speed_cases),
    )
    by_area: dict[str, list[Case]] = {area: [] for area in AREAS}
    for maker in makers:
        for case in maker():
            by_area[case.area].append(case)
    turns = itertools.zip_longest(*by_area.values())
    return [case for turn in turns for case in turn if case is not None]
