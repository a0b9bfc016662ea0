"""Programs in the text form: operations in the generic form and in the custom syntax of their dialects."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from ...status import close_to
from .attributes import Attribute
from .location_parser import LocationParser
from .operation import Block, Location, Operation, Region, Value
from .scanner import SPACE
from .source import SourceText
from .types import Type

_VALUE: Final = r"%([A-Za-z_0-9$.-]+(?:#[0-9]+)?)"
_START: Final = re.compile(
    SPACE
    + r"(?:((?:%[A-Za-z_0-9$.-]++(?::[0-9]++)?"
    + SPACE
    + r",?+"
    + SPACE
    + r")++)="
    + SPACE
    + r')?(?:"([^"\n]*+)"|([A-Za-z_][A-Za-z0-9_$]*+(?:\.[A-Za-z0-9_$]++)*+))',
    re.ASCII,
)
_RESULT: Final = re.compile(r"%([A-Za-z_0-9$.-]+)(?::([0-9]+))?", re.ASCII)
_OPERAND: Final = re.compile(SPACE + _VALUE, re.ASCII)
_NEXT_OPERAND: Final = re.compile(SPACE + "," + SPACE + _VALUE, re.ASCII)
_LABEL: Final = re.compile(SPACE + r"\^([A-Za-z_0-9$.-]+)", re.ASCII)

_IMPLIED: Final = {"module": "builtin.module", "unrealized_conversion_cast": "builtin.unrealized_conversion_cast"}
MAX_OPERATIONS: Final = 250_000
"""The most operations of a program. Larger programs, which would take minutes and gigabytes, are refused."""


@dataclass(slots=True)
class Parts:
    """The parts of an operation that its syntax reads: all except its name, successors and location."""

    operands: Sequence[Value]
    result_types: Sequence[Type]
    attributes: dict[str, Attribute]
    regions: Sequence[Region]


class ReadableSyntax(Protocol):
    """The custom syntax of an operation, as a parser needs it."""

    def parse(self, parser: Parser, name: str, /) -> Parts:
        """Reads an operation after its name."""


class Parser(LocationParser):
    """Reads operations.

    Attributes:
        block: the block to append to.
    """

    def __init__(self, source: SourceText, syntaxes: Mapping[str, ReadableSyntax]) -> None:
        super().__init__(source)
        self._syntaxes = syntaxes
        self._values: dict[str, Value] = {}
        self._defined: list[str] = []
        self._forward: dict[str, tuple[Value, int, list[Block]]] = {}
        self._blocks: dict[str, tuple[Block, int, bool]] = {}
        self._open: list[Block] = []
        self._count = 0

    # -- operations ------------------------------------------------------------------------------------

    def program(self) -> list[Operation]:
        """Reads operations up to the end of the text."""
        operations = []
        while self.here() < len(self.text):
            if self.at("#"):
                self.alias_definition()
            elif self.at("!"):
                self.type_alias()
            elif self.accept("{-#"):
                end = self.text.find("#-}", self.position)
                self.position = len(self.text) if end < 0 else end + 3
            else:
                operations.append(self.operation())
        self._check_forward()
        return operations

    def operation(self) -> Operation:
        """Reads an operation and appends it to the innermost open block."""
        self._count += 1
        if self._count > MAX_OPERATIONS:
            self.error(f"a program has at most {MAX_OPERATIONS:,} operations")
        match = _START.match(self.text, self.position)
        if match is None:
            self.unexpected("an operation")
        self.position = match.end()
        results, generic, name = match.groups()
        offset = match.start(2) - 1 if generic is not None else match.start(3)
        if generic is not None:
            name = generic
            parts, successors = self._generic()
        else:
            name = self._full_name(name)
            syntax = self._syntaxes.get(name)
            if syntax is None:
                self.error(self._unknown(name), offset)
            parts, successors = syntax.parse(self, name), self._successors
            self._successors = []
        operation = Operation(
            name, parts.operands, parts.result_types, parts.attributes, parts.regions, successors, Location(offset)
        )
        if results is not None or operation.results:
            self._name_results(results or "", operation, match.start())
        debug = self.trailing_location()
        if debug is not None:
            operation.location = Location(offset, debug)
        if self._open:
            self._open[-1].append(operation)
        return operation

    _successors: Sequence[Block] = ()

    def _full_name(self, name: str) -> str:
        if "." in name:
            return name
        name = _IMPLIED.get(name, name)
        return f"func.{name}" if f"func.{name}" in self._syntaxes else name

    def _unknown(self, name: str) -> str:
        dialect, dot, last = name.partition(".")
        known = [syntax.removeprefix(dialect + dot) for syntax in self._syntaxes if syntax.startswith(dialect + dot)]
        if dot and known:
            near = close_to(last, known, 1)
            hint = f"did you mean {dialect}.{near[0]}? Otherwise, " if near else ""
            return f'the syntax of {name} is not known; {hint}print the program in the generic form: "{name}"(…)'
        dialects = f"; no dialect {dialect} is known: give the program in StableHLO" if dot else ""
        return f"unknown operation {name}{dialects}"

    def _generic(self) -> tuple[Parts, Sequence[Block]]:
        names = self.enclosed_names()
        successors = [self.successor() for _ in self.items("]")] if self.accept("[") else []
        attributes: dict[str, Attribute] = {}
        if self.accept("<"):
            attributes |= self.attribute_dictionary()
            self.expect(">")
        regions = []
        if self.accept("("):
            regions.append(self.region())
            while self.accept(","):
                regions.append(self.region())
            self.expect(")")
        attributes |= self.attributes_before_types()
        type = self.function_type()
        return Parts(self.operands(names, type.inputs), type.results, attributes, regions), successors

    def _name_results(self, text: str, operation: Operation, offset: int) -> None:
        named = [(match[1], int(match[2][:6]) if match[2] else 1) for match in _RESULT.finditer(text)]
        total = sum(count for _, count in named)
        if total != len(operation.results) or text.rstrip().endswith(","):
            if not named:
                return
            self.error(f"{operation.name} has {len(operation.results)} results, {total} are named", offset)
        index = 0
        for name, count in named:
            for number in range(count):
                value = operation.results[index]
                value.name = name
                if count == 1:
                    self.define(name, value, offset, operation.results)
                    if f"{name}#0" in self._forward:
                        self.define(f"{name}#0", value, offset, operation.results)
                else:
                    self.define(f"{name}#{number}", value, offset, operation.results)
                    if number == 0:
                        self.define(name, value, offset, operation.results)
                index += 1

    def branch_to(self, blocks: Sequence[Block]) -> None:
        """Sets the successors of the operation whose custom syntax is being read."""
        self._successors = blocks

    # -- values ----------------------------------------------------------------------------------------

    def define(self, name: str, value: Value, offset: int, values: list[Value]) -> None:
        """Names a value; ``values`` is its list of results or arguments."""
        if name in self._values:
            self.error(f"%{name} is defined twice", offset)
        forward = self._forward.pop(name, None)
        if forward is not None:
            used, use_offset, blocks = forward
            if self._open and all(block.parent is not self._open[-1].parent for block in blocks):
                self.error(f"%{name} is not defined", use_offset)
            if self._open and self._open[-1] in blocks and isinstance(value.owner, Operation):
                self.error(f"%{name} is used before it is defined", use_offset)
            if used.type is not value.type:
                self.error(f"%{name} is used as {used.type}, it is defined as {value.type}", use_offset)
            used.owner, used.index, used.name = value.owner, value.index, value.name
            values[value.index] = value = used
        self._values[name] = value
        self._defined.append(name)

    def operand_names(self) -> list[tuple[str, int]]:
        """Reads the names of values separated by commas, possibly none; returns each with its offset."""
        match = _OPERAND.match(self.text, self.position)
        if match is None:
            return []
        operands = []
        end = 0
        while match is not None:
            operands.append((match[1], match.start(1) - 1))
            end = match.end()
            match = _NEXT_OPERAND.match(self.text, end)
        self.position: int = end
        return operands

    def enclosed_names(self, brackets: str = "()") -> list[tuple[str, int]]:
        """Reads the names of values separated by commas, in brackets."""
        self.expect(brackets[0])
        names = self.operand_names()
        self.expect(brackets[1])
        return names

    def typed_operand(self) -> Value:
        """Reads ``%a : type``."""
        name = self.operand_name()
        self.expect(":")
        (value,) = self.operands([name], [self.type()])
        return value

    def operand_name(self) -> tuple[str, int]:
        """Reads the name of one value."""
        match = self.match(_OPERAND)
        if match is None:
            self.unexpected("a value such as %0")
        return match[1], match.start(1) - 1

    def operands(self, names: Sequence[tuple[str, int]], types: Sequence[Type]) -> list[Value]:
        """Returns the values with these names and types."""
        if len(names) != len(types):
            self.error(f"{len(names)} operands are given with {len(types)} types", names[0][1] if names else None)
        operands = []
        values = self._values
        for (name, offset), type in zip(names, types, strict=True):
            value = values.get(name)
            if value is None:
                value = self._not_yet(name, offset, type)
            elif value.type is not type:
                self.error(f"%{name} is of type {value.type}, it is used as {type}", offset)
            operands.append(value)
        return operands

    def value_of(self, name: str, offset: int) -> Value:
        """Returns the value of an already defined name, for syntaxes without types."""
        value = self._values.get(name) or self._values.get(name.removesuffix("#0"))
        if value is None:
            self.error(f"%{name} is not defined", offset)
        return value

    def _not_yet(self, name: str, offset: int, type: Type) -> Value:
        if name.endswith("#0") and name[:-2] in self._values:
            value = self._values[name[:-2]]
        elif name in self._forward:
            value = self._forward[name][0]
        else:
            if not self._open:
                self.error(f"%{name} is not defined", offset)
            value = Value(type, self._open[-1], -1, name)
            self._forward[name] = (value, offset, list(self._open))
        if value.type is not type:
            self.error(f"%{name} is of type {value.type}, it is used as {type}", offset)
        return value

    def _check_forward(self) -> None:
        for name, (_, offset, _) in self._forward.items():
            self.error(f"%{name} is not defined", offset)

    # -- regions ---------------------------------------------------------------------------------------

    def region(self, arguments: Sequence[tuple[str, Type, int]] | None = None, is_isolated: bool = False) -> Region:
        """Reads ``{ … }``.

        Args:
            arguments: the names, types and offsets of the entry block's arguments, if they precede the region.
            is_isolated: whether the region sees no values from outside.
        """
        self.enter()
        saved = (self._values, self._defined, self._forward, self._blocks, self._open)
        if is_isolated:
            self._values, self._forward, self._open = {}, {}, []
        self._defined, self._blocks = [], {}
        region = Region()
        self.expect("{")
        entry = Block()
        if not (self.at("^") and arguments is None):
            self._open_block(region, entry, arguments or ())
            self._operations()
            self._open.pop()
        while self.at("^"):
            self._labelled_block(region)
        self.expect("}")
        for label, (_, offset, is_defined) in self._blocks.items():
            if not is_defined:
                self.error(f"the block ^{label} is not defined", offset)
        if is_isolated:
            self._check_forward()
        else:
            for name in self._defined:
                del self._values[name]
        self._values, self._defined, self._forward, self._blocks, self._open = saved
        self.leave()
        return region

    def _open_block(self, region: Region, block: Block, arguments: Sequence[tuple[str, Type, int]]) -> None:
        region.blocks.append(block)
        block.parent = region
        self._open.append(block)
        for name, type, offset in arguments:
            value = Value(type, block, len(block.arguments), name)
            block.arguments.append(value)
            if name:
                self.define(name, value, offset, block.arguments)

    def _operations(self) -> None:
        text = self.text
        while True:
            position = self.here()
            if text.startswith(("}", "^"), position):
                return
            if position == len(text):
                self.unexpected("an operation or '}'")
            self.operation()

    def _labelled_block(self, region: Region) -> None:
        match = self.match(_LABEL)
        if match is None:
            self.unexpected("a block label such as ^bb0")
        label, offset = match[1], match.start(1) - 1
        block, _, is_defined = self._blocks.get(label, (Block(), offset, False))
        if is_defined:
            self.error(f"the block ^{label} is defined twice", offset)
        self._blocks[label] = (block, offset, True)
        arguments = self.arguments() if self.at("(") else []
        self.expect(":")
        self._open_block(region, block, arguments)
        self._operations()
        self._open.pop()

    def arguments(self) -> list[tuple[str, Type, int]]:
        """Reads ``(%a: type, …)``: names, types and offsets."""
        self.expect("(")
        arguments = []
        for _ in self.items(")"):
            name, offset = self.operand_name()
            self.expect(":")
            arguments.append((name, self.type(), offset))
            self.trailing_location()
        return arguments

    def successor(self) -> Block:
        """Reads the label of a block, which may be defined later."""
        match = self.match(_LABEL)
        if match is None:
            self.unexpected("a block label such as ^bb0")
        known = self._blocks.setdefault(match[1], (Block(), match.start(1) - 1, False))
        return known[0]
