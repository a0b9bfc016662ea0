"""Values as text, in the form of command-line arguments.

The form is that of IREE's tools (``runtime/src/iree/tooling/function_io.c``, ``runtime/src/iree/hal/string_util.c``)::

    4xf32=1 2 3 4          2x3xi32=[1 2 3][4 5 6]          f32=2.5          2.5          5
    4xf32=7                one value fills the buffer
    4xf32                  no data: zeros, or the type of an output
    4xf32=@data.bin        the raw bytes of a file, row-major, little-endian
    @data.npy              shape, type and data from a NumPy file
    &4xf32                 storage for an output, with or without data
    (null)  (ignored)      no value

Values are separated by whitespace, commas or brackets; brackets are optional, but must balance. Integers are decimal,
``0x`` hexadecimal or, as in C, octal after a leading ``0``; a signless type takes both the signed and the unsigned
range of its width. Floats are decimal, C's hexadecimal form, ``inf`` or ``nan``. Booleans are ``0``, ``1``, ``00``,
``01``, ``false`` or ``true``; complex values ``1+2i`` or the hexadecimal digits of their bytes, opaque values those
digits only.

Reading differs from the tools in these points. Input that they accept by accident (``12abc`` as 12, integers truncated
to 32 bits) is an error. Each float is rounded once to binary32 and from there to the nearest value of a narrower type,
even if the tools flush results below the smallest number of the type to zero. f8E8M0FNU, which has neither zero nor
negative numbers, gives NaN for them.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ...formats.element_type import ElementType, format_shape_and_type, parse_shape_and_type
from ...status import InvalidArgumentError, ResourceExhaustedError, shown
from .elements import BadElement, decode_elements, integer, is_integer, real
from .files import ValueFiles

Array: TypeAlias = npt.NDArray[np.generic]
Value: TypeAlias = Array | int | float | None


class BufferSpec(NamedTuple):
    """Shape and element type, and the text's data, if any."""

    shape: tuple[int, ...]
    element_type: ElementType
    data: Array | None


def parse_value(text: str) -> Value:
    """Parses one value.

    Returns:
        A new C-contiguous array of the element type's dtype for a buffer (shape ``()`` for ``"f32=1"``, zeros if the
        text has no data), an ``int`` or ``float`` for a bare number, ``None`` for ``(null)`` and ``(ignored)``. Text
        that is both a shape and a number (``0xf32``) is a shape; ``parse_scalar`` reads it as a number.

    Raises:
        InvalidArgumentError: the text is malformed (the message shows where), the number of elements is wrong, a value
            is out of the type's range, or a file has the wrong size or kind.
        NotFoundError, PermissionDeniedError, UnavailableError: the file cannot be read.
        ResourceExhaustedError: there is not enough memory for the array.
    """
    values = parse_values([text])
    if len(values) != 1:
        raise InvalidArgumentError(
            f"expected one value in {shown(text)}, got {len(values)}; parse_values takes several"
        )
    return values[0]


def parse_values(texts: Iterable[str]) -> list[Value]:
    """Parses a list of arguments, several of which may read one file in sequence.

    ``@path`` reads a file from its start, ``+path`` continues where the previous argument stopped, and ``*path.npy``
    means all remaining arrays. The arguments that read a file as raw bytes must read it to its end.
    """
    values: list[Value] = []
    with ValueFiles() as files:
        for text in texts:
            body = text.strip()
            if body in ("(null)", "(ignored)"):
                values.append(None)
            elif body.startswith("*") and body.endswith(".npy"):
                values.extend(files.arrays(body[1:]))
            elif body.startswith(("@", "+")):
                values.append(files.array(body[1:], restart=body[0] == "@"))
            elif (number := _bare_number(body)) is not None:
                values.append(number)
            else:
                spec = _parse_spec(text, files)
                values.append(zeros(spec.shape, spec.element_type) if spec.data is None else spec.data)
        files.finish()
    return values


def parse_buffer_spec(text: str, files: ValueFiles | None = None) -> BufferSpec:
    """Parses shape, element type and data of a buffer; ``data`` is ``None`` if the text has none (``"4xf32"``).

    A leading ``&``, which marks storage for an output, is accepted and has no effect here. ``files`` are shared with
    other texts; the caller finishes them.
    """
    if files is not None:
        return _parse_spec(text, files)
    with ValueFiles() as own:
        spec = _parse_spec(text, own)
        own.finish()
    return spec


def parse_scalar(text: str, element_type: ElementType) -> int | float:
    """Parses a bare number of an integer or float type, and rounds it to that type."""
    if not (element_type.is_integer or element_type.is_float):
        raise InvalidArgumentError(f"expected an integer or float type for a bare number, got {element_type.name}")
    token = text.strip()
    if not token or re.search(r"[\s,\[\]]", token):
        raise _malformed(text, 0, f"expected one {element_type.short_name} value")
    value = _parse_elements(text, text.index(token), element_type, ())
    return int(value) if element_type.is_integer else float(value)


_TOKEN: Final = re.compile(r"[^\s,\[\]]+", re.ASCII)
_DIMENSIONS: Final = re.compile(r"(?:[0-9]+x)*")
_CARET_WINDOW: Final = 40


def _malformed(text: str, position: int, message: str) -> InvalidArgumentError:
    """Returns an error that shows the text around ``position`` with a caret below it."""
    start = max(0, position - _CARET_WINDOW)
    shown = "".join(c if c.isprintable() else " " for c in text[start : position + _CARET_WINDOW])
    caret = " " * (position - start) + "^"
    return InvalidArgumentError(f"{message}, at position {position}:\n  {shown}\n  {caret}")


def _bare_number(body: str) -> int | float | None:
    if is_integer(body):
        if body[:2] == "0x":
            try:
                parse_shape_and_type(body)
            except InvalidArgumentError:
                pass
            else:
                return None
        try:
            return integer(body, -(2**63), 2**64 - 1)
        except ValueError as error:
            raise _malformed(body, 0, f"expected {error}, got {shown(body)}") from None
    try:
        return real(body)
    except ValueError:
        return None


def _parse_spec(text: str, files: ValueFiles) -> BufferSpec:
    end = len(text.rstrip())
    start = len(text) - len(text.lstrip())
    if text.startswith("&", start, end):
        start += 1
    # Some shells leave one layer of quotes around arguments from files.
    if text.startswith('"', start, end):
        start += 1
    if end > start and text.endswith('"', start, end):
        end -= 1
    if start >= end:
        raise _malformed(text, start, "expected a number, or a shape and type such as 4xf32=1 2 3 4")
    equals = text.find("=", start, end)
    head = text[start : end if equals < 0 else equals]
    name = head.strip()
    try:
        shape, element_type = parse_shape_and_type(name)
    except InvalidArgumentError as error:
        known = _DIMENSIONS.match(name)
        at = start + len(head) - len(head.lstrip()) + (known.end() if known else 0)
        hint = "a buffer is written like 4xf32=1 2 3 4, a number alone like 5 or 2.5"
        raise _malformed(text, at, f"{error.message}; {hint}") from None
    data = text[:end][equals + 1 :].strip() if equals >= 0 else ""
    if not data:
        return BufferSpec(shape, element_type, None)
    if data[0] in "@+":
        return BufferSpec(shape, element_type, files.raw(data[1:], shape, element_type, restart=data[0] == "@"))
    return BufferSpec(shape, element_type, _parse_elements(text[:end], equals + 1, element_type, shape))


def _parse_elements(text: str, start: int, element_type: ElementType, shape: tuple[int, ...]) -> Array:
    tokens = _TOKEN.findall(text, start)
    count = math.prod(shape)
    name = format_shape_and_type(shape, element_type)
    _check_brackets(text, start)
    splat = len(tokens) == 1 and count > 1
    if len(tokens) != count and not splat:
        at = _token_start(text, start, count) if len(tokens) > count else len(text)
        splat_hint = " (or 1 for all)" if count > 1 else ""
        raise _malformed(text, at, f"expected {count} elements for {name}{splat_hint}, got {len(tokens)}")
    element_type.require_dtype()
    try:
        values = decode_elements(tokens, element_type)
    except BadElement as error:
        at = _token_start(text, start, error.index)
        got = shown(tokens[error.index])
        raise _malformed(text, at, f"element {error.index} of {name}: expected {error.expected}, got {got}") from None
    if not splat:
        return values.reshape(shape)
    filled = zeros(shape, element_type)
    filled[...] = values[0]
    return filled


def _check_brackets(text: str, start: int) -> None:
    opened: list[int] = []
    for match in re.finditer(r"[\[\]]", text[start:]):
        at = start + match.start()
        if match[0] == "[":
            opened.append(at)
        elif not opened:
            raise _malformed(text, at, "expected an opening bracket before this closing one")
        else:
            opened.pop()
    if opened:
        raise _malformed(text, opened[-1], "expected a closing bracket for this opening one")


def _token_start(text: str, start: int, index: int) -> int:
    return next(itertools.islice(_TOKEN.finditer(text, start), index, None)).start()


def zeros(shape: tuple[int, ...], element_type: ElementType) -> Array:
    """Creates an array of zeros; raises ResourceExhaustedError if it does not fit into memory."""
    dtype = element_type.require_dtype()
    try:
        return np.zeros(shape, dtype)
    except (MemoryError, ValueError) as error:  # ValueError: shapes beyond NumPy's limits
        size = math.prod(shape) * dtype.itemsize
        name = format_shape_and_type(shape, element_type)
        raise ResourceExhaustedError(
            f"expected a buffer that fits memory, got {name} of {size} bytes: {error}"
        ) from None
