"""Writes ``docs/reference/stablehlo.md`` from the tables that the tests take their operations from.

Run ``python tests/support/compiler/operation_page.py`` from the repository's root.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
PAGE: Final = ROOT / "docs" / "reference" / "stablehlo.md"

if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))

from support.compiler.operation_cases import CASES  # noqa: E402
from support.compiler.operation_table import ANY, ELEMENTWISE, KINDS, REFUSED, SPECIFICATION, UNTYPED  # noqa: E402

_NAMES: Final = {"b": "`i1`", "s": "signed", "u": "unsigned", "n": "narrow", "w": "`f32` `f64`", "c": "complex"}
_HEAD: Final = """\
# StableHLO by type

This page is written by `python tests/support/compiler/operation_page.py` from the tables in
`tests/support/compiler/operation_table.py` and `tests/support/compiler/operation_cases.py`, which also define the
tests' cases; do not edit it.

This page lists every operation of the specification. A row is a test that runs on both devices, for every listed type.
The reference device is compared with NumPy, ml_dtypes and Python's integers, Vulkan with the reference device or the
same numbers. *Exact* means bit by bit; otherwise the column has the largest error in units in the last place, for
complex numbers in units of its modulus. Except for element-wise ones, operations are tested on small whole numbers,
whose sums and products are exact; `docs/design/compiler.md` says how long sums are computed. Subnormal numbers of `f32`
and `f64` are as the device treats them, which may be zero. Types that an operation's rows do not list are not in its
specification.

| name | types |
| -- | -- |
{types}

Operations between processes are tested with one process, since a module is one. Quantized types, `!quant.uniform<…>`,
are converted to their stored integers first: `conversion/test_quantized.py` tests their operations. `f64` needs a
device with `shaderFloat64`; every other type runs on every Vulkan device. A table of sizes is below.

Tests are in `tests/compiler`; the type is in brackets. Those of `test_operations.py::test_cases` run for four types in
each run of the suite, and for all with `make soak`.

"""
_SIZES: Final = """
## Sizes

No kernel loops for more than some thousand iterations, so these have no bound of their own. A tensor has less than 2³¹
elements, and one that is stored less than 2³² bytes; a device may bind less (`maxStorageBufferRange`, 128 MiB on
lavapipe), and then refuses the call by name. `tests/conformance/jax/test_large.py` has more sizes, all of which run
with `PUMICE_SOAK=1`.

| operations | how | shown with | test |
| -- | -- | -- | -- |
| `reduce`, `dot_general` | stages, partial sums | 3,000,000 | `passes/decomposition/test_split.py` |
| `reduce_window` | windows of powers of two | 3,000,000 | `passes/decomposition/test_split.py` |
| `convolution` | parts of the kernel | all forms | `passes/decomposition/test_split.py` |
| `scatter`, `select_and_scatter` | sorted updates | 20,000 | `passes/decomposition/test_scatters.py` |
| `sort`, `top_k` | a loop of log² n stages | 30,000; 1,000,000 | `test_large.py` |
| `fft` | factors; Bluestein for primes | 2¹⁷, 10,007 | `test_large.py` |
| `cholesky`, `triangular_solve` | blocks of 16 rows in a loop | 512 rows | `test_large.py` |
| `rng_bit_generator`, element-wise | workgroups in three dimensions | 10⁷ | `test_large.py` |
"""


def page() -> str:
    """The whole page."""
    types = "\n".join(f"| {_NAMES[kind]} | {_listed(KINDS[kind])} |" for kind in "sunc")
    lines = ["| operation | types | reference | Vulkan | test |", "| -- | -- | -- | -- | -- |"]
    for name in SPECIFICATION:
        for number, row in enumerate(_rows(name)):
            lines.append(" | ".join([f"| {f'`{name}`' if not number else ''}", *row]) + " |")
    return _wrapped(_HEAD.format(types=types)) + "\n\n" + "\n".join(lines) + "\n\n" + _wrapped(_SIZES) + "\n"


def _wrapped(text: str) -> str:
    """Paragraphs at the width of the pages."""
    blocks = text.strip().split("\n\n")
    return "\n\n".join(
        block if block[0] in "#|" else textwrap.fill(" ".join(block.split()), 120, break_on_hyphens=False)
        for block in blocks
    )


def _listed(types: tuple[str, ...]) -> str:
    return " ".join(f"`{type}`" for type in types)


def _rows(name: str) -> Iterator[tuple[str, str, str, str]]:
    """Types, what the devices give, and the test of an operation's rows."""
    found = False
    for row in ELEMENTWISE:
        if row.name == name:
            found = True
            yield from _of(row.kinds, row.without, row.ulps, "kernels/test_elementwise.py::test_operations")
    if name == "convert":
        found = True
        yield from _of(ANY, {}, {}, "kernels/test_elementwise.py::test_conversions")
    cases = [case for case in CASES if case.name == name]
    kinds = "".join(kind for kind in ANY if any(kind in case.kinds for case in cases))
    # A type that one of several cases shows is shown.
    shown = {type for case in cases for type in case.types()}
    without = {type: reason for case in cases for type, reason in case.without.items() if type not in shown}
    if cases:
        found = True
        ulps = {kind: case.ulps for case in cases for kind in case.kinds if case.ulps}
        yield from _of(kinds, without, ulps, "test_operations.py::test_cases")
    if name in UNTYPED:
        found = True
        types, test = UNTYPED[name]
        yield types, "exact", "exact", f"`{test}`"
    if name in REFUSED:
        found = True
        yield "all", REFUSED[name], REFUSED[name], "`test_operations.py::test_refused`"
    assert found, f"nothing shows {name}"


def _of(
    kinds: str, without: Mapping[str, str], ulps: Mapping[str, float], test: str
) -> Iterator[tuple[str, str, str, str]]:
    groups: dict[float, list[str]] = {}
    for kind in ANY:
        if kind in kinds and any(type not in without for type in KINDS[kind]):
            groups.setdefault(ulps.get(kind, 0), []).append(kind)
    for limit, members in groups.items():
        named = "all" if len(members) == len(ANY) else " ".join(_NAMES[kind] for kind in members)
        missing = [type for kind in members for type in KINDS[kind] if type in without]
        if missing:
            named += f" but {_listed(tuple(missing))}"
        verdict = f"{limit:g}" if limit else "exact"
        yield named, verdict, verdict, f"`{test}`"
    reasons: dict[str, list[str]] = {}
    for type, reason in without.items():
        reasons.setdefault(reason, []).append(type)
    for reason, types in reasons.items():
        yield _listed(tuple(types)), f"none: {reason}", f"none: {reason}", ""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
