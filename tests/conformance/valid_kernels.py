"""Kernels as a named spirv-val judges them: what the compiler writes, and what the passes before a driver make of it.

The spirv-val of a distribution may be years old; ``PUMICE_NEW_SPIRV_VAL`` names a newer one.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Final, Self

from conformance.stablehlo.tree import text_of

from pumice.compiler.kernels.kernel import Kernel
from pumice.compiler.kernels.region import KernelRegion
from pumice.compiler.kernels.scalars.target import NeedsSplitError
from pumice.compiler.kernels.strategy import Strategy
from pumice.compiler.strategies.choice import compile_region, ranked
from pumice.spirv.instrument.checks import SanitizeOptions
from pumice.spirv.instrument.passes import instrument
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.repair.double_rounding import with_exact_rounding
from pumice.spirv.repair.exponents import with_plain_exponents
from pumice.spirv.repair.hints import HINT_EXTENSIONS, without_hints
from pumice.spirv.repair.repair import repair

VARIABLE: Final = "PUMICE_NEW_SPIRV_VAL"
ENVIRONMENTS: Final = ("vulkan1.1", "vulkan1.4")
"""The oldest that kernels are for, and the newest."""


def variants(code: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields the passes that change a module before a driver sees it, with the module of each; first the code alone."""
    yield "as written", code
    reflection = reflect(code)
    native = without_hints(repair(code), HINT_EXTENSIONS)
    native = with_exact_rounding(with_plain_exponents(native, reflection), reflection)
    yield "repaired", native
    for name, guard, options in (
        ("guarded", True, None),
        ("sanitized", False, SanitizeOptions()),
        ("sanitized for a small device", True, SanitizeOptions(16_384, False, frozenset())),
    ):
        instrumented = instrument(native, guard=guard, sanitize=options)
        if instrumented is not None:
            yield name, instrumented.code


class Validator:
    """Checks distinct modules in child processes beside the caller; leaving the context waits for them.

    Args:
        executable: of spirv-val.
        known: digests of modules that need no more check.

    Attributes:
        counts: the distinct modules by kind.
        wrong: a line for each invalid module.
    """

    def __init__(self, executable: str, known: set[bytes]) -> None:
        self._executable = executable
        self._pool = ThreadPoolExecutor(2)
        self._futures: list[Future[None]] = []
        self._known = known
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=error is not None)
        if error is None:
            for future in self._futures:
                future.result()

    def add(self, kind: str, code: bytes, name: str) -> bool:
        """Has a module checked; returns whether it was not known."""
        digest = hashlib.blake2b(code, digest_size=16).digest()
        if digest in self._known:
            return False
        self._known.add(digest)
        self.counts[kind] += 1
        self._futures.append(self._pool.submit(self._check, code, f"{name}, {kind}"))
        return True

    def add_variants(self, code: bytes, name: str) -> None:
        """Has a module checked, and what all passes make of it."""
        for kind, changed in variants(code):
            if not self.add(kind, changed, name) and kind == "as written":
                return

    def _check(self, code: bytes, name: str) -> None:
        for environment in ENVIRONMENTS:
            done = subprocess.run(
                [self._executable, "--target-env", environment], input=code, capture_output=True, check=False
            )
            if done.returncode:
                text = (done.stderr or done.stdout).decode(errors="replace").strip()
                self.wrong.append(f"{name}, {environment}: {text}")
                return


class EveryStrategy:
    """Compiles regions by every strategy that takes them, and returns the kernel of the one that would be chosen.

    Args:
        validator: takes the kernels.
        all_numbers: takes strategies with all their numbers; else the cheapest and the dearest of each kind.
    """

    def __init__(self, validator: Validator, *, all_numbers: bool = False) -> None:
        self._validator = validator
        self._all = all_numbers
        self._kernels: dict[object, Kernel] = {}
        self.strategies: Counter[str] = Counter()

    def __call__(self, region: KernelRegion, strategy: Strategy | None = None) -> Kernel:
        key = text_of(region.block), region.target, region.in_place, strategy
        kernel = self._kernels.get(key)
        if kernel is None:
            kernel = self._kernels[key] = compile_region(region, strategy)
            self._validator.add_variants(kernel.code, region.name)
            for other in self._others(region):
                try:
                    code = other.emit(region).code
                except NeedsSplitError:
                    continue
                self.strategies[other.name()] += 1
                self._validator.add("by other strategies", code, f"{region.name} by {other.text()}")
        return kernel

    def _others(self, region: KernelRegion) -> list[Strategy]:
        """Returns all strategies, or the cheapest and the dearest of each kind."""
        strategies = [strategy for _, strategy in ranked(region)]
        if self._all:
            return strategies
        by_kind: dict[str, list[Strategy]] = {}
        for strategy in strategies:
            by_kind.setdefault(strategy.name(), []).append(strategy)
        return [strategy for each in by_kind.values() for strategy in {each[0]: None, each[-1]: None}]
