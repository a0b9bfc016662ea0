"""Source locations in Python for errors, and the operations that no device runs."""

from __future__ import annotations

import inspect
import linecache
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from jax.extend import source_info_util

from ..base.notebook import place_text, with_process
from ..compiler.ir.source import CompileError

_ORIGIN: Final = re.compile(r" \(from ([^\n]*):(\d+)\)")
_RETURN: Final = re.compile(r"^    return\b.* loc\((#loc\d+)\)$", re.MULTILINE)
_IN_PROGRAM: Final = re.compile(r"^[^\n]*?:\d+:\d+: ")
_CALLS_PYTHON: Final = frozenset({"debug_callback", "debug_print", "io_callback", "pure_callback"})

# JAX names the innermost frame of the user's own code.
source_info_util.register_exclusion(str(Path(__file__).parent))


def refuse(jaxpr: Any) -> None:
    """Raises CompileError at the first operation that calls Python or needs several devices."""
    for equation in _equations(jaxpr):
        reason = _refusal(equation)
        if reason:
            location = re.match(r"(.*?):(\d+)", source_info_util.summarize(equation.source_info))
            message = f"{equation.primitive.name} {reason}"
            raise _error(location[1], int(location[2]), message) if location else CompileError(message, "", 0, 0)


def _refusal(equation: Any) -> str:
    if equation.primitive.name in _CALLS_PYTHON:
        return (
            "calls Python, which no device does while it runs a program: return the value, and call Python with the "
            "result"
        )
    devices = getattr(equation.params.get("mesh"), "size", 1)
    return f"is over a mesh of {devices} devices, and a program has one" if devices > 1 else ""


def _equations(jaxpr: Any) -> Iterator[Any]:
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for item in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(item, "jaxpr", item)
                if hasattr(inner, "eqns"):
                    yield from _equations(inner)


def name_of(function: Callable[..., object]) -> str:
    """Returns a function's name for errors."""
    return getattr(function, "__name__", type(function).__name__)


def with_place(text: str, function: Callable[..., object]) -> str:
    """Returns a program with the function's location in place of unknown locations and the locations of callers.

    JAX gives the operation ``return`` the location of the caller, so a call from another line would be another program
    for the cache on disk.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:  # a callable object, or a builtin
        return text
    file_name = code.co_filename.replace("\\", "\\\\").replace('"', '\\"')
    location = f'loc("{file_name}":{code.co_firstlineno}:1)'
    text = text.replace("#loc = loc(unknown)\n", f"#loc = {location}\n", 1)
    returns = _RETURN.search(text)
    caller = returns and re.search(rf'^{returns[1]} = loc\(".*"\((#loc\d+)\)\)$', text, re.MULTILINE)
    if not caller:
        return text
    defined = re.compile(rf"^{caller[1]} = loc\(.*\)$", re.MULTILINE)
    return defined.sub(lambda _: f"{caller[1]} = {location}", text, count=1)


def in_python(error: CompileError, name: str) -> CompileError:
    """Returns an error in a lowered program as an error at its place in the Python source."""
    origin = _ORIGIN.search(error.message)
    if origin is None:
        return CompileError(
            f"in what JAX lowered {name} to: {error.message}", error.file_name, error.line, error.column
        )
    message = _ORIGIN.sub("", _IN_PROGRAM.sub("", error.message.partition("\n")[0])).partition("; JAX may lower")[0]
    return _error(origin[1], int(origin[2]), f"{name}: {message}")


def _error(file_name: str, line: int, message: str) -> CompileError:
    file_name = with_process(file_name)
    source = linecache.getline(file_name, line).strip()
    shown = f"\n  {source}" if source else ""
    return CompileError(f"{place_text(f'{file_name}:{line}')}: {message}{shown}", file_name, line, 1)
