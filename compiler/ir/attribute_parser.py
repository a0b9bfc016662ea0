"""Reading of attributes."""

from __future__ import annotations

import re
from typing import Final

from .attributes import Attribute, DenseArray, EnumAttr, FloatAttr, IntegerAttr, RawAttr, StructAttr, SymbolRef
from .convolution import convolution_dimensions
from .dense import dense_elements
from .scanner import SPACE
from .sizes import Size
from .source import SourceText
from .type_parser import TypeParser
from .types import F64, I64, ScalarType, ShapedType, Type

NUMBER: Final = re.compile(SPACE + r"([+-]?(?:0x[0-9A-Fa-f]++|[0-9]++(\.[0-9]*+)?([eE][+-]?[0-9]++)?))", re.ASCII)
_HASH: Final = re.compile(SPACE + r"#([A-Za-z_0-9][A-Za-z0-9_$.]*+)", re.ASCII)
_ENUM: Final = re.compile(SPACE + r"<\s*([a-z_]++)\s+([A-Za-z0-9_]++)\s*>", re.ASCII)
_FIELD: Final = re.compile(SPACE + r"([a-z_][A-Za-z0-9_]*+)\s*=(?!=)", re.ASCII)
_KEY: Final = re.compile(SPACE + r"([A-Za-z_][A-Za-z0-9_$.]*+)", re.ASCII)
_NAME_VALUE: Final = re.compile(SPACE + r"([A-Za-z_][A-Za-z0-9_]*+)", re.ASCII)
_ALIAS: Final = re.compile(r"^[ \t]*#([A-Za-z_][A-Za-z0-9_$]*)[ \t]*=", re.ASCII | re.MULTILINE)
_DENSE: Final = re.compile(SPACE + r"(dense|dense_resource|sparse|array|affine_map|affine_set|strided|distinct)\b")

_DOT: Final = tuple(f"{side}_{kind}_dimensions" for kind in ("batching", "contracting") for side in ("lhs", "rhs"))
_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "dot": _DOT,
    "gather": (
        *("offset_dims", "collapsed_slice_dims", "operand_batching_dims", "start_indices_batching_dims"),
        *("start_index_map", "index_vector_dim"),
    ),
    "scatter": (
        *("update_window_dims", "inserted_window_dims", "input_batching_dims", "scatter_indices_batching_dims"),
        *("scatter_dims_to_operand_dims", "index_vector_dim"),
    ),
}
"""Fields of structures, by the name without the dialect."""

_ARRAY_KINDS: Final = frozenset({"bool", "int", "uint", "index", "float"})
_MAX_EXPANDED: Final = 10_000_000


class AttributeParser(TypeParser):
    """Reads attributes. Aliases (``#name = …``) may be defined anywhere in the text."""

    def __init__(self, source: SourceText) -> None:
        super().__init__(source)
        self._alias_offsets = {match[1]: match.end() for match in _ALIAS.finditer(self.text)}
        self._aliases: dict[str, Attribute] = {}
        self._alias_sizes: dict[str, int] = {}
        self._expanded = 0

    def attribute_dictionary(self) -> dict[str, Attribute]:
        """Reads ``{key = value, …}`` if present."""
        values: dict[str, Attribute] = {}
        if not self.accept("{"):
            return values
        self.enter()
        while not self.accept("}"):
            offset = self.here()
            match = self.match(_KEY)
            key = match[1] if match else self.accept_string()
            if key is None:
                self.unexpected("an attribute's name")
            if key in values:
                self.error(f"the attribute {key} is given twice", offset)
            values[key] = self.attribute() if self.accept("=") else None
            if not self.accept(","):
                self.expect("}")
                break
        self.leave()
        return values

    def keyword_attributes(self) -> dict[str, Attribute]:
        """Reads ``attributes {key = value, …}`` if present."""
        return self.attribute_dictionary() if self.accept_word("attributes") else {}

    def attributes_before_types(self) -> dict[str, Attribute]:
        """Reads ``{key = value, …}`` if present, and the colon before types."""
        attributes = self.attribute_dictionary()
        self.expect(":")
        return attributes

    def attribute(self) -> Attribute:
        """Reads an attribute."""
        self.enter()
        attribute = self._attribute()
        self.leave()
        return attribute

    def _attribute(self) -> Attribute:
        number = NUMBER.match(self.text, self.position)
        if number is not None:
            return self._number(number)
        char = self.text[self.here() : self.position + 1]
        if char == '"':
            value = self.string()
            if self.accept(":"):
                self.type()
            return value
        if char == "@":
            return SymbolRef(self.symbol())
        if char == "[":
            return self._list()
        if char == "{":
            return self.attribute_dictionary()
        if char == "#":
            return self.hash_attribute()
        dense = self.match(_DENSE)
        if dense is not None:
            return self._dense(dense[1], dense.start(1))
        word = self.peek_word()
        if word in ("true", "false", "unit", "loc"):
            self.expect_word(word)
            if word == "loc":
                self.expect("(")
                return RawAttr(f"loc({self.balanced(')')})")
            return None if word == "unit" else word == "true"
        type = self.accept_type()
        if type is None:
            self.unexpected("an attribute")
        return type

    def _number(self, match: re.Match[str]) -> Attribute:
        self.position = match.end()
        type: Type = F64 if match[2] or match[3] else I64
        if self.accept(":"):
            type = self.type()
        return self._number_of(match, type)

    def _number_of(self, match: re.Match[str], type: Type) -> IntegerAttr | FloatAttr:
        """Returns a number as a number of a type, which it must fit."""
        start, text, is_float = match.start(1), match[1], bool(match[2] or match[3])
        if len(text) > 1000:
            self.error("a number of more than 1,000 characters", start)
        is_float_type = isinstance(type, ScalarType) and type.kind == "float"
        if is_float_type and not is_float and "x" in text:
            element = dense_elements(self, text, start, type)
            return FloatAttr(float(element.array.item()), type)
        if is_float or is_float_type:
            if not is_float_type:
                self.error(f"{text} is no {type}", start)
            return FloatAttr(float(text), type)
        return IntegerAttr(self._within(int(text, 0) if "x" in text else int(text), type, start), type)

    def _within(self, value: int, type: Type, start: int) -> int:
        """Returns an integer that fits its type; a signless integer may be written as signed or unsigned."""
        if not isinstance(type, ScalarType) or type.kind not in ("bool", "int", "uint", "index"):
            return value
        low = 0 if type.kind == "uint" else -(1 << (type.bits - 1))
        if not low <= value < 1 << type.bits:
            self.error(f"the number does not fit {type}", start)
        return (
            value - (1 << type.bits)
            if type.kind != "uint" and value >= 1 << (type.bits - 1) and type.bits > 1
            else value
        )

    def _list(self) -> tuple[Attribute, ...]:
        self.expect("[")
        items: list[Attribute] = []
        if not self.accept("]"):
            items.append(self.attribute())
            while self.accept(","):
                items.append(self.attribute())
            self.expect("]")
        return tuple(items)

    def _dense(self, keyword: str, start: int) -> Attribute:
        self.expect("<")
        if keyword == "array":
            return self._array()
        body_start = self.position
        body = self.balanced(">")
        if keyword not in ("dense", "dense_resource"):
            return RawAttr(f"{keyword}<{body}>")
        self.expect(":")
        type = self.type()
        if not isinstance(type, ShapedType):
            self.error(f"a constant's type is a tensor, got {type}", body_start)
        if keyword == "dense_resource":
            self.error(
                "the data of dense_resource is outside of the function: print the program with dense constants", start
            )
        return dense_elements(self, body, body_start, type)

    def _array(self) -> DenseArray:
        start = self.here()
        element = self.type()
        if not isinstance(element, ScalarType) or element.kind not in _ARRAY_KINDS:
            self.error(f"an array has integers, booleans or floating-point numbers, not {element}", start)
        values: list[int | float | bool | Size] = []
        if not self.accept(">"):
            self.expect(":")
            while True:
                size = self.accept_size()
                if size is not None:
                    values.append(size)
                    if self.accept(","):
                        continue
                    break
                values.append(self._array_item(element))
                if not self.accept(","):
                    break
            self.expect(">")
        return DenseArray(element, tuple(values))

    def _array_item(self, element: ScalarType) -> int | float | bool:
        number = self.match(NUMBER)
        if number is not None:
            return self._number_of(number, element).value
        word = self.peek_word()
        if element.kind != "bool" or word not in ("true", "false"):
            self.unexpected(f"a number of type {element}")
        self.expect_word(word)
        return word == "true"

    def hash_attribute(self) -> Attribute:
        """Reads an alias, or an attribute of a dialect; both start with ``#``."""
        start = self.here()
        match = self.match(_HASH)
        if match is None:
            self.unexpected("an attribute")
        name = match[1]
        if not self.text.startswith("<", self.position):
            return self._alias(name, start) if "." not in name else RawAttr(f"#{name}")
        if "." not in name:
            case = self.match(_ENUM)
            if case is not None:
                return EnumAttr(name, case[1], case[2])
            self.expect("<")
            return RawAttr(f"#{name}<{self.balanced('>')}>")
        return self.struct(name)

    def struct(self, name: str) -> Attribute:
        """Reads the fields of a dialect's attribute between angle brackets."""
        self.expect("<")
        start = self.position
        if name.endswith(".conv"):
            return convolution_dimensions(self, name)
        fields: dict[str, object] = {}
        known = _FIELDS.get(name.partition(".")[2])
        while (field := self.match(_FIELD)) is not None:
            if field[1] in fields:
                self.error(f"the field {field[1]} is given twice", field.start(1))
            if known is not None and field[1] not in known:
                self.error(f"expected one of {', '.join(known)}, got {field[1]}", field.start(1))
            fields[field[1]] = self._field_value()
            if not self.accept(","):
                break
        if fields and self.accept(">"):
            return StructAttr(name, fields)
        if known is not None and not self.accept(">"):
            self.unexpected("'>'")
        self.position = start
        return RawAttr(f"#{name}<{self.balanced('>')}>")

    def _field_value(self) -> object:
        if self.accept("["):
            return tuple([self._field_value() for _ in self.items("]")])
        number = self.match(NUMBER)
        if number is not None:
            text = number[1]
            if len(text) > 1000:
                self.error("a number of more than 1,000 characters", number.start(1))
            return float(text) if number[2] or number[3] else int(text, 16 if "x" in text else 10)
        name = self.match(_NAME_VALUE)
        if name is not None:
            return {"true": True, "false": False}.get(name[1], name[1])
        return self.attribute()

    def _alias(self, name: str, start: int) -> Attribute:
        if name not in self._aliases:
            offset = self._alias_offsets.get(name)
            if offset is None:
                self.error(f"the attribute alias #{name} is not defined", start)
            back, self.position = self.position, offset
            before = self._expanded
            self._aliases[name] = self.attribute()
            self._alias_sizes[name] = self._expanded - before + self.position - offset
            self.position: int = back
        else:
            self._expanded += self._alias_sizes[name]
            if self._expanded > _MAX_EXPANDED:
                self.error(f"aliases that stand for more than {_MAX_EXPANDED:,} characters", start)
        return self._aliases[name]
