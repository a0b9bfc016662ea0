"""Resolution of call-dependent lengths: every ``?`` becomes a size, and operations become static.

Each ``?`` of an argument is a symbol. Types are inferred from operation to operation. If two lengths must be equal but
differ, a symbol is replaced by its solution, and the walk restarts. The walk also restarts if a length comes from an
integer argument of rank 0, whose value then becomes a symbol.

Requirements on a call beyond the shapes of its arguments become attributes of the function, which ``requirements.py``
describes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Final

from ...dialects.builder import Builder
from ...dialects.rules.hlo import infer
from ...dialects.rules.requirements import OperationError, UnequalError, compatible
from ...ir.attributes import DenseArray
from ...ir.copying import copy_region
from ...ir.operation import Block, Operation, Value
from ...ir.sizes import (
    Dim,
    Place,
    Size,
    SizeError,
    definitions,
    is_at_least,
    is_multiple,
    parts_of_quotient,
    product,
    quotient,
    solved,
    substituted,
    symbol,
    symbols_of,
)
from ...ir.source import SourceText
from ...ir.types import I32, I64, FunctionType, ShapedType, TensorType, Type
from .forms import FORMS, agreed, static_window
from .known_sizes import ArgumentsError, Known, is_true
from .requirements import REQUIRES, VALUES, can_be_length, requirements, shape_requirements

MAX_SIZE: Final = 2**31 - 1
"""The largest value of a symbol: lengths are 32-bit integers in programs."""


def resolve(function: Operation, functions: Mapping[str, Operation], source: SourceText) -> Operation:
    """Returns the function if it is static, else a copy in which all lengths are numbers or sizes.

    Args:
        function: the function, without calls.
        functions: the program's functions, for the bodies that custom calls refer to.
        source: the program's text.

    Raises:
        CompileError: a length is not a polynomial in the lengths of arguments' dimensions, or cannot have its required
            value.
    """
    if all(_is_static(operation) for operation in function.walk()):
        return function
    replaced: dict[str, Dim] = {}
    values: set[int] = set()
    while True:
        copy = Operation(
            function.name,
            (),
            (),
            dict(function.attributes),
            [copy_region(region, {}) for region in function.regions],
            location=function.location,
        )
        try:
            _Resolver(replaced, values, functions, source).run(copy)
        except _Unequal as error:
            replaced = {name: substituted(size, {error.symbol: error.size}) for name, size in replaced.items()}
            replaced[error.symbol] = error.size
            continue
        except ArgumentsError as error:
            values |= error.arguments
            continue
        return copy


def _is_static(operation: Operation) -> bool:
    is_call = operation.attributes.get("call_target_name") in ("shape_assertion", "stablehlo.dynamic_reduce_window")
    if is_call or operation.name.removeprefix("stablehlo.") in FORMS:
        return False
    types = [value.type for value in operation.results]
    if operation.name == "func.func":
        types += [value.type for block in operation.regions[0].blocks for value in block.arguments]
    return all(not isinstance(type, ShapedType) or type.is_static for type in types)


@dataclass
class _Unequal(Exception):
    """A symbol and the size that it must equal."""

    symbol: str
    size: Dim


class _Resolver:
    """One walk over a function.

    Args:
        replaced: the sizes by the symbols that they replace.
        values: the numbers of the integer arguments whose values are lengths.
        functions: the program's functions.
        source: the program's text.
    """

    def __init__(
        self, replaced: Mapping[str, Dim], values: Set[int], functions: Mapping[str, Operation], source: SourceText
    ) -> None:
        self._replaced = replaced
        self._values = values
        self._functions = functions
        self._source = source
        self._known = Known()
        self._places: dict[str, Place] = {}
        self._arguments: Sequence[Value] = ()
        self._requires: dict[Size, str] = {}
        self._depth = 0

    def run(self, function: Operation) -> None:
        block = function.regions[0].block
        count = 0
        for argument in block.arguments:
            if not isinstance(argument.type, ShapedType):
                continue
            shape: list[Dim] = []
            bounds = argument.type.encoding.removeprefix("#stablehlo.bounds<").rstrip(">").split(", ")
            for length in argument.type.shape:
                if length is not None:
                    shape.append(length)
                    continue
                shape.append(substituted(symbol(count), self._replaced))
                count += 1
            argument.type = TensorType(shape, argument.type.element)
            for axis, bound in enumerate(bounds):
                difference = int(bound) - shape[axis] if bound.isdigit() else 0
                if isinstance(difference, Size):
                    self._requires[difference] = f"expected at most {bound} elements along dimension {axis}"
        self._arguments = block.arguments
        values: dict[int, Dim] = {}
        for number, argument in enumerate(block.arguments):
            if number in self._values:
                # Lengths of dimensions have the first symbols, so that equations are solved for values first.
                values[number] = substituted(symbol(count + number), self._replaced)
                self._known.sizes[argument] = self._known.scalar(values[number])
            elif can_be_length(argument.type):
                self._known.note_argument(argument, number)
        self._places = definitions((_lengths(value.type) for value in block.arguments), values)
        try:
            for argument in block.arguments:
                _check_whole_bytes(argument.type)
        except OperationError as error:
            raise self._error(function, error.expected) from None
        missing = symbols_of(length for value in block.arguments for length in _lengths(value.type)) - set(self._places)
        if missing:
            message = f"no argument tells {', '.join(sorted(missing))}; add one that has that dimension alone"
            raise self._source.error(max(function.location.offset, 0), message)
        self._block(block, {})
        results = [value.type for value in block.terminator.operands]
        function.attributes["function_type"] = FunctionType([value.type for value in block.arguments], results)
        if self._requires:
            function.attributes[REQUIRES] = tuple(
                (DenseArray(I64, (size,)), message) for size, message in self._requires.items()
            )
        if values:
            function.attributes[VALUES] = tuple(DenseArray(I64, pair) for pair in values.items())

    def _block(self, block: Block, replaced: dict[Value, Value]) -> None:
        operations, block.operations = block.operations, []
        builder = Builder(block)
        for operation in operations:
            operation.operands = [replaced.get(value, value) for value in operation.operands]
            builder.location = operation.location
            try:
                values = self._operation(builder, operation, replaced)
            except UnequalError as error:
                solution = solved(error.difference)
                if solution is not None and is_at_least(solution[1], 0) is not False:
                    raise _Unequal(*solution) from None
                raise self._error(operation, error.expected) from None
            except ArgumentsError:
                raise
            except OperationError as error:
                raise self._error(operation, error.expected) from None
            except SizeError as error:
                raise self._error(operation, str(error)) from None
            replaced.update(zip(operation.results, values, strict=True))

    def _error(self, operation: Operation, expected: str) -> Exception:
        debug = operation.location.debug
        origin = f" (from {debug.file_name}:{debug.line})" if debug is not None and debug.line else ""
        return self._source.error(max(operation.location.offset, 0), f"{operation.name} expects {expected}{origin}")

    def _operation(self, builder: Builder, operation: Operation, replaced: dict[Value, Value]) -> Sequence[Value]:
        name = operation.name.removeprefix("stablehlo.")
        if name == "custom_call" and operation.attributes.get("call_target_name") == "shape_assertion":
            self._assert(operation)
            return []
        if name == "get_dimension_size":
            return [self._dimension(builder, operation)]
        if name == "custom_call" and operation.attributes.get("call_target_name") == "stablehlo.dynamic_reduce_window":
            values = static_window(builder, operation, self._known, self._functions)
        elif name in FORMS:
            values = FORMS[name](builder, operation, self._known)
        else:
            self._infer(builder, operation, replaced)
            values = operation.results
        for owner in {value.owner for value in values}:
            if isinstance(owner, Operation):
                for value in owner.results:
                    _check_whole_bytes(value.type)
                self._require(owner)
                self._known.note(owner)
        return values

    def _infer(self, builder: Builder, operation: Operation, replaced: dict[Value, Value]) -> None:
        """Appends an operation with the types inferred from its operands."""
        name = operation.name.removeprefix("stablehlo.")
        _check_static(operation)
        for region in operation.regions:
            for inner in region.blocks:
                if name == "while":
                    for argument, value in zip(inner.arguments, operation.operands, strict=True):
                        argument.type = value.type
                self._depth += name in ("while", "if", "case")
                self._block(inner, replaced)
                self._depth -= name in ("while", "if", "case")
        builder.block.append(operation)
        if operation.name.startswith(("func.", "stablehlo.return")):
            return
        _complete(operation)
        inferred = infer(operation)
        for value, type in zip(operation.results, inferred, strict=True):
            value.type = agreed(type, value.type)
        if name == "while":
            returned = [value.type for value in operation.regions[1].block.terminator.operands]
            for left, right in zip(returned, inferred, strict=True):
                if not compatible(left, right):
                    raise OperationError(f"a body that gives {right}, which it takes, got {left}")

    # -- scalars of sizes ------------------------------------------------------------------------------

    def _dimension(self, builder: Builder, operation: Operation) -> Value:
        """Returns the length of a dimension, computed from the arguments' lengths."""
        (operand,) = operation.operands
        size = operand.tensor.lengths[operation.integer("dimension")]
        value = self._size(builder, size)
        element = operation.results[0].tensor.scalar
        value = builder.convert(value, element)
        self._known.sizes[value] = self._known.scalar(size)
        return value

    def _size(self, builder: Builder, size: Dim) -> Value:
        scalar = TensorType((), I32)
        if isinstance(size, int):
            return builder.constant(size, scalar)
        total: Value | None = None
        for monomial, factor in size.terms:
            term: Value | None = None
            for name in monomial:
                length = self._symbol(builder, name)
                term = length if term is None else builder.elementwise("multiply", term, length)
            if term is None:
                term = builder.constant(factor, scalar)
            elif factor != 1:
                term = builder.elementwise("multiply", term, factor)
            total = term if total is None else builder.elementwise("add", total, term)
        assert total is not None
        return total

    def _symbol(self, builder: Builder, name: str) -> Value:
        parts = parts_of_quotient(name)
        if parts is not None:
            return builder.elementwise("divide", self._size(builder, parts[0]), parts[1])
        argument, axis, factor, constant = self._places[name]
        known = self._arguments[argument]
        length = builder.convert(known, I32) if axis is None else builder.dimension(known, axis)
        length = builder.elementwise("subtract", length, constant) if constant else length
        return builder.elementwise("divide", length, factor) if factor > 1 else length

    # -- requirements on calls -------------------------------------------------------------------------

    def _assert(self, operation: Operation) -> None:
        """Handles a check of shapes: it is true, or an equation for a symbol, or the call must check it."""
        message = str(operation.attributes.get("error_message", "")).partition(" Using the following")[0]
        condition = operation.operands[0]
        known = is_true(self._known, condition)
        if known is False:
            raise OperationError(f"a condition that can hold: {message}")
        if known:
            return
        compared = self._known.comparison(condition)
        if compared is None and self._known.divisions:
            # It asserts that a division has no remainder.
            name, divisor = self._known.divisions[0]
            raise _Unequal(name, divisor * Size((((name,), 1),)))
        if compared is None:
            raise OperationError("a comparison of sizes that are polynomials in the lengths of arguments' dimensions")
        direction, left, right = compared
        difference = left - right if direction in ("GE", "GT", "EQ") else right - left
        if direction in ("GT", "LT"):
            difference = difference - 1
        assert isinstance(difference, Size)
        if direction == "EQ":
            raise UnequalError(f"{left} to be {right}", None, difference)
        if direction == "NE":
            raise OperationError(f"a comparison other than {left} != {right}, which no call checks")
        self._requires.setdefault(difference, message or f"expected {left} {_SIGNS[direction]} {right}")

    def _require(self, operation: Operation) -> None:
        # A loop's or a branch's body may never run, so only its shapes must be valid.
        for size, expectation in shape_requirements(operation) if self._depth else requirements(operation):
            holds = is_at_least(size, 0)
            if holds is False:
                raise OperationError(expectation)
            if holds is None and isinstance(size, Size):
                self._requires.setdefault(size, f"{operation.name} expects {expectation}")


def _complete(operation: Operation) -> None:
    """Completes the declared result of a reshape or a broadcast by its open length."""
    name = operation.name.removeprefix("stablehlo.")
    if name not in ("reshape", "broadcast_in_dim") or not isinstance(operation.results[0].type, TensorType):
        return
    before, declared = operation.operands[0].tensor, operation.results[0].type
    shape = list(declared.shape)
    if name == "broadcast_in_dim":
        for axis, target in enumerate(operation.integers("broadcast_dimensions")):
            if shape[target] is None and before.lengths[axis] != 1:
                shape[target] = before.lengths[axis]
    elif shape.count(None) == 1:
        others = product(length for length in shape if length is not None)
        if isinstance(others, int) and others and is_multiple(before.count, others):
            shape[shape.index(None)] = quotient(before.count, others)
    operation.results[0].type = TensorType(shape, declared.element)


def _check_whole_bytes(type: Type) -> None:
    """Checks that a tensor occupies whole bytes in every call."""
    if not isinstance(type, TensorType) or type.is_static or type.scalar.kind not in ("int", "uint"):
        return
    if not is_multiple(type.count * type.scalar.bits, 8):
        raise OperationError(
            f"elements that fill whole bytes in every call where lengths depend on it, got {type}; use 8 bits"
        )


def _check_static(operation: Operation) -> None:
    """Checks that the lengths over which an operation is unrolled are numbers."""
    name = operation.name.removeprefix("stablehlo.")
    types = [value.type for value in operation.operands if isinstance(value.type, ShapedType)]
    count = {"cholesky": 2, "triangular_solve": 2, "fft": len(operation.integers("fft_length"))}.get(name)
    if name == "custom_call" and str(operation.attributes["call_target_name"]).startswith("lapack_"):
        count = max((type.rank for type in types), default=0)
    for type in types if count else ():
        if not all(isinstance(length, int) for length in type.shape[-(count or 0) :]):
            raise OperationError(
                f"last {count} dimensions whose lengths are known when the program is compiled, got {type}; "
                "export the program for fixed lengths"
            )


_SIGNS: Final = {"GE": ">=", "GT": ">", "LE": "<=", "LT": "<"}


def _lengths(type: Type) -> tuple[Dim, ...]:
    return type.lengths if isinstance(type, ShapedType) else ()
