"""StableHLO's programs for any batch, whose first arguments are the lengths that JAX once passed beside the arrays.

Such a program is compiled once and called with several lengths. What it has to give is what the definitions give for
the program of fixed shapes that it is for each: lengths are constants there, and no dimension is unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import pumice
from pumice.compiler.analysis.reference_program import ProgramWriter
from pumice.compiler.dialects.syntax.text import parse
from pumice.compiler.ir.attributes import DenseElements
from pumice.compiler.ir.copying import copy_operations
from pumice.compiler.ir.element_types import element_type
from pumice.compiler.ir.operation import Block, Operation, Region, Value, tensor_of
from pumice.compiler.ir.source import SourceText
from pumice.compiler.ir.types import I64, FunctionType, TensorType
from pumice.compiler.passes.canonical.canonicalize import inlined
from pumice.compiler.passes.dynamic.resolve import resolve
from pumice.compiler.passes.formulas.expand import expand_chlo
from pumice.compiler.passes.verification.verify import verify
from pumice.compiler.stages import program_of
from pumice.hal_reference.operations import evaluate
from pumice.hal_reference.program import Array

SIZES = (3, 5)


class DynamicProgram:
    """A program of one function ``main`` whose leading 64-bit integers are lengths.

    Args:
        text: of the program.
        name: as errors name it.
    """

    def __init__(self, text: str, name: str) -> None:
        self._program = program_of(parse(text, name), SourceText(text, name))
        self._text = text
        self._name = name
        verify(self._program.functions, self._program.source)
        types = [value.tensor for value in self._main.regions[0].block.arguments]
        self._count = [type == TensorType((), I64) for type in (*types, None)].index(False)
        self._types = types[self._count :]

    @property
    def _main(self) -> Operation:
        return self._program.functions["main"]

    def arguments(self, size: int) -> tuple[list[Array], list[Array]]:
        """Lengths and arrays for one call, every unknown length the same."""
        rng = np.random.default_rng(size)
        return [np.array(size, np.int64)] * self._count, [_random(rng, _fixed(type, size)) for type in self._types]

    def expected(self, size: int, arrays: Sequence[Array]) -> list[Array]:
        """Evaluates the program of fixed shapes by the definitions."""
        functions, source = self._program.functions, self._program.source
        old = self._main.regions[0].block
        block = Block([_fixed(type, size) for type in self._types])
        values: dict[Value, Value] = dict(zip(old.arguments[self._count :], block.arguments, strict=True))
        for argument in old.arguments[: self._count]:
            attributes = {"value": DenseElements(tensor_of(argument), np.array(size, np.int64))}
            values[argument] = block.append(Operation("stablehlo.constant", (), [argument.type], attributes)).result
        copy_operations(old.operations, block, values)
        type = FunctionType([value.type for value in block.arguments], self._result_types)
        fixed = Operation("func.func", (), (), {"sym_name": "main", "function_type": type}, [Region([block])])
        made = resolve(inlined(fixed, functions, source), functions, source)
        expand_chlo(made.regions[0].block)
        with np.errstate(all="ignore"):
            return evaluate(ProgramWriter({"main": made}).function("main"), arrays)

    @property
    def _result_types(self) -> Sequence[TensorType]:
        return [tensor_of(value) for value in self._main.regions[0].block.terminator.operands]

    def wrong(self, device: pumice.Device, module: bytes) -> str:
        """Calls a module of the program with each size, and says how its results differ from what they have to be."""
        with pumice.Session(device) as session:
            name = session.load(module).name
            for size in SIZES:
                lengths, arrays = self.arguments(size)
                given = session.call(f"{name}.main", *lengths, *arrays)
                several = given if isinstance(given, tuple | list) else [given]
                found = [np.asarray(each.numpy() if hasattr(each, "numpy") else each) for each in several]
                for index, (actual, wanted) in enumerate(zip(found, self.expected(size, arrays), strict=True)):
                    if actual.shape != np.shape(wanted):
                        return f"size {size}: result {index} is of shape {actual.shape}, not {np.shape(wanted)}"
                    if not _is_close(actual, wanted):
                        return f"size {size}: result {index} is {actual.reshape(-1)[:4]}, not {wanted.reshape(-1)[:4]}"
        return ""


def _fixed(type: TensorType, size: int) -> TensorType:
    return TensorType([size if length is None else length for length in type.shape], type.element)


def _random(rng: np.random.Generator, type: TensorType) -> Array:
    """Numbers that every function is defined for, and integers that are indices everywhere."""
    found = element_type(type.scalar)
    assert found is not None
    dtype, kind = found.dtype, type.scalar.kind
    if kind == "bool":
        return rng.integers(0, 2, type.lengths).astype(dtype)
    if type.scalar.is_integer:
        return rng.integers(1, 3, type.lengths).astype(dtype)
    values = rng.uniform(0.1, 0.9, type.lengths)
    return (values + 1j * rng.uniform(0.1, 0.9, type.lengths) if kind == "complex" else values).astype(dtype)


def _is_close(actual: Array, wanted: Array) -> bool:
    if actual.dtype.kind in "biu":
        return np.array_equal(actual, wanted)
    wide = np.complex128 if actual.dtype.kind == "c" else np.float64
    tolerance = 1e-2 if actual.dtype.itemsize == 2 else 1e-3
    return np.allclose(actual.astype(wide), wanted.astype(wide), tolerance, tolerance, equal_nan=True)
