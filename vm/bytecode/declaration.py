"""Declarations of exported functions: the source program's types, which calling conventions do not contain.

IREE's compilers attach them to exports as the attribute ``iree.abi.declaration``, a text such as ``sync func @mul(%lhs:
tensor<?x4xf32>, %input1: i32 {iree.abi.output = 1 : index}) -> (%output0: tensor<4xf32>)``
(compiler/src/iree/compiler/Bindings/Native/Transforms/WrapEntryPoints.cpp; the form is the same in releases 3.0 to
3.13). It is meant for people: names are not quoted, and authors may replace the text. A text that does not parse is
therefore ignored and not an error.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Final

from ...base.lazy_dataclass import dataclass
from .calling_convention import CallingConvention, Element
from .module_def import Signature

DECLARATION_KEY: Final = "iree.abi.declaration"
TENSOR_KEY: Final = "pumice.abi.tensor"
"""The attribute of a ``!hal.buffer`` with the type of its tensor."""

_MAX_LENGTH: Final = 1 << 20
_HEADER: Final = re.compile(r"(sync|async) func @([^(]+)\(")
_DIMENSION: Final = re.compile(r"(?:([0-9]{1,19})|\?)x")
_SCALAR: Final = re.compile(r"[su]?i[0-9]{1,8}|index|bf16|tf32|f[0-9]{1,3}(?:E[0-9]+M[0-9]+[A-Z0-9]*)?|complex<[^<>]*>")
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|->|[<>]=|[<>()\[\]{},]', re.DOTALL)
_OPENING: Final = "<([{"
_CLOSING: Final = ">)]}"
_PAIRS: Final = dict(zip(_CLOSING, _OPENING, strict=True))


class ValueKind(enum.Enum):
    """The kind of a declared value's type."""

    TENSOR = "tensor"
    SCALAR = "scalar"
    REF = "ref"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class DeclaredValue:
    """An argument or a result as declared in the source program."""

    name: str  # without the ``%``; ``input0``, ``output0`` and so on if the author gave none
    type_text: str  # the type in full, ``tensor<?x4xf32, #encoding>``
    kind: ValueKind = ValueKind.OTHER
    # Of a tensor, of a buffer declared to hold a tensor, or of a scalar, as text: ``f32``, ``bf16``, ``si8``,
    # ``f8E4M3FN``, ``complex<f32>``, ``index``.
    element_type: str | None = None
    shape: tuple[int | None, ...] | None = None  # ``None`` for a dynamic dimension, and without a rank
    encoding: str | None = None  # the part of a tensor's type after its element type
    attributes: Mapping[str, str] = field(default_factory=dict)  # texts, such as ``iree.abi.output``: ``1 : index``

    def __str__(self) -> str:
        return f"{self.name}: {self.type_text}"

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor, or a buffer declared to hold a tensor."""
        return self.kind is ValueKind.TENSOR or (self.kind is ValueKind.REF and self.element_type is not None)


@dataclass(frozen=True, slots=True)
class FunctionDeclaration:
    """A function as declared in the source program."""

    name: str  # the name of the export
    is_async: bool  # whether the caller passes a wait and a signal fence behind the declared arguments
    arguments: tuple[DeclaredValue, ...]  # without the fences
    results: tuple[DeclaredValue, ...]
    text: str = field(default="", compare=False)  # as it was written

    def format(self) -> str:
        """Formats it for people: ``async mul(lhs: tensor<?xf32>, rhs: f32) -> (output0: tensor<?xf32>)``."""
        arguments = ", ".join(map(str, self.arguments))
        results = ", ".join(map(str, self.results))
        return f"{'async ' if self.is_async else ''}{self.name}({arguments}) -> ({results})"

    def fits(self, convention: CallingConvention) -> bool:
        """Whether a function with this calling convention can be the declared function.

        The author may write any declaration, so check before relying on it. For asynchronous functions the two fences
        are expected after the arguments. 64-bit floats may have become 32-bit ones.
        """
        taken = convention.arguments
        if self.is_async:
            if taken[-2:] != ("r", "r"):
                return False
            taken = taken[:-2]
        return _fit(self.arguments, taken) and _fit(self.results, convention.results)


def declaration_of(signature: Signature) -> FunctionDeclaration | None:
    """Returns the declaration in a signature's attributes; ``None`` if there is none or it does not parse."""
    text = signature.attributes.get(DECLARATION_KEY)
    return None if text is None else parse_declaration(text)


@functools.lru_cache(maxsize=16)  # a declaration is parsed once for checking arguments and again for calling
def parse_declaration(text: str) -> FunctionDeclaration | None:
    """Parses an ``iree.abi.declaration``; ``None`` for text of another form, or of over a million characters."""
    header = _HEADER.match(text) if len(text) <= _MAX_LENGTH else None
    if header is None:
        return None
    try:
        end = _end_of_group(text, header.end() - 1)
        arguments = _values(text[header.end() : end - 1])
        if not text.startswith(" -> (", end) or _end_of_group(text, end + 4) != len(text):
            return None
        results = _values(text[end + 5 : -1])
    except _OtherFormError:
        return None
    return FunctionDeclaration(header[2], header[1] == "async", arguments, results, text)


class _OtherFormError(Exception):
    """The text is not a declaration."""


def _values(text: str) -> tuple[DeclaredValue, ...]:
    return tuple(_value(part) for part in _split(text)) if text else ()


def _value(text: str) -> DeclaredValue:
    name, _, rest = text.partition(": ")
    attributes: dict[str, str] = {}
    brace = _find(rest, "{")
    if brace is not None and brace > 0:
        for entry in _split(rest[brace + 1 : -1]):
            key, _, value = entry.partition(" = ")
            attributes[key] = value
        if _end_of_group(rest, brace) != len(rest):
            raise _OtherFormError
        rest = rest[:brace]
    type_text = rest.strip()
    if not type_text or not name.startswith("%"):
        raise _OtherFormError
    kind, element_type, shape, encoding = _parse_type(type_text)
    if type_text == "!hal.buffer" and TENSOR_KEY in attributes:
        _, element_type, shape, encoding = _parse_type(attributes[TENSOR_KEY])
    return DeclaredValue(name[1:], type_text, kind, element_type, shape, encoding, attributes)


def _parse_type(text: str) -> tuple[ValueKind, str | None, tuple[int | None, ...] | None, str | None]:
    if text.startswith("!"):
        return ValueKind.REF, None, None, None
    if _SCALAR.fullmatch(text):
        return ValueKind.SCALAR, text, None, None
    if not text.startswith("tensor<") or not text.endswith(">"):
        return ValueKind.OTHER, None, None, None
    inner = text[len("tensor<") : -1]
    position = 0
    dimensions: list[int | None] = []
    while match := _DIMENSION.match(inner, position):
        dimensions.append(None if match[1] is None else int(match[1]))
        position = match.end()
    shape: tuple[int | None, ...] | None = tuple(dimensions)
    if inner.startswith("*x"):
        shape, position = None, 2
    comma = _find(inner, ",")
    element_type = inner[position:comma].strip()
    encoding = None if comma is None else inner[comma + 1 :].strip()
    if not element_type or element_type[0] in "0123456789?*":
        return ValueKind.OTHER, None, None, None
    return ValueKind.TENSOR, element_type, shape, encoding


def _fit(values: tuple[DeclaredValue, ...], elements: tuple[Element, ...] | tuple[str, ...]) -> bool:
    return len(values) == len(elements) and all(
        element in _letters(value) for value, element in zip(values, elements, strict=True)
    )


def _letters(value: DeclaredValue) -> tuple[str, ...]:
    """Returns the letters of calling conventions that may pass a value."""
    if value.kind in (ValueKind.TENSOR, ValueKind.REF):
        return ("r",)
    kind = value.element_type
    if kind is None or kind.startswith("complex"):
        return ("i", "I", "f", "F", "r")
    if kind == "index":
        return ("i", "I")
    if kind in ("f64", "f32"):
        return ("f",) if kind == "f32" else ("F", "f")
    if kind.lstrip("su").startswith("i"):
        return ("i",) if int(kind.lstrip("sui")) <= 32 else ("I",)
    return ("i",)


def _end_of_group(text: str, start: int) -> int:
    """Returns the position after the bracket that closes the one at ``start``."""
    for position, depth in _walk(text, start):
        if depth == 0:
            return position + 1
    raise _OtherFormError


def _split(text: str) -> list[str]:
    """Returns the parts between top-level commas, stripped."""
    parts = []
    start = 0
    depth = 0
    for position, depth in _walk(text, 0):
        if depth == 0 and text[position] == ",":
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    if depth or not all(parts):
        raise _OtherFormError
    return parts


def _find(text: str, character: str) -> int | None:
    """Returns the first top-level position of a comma or an opening bracket."""
    opening = character in _OPENING
    for position, depth in _walk(text, 0):
        if text[position] == character and depth == opening:
            return position
    return None


def _walk(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yields each bracket and comma outside strings, with the depth after it; stops if brackets do not match."""
    stack: list[str] = []
    for match in _TOKEN.finditer(text, start):
        token = match[0]
        if len(token) > 1:
            continue
        if token in _OPENING:
            stack.append(token)
        elif token in _CLOSING and (not stack or stack.pop() != _PAIRS[token]):
            yield match.start(), -1
            return
        yield match.start(), len(stack)
