"""The remaining passes: of unfinished repeats, of points that are sampled longer, and of both sides of a pair."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pumice.status import InvalidArgumentError
from pumice.study.definition.axis import Axis
from pumice.study.definition.expansion import expand
from pumice.study.definition.settings import Sampling
from pumice.study.definition.study import Study, Target
from pumice.study.results.storage.records import PointStatus, overall_status
from pumice.study.sampling.passes import Pass, Resumption, plan_passes

STUDY = Study(
    "planned",
    (Target("mul", "kernel", {"source": "builtin:mul"}),),
    (Axis("batch", (1, 2, 3, 4)),),
    devices=("vulkan",),
    sampling=Sampling(time_limit=2.0, relative_error=0.01),
)
PENDING, SAMPLING, DONE, NOISY, FAILED, SKIPPED = PointStatus


def planned(*statuses: list[PointStatus], study: Study = STUDY, **how: object) -> list[Pass]:
    return plan_passes(study, expand(study), statuses, Resumption(**how))  # type: ignore[arg-type]  # tried below


def indices(passes: list[Pass]) -> list[tuple[int, bool, list[int]]]:
    return [(pass_.repeat, pass_.continued, [point.index for point in pass_.points]) for pass_ in passes]


def test_each_repeat_lacks_its_own_points() -> None:
    assert indices(planned()) == [(1, False, [0, 1, 2, 3])]
    first, second = [DONE, NOISY, SKIPPED, DONE], [DONE, SAMPLING, FAILED, PENDING]
    assert indices(planned(first, second)) == [(2, False, [1, 2, 3])]
    assert indices(planned(first, second, runs=3)) == [(2, False, [1, 2, 3]), (3, False, [0, 1, 2, 3])]
    # Runs that were begun are finished, however many runs are requested.
    assert indices(planned(first, second, runs=1)) == [(2, False, [1, 2, 3])]
    assert planned(first, first, runs=2) == []


def test_noisy_points_are_sampled_on_as_if_they_had_just_begun() -> None:
    passes = planned([DONE, NOISY, NOISY, FAILED], [NOISY, DONE, DONE, DONE], continue_noisy=True)
    assert indices(passes) == [(1, False, [3]), (1, True, [1, 2]), (2, True, [0])]
    assert {pass_.study.sampling for pass_ in passes} == {STUDY.sampling}


def test_more_time() -> None:
    statuses = [DONE, NOISY, SKIPPED, SAMPLING]
    rest, more = planned(statuses, more_time=7.0)
    assert indices([rest, more]) == [(1, False, [3]), (1, True, [0, 1])]
    assert rest.study.sampling == STUDY.sampling
    # For that long, however quiet they are and however many samples that takes.
    sampling = more.study.sampling
    assert sampling.time_limit == 7.0 and min(sampling.min_samples, sampling.max_samples) >= 1e9
    (_, noisy) = planned(statuses, more_time=7.0, continue_noisy=True)
    assert indices([noisy]) == [(1, True, [1])]
    assert (noisy.study.sampling.time_limit, noisy.study.sampling.relative_error) == (7.0, 0.01)


def test_both_sides_of_a_pair_are_measured_again() -> None:
    study = replace(STUDY, against=replace(STUDY, devices=()))
    points = expand(study)
    assert [point.against for point in points[:4]] == [4, 5, 6, 7]
    statuses = [DONE, DONE, SAMPLING, DONE, DONE, PENDING, DONE, NOISY]
    assert indices(planned(statuses, study=study)) == [(1, False, [1, 2, 5, 6])]
    both = [(1, False, [1, 2, 5, 6]), (1, True, [3, 7])]
    assert indices(planned(statuses, study=study, continue_noisy=True)) == both


@pytest.mark.parametrize("how", [{"runs": 0}, {"more_time": 0.0}, {"more_time": float("inf")}])
def test_what_cannot_be_planned(how: dict[str, object]) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(how))):
        planned(**how)


def test_the_status_of_all_repeats() -> None:
    def overall(*statuses: PointStatus) -> PointStatus:
        return overall_status([(status, "why") for status in statuses])[0]

    assert overall() is overall(PENDING) is overall(PENDING, PENDING) is PENDING
    # A point that is done in one repeat and pending in another is still to be measured there.
    assert overall(DONE, PENDING) is overall(FAILED, SAMPLING) is overall(PENDING, NOISY) is SAMPLING
    assert overall(DONE, FAILED, NOISY) is FAILED
    assert overall(DONE, NOISY, DONE) is NOISY
    assert overall(DONE, SKIPPED) is DONE and overall(SKIPPED, SKIPPED) is SKIPPED
    assert overall_status([(DONE, "error reached"), (NOISY, "time limit")]) == (NOISY, "time limit (run 2 of 2)")
    assert overall_status([(NOISY, "time limit")]) == (NOISY, "time limit")
