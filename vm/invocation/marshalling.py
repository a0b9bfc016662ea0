"""Checks inputs and outputs of invocations against a function's calling convention."""

from __future__ import annotations

from collections.abc import Iterable, MutableSequence
from typing import Any, Final

from ...status import InvalidArgumentError
from ..bytecode.calling_convention import Repeated
from ..execution.context import Function
from ..types.list import VmList
from ..types.numerics import round_f32, wrap32, wrap64

_KINDS: Final = {"i": "i32", "I": "i64", "f": "f32", "F": "f64"}


def marshal_inputs(function: Function, inputs: Iterable[Any] | VmList) -> tuple[Any, ...]:
    """Converts a caller's inputs to VM values; raises InvalidArgumentError if their number or types do not match."""
    kinds = function.convention.arguments
    if isinstance(inputs, VmList):
        values: tuple[Any, ...] = inputs.values()
    else:
        try:
            values = tuple(inputs)
        except TypeError:
            raise InvalidArgumentError(
                f"{function.full_name}: inputs is a sequence of values, got {type(inputs).__name__}"
            ) from None
    if len(values) != len(kinds):
        raise InvalidArgumentError(
            f"{function.full_name} takes {len(kinds)} value{'s' * (len(kinds) != 1)} "
            f"({function.convention.text}), got {len(values)}"
        )
    return tuple([_value(value, kind, position, function) for position, (value, kind) in enumerate(zip(values, kinds))])  # noqa: B905


def _value(value: Any, kind: str | Repeated, position: int, function: Function) -> Any:
    if kind == "r":
        return value
    if isinstance(kind, Repeated):
        return _repeated(value, kind.elements, position, function)
    try:
        if kind in "iI":
            bits = 32 if kind == "i" else 64
            number: int = value.__index__()
            if -(1 << (bits - 1)) <= number < 1 << bits:
                return wrap32(number) if kind == "i" else wrap64(number)
        elif not isinstance(value, (str, bytes)):
            return round_f32(float(value)) if kind == "f" else float(value)
    except (AttributeError, TypeError, ValueError, OverflowError):
        pass
    raise InvalidArgumentError(
        f"{function.full_name}: argument {position} is {_KINDS[kind]} ({function.convention.text}), got {value!r:.80}"
    )


def _repeated(values: Any, kinds: tuple[str, ...], position: int, function: Function) -> tuple[Any, ...]:
    try:
        rows = tuple(values)
        if len(kinds) == 1:
            return tuple([_value(item, kinds[0], position, function) for item in rows])
        return tuple(
            [
                tuple([_value(item, kind, position, function) for item, kind in zip(row, kinds, strict=True)])
                for row in rows
            ]
        )
    except InvalidArgumentError:
        raise
    except (TypeError, ValueError):
        items = "values" if len(kinds) == 1 else f"tuples of {len(kinds)}"
        raise InvalidArgumentError(
            f"{function.full_name}: argument {position} is a sequence of {items} ({function.convention.text}), got "
            f"{values!r:.80}"
        ) from None


def outputs_of(function: Function, results: Any) -> tuple[Any, ...]:
    """Returns a function's results, which the VM returns as ``None``, a value or a tuple, always as a tuple."""
    count = len(function.convention.results)
    if count == 0:
        return ()
    return (results,) if count == 1 else tuple(results)


def append_outputs(outputs: MutableSequence[Any] | VmList, kinds: tuple[str, ...], results: tuple[Any, ...]) -> None:
    """Appends results to a caller's list; appends nothing if the list rejects a result."""
    if not isinstance(outputs, VmList):
        try:
            outputs.extend(results)
        except AttributeError:
            raise InvalidArgumentError(f"outputs is a list, got {type(outputs).__name__}") from None
        return
    before = outputs.size()
    outputs.resize(before + len(results))
    try:
        for index, (kind, value) in enumerate(zip(kinds, results, strict=True), before):
            if kind == "r":
                outputs.set_ref(index, value)
            else:
                getattr(outputs, f"set_{_KINDS[kind]}")(index, value)
    except BaseException:
        outputs.resize(before)
        raise
