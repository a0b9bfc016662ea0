"""Executables of the reference device: operations as plain data."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from ...hal_reference.layout import storage_bytes
from ...hal_reference.program import Body, SizeNumber, TensorSpec
from ...hal_reference.program_format import FORMAT, HEADER, MAGIC, VERSION, Function
from ..analysis.reference_program import ProgramWriter
from ..dialects.rules.requirements import OperationError
from ..ir.operation import Location, Operation, Region
from ..ir.source import SourceText
from ..kernels.kernel import Binding, Kernel, Variant, symbols_in

TARGET = "Reference"
"""The target's name in executables."""


def reference_variant(module: Region, location: Location) -> Operation:
    """Wraps a module of an executable's function as the executable of this target in a program."""
    return Operation("iree.executable", (), (), {"target": TARGET}, [module], location=location)


def reference_executable(variant: Operation, source: SourceText) -> Variant:
    """Builds the data that the device loads for an executable of this target, without source locations.

    Raises:
        OperationError: the executable does not have the form of a function over buffers.
    """
    functions = [operation for operation in variant.walk() if operation.name == "func.func"]
    if len(functions) != 1:
        raise OperationError("a module with one function in it")
    name = str(functions[0].attributes["sym_name"])
    operations = functions[0].regions[0].block.operations
    writer = ProgramWriter({})
    body = writer.executable(functions[0])
    inputs = tuple(
        writer.spec(operation.result.type) for operation in operations if operation.name == "iree.load_input"
    )
    outputs = tuple(
        writer.spec(operation.operands[0].type) for operation in operations if operation.name == "iree.store_output"
    )
    bindings = [(spec, True) for spec in inputs] + [(spec, False) for spec in outputs]
    symbols = symbols_in(functions[0].regions[0].block)
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    sizes = tuple(
        tuple((factor, tuple(numbers[symbol] for symbol in monomial)) for monomial, factor in size.terms)
        for size in writer.sizes
    )
    kernel = Kernel(
        b"",
        name,
        (1, 1, 1),
        (1, 1, 1),
        tuple(Binding(_size(spec), read, not read) for spec, read in bindings),
        symbols,
    )
    return Variant(TARGET, FORMAT, encode([Function(name, inputs, outputs, body, len(symbols), sizes)]), kernel)


def _size(spec: TensorSpec) -> int:
    """Returns the bytes of a binding, in whole words; 0 if call-dependent."""
    return 0 if any(length < 0 for length in spec.shape) else max(-(-storage_bytes(spec) // 4) * 4, 4)


def encode(functions: Sequence[Function]) -> bytes:
    """Encodes functions as an executable, deterministically."""
    data = bytearray()

    def value_of(value: object) -> object:
        if isinstance(value, np.ndarray | np.generic):
            at = len(data)
            data.extend(value.tobytes())
            return {"type": _type(TensorSpec(value.dtype, value.shape)), "at": at}
        if isinstance(value, list | tuple):
            return [value_of(item) for item in value]
        if isinstance(value, SizeNumber):
            return {"size": value.number}
        return value if value is None or isinstance(value, bool | int | float | str) else str(value)

    def body_of(body: Body) -> object:
        nodes = [
            [
                node.name,
                node.operands,
                node.results,
                [_type(spec) for spec in node.types],
                {name: value_of(value) for name, value in node.attributes.items()},
                [body_of(inner) for inner in node.bodies],
            ]
            for node in body.nodes
        ]
        return [body.arguments, nodes, body.results]

    written = [
        {
            "name": function.name,
            "inputs": [_type(spec) for spec in function.inputs],
            "outputs": [_type(spec) for spec in function.outputs],
            "body": body_of(function.body),
            **({"symbols": function.symbols, "sizes": function.sizes} if function.symbols else {}),
        }
        for function in functions
    ]
    text = json.dumps({"functions": written}, separators=(",", ":")).encode()
    return HEADER.pack(MAGIC, VERSION, len(text)) + text + data


def _type(spec: TensorSpec) -> list[object]:
    return [spec.dtype.name, list(spec.shape)]
