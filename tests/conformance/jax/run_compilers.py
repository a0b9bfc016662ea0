"""JAX's functions through pumice's compiler and through iree-compile, side by side.

    python tests/conformance/jax/run_compilers.py

Each function's StableHLO is compiled by both; the modules run on pumice, that of pumice's compiler on the reference
device too, and the results are held against JAX's own. It prints how many pass of how many, and each miss with its
cause. The exit status is 1 if pumice's compiler passes fewer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import jax
import numpy as np
from conformance.jax.functions import FUNCTIONS
from support.iree_releases import VULKAN, installed_compiler

import pumice

WAYS = ("pumice, Vulkan", "pumice, reference", "iree-compile, Vulkan")


def main() -> int:
    """The command line."""
    compiler = installed_compiler()
    if compiler is None:
        print("this needs iree-compile: pip install -e '.[peer]'", file=sys.stderr)
        return 2
    passed = dict.fromkeys(WAYS, 0)
    for name, (function, arguments) in FUNCTIONS.items():
        jitted = jax.jit(function)
        text = jitted.lower(*arguments).as_text()
        expected = [np.asarray(value) for value in jax.tree.leaves(jitted(*arguments))]

        def ours(text: str = text) -> bytes:
            return pumice.compile(text, targets=("vulkan", "reference"))

        def theirs(text: str = text) -> bytes:
            return compiler.compile(text, ("--iree-input-type=stablehlo",), device=VULKAN).read_bytes()

        for way, make, device in zip(WAYS, (ours, ours, theirs), ("vulkan", "reference", "vulkan"), strict=True):
            cause = miss(make, device, arguments, expected)
            passed[way] += not cause
            if cause:
                print(f"{name}: {way}: {cause}", flush=True)
    for way, count in passed.items():
        print(f"{way}: {count} of {len(FUNCTIONS)}")
    return int(passed[WAYS[0]] < passed[WAYS[2]])


def miss(make: Callable[[], bytes], device: str, arguments: Sequence[Any], expected: Sequence[Any]) -> str:
    """Why a module does not give what is expected; nothing if it does."""
    try:
        with pumice.Session(device=device) as session:
            loaded = session.load(make())
            given = session.call(f"{loaded.name}.main", *arguments, timeout=60)
            results = given if isinstance(given, tuple | list) else [given]
            found = [np.asarray(each.numpy() if hasattr(each, "numpy") else each) for each in results]
        assert len(found) == len(expected), f"{len(found)} results"
        for one, other in zip(found, expected, strict=True):
            if other.dtype.kind in "fc":
                np.testing.assert_allclose(one, other, 2e-4, 2e-5)
            else:
                np.testing.assert_array_equal(one, other)
    except Exception as error:
        return " ".join(str(error).split())[:200] or type(error).__name__
    return ""


if __name__ == "__main__":
    sys.exit(main())
