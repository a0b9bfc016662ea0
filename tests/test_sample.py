"""Runs other than soaks take a sample of the tests that are marked ``sample``."""

from __future__ import annotations

import pytest
from support.soak import outside_of_the_sample

pytest_plugins = ["pytester"]

TESTS = """
import pytest

@pytest.mark.sample(3)
@pytest.mark.parametrize("case", range(9))
def test_cases(case):
    pass

@pytest.mark.sample(1)
class TestGroup:
    def test_a(self): pass
    def test_b(self): pass

    @pytest.mark.sample(2)
    @pytest.mark.parametrize("case", range(4))
    def test_own_mark(self, case): pass

@pytest.mark.sample(1, "named")
def test_named_a(): pass

@pytest.mark.sample(1, "named")
@pytest.mark.parametrize("case", range(3))
def test_named_b(case): pass

@pytest.mark.sample(0)
def test_soak_alone(): pass

def test_unmarked(): pass
"""


def test_a_sample_has_the_stated_size_and_is_the_same_again(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nmarkers = sample(n, group): x\n")
    items = pytester.getitems(TESTS)
    left_out = outside_of_the_sample(items)
    names = [item.name for item in items if item not in left_out]
    assert len(names) == 3 + 1 + 2 + 1 + 1
    assert [sum(name.startswith(start) for name in names) for start in ("test_cases", "test_own_mark")] == [3, 2]
    assert names[-1] == "test_unmarked" and "test_soak_alone" not in names
    assert outside_of_the_sample(items[::-1]) == left_out
