"""The options of ``pumice run`` for compiled programs, matched with the signature of the function.

Grammar, the same as iree-run-module's (``runtime/src/iree/tooling/function_io.c``, 3.13)::

    --input, --expected_output  VALUE      2.5   4xf32=1,2,3,4   @x.npy   +x.npy   *x.npy
                                           4xf32=@x.bin   &4xf32   (null)
    --output                    TARGET     (empty)   -   @x.npy   +x.npy   @x.bin   +x.bin
    --parameters                [SCOPE=]FILE

A value without a type takes the declared one.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...base.lazy_dataclass import dataclass
from ...formats.element_type import ElementType, format_shape_and_type
from ...runtime.sessions.signature import Result, Signature
from ...runtime.values.files import ValueFiles
from ...runtime.values.parse import parse_buffer_spec, parse_scalar, zeros
from ...status import InvalidArgumentError, shorten, shown
from ..errors import usage, usage_error
from .keys import Array

if TYPE_CHECKING:
    from ...runtime.parameters.index import ParameterIndex

_LETTER_TYPES: Final = {
    "i": ElementType.INT_32,
    "I": ElementType.INT_64,
    "f": ElementType.FLOAT_32,
    "F": ElementType.FLOAT_64,
}
_ELEMENTS: Final = re.compile(r"[\s\[,]*(?:[-+.0-9]|inf|nan|true|false)", re.IGNORECASE)
_SHAPED: Final = re.compile(r"[1-9][0-9]*x")
_BOOLEANS: Final = {"true": "1", "false": "0"}


@dataclass(frozen=True, slots=True)
class Given:
    """A value of the command line; ``None`` for ``(null)`` and ``(ignored)``.

    ``storage``: whether an array is a buffer for an output (``&4xf32``) instead of a buffer view.
    """

    where: str
    value: Array | int | float | None
    element_type: ElementType | None = None
    storage: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """The destination of a result: a file, stdout, or nothing."""

    path: Path | None = None
    append: bool = False
    printed: bool = False


def scalar_type(slot: Result) -> ElementType:
    """Returns the element type of a scalar: the declared type for narrow floats, which the VM lacks, else the VM's
    type.
    """
    declared = slot.declared.element_type if slot.declared is not None else None
    if slot.letter == "i" and declared is not None and declared.startswith(("f", "bf")):
        with contextlib.suppress(InvalidArgumentError):
            return ElementType.parse(declared)
    return _LETTER_TYPES[slot.letter]


def parse_inputs(texts: Sequence[str], signature: Signature) -> list[Given]:
    """Returns the arguments of a call."""
    inputs = _parse("--input", texts, signature.arguments)
    count = len(signature.arguments)
    if len(inputs) != count:
        least = len(signature.inputs)
        taken = f"{least} --input value{'s' * (least != 1)}" + (f", or {count} with storages" if least < count else "")
        raise usage_error(f"{signature} takes {taken}, got {len(inputs)}")
    return inputs


def parse_expectations(texts: Sequence[str], signature: Signature) -> list[Given]:
    """Returns the expected results; empty if nothing is expected."""
    if not texts:
        return []
    expectations = _parse("--expected_output", texts, signature.results)
    count = len(signature.results)
    if len(expectations) != count:
        raise usage_error(
            f"{signature} has {count} result{'s' * (count != 1)}, got {len(expectations)} --expected_output "
            f"value{'s' * (len(expectations) != 1)}; (ignored) is for those that may be anything"
        )
    for expectation in expectations:
        if expectation.storage:
            raise usage_error(f"{expectation.where}: storage (&) is for inputs")
    return expectations


def parse_targets(texts: Sequence[str], signature: Signature) -> list[Target]:
    """Parses the targets of results; an empty list without ``--output``."""
    targets = []
    for text in texts:
        if text in ("", "-"):
            targets.append(Target(printed=bool(text)))
        elif text[0] in "@+" and len(text) > 1:
            targets.append(Target(Path(text[1:]), append=text[0] == "+"))
        else:
            raise usage_error(
                f"--output {shown(text)}: expected @FILE to store a result, +FILE to append it to a file, "
                "- to print it, or nothing to ignore it; a result of a compiled program has no name"
            )
    count = len(signature.results)
    if targets and len(targets) != count:
        raise usage_error(
            f"{signature} has {count} result{'s' * (count != 1)}, got {len(targets)} --output option"
            f"{'s' * (len(targets) != 1)}; give one for each, in order"
        )
    return targets


def load_parameters(texts: Sequence[str]) -> dict[str, ParameterIndex]:
    """Returns the parameter files by scope; several files of one scope form one index."""
    paths: dict[str, list[str]] = {}
    for text in texts:
        scope, equals, path = text.partition("=")
        if not equals:
            scope, path = "", text
        if not path:
            raise usage_error(f"--parameters {shown(text)}: expected FILE or SCOPE=FILE")
        paths.setdefault(scope, []).append(path)
    if not paths:
        return {}
    from ...runtime.parameters.index import ParameterIndex

    return {scope: ParameterIndex.from_file(*several) for scope, several in paths.items()}


# -- values ------------------------------------------------------------------------------------------


def _parse(option: str, texts: Sequence[str], slots: Sequence[Result]) -> list[Given]:
    """Returns the values of a repeatable option, which may read one file in sequence."""
    values: list[Given] = []
    with ValueFiles() as files:
        for number, text in enumerate(texts):
            body = text.strip()
            where = f"{option} {number} ({shorten(body)})"
            slot = slots[len(values)] if len(values) < len(slots) else None
            with usage(where):
                values += _values(where, body, slot, files)
        with usage(option):
            files.finish()
    return values


def _values(where: str, body: str, slot: Result | None, files: ValueFiles) -> Iterator[Given]:
    """Yields the values of one text; several for ``*x.npy``."""
    if not body:
        raise InvalidArgumentError("expected a value, got nothing")
    if body in ("(null)", "(ignored)"):
        yield Given(where, None)
    elif slot is None:
        # There are too many values; the caller reports that.
        yield Given(where, None)
    elif body[0] in "@+" or (body[0] == "*" and body.endswith(".npy")):
        if slot.letter != "r":
            raise InvalidArgumentError(f"{slot} is a number; files hold arrays")
        arrays = files.arrays(body[1:]) if body[0] == "*" else [files.array(body[1:], restart=body[0] == "@")]
        for array in arrays:
            yield Given(where, array, ElementType.from_dtype(array.dtype))
    elif slot.letter == "r":
        yield _tensor(where, body, slot, files)
    else:
        yield Given(where, _scalar(body, slot))


def _scalar(body: str, slot: Result) -> int | float:
    if body[0] == "&":
        raise InvalidArgumentError(f"{slot} is a number; storage (&) is for buffers")
    element_type = scalar_type(slot)
    head, equals, value = body.partition("=")
    if equals:
        # The printed form of results: i32=5.
        spec = parse_buffer_spec(head)
        if (
            spec.shape
            or spec.element_type.is_integer != element_type.is_integer
            or spec.element_type.bits > element_type.bits
        ):
            raise InvalidArgumentError(
                f"{slot} takes a number such as {element_type.short_name}=5, got {format_shape_and_type(*spec[:2])}"
            )
        element_type, body = spec.element_type, value
    elif slot.declared is not None and slot.declared.element_type == "i1":
        body = _BOOLEANS.get(body.lower(), body)
    return parse_scalar(body, element_type)


def _tensor(where: str, body: str, slot: Result, files: ValueFiles) -> Given:
    storage = body.startswith("&")
    if "=" not in body and not storage and not _is_spec(body):
        body = f"{_declared_type(slot)}={body}"
    spec = parse_buffer_spec(body, files)
    array = zeros(spec.shape, spec.element_type) if spec.data is None else spec.data
    return Given(where, array, spec.element_type, storage)


def _is_spec(text: str) -> bool:
    """Whether a text without data is a shape and type (``4xf32``), as opposed to only elements (``0x10``)."""
    if _SHAPED.match(text) or not _ELEMENTS.match(text):
        return True
    try:
        parse_buffer_spec(text)
    except InvalidArgumentError:
        return False
    return True


def _declared_type(slot: Result) -> str:
    """Returns ``4xf32`` for an argument or result that is declared as a tensor of known shape and type."""
    declared = slot.declared
    if declared is not None and declared.is_tensor and declared.shape is not None:
        lengths = [str(n) for n in declared.shape if n is not None]
        if len(lengths) == len(declared.shape):
            return "x".join([*lengths, str(declared.element_type)])
    raise InvalidArgumentError(f"{slot} takes a buffer with its shape and type, such as 4xf32=1,2,3,4")
