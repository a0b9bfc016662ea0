"""Cases that compile tensor programs for the device and compare the results with the device ``reference``.

The programs are in ``programs.mlir``, whose first lines define its notation.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ...base.lazy_dataclass import dataclass
from ...compiler.kernels.scalars.device_target import FAMILY_NAMES, target_of
from ...compiler.kernels.scalars.target import Target
from ...compiler.passes.dispatch.outline import entry_of
from ...compiler.pipeline import compile_data
from ...compiler.stages import Program
from ...compiler.strategies.choice import class_of, ranked
from ...compiler.targets.vulkan import kernel_region
from ...runtime.device import Device
from ...runtime.opening import REFERENCE, open_device
from ...runtime.sessions.session import Session
from ...runtime.sessions.session_function import SessionFunction
from ...runtime.sessions.signature import Argument
from ...testing.closeness import assert_close
from .case import Case, SkipCase, needs

Array: TypeAlias = npt.NDArray[Any]

_FILE: Final = Path(__file__).with_name("programs.mlir")
_LENGTH: Final = 64  # the length of open dimensions
_SECONDS: Final = 30.0  # of a call; the limit of a case is longer
_SPECIAL: Final = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0)


def _wide(a: Array) -> Array:
    return a.astype(np.float64)


def _rows_of(function: Callable[..., Array]) -> Callable[[Array], list[Array]]:
    return lambda a: [function(a, axis=1, dtype=a.dtype)]


def _softmax(a: Array) -> list[Array]:
    powers = np.exp(_wide(a) - a.max(1, keepdims=True))
    return [powers / powers.sum(1, keepdims=True)]


def _fourier(a: Array) -> list[Array]:
    spectrum = np.fft.fft(_wide(a))
    return [spectrum.real, spectrum.imag]


def _scatter_add(a: Array, indices: Array, updates: Array) -> list[Array]:
    result = a.copy()
    np.add.at(result, indices[:, 0], updates)
    return [result]


def _sort_pairs(keys: Array, values: Array) -> list[Array]:
    order = np.argsort(-keys, kind="stable")
    return [keys[order], values[order]]


def _collatz(n: Array) -> list[Array]:
    value, steps = int(n), 0
    while value != 1:
        value, steps = value // 2 if value % 2 == 0 else 3 * value + 1, steps + 1
    return [np.int32(value), np.int32(steps)]  # type: ignore[list-item]


_NUMPY: Final[Mapping[str, Callable[..., Sequence[Array]]]] = {
    "sums_and_products": lambda a, b: [a + b, a - b, a * b],
    "comparisons": lambda a, b: [a < b, a == b, np.where(a < b, a, b), np.maximum(a, b), np.minimum(a, b)],
    "signs": lambda a: [np.abs(a), -a, np.sign(a)],
    "bits": lambda a, b: [a & b, a | b, a ^ b, ~a],
    "rounding": lambda a: [np.floor(a), np.ceil(a), np.rint(a)],
    "powers": lambda a: [np.exp(_wide(a)), np.log(_wide(a)), np.expm1(_wide(a)), np.log1p(_wide(a))],
    "roots": lambda a: [np.sqrt(_wide(a)), 1 / np.sqrt(_wide(a)), np.cbrt(_wide(a))],
    "matmul": lambda a, b: [np.matmul(_wide(a), _wide(b)).astype(a.dtype)],
    "matmul32": lambda a, b: [np.matmul(_wide(a), _wide(b)).astype(np.float32)],
    "matmul_integers": lambda a, b: [np.matmul(a.astype(np.int32), b.astype(np.int32))],
    "layer": lambda a, b, c: [np.maximum(a @ b.T + c, 0)],
    "sum_rows": _rows_of(np.sum),
    "sum_columns": lambda a: [a.sum(0)],
    "sum_all": lambda a: [_wide(a).sum().astype(a.dtype)],
    "max_rows": lambda a, z: [np.maximum(a.max(1), z)],
    "argmax": lambda a: [a.argmax(1).astype(np.int32)],
    "softmax": _softmax,
    "running_sums": _rows_of(np.cumsum),
    "running_sums_of_columns": lambda a: [np.cumsum(a, 0)],
    "fourier": _fourier,
    "sort": lambda a: [np.sort(a, axis=-1, kind="stable")],
    "sort_pairs": _sort_pairs,
    "transpose": lambda a: [a.T],
    "gather": lambda a, i: [a[i[:, 0]]],
    "scatter_add": _scatter_add,
    "collatz": _collatz,
}
"""Independent definitions of results, by program name in ``programs.mlir``."""


@dataclass(frozen=True, slots=True)
class ProgramCase:
    """A program to compile and run.

    Attributes:
        name: for errors.
        text: StableHLO, whose function is ``main``.
        values: the kinds of values by the argument's name; ``""`` for other arguments.
        strategy: the name of the strategy to use; empty for the compiler's choice.
        length: the length of open dimensions.
        definition: the results in NumPy.
        atol: the absolute tolerance of the comparison with the definition; None for the dtype's.
        by_reference: whether the device ``reference`` also computes the results.
    """

    name: str
    text: str
    values: Mapping[str, str]
    strategy: str = ""
    length: int = _LENGTH
    definition: Callable[..., Sequence[Array]] | None = None
    atol: float | None = None
    by_reference: bool = True

    def __call__(self, device: Device) -> None:
        if re.search(r"\bf64\b|xf64", self.text):
            needs(device, "shaderFloat64")
        target = target_of(device.profile)
        if self.strategy:
            target = self._with_strategy(target)
        arguments: list[Array] = []
        results = self._results(target, device, arguments)
        if self.by_reference:
            with open_device(REFERENCE) as reference:
                others = self._results(Target(kinds=(REFERENCE,)), reference, arguments)
            for number, (result, expected) in enumerate(zip(results, others, strict=True)):
                assert_close(result, expected, what=f"result {number} against the device reference")
        if self.definition is not None:
            with np.errstate(all="ignore"):
                defined = self.definition(*arguments)
            for number, (result, expected) in enumerate(zip(results, defined, strict=True)):
                assert_close(result, expected, what=f"result {number} against NumPy", atol=self.atol)

    def _with_strategy(self, target: Target) -> Target:
        """Returns the target as if tuning had found the strategy to be the fastest.

        The compiler proposes some strategies for some families only; every device can run them.
        """
        for family in dict.fromkeys((target.family, *FAMILY_NAMES)):
            candidate = replace(target, family=family)
            program = compile_data(self.text.encode(), self.name, candidate, until="ll_seq").program
            assert isinstance(program, Program)
            tuned = []
            for executable in program.executables:
                region = kernel_region(entry_of(executable)[1], candidate)
                named = [strategy for _, strategy in ranked(region) if strategy.name() == self.strategy]
                tuned += [(class_of(region), strategy.text()) for strategy in named[:1]]
            if tuned:
                return replace(candidate, tuned=tuple(tuned))
        raise SkipCase(f"{self.strategy} does not apply on the device")

    def _results(self, target: Target, device: Device, arguments: list[Array]) -> list[Array]:
        """Compiles and calls the program on a device; makes the ``arguments`` if there are none."""
        module = compile_data(self.text.encode(), self.name, target).module
        with Session(device) as session:
            function: SessionFunction = session.lookup(f"{session.load(module).name}.main")
            if not arguments:
                rng = np.random.default_rng(zlib.crc32(self.name.encode()))
                names = re.findall(r"%(\w+): tensor", self.text[self.text.index("@main") :].partition("->")[0])
                for name, argument in zip(names, function.signature.inputs, strict=True):
                    arguments.append(self._argument(name, argument, rng))
            results = function(*arguments, timeout=_SECONDS)
            return [np.asarray(value) for value in (results if isinstance(results, tuple) else (results,))]

    def _argument(self, name: str, argument: Argument, rng: np.random.Generator) -> Array:
        assert argument.shape is not None
        shape = tuple(self.length if length is None else length for length in argument.shape)
        kind, *bounds = self.values.get(name, self.values.get("", "any")).split()
        return values_of(kind, [float(bound) for bound in bounds], shape, argument.dtypes[0], rng)


def values_of(
    kind: str, bounds: Sequence[float], shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator
) -> Array:
    """Returns an array of a kind of values, by its name in ``programs.mlir``."""
    is_integer = dtype.kind in "iu"
    if kind == "ordinals":
        return np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    if kind == "whole":
        low, high = bounds
        if is_integer:
            low, high = max(low, float(np.iinfo(dtype).min)), min(high, float(np.iinfo(dtype).max))
        return rng.integers(int(low), int(high) + 1, shape).astype(dtype)
    if kind == "range":
        low, high = bounds
        return np.asarray(rng.uniform(low, high, shape)).astype(dtype)
    if kind == "special":
        tiny = 1e-4 if dtype == np.float16 else 1.2e-38  # devices may flush smaller values to zero
        return rng.choice(np.array([*_SPECIAL, tiny]), shape).astype(dtype)
    if not is_integer:
        array = (4 * rng.standard_normal(shape)).astype(dtype)
        return array if kind == "any" else np.where(array == 0, dtype.type(1), array)
    facts = np.iinfo(dtype)
    array = rng.integers(facts.min, facts.max, shape, dtype=dtype, endpoint=True)
    if array.ndim:
        array.flat[:4] = (facts.min, facts.max, 0, 1)
    if kind == "nonzero":
        array = np.where((array == 0) | (array == dtype.type(-1 if dtype.kind == "i" else 0)), dtype.type(3), array)
    return array


def program_cases() -> Iterator[Case]:
    """Yields a case for each program, type and strategy."""
    for block in re.split(r"^(?=// case )", _FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        words: dict[str, list[str]] = {}
        lines = block.splitlines()
        while lines and lines[0].startswith("// "):
            key, _, rest = lines.pop(0).removeprefix("// ").partition(" ")
            words.setdefault(key, []).append(rest)
        body = "\n".join(line for line in lines if not line.startswith("//"))
        (title,) = words["case"]
        values: dict[str, str] = {}
        for text in words.get("values", ()):
            argument, _, kind = text.removeprefix("%").partition(" ")
            values |= {argument: kind} if text.startswith("%") else {"": text}
        length = int(words["lengths"][0]) if "lengths" in words else _LENGTH
        definition = _NUMPY[words["numpy"][0]] if "numpy" in words else None
        atol = float(words["atol"][0]) if "atol" in words else None
        by_reference = words.get("reference") != ["no"]
        for element in words.get("types", [""])[0].split() or [""]:
            for strategy in words.get("strategies", [""])[0].split() or [""]:
                name = title.replace("$T", element) + (f" by {strategy}" if strategy else "")
                case = ProgramCase(
                    name, body.replace("$T", element), values, strategy, length, definition, atol, by_reference
                )
                area, _, rest = name.partition("/")
                yield Case(area, rest, case)
