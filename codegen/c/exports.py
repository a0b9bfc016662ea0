"""The functions that users of a C program call: their types, and the module's functions that they use."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ...formats.element_type import ElementType
from ...status import UnimplementedError
from ...vm.bytecode.declaration import DeclaredValue, FunctionDeclaration, ValueKind, parse_declaration
from ...vm.bytecode.module_def import ModuleDef
from ..program.ir import Function, Program
from ..program.storages import result_of
from .support import template

_ASYNC = "$async"
_REUSES = "pumice.abi.reuses"
_SOURCE = "pumice.abi.type"
_SCALARS = {"index": "i64", "i1": "i8"}


@dataclass
class Export:
    """A function that users call.

    Attributes:
        name: the name under which the program exports the function.
        symbol: the function's name in C, after the prefix.
        inputs, outputs: the types of the inputs and outputs.
        known: the module's function that takes storages for results.
        unknown: the module's function that allocates them.
        reuses: for each output, a mask of the inputs whose memory it may reuse.
    """

    name: str
    symbol: str
    inputs: list[DeclaredValue]
    outputs: list[DeclaredValue]
    known: Function | None = None
    unknown: Function | None = None
    reuses: list[int] = field(default_factory=list)


def storages(function: Function) -> dict[int, int]:
    """Returns the result number of each argument that is a storage for a result."""
    assert function.declaration is not None
    results = {index: result_of(value) for index, value in enumerate(function.declaration.arguments)}
    return {index: number for index, number in results.items() if number is not None}


def exports_of(program: Program, module: ModuleDef) -> list[Export]:
    """Returns the functions that users call, in the order of the module.

    Raises:
        UnimplementedError: an export has no declaration (the message names it), or there is no export.
    """
    exports: list[Export] = []
    taken = set(re.findall(r"\bNAME_(\w+)", template("header.h")))
    for name, function in program.exports.items():
        base = name.removesuffix(_ASYNC)
        if name != base and base in program.exports:
            continue
        if function.declaration is None:
            raise UnimplementedError(
                f"function {name} does not say the types of its arguments (iree.abi.declaration), which its C function "
                "needs; compile the program with them"
            )
        symbol = re.sub(r"\W", "_", base, flags=re.ASCII)
        # The header has names of its own, such as `buffer_…`; `…_async` is a function's second name.
        if symbol.startswith("buffer_") or symbol.endswith("_async"):
            symbol = f"call_{symbol}_"
        while symbol in taken:
            symbol = f"call_{symbol}"
        taken.add(symbol)
        source = _source_types(module.signatures[function.ordinal].attributes.get(_SOURCE))
        exports.append(_export(base, symbol, (program.exports.get(base + _ASYNC), function), source))
    if not exports:
        raise UnimplementedError("the module has no functions for users, so there is nothing to write")
    return exports


def _source_types(text: str | None) -> FunctionDeclaration | None:
    """Parses the types that the source program had before a calling convention changed them."""
    if text is None:
        return None
    sides = []
    for name, side in zip(("input", "output"), text.split(" -> ", 1), strict=False):
        types = re.findall(r"[^\s,()<>]+(?:<[^<>]*(?:<[^<>]*>[^<>]*)*>)?", side)
        sides.append(", ".join(f"%{name}{index}: {type}" for index, type in enumerate(types)))
    return parse_declaration(f"sync func @source({sides[0]}) -> ({sides[1]})") if len(sides) == 2 else None


def _export(
    name: str, symbol: str, candidates: Sequence[Function | None], source: FunctionDeclaration | None
) -> Export:
    inputs: list[DeclaredValue] = []
    outputs: list[DeclaredValue] = []
    known = unknown = None
    reuses: dict[int, int] = {}
    for candidate in candidates:
        if candidate is None or candidate.declaration is None:
            continue
        declaration, places = candidate.declaration, storages(candidate)
        if places and known is None:
            known = candidate
            for index, output in places.items():
                text = declaration.arguments[index].attributes.get(_REUSES, "")
                reuses[output] = sum(1 << int(bit) for bit in re.findall(r"\d+", text.split(":")[0]))
        elif not places and not declaration.is_async:
            unknown = candidate
        inputs = [value for index, value in enumerate(declaration.arguments) if index not in places]
        if declaration.results:
            outputs = list(declaration.results)
        elif places:
            outputs = [declaration.arguments[index] for index in sorted(places, key=places.__getitem__)]
    if known is None and unknown is None:
        raise UnimplementedError(f"function {name} has fences but no storages or synchronous form, which C calls need")
    if source is not None and (len(source.arguments), len(source.results)) == (len(inputs), len(outputs)):
        inputs = [
            dataclasses.replace(declared, name=old.name) for declared, old in zip(source.arguments, inputs, strict=True)
        ]
        outputs = [
            dataclasses.replace(declared, name=old.name) for declared, old in zip(source.results, outputs, strict=True)
        ]
    if known is not None and not any(map(is_dynamic, outputs)):
        unknown = None
    masks = [reuses.get(index, 0) & (1 << 64) - 1 for index in range(len(outputs))]
    return Export(name, symbol, inputs, outputs, known, unknown, masks)


def is_dynamic(value: DeclaredValue) -> bool:
    """Whether a tensor has call-dependent lengths."""
    return value.kind is ValueKind.TENSOR and None in (value.shape or ())


def element_of(value: DeclaredValue) -> ElementType:
    """Returns the element type of a value."""
    text = value.element_type or ""
    try:
        return ElementType.parse(_SCALARS.get(text, text) if value.kind is ValueKind.SCALAR else text)
    except Exception:
        raise UnimplementedError(f"{value}: C programs have no elements of this type") from None
