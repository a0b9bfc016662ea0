"""Reading of types."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from .scanner import SPACE, Scanner
from .sizes import SIZE_TEXT, Dim
from .source import SourceText
from .types import (
    DialectType,
    FunctionType,
    MemRefType,
    ScalarType,
    ShapedType,
    TensorType,
    TupleType,
    Type,
    VectorType,
)

_SIMPLE: Final = re.compile(SPACE + r"((?:tensor|memref|vector)<(?:(?:[0-9]+|\?)x)*[a-z][A-Za-z0-9]*>)", re.ASCII)
_NAME: Final = re.compile(SPACE + r"([a-z][A-Za-z0-9]*)(?![A-Za-z0-9_$.])", re.ASCII)
_DIMENSION: Final = re.compile(SPACE + rf"([0-9]++|\?|{SIZE_TEXT})" + SPACE + "x", re.ASCII)
_DIALECT_TYPE: Final = re.compile(SPACE + r"!([A-Za-z_][A-Za-z0-9_$.]*+)", re.ASCII)
_SHAPED: Final[dict[str, type[ShapedType]]] = {"tensor": TensorType, "memref": MemRefType, "vector": VectorType}

MAX_DEPTH: Final = 100
"""The deepest nesting of types, attributes and regions."""

MAX_RANK: Final = 32
"""The most dimensions of a tensor, as in all releases of NumPy."""

_MAX_DIMENSION: Final = 2**63 - 1
_MAX_ELEMENTS: Final = 2**56
_MAX_TEXT: Final = 10_000_000


class TypeParser(Scanner):
    """Reads types. Aliases (``!name = …``) are looked up in ``type_aliases``."""

    def __init__(self, source: SourceText) -> None:
        super().__init__(source)
        self.type_aliases: dict[str, Type] = {}
        self.depth: int = 0
        self._simple: dict[str, Type] = {}

    def enter(self) -> None:
        """Enters a nested level."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.error(f"nested more than {MAX_DEPTH} levels deep")

    def leave(self) -> None:
        """Leaves a nested level."""
        self.depth -= 1

    def type(self) -> Type:
        """Reads a type."""
        match = _SIMPLE.match(self.text, self.position)
        if match is not None:
            known = self._simple.get(match[1])
            if known is not None:
                self.position: int = match.end()
                return known
        start = self.here()
        type = self.accept_type()
        if type is None:
            name = _NAME.match(self.text, start)
            if name is not None:
                self.error(f"there is no type {name[1][:40]}", start)
            self.unexpected("a type")
        if match is not None and self.position == match.end():
            self._simple[self.text[start : self.position]] = type
        return type

    def accept_type(self) -> Type | None:
        """Reads a type, if present."""
        if self.at("("):
            return self.function_type()
        dialect = self.match(_DIALECT_TYPE)
        if dialect is not None:
            return self._dialect_type(dialect[1], dialect.start(1))
        start = self.here()
        match = self.match(_NAME)
        if match is None:
            return None
        name = match[1]
        if name in ("tensor", "memref", "vector", "tuple", "complex") and self.accept("<"):
            self.enter()
            type = self._bracketed(name, start)
            self.leave()
            return type
        try:
            return ScalarType(name)
        except ValueError:
            self.position = start
            return None

    def types(self) -> list[Type]:
        """Reads one or more types, separated by commas."""
        types = [self.type()]
        while self.accept(","):
            types.append(self.type())
        return types

    def types_in_parentheses(self) -> list[Type]:
        """Reads ``(…)`` around types, possibly empty."""
        self.expect("(")
        if self.accept(")"):
            return []
        types = self.types()
        self.expect(")")
        return types

    def function_type(self) -> FunctionType:
        """Reads ``(inputs) -> results``."""
        start = self.here()
        self.enter()
        inputs = self.types_in_parentheses()
        self.expect("->")
        results = self.types_in_parentheses() if self.at("(") else [self.type()]
        self.leave()
        self._check_length([*inputs, *results], start)
        return FunctionType(inputs, results)

    def _check_length(self, types: Sequence[Type], start: int) -> None:
        """Checks that a compound type is not too long to be written: aliases of aliases double at each step."""
        if sum(len(str(type)) for type in types) > _MAX_TEXT:
            self.error(f"a type of more than {_MAX_TEXT:,} characters", start)

    def _bracketed(self, name: str, start: int) -> Type:
        if name == "complex":
            part = self.type()
            self.expect(">")
            try:
                return ScalarType(f"complex<{part}>")
            except ValueError:
                self.error(f"there are no complex numbers of {part}: f32 and f64 are the types of parts", start)
        if name == "tuple":
            if self.accept(">"):
                return TupleType([])
            elements = self.types()
            self.expect(">")
            self._check_length(elements, start)
            return TupleType(elements)
        shape: list[Dim | None] = []
        count = 1
        while (match := self.match(_DIMENSION)) is not None:
            if not match[1].isdigit():
                shape.append(None if match[1] == "?" else self.size(match[1], match.start(1)))
                continue
            length = int(match[1][:40])
            if length > _MAX_DIMENSION:
                self.error("a dimension has at most 2**63 - 1 elements", match.start(1))
            count *= length or 1
            shape.append(length)
            if len(shape) > MAX_RANK:
                self.error(f"a tensor has at most {MAX_RANK} dimensions", start)
        if self.at("*"):
            self.error("unranked tensors are not known when a program is compiled: give every tensor a rank")
        element = self.type()
        encoding = ""
        if self.accept(","):
            self.here()
            encoding = self.balanced(">").strip()
        else:
            self.expect(">")
        if count > _MAX_ELEMENTS:
            self.error(f"a tensor has at most 2**{_MAX_ELEMENTS.bit_length() - 1} elements", start)
        return _SHAPED[name](shape, element, encoding)

    def _dialect_type(self, name: str, start: int) -> Type:
        if "." not in name:
            alias = self.type_aliases.get(name)
            if alias is None:
                self.error(f"the type alias !{name} is not defined", start)
            return alias
        if name.partition(".")[0] in ("stablehlo", "mhlo") and name.partition(".")[2] not in ("token", "future"):
            self.error(f"there is no type !{name}", start - 1)
        if self.text.startswith("<", self.position):
            self.position += 1
            self.balanced(">")
        return DialectType("!" + self.text[start : self.position])
