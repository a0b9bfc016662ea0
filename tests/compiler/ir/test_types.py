"""Types are one object each, whichever thread makes them first."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from pumice.compiler.ir.types import F32, FunctionType, ScalarType, TensorType


def test_threads_that_make_the_same_types_get_the_same_whole_objects() -> None:
    start = threading.Barrier(4)

    def work(_: int) -> list[FunctionType]:
        types = []
        for n in range(1, 3000):
            start.wait(30)
            tensor = TensorType((n, 7, n), F32)
            types.append(FunctionType([tensor], [tensor]))
            assert str(types[-1]) == f"(tensor<{n}x7x{n}xf32>) -> tensor<{n}x7x{n}xf32>"
        return types

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            made = list(pool.map(work, range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert all(len({id(type) for type in same}) == 1 for same in zip(*made, strict=True))


def test_a_name_that_is_no_type_leaves_none_behind() -> None:
    for _ in range(2):
        with pytest.raises(ValueError):
            ScalarType("f31")
