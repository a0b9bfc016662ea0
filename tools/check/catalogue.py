"""All cases of ``pumice check``, in the order in which they are run."""

from __future__ import annotations

from collections.abc import Sequence

from .case import AREAS, Case
from .programs import program_cases


def cases() -> Sequence[Case]:
    """Returns the cases in turns of the areas, so that a run that is short of time looks at each."""
    places: dict[str, int] = dict.fromkeys(AREAS, 0)
    numbered: list[tuple[int, int, Case]] = []
    for case in program_cases():
        numbered.append((places[case.area], [*AREAS].index(case.area), case))
        places[case.area] += 1
    return [case for _, _, case in sorted(numbered, key=lambda item: item[:2])]
