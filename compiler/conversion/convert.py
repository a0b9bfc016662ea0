"""Conversion of functions in several dialects to StableHLO and CHLO."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Never, TypeVar

from ..dialects.builder import Builder
from ..dialects.rules.chlo import CHLO_RULES
from ..dialects.rules.hlo import RULES
from ..dialects.rules.requirements import OperationError
from ..ir.attributes import Attribute, DenseElements, EnumAttr, StructAttr, SymbolRef
from ..ir.operation import Block, Operation, Region, Value, tensor_of
from ..ir.source import CompileError, SourceText
from ..ir.types import FunctionType, ScalarType, ShapedType, TensorType, Type
from .arithmetic import ARITH, MATH
from .control import CF, CHECK, SCF, reachable, structured, use_before_definition
from .conversion import Rule, Site, tensor_type
from .quantized import dequantized, is_quantized, keeps_storage, quantize, quantized_of
from .tensors import SHAPE, TENSOR

Made = TypeVar("Made")

_RULES: Final[Mapping[str, Rule]] = {
    f"{dialect}.{name}": rule
    for dialect, rules in {
        "arith": ARITH,
        "cf": CF,
        "check": CHECK,
        "math": MATH,
        "scf": SCF,
        "shape": SHAPE,
        "tensor": TENSOR,
        "util": {"unfoldable_constant": ARITH["constant"]},
    }.items()
    for name, rule in rules.items()
}
_KEPT: Final = ("stablehlo.", "chlo.", "func.")
_CONVERTED: Final = ("arith", "cf", "check", "math", "mhlo", "scf", "sdy", "shape", "tensor", "util")
# A sharding distributes parts of a value; a program has a single device.
_PASSED_ON: Final = frozenset({"mhlo.copy", "mhlo.add_dependency", "sdy.sharding_constraint"})


def convert_functions(operations: Sequence[Operation], source: SourceText) -> list[Operation]:
    """Converts functions to StableHLO and CHLO; operations in other dialects are returned unchanged.

    Raises:
        CompileError: an operation breaks the rules of its dialect, or has no conversion.
    """
    _end_called(operations)
    return [
        _Conversion(source).function(operation)
        if operation.name == "func.func" and _is_foreign(operation)
        else operation
        for operation in operations
    ]


def _end_called(operations: Sequence[Operation]) -> None:
    """Gives functions that custom calls refer to a function's return: JAX ends them like regions."""
    every = [inner for outer in operations for inner in outer.walk()]
    lists = [operation.attributes.get("called_computations") for operation in every]
    called = [symbol for listed in lists if isinstance(listed, tuple) for symbol in listed]
    for function in operations:
        last = [block.terminator for region in function.regions for block in region.blocks if block.operations]
        if SymbolRef(str(function.attributes.get("sym_name"))) in called:
            for operation in last:
                if operation.name == "stablehlo.return":
                    operation.name = "func.return"


def _is_foreign(function: Operation) -> bool:
    if any(len(region.blocks) > 1 for region in function.regions):
        return True
    type = function.attributes.get("function_type")
    if isinstance(type, FunctionType) and any(map(_is_other, (*type.inputs, *type.results))):
        return True
    for operation in function.walk():
        if operation.name.partition(".")[0] in _CONVERTED:
            return True
        if any(_is_index(value.type) or is_quantized(value.type) for value in operation.results):
            return True
    return False


def _is_other(type: Type) -> bool:
    """Whether a type is converted to a different type."""
    return isinstance(type, ScalarType) or _is_index(type) or is_quantized(type)


def _is_index(type: Type) -> bool:
    element = type.element if isinstance(type, ShapedType) else type
    return isinstance(element, ScalarType) and element.kind == "index"


class _Conversion:
    """Converts a function to a new one, operation by operation."""

    def __init__(self, source: SourceText) -> None:
        self._source = source
        self._values: dict[Value, Value] = {}
        self._results: Sequence[Type] = ()
        self._is_expressed = False

    def function(self, function: Operation) -> Operation:
        (converted,) = self._checked(function, lambda: [self._function(function)])
        return converted

    def _function(self, function: Operation) -> Operation:
        attributes = dict(function.attributes)
        type = attributes.get("function_type")
        assert isinstance(type, FunctionType)
        attributes["function_type"] = tensor_type(type)
        regions = []
        for region in function.regions:
            block = Block([tensor_type(value.type) for value in region.blocks[0].arguments])
            builder = Builder(block, function.location)
            self._results = type.results
            results = self.body(region.blocks, block.arguments, builder)
            block.append(Operation("func.return", results, location=builder.location))
            regions.append(Region([block]))
        return Operation(function.name, (), (), attributes, regions, location=function.location)

    def body(self, blocks: Sequence[Block], arguments: Sequence[Value], builder: Builder) -> list[Value]:
        """Appends a single block, or converted blocks that branch to each other; returns their results."""
        if len(blocks) == 1:
            return self.inline(blocks[0], arguments, builder)
        results = self._results
        parent = blocks[0].parent
        if parent is not None and parent.parent is not None and parent.parent.name != "func.func":
            results = [value.type for value in parent.parent.results]
        blocks = reachable(blocks[0])
        wrong = use_before_definition(blocks)
        if wrong is not None:
            operation, value = wrong
            self._refuse(operation, f"{operation.name} uses %{value.name}, which not every path to it computes")
        return structured(blocks, arguments, results, builder, self.inline, self._values)

    def inline(self, block: Block, arguments: Sequence[Value], builder: Builder) -> list[Value]:
        """Appends a block's operations, converted; returns the terminator's operands."""
        if [value.type for value in arguments] != [self._type(value.type) for value in block.arguments]:
            types = ", ".join(str(value.type) for value in arguments)
            raise OperationError(f"a body that takes ({types})")
        if not block.operations:
            raise OperationError("an operation at each block's end")
        self._values.update(zip(block.arguments, arguments, strict=True))
        for operation in block.operations[:-1]:
            self._operation(operation, builder)
        builder.location = block.terminator.location
        return [self._value(value) for value in block.terminator.operands]

    def _value(self, value: Value) -> Value:
        if value not in self._values:
            raise OperationError(f"%{value.name} to be computed before it is used")
        return self._values[value]

    def _operation(self, operation: Operation, builder: Builder) -> None:
        outer, builder.location = builder.location, operation.location
        results = self._checked(operation, lambda: self._converted(operation, builder))
        types = [self._type(value.type) for value in operation.results]
        for number, (value, type) in enumerate(zip(results, types, strict=True)):
            if operation.name.startswith("shape.") or value.type is type or not isinstance(type, TensorType):
                continue
            if not type.is_static and isinstance(value.type, TensorType) and value.type.element is type.element:
                continue  # lengths that have become known
            self._refuse(operation, f"{operation.name} gives {value.type} as result {number}, it says {type}")
        self._values.update(zip(operation.results, results, strict=True))
        builder.location = outer

    def _converted(self, operation: Operation, builder: Builder) -> Sequence[Value]:
        operands = [self._value(value) for value in operation.operands]
        types = [self._type(value.type) for value in operation.results]
        name = operation.name
        rule = _RULES.get(name)
        if rule is not None:
            if rule.operands is not None and len(operands) != rule.operands:
                raise OperationError(f"{rule.operands} operands, got {len(operands)}")
            if rule.regions and len(operation.regions) < min(rule.regions, 1):
                raise OperationError("a region")
            results = rule.handler(Site(self, builder, operation, operands, types))
            if len(results) != len(types):
                raise OperationError(f"{len(results)} results, got {len(types)}")
            return results
        for index, value in enumerate(operation.operands):
            if isinstance(value.type, ScalarType) and name.startswith(("stablehlo.", "chlo.", "mhlo.")):
                raise OperationError(f"a tensor as operand {index}, got {value.type}")
        if name in _PASSED_ON and operands:
            return operands[:1]
        attributes = operation.attributes
        if name.startswith("mhlo."):
            renamed = stablehlo_name(name[5:])
            if attributes.get("largest") is False:
                raise OperationError("the largest elements, since CHLO has no other top_k; negate the operand")
            if renamed is None:
                raise OperationError("an operation that StableHLO or CHLO has, too")
            name = renamed
            attributes = {key: stablehlo_attribute(value) for key, value in attributes.items()}
        elif not name.startswith(_KEPT):
            raise OperationError("an operation of StableHLO, CHLO, MHLO, func, arith, math, tensor, shape, scf or cf")
        attributes = {key: _attribute(value) for key, value in attributes.items()}
        if any(quantized_of(value.type) is not None for value in (*operation.operands, *operation.results)):
            computed = self._quantized(operation, name, attributes, builder)
            if computed is not None:
                return computed
        regions = [self._region(region, builder) for region in operation.regions]
        copy = Operation(name, operands, types, attributes, regions, location=operation.location)
        return builder.block.append(copy).results

    def _type(self, type: Type) -> Type:
        """Converts a type. A quantized type becomes its expressed type if the function computes with that."""
        quantized = quantized_of(type) if self._is_expressed else None
        return type.of(quantized.expressed) if quantized and isinstance(type, TensorType) else tensor_type(type)

    def _quantized(
        self, operation: Operation, name: str, attributes: dict[str, Attribute], builder: Builder
    ) -> Sequence[Value] | None:
        """Converts an operation on dequantized numbers; returns None if it works on the stored numbers."""
        if self._is_expressed or name.startswith("func."):
            return None
        operand_types = [quantized_of(value.type) for value in operation.operands]
        results = [quantized_of(value.type) for value in operation.results]
        if keeps_storage(Operation(name, operation.operands, [value.type for value in operation.results])):
            return None
        values = [self._value(value) for value in operation.operands]
        wide = [
            value if type is None else dequantized(builder, value, type)
            for value, type in zip(values, operand_types, strict=True)
        ]
        types = [
            value.type.of(type.expressed) if type and isinstance(value.type, TensorType) else tensor_type(value.type)
            for value, type in zip(operation.results, results, strict=True)
        ]
        if name in ("stablehlo.uniform_quantize", "stablehlo.uniform_dequantize"):
            if len(wide) != 1 or len(results) != 1 or (results[0] is None) != name.endswith("dequantize"):
                raise OperationError("one operand, and a result that is quantized by the one and not by the other")
            computed: Sequence[Value] = [
                wide[0] if results[0] else builder.convert(wide[0], tensor_of(operation.results[0]).scalar)
            ]
        else:
            self._is_expressed = True
            regions = [self._region(region, builder) for region in operation.regions]
            self._is_expressed = False
            copy = Operation(name, wide, types, attributes, regions, location=operation.location)
            computed = builder.block.append(copy).results
        pairs = zip(computed, results, strict=True)
        return [value if type is None else quantize(builder, value, type) for value, type in pairs]

    def _region(self, region: Region, builder: Builder) -> Region:
        """Converts a region of an operation that is kept."""
        if not region.blocks:
            return Region()
        types = [self._type(value.type) for value in region.blocks[0].arguments]
        return builder.region(types, lambda inner, arguments: self.body(region.blocks, arguments, inner))

    def _checked(self, operation: Operation, convert: Callable[[], Sequence[Made]]) -> Sequence[Made]:
        try:
            return convert()
        except CompileError:
            raise
        except OperationError as error:
            self._refuse(operation, f"{operation.name} expects {error.expected}")
        except ValueError as error:
            self._refuse(operation, f"{operation.name}: {error}")

    def _refuse(self, operation: Operation, message: str) -> Never:
        raise self._source.error(max(operation.location.offset, 0), message)


def _attribute(value: Attribute) -> Attribute:
    """Makes constants of ``index`` constants of i64."""
    if isinstance(value, DenseElements) and _is_index(value.type):
        type = tensor_type(value.type)
        assert isinstance(type, TensorType)
        return DenseElements.of(value.array, type)
    return value


_RENAMED: Final = {"topk": "chlo.top_k"}


def stablehlo_name(name: str) -> str | None:
    """Returns the StableHLO or CHLO name of an MHLO operation, or None."""
    if name in RULES:
        return f"stablehlo.{name}"
    return f"chlo.{name}" if name in CHLO_RULES else _RENAMED.get(name)


def stablehlo_attribute(value: Attribute) -> Attribute:
    """Converts an attribute of MHLO to StableHLO's."""
    if isinstance(value, EnumAttr):
        return EnumAttr("stablehlo", value.kind, value.case)
    if isinstance(value, StructAttr) and value.name.startswith("mhlo."):
        return StructAttr(f"stablehlo.{value.name[5:]}", value.fields)
    if isinstance(value, tuple):
        return tuple(map(stablehlo_attribute, value))
    if isinstance(value, Mapping):
        return {key: stablehlo_attribute(item) for key, item in value.items()}
    return value
