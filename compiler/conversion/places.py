"""Source locations of functions that have none."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.attributes import SymbolRef
from ..ir.operation import DebugLocation, Location, Operation


def place_called(functions: Mapping[str, Operation]) -> None:
    """Gives operations without a line in the user's source that of the first call of their function, in place.

    JAX records none for functions of its own library, such as ``jax.nn.relu``.
    """
    callers = [function for function in functions.values() if function.attributes.get("sym_visibility") != "private"]
    reached: set[str] = set()
    for caller in callers:  # grows
        for operation in caller.walk():
            callee = operation.attributes.get("callee", operation.attributes.get("decomposition"))
            if isinstance(callee, SymbolRef) and callee.name in functions and callee.name not in reached:
                reached.add(callee.name)
                callers.append(functions[callee.name])
                if _has_line(operation.location.debug):
                    _place(functions[callee.name], operation.location.debug)


def _place(function: Operation, debug: DebugLocation | None) -> None:
    for operation in function.walk():
        if operation is not function and not _has_line(operation.location.debug):
            operation.location = Location(operation.location.offset, debug)


def _has_line(debug: DebugLocation | None) -> bool:
    return debug is not None and debug.line > 0
