"""Types are one object each, whichever thread makes them first."""

from __future__ import annotations

import sys
import threading

import pytest

from pumice.compiler.ir.types import F32, FunctionType, ScalarType, TensorType


def test_threads_that_make_the_same_types_get_the_same_whole_objects() -> None:
    made: list[list[FunctionType]] = [[] for _ in range(4)]
    errors: list[BaseException] = []
    start = threading.Barrier(len(made))

    def work(types: list[FunctionType]) -> None:
        try:
            for n in range(1, 3000):
                start.wait(30)
                tensor = TensorType((n, 7, n), F32)
                types.append(FunctionType([tensor], [tensor]))
                assert str(types[-1]) == f"(tensor<{n}x7x{n}xf32>) -> tensor<{n}x7x{n}xf32>"
        except BaseException as error:
            errors.append(error)
            start.abort()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(types,)) for types in made]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not errors, errors[0]
    assert all(len({id(type) for type in same}) == 1 for same in zip(*made, strict=True))


def test_a_name_that_is_no_type_leaves_none_behind() -> None:
    for _ in range(2):
        with pytest.raises(ValueError):
            ScalarType("f31")
