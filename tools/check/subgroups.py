"""Cases that are operations of subgroups, compared with NumPy by the subgroup that each invocation says it is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from .case import Case
from .kernels import WHOLE, Array, KernelCase, of, words, zeros


def _by_subgroup(
    count: int, function: Callable[[Array], Sequence[Any]], places: Array, a: Array, results: Array
) -> list[Array | None]:
    """Returns the expected results: the function takes the values of a subgroup, in order of its invocations.

    Where the function gives NaN, anything is right.
    """
    expected = np.zeros((count, len(a)))
    for number in np.unique(places[:, 0]):
        members = np.flatnonzero(places[:, 0] == number)
        members = members[np.argsort(places[members, 1])]
        assert len(set(places[members, 1])) == len(members), "two invocations of a subgroup have one number"
        for row, values in enumerate(function(a[members])):
            expected[row, members] = values
    results = results.reshape(count, -1)
    return [None, np.where(np.isnan(expected), results, expected).astype(np.uint32)]


def _subgroup_case(
    operations: str, count: int, function: Callable[[Array], Sequence[Any]], high: int = 100
) -> KernelCase:
    def expected(a: Array, places: Array, results: Array) -> list[Array | None]:
        return _by_subgroup(count, function, places, a, results)

    outputs = [zeros((WHOLE, 2)), zeros((count, WHOLE))]
    shader = f"check/subgroup_{operations}"
    return KernelCase(shader, of(words(WHOLE, 0, high)), outputs, expected, WHOLE // 64, operations=operations)


def _arithmetic(x: Array) -> list[Any]:
    running = np.cumsum(x)
    bits = [np.bitwise_and.reduce(x), np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x)]
    return [x.sum(), x.min(), x.max(), *bits, running, running - x]


def _ballot(x: Array) -> list[Any]:
    odd = (x & 1).astype(np.int64)
    return [odd.sum(), np.cumsum(odd) - odd, x[0], x[2]]


def _relative(x: Array) -> list[Any]:
    return [np.concatenate([[0], x[:-1]]), np.concatenate([x[1:], [np.nan]])]


def _quads(x: Array) -> list[Any]:
    quads = x.reshape(-1, 4)
    return [quads[:, [3, 3, 3, 3]].ravel(), quads[:, [1, 0, 3, 2]].ravel(), quads[:, [3, 2, 1, 0]].ravel()]


def _clusters(x: Array) -> list[Any]:
    quads = x.reshape(-1, 4)
    return [np.repeat(quads.sum(1), 4), np.repeat(quads.max(1), 4)]


_SUBGROUPS: Final = {
    "sums, bits and running sums": _subgroup_case("arithmetic", 8, _arithmetic),
    "votes": _subgroup_case(
        "vote", 4, lambda x: [int((x > 0).all()), int((x > 99).any()), int((x == x[0]).all()), 1], 102
    ),
    "ballots": _subgroup_case("ballot", 4, _ballot),
    "shuffles": _subgroup_case(
        "shuffle", 2, lambda x: [x.reshape(-1, 4)[:, ::-1].ravel(), x.reshape(-1, 2)[:, ::-1].ravel()]
    ),
    "shifts": _subgroup_case("shuffle_relative", 2, _relative),
    "clusters": _subgroup_case("clustered", 2, _clusters),
    "quads": _subgroup_case("quad", 3, _quads),
}


def subgroup_cases() -> Iterator[Case]:
    """Yields the cases of the area ``subgroups``."""
    for title, case in _SUBGROUPS.items():
        yield Case("subgroups", title, case)
