"""A study whose results the tests store."""

from __future__ import annotations

from pumice.study.definition.kept_file import KeptFile
from pumice.study.definition.point import Point
from pumice.study.definition.sample import Sample

STUDY = {"version": 1, "name": "copy-sizes", "sampling": {"seed": 0, "max_samples": 100}, "axes": {"n": [1, 2, 3]}}
POINTS = [
    *(Point(index, "saxpy", "lavapipe", {"n": index + 1}, {"batch": 1}, baseline=3) for index in range(3)),
    Point(3, "empty kernel", "lavapipe", is_baseline=True),
]
KEPT = KeptFile.of("saxpy.comp", b"void main() {}", "kernel")


def samples(count: int, start: int = 0) -> list[Sample]:
    return [Sample(started=start + index, total=100.0 + index, execute=50.0) for index in range(count)]
