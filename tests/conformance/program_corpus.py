"""The programs written for these tests: their sources, how each is called, and what each call must give.

``programs/manifest.toml`` says how a program is compiled and called; ``program_expectations.py`` says, in NumPy, what
comes out. The same calls serve two ends: pumice runs them, and IREE's own tools run them to check the expectations.
"""

from __future__ import annotations

import math
import re
import tomllib
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from conformance import program_expectations
from support.iree_releases import CompileError, Compiler, release_key

import pumice

Value = np.ndarray | int | float | bool
PROGRAMS = Path(__file__).with_name("programs")

DTYPES: Mapping[str, np.dtype] = {
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
    "i1": np.dtype(np.bool_),
    **{f"i{bits}": np.dtype(f"int{bits}") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    "complex<f32>": np.dtype(np.complex64),
}
# Relative and absolute: a few units in the last place for what a device's own exp, sin or summation order may differ.
TOLERANCES: Mapping[str, tuple[float, float]] = {
    "float16": (4e-3, 1e-3),
    "bfloat16": (2e-2, 1e-2),
    "float32": (2e-5, 2e-6),
    "float64": (1e-12, 1e-13),
    "complex64": (2e-5, 2e-6),
}
_TENSOR = re.compile(
    r"(?P<shape>(?:\d+x)*)(?P<type>[a-z]+\d*(?:<f32>)?)(?: in (?P<low>\S+)\.\.(?P<high>\S+)| = (?P<values>.+))?"
)


def dtype_named(name: str) -> np.dtype:
    """NumPy's type for an MLIR element type."""
    return DTYPES[name]


def _random(shape: tuple[int, ...], dtype: np.dtype, low: float | None, high: float | None, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    if dtype == np.bool_:
        return random.integers(0, 2, shape).astype(np.bool_)
    if dtype.kind in "iu":
        floor = -100 if dtype.kind == "i" else 0
        return random.integers(floor if low is None else int(low), 100 if high is None else int(high), shape, dtype)
    bounds = (-2.0 if low is None else low, 2.0 if high is None else high)
    values = random.uniform(*bounds, shape)
    if dtype.kind == "c":
        values = values + 1j * random.uniform(*bounds, shape)
    return values.astype(dtype)


def tensor_from(text: str, seed: int) -> np.ndarray:
    """An array from the manifest's notation.

    ``4x8xf32`` is random, within -2..2 for floats and -100..100 for integers; ``4xf32 in 0.1..5`` states the range
    (the upper bound is excluded); ``3xi32 = 1 2 3`` the values. ``f32 = 2`` has rank 0.
    """
    match = _TENSOR.fullmatch(text)
    if match is None:
        raise ValueError(
            f"manifest: expected a tensor such as '4x8xf32', '4xf32 in 0..1' or '2xi32 = 1 2', not {text!r}"
        )
    shape = tuple(int(extent) for extent in match["shape"].split("x") if extent)
    dtype = dtype_named(match["type"])
    if match["values"] is None:
        low, high = (None if bound is None else float(bound) for bound in (match["low"], match["high"]))
        return _random(shape, dtype, low, high, seed)
    number = float if dtype.kind in "fV" else int
    return np.array([number(value) for value in match["values"].split()]).astype(dtype).reshape(shape)


@dataclass(frozen=True)
class Call:
    """One call of an exported function, with its arguments made."""

    function: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True)
class Failure:
    """A call that must fail, and a part of the message."""

    call: Call
    message: str


@dataclass(frozen=True)
class Program:
    """A program, its compile flags and its calls, which run in order in one session.

    Attributes:
        name: unique; the test's name.
        source_name: file below ``programs``, shared by programs that differ in flags only.
        flags: ``iree-compile`` flags beside the device's.
        since: the first release that compiles it for Vulkan, and rightly, with why earlier ones do not; ``None``: all
            known do.
        peer_device: where the peer can run it: ``vulkan``, ``local-task``, or ``None`` where it fails.
        tolerance: relative and absolute, for all results, in place of the data type's own.
        parameters: arrays by scope and key.
    """

    name: str
    source_name: str
    flags: tuple[str, ...]
    calls: tuple[Call, ...]
    failures: tuple[Failure, ...] = ()
    since: tuple[str, str] | None = None
    peer_device: str | None = "vulkan"
    tolerance: tuple[float, float] | None = None
    parameters: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)

    @property
    def source(self) -> str:
        return (PROGRAMS / f"{self.source_name}.mlir").read_text()

    def reason_not_compiled(self, release: str) -> str | None:
        """Why a release does not compile this program, or not rightly; ``None`` when it does."""
        if self.since is None or release_key(release) >= release_key(self.since[0]):
            return None
        return f"{self.since[1]} (right since {self.since[0]})"

    def expectations(self) -> list[tuple[Value, ...]]:
        """Computes the results of each call by NumPy, as one session: those of a call as a tuple."""
        functions = program_expectations.session(self.source_name, self.parameters)
        expected: list[tuple[Value, ...]] = []
        for call in self.calls:
            # Divisions by zero, overflow and the like are part of what some programs are about.
            with np.errstate(all="ignore"):
                results = functions[call.function](*call.arguments)
            expected.append(results if isinstance(results, tuple) else () if results is None else (results,))
        return expected


def _call(program: str, position: int, entry: Sequence[str | int | float | bool]) -> Call:
    function, *arguments = entry
    made: list[Value] = [
        tensor_from(argument, zlib.crc32(f"{program}/{position}/{index}".encode()))
        if isinstance(argument, str)
        else argument
        for index, argument in enumerate(arguments)
    ]
    return Call(str(function), tuple(made))


def load_corpus() -> tuple[Program, ...]:
    """Every program of the manifest, in its order."""
    manifest = tomllib.loads((PROGRAMS / "manifest.toml").read_text())
    programs = []
    for name, entry in manifest.items():
        source = entry.get("source", name)
        calls = manifest[source]["calls"] if "source" in entry else entry["calls"]
        failing = entry.get("fails", ())
        programs.append(
            Program(
                name=name,
                source_name=source,
                flags=tuple(entry.get("flags", ())),
                calls=tuple(_call(source, position, call) for position, call in enumerate(calls)),
                failures=tuple(Failure(_call(source, 0, f["call"]), f["message"]) for f in failing),
                since=(entry["since"]["release"], entry["since"]["reason"]) if "since" in entry else None,
                peer_device=None if "fails" in entry.get("peer", ()) else entry.get("peer", {}).get("device", "vulkan"),
                tolerance=tuple(entry["tolerance"]) if "tolerance" in entry else None,
                parameters={
                    scope: {key: tensor_from(text, zlib.crc32(key.encode())) for key, text in keys.items()}
                    for scope, keys in entry.get("parameters", {}).items()
                },
            )
        )
    return tuple(programs)


def compile_all(programs: Sequence[Program], compiler: Compiler, *, workers: int = 2) -> dict[str, Path | CompileError]:
    """Compiles for Vulkan what a release is known to compile, side by side: the module's path or the error by name."""

    def compiled(program: Program) -> Path | CompileError:
        try:
            return compiler.compile(program.source, program.flags)
        except CompileError as error:
            return error

    known = [program for program in programs if program.reason_not_compiled(compiler.release) is None]
    with ThreadPoolExecutor(workers) as pool:
        return dict(zip((program.name for program in known), pool.map(compiled, known), strict=True))


def run_program(program: Program, module: Path | bytes, device: pumice.Device | str, *, tensors: bool = False) -> None:
    """Loads a module and makes all calls of its program."""
    with pumice.Session(device, options=pumice.SessionOptions(parameters=program.parameters)) as session:
        name = session.load(module).name
        check_calls(program, lambda function, *values: session.call(f"{name}.{function}", *values, timeout=60), tensors)


def check_calls(program: Program, call: Callable[..., object], tensors: bool = False) -> None:
    """Makes all calls of a program, each of which gives what NumPy gives, and those that fail."""
    calls = list(zip(program.calls, program.expectations(), strict=True))
    for made, expected in calls:
        # Each result is read before the next call: state must not leak into results already given.
        assert not differences(program, made.function, call(made.function, *made.arguments), expected, tensors)
    for failure in program.failures:
        with pytest.raises(pumice.PumiceError, match=failure.message):
            call(failure.call.function, *failure.call.arguments)
        # A failed call leaves the program usable.
        made, expected = calls[0]
        assert not differences(program, made.function, call(made.function, *made.arguments), expected, tensors)


def differences(
    program: Program, function: str, returned: object, expected: tuple[Value, ...], tensors: bool = False
) -> list[str]:
    """Lists how the results of a call differ; with ``tensors``, numbers come as tensors without dimensions."""
    results = returned if isinstance(returned, tuple) else () if returned is None else (returned,)
    if len(results) != len(expected):
        return [f"{function}: expected {len(expected)} results, got {len(results)}"]
    said = []
    for index, (result, wanted) in enumerate(zip(results, expected, strict=True)):
        got = result if isinstance(result, (bool, int, float)) else np.asarray(result)
        if tensors and not isinstance(wanted, np.ndarray):
            got = np.asarray(got)
            wanted = np.asarray(wanted, got.dtype)
        apart = difference(got, wanted, program.tolerance)
        said += [] if apart is None else [f"{function}, result {index}: {apart}"]
    return said


def difference(got: Value, expected: Value, tolerance: tuple[float, float] | None = None) -> str | None:
    """Returns how a result differs from the expected one, or ``None``."""
    if isinstance(expected, np.ndarray):
        if not isinstance(got, np.ndarray):
            return f"expected an array of {expected.dtype}{list(expected.shape)}, got {got!r}"
        if got.dtype != expected.dtype or got.shape != expected.shape:
            return f"expected {expected.dtype}{list(expected.shape)}, got {got.dtype}{list(got.shape)}"
        dtype = expected.dtype
    else:
        if isinstance(got, np.ndarray):
            return f"expected the scalar {expected!r}, got an array {got.dtype}{list(got.shape)}"
        dtype = np.dtype(np.float32) if isinstance(expected, float) else np.dtype(np.int64)
    if str(dtype) not in TOLERANCES:
        left, right = np.asarray(got), np.asarray(expected)
        wrong = left != right
        if not wrong.any():
            return None
    else:
        wide = np.complex128 if dtype.kind == "c" else np.float64
        relative, absolute = tolerance or TOLERANCES[str(dtype)]
        left, right = np.asarray(got).astype(wide), np.asarray(expected).astype(wide)
        wrong = ~np.isclose(left, right, rtol=relative, atol=absolute, equal_nan=True)
        if not wrong.any():
            return None
    at = tuple(int(index) for index in np.argwhere(wrong)[0]) if wrong.ndim else ()
    count, total = int(wrong.sum()), math.prod(wrong.shape)
    with np.errstate(all="ignore"):
        apart = np.abs(left.astype(np.complex128) - right.astype(np.complex128))
    worst = apart[np.isfinite(apart)].max(initial=0)
    first = f"the first at {list(at)}: expected {right[at]}, got {left[at]}"
    return f"{count} of {total} differ, {first}; at most by {worst:.3g}"
