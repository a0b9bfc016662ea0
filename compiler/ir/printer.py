"""Programs as MLIR text, in the custom syntax of their dialects if there is one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

from .attributes import attribute_text, dictionary_text, string_text
from .operation import Block, Location, Operation, Region, Value
from .source import SourceText
from .types import FunctionType

_SHORT: Final = {"builtin.module": "module", "func.call": "call", "func.return": "return"}
_CONSTANTS: Final = frozenset({"stablehlo.constant", "arith.constant"})


def location_text(source: SourceText, location: Location) -> str:
    """Returns the text in the parentheses of ``loc(…)``, with a file and line if known; possibly empty."""
    debug = location.debug
    if location.offset < 0 or (debug is not None and debug.line):
        return "" if debug is None else debug.text
    line, column = source.place(location.offset)
    position = f"{string_text(source.file_name)}:{line}:{column}"
    return f"{string_text(debug.name)}({position})" if debug is not None and debug.name else position


def source_line(source: SourceText, location: Location) -> tuple[str, int, int] | None:
    """Returns the file, line and column of a location: the user's if the text has it, or the text's."""
    debug = location.debug
    if debug is not None and debug.line:
        return debug.file_name, debug.line, debug.column
    return None if location.offset < 0 else (source.file_name, *source.place(location.offset))


class PrintableSyntax(Protocol):
    """The custom syntax of an operation, as a printer needs it."""

    def print(self, printer: Printer, operation: Operation, /) -> str:
        """Returns the text after an operation's name."""


class Printer:
    """Prints operations.

    Args:
        syntaxes: the syntaxes by the operation's name; without syntaxes, everything is printed in the generic form.
        source: the text of the operations, for their locations; without it these are not printed.
    """

    def __init__(self, syntaxes: Mapping[str, PrintableSyntax], source: SourceText | None = None) -> None:
        self._syntaxes = syntaxes
        self._source = source
        self._locations: dict[str, str] = {}
        self._names: dict[Value, str] = {}
        self._counts: dict[str, int] = {}
        self._labels: dict[Block, str] = {}
        self._depth = 0

    # -- operations ------------------------------------------------------------------------------------

    def program(self, operations: Sequence[Operation]) -> str:
        """Returns operations, each on lines of its own with a final line feed, followed by their locations."""
        text = "".join(f"{self.operation(operation)}\n" for operation in operations)
        return text + "".join(f"{alias} = loc({location})\n" for location, alias in self._locations.items())

    def operation(self, operation: Operation) -> str:
        """Returns an operation with its results."""
        syntax = self._syntaxes.get(operation.name)
        results = self._defined(operation)
        if syntax is None:
            body = self._generic(operation)
        else:
            name = _SHORT.get(operation.name, operation.name)
            printed = syntax.print(self, operation)
            body = name + printed if printed.startswith(("(", "[")) else f"{name} {printed}".rstrip()
        return results + body + self._location(operation)

    def _location(self, operation: Operation) -> str:
        """Returns an operation's location as an alias that is defined after the program."""
        if self._source is None:
            return ""
        text = location_text(self._source, operation.location)
        return f" loc({self._locations.setdefault(text, f'#loc{len(self._locations)}')})" if text else ""

    def _defined(self, operation: Operation) -> str:
        count = len(operation.results)
        if not count:
            return ""
        prefix = ""
        if operation.name in _CONSTANTS:
            element = operation.results[0].tensor.element
            prefix = "cst" if getattr(element, "kind", "float") in ("float", "complex") else "c"
        name = self._fresh(prefix)
        for index, value in enumerate(operation.results):
            self._names[value] = name if count == 1 else f"{name}#{index}"
        return f"%{name} = " if count == 1 else f"%{name}:{count} = "

    def _fresh(self, prefix: str) -> str:
        number = self._counts.get(prefix, 0)
        self._counts[prefix] = number + 1
        if prefix in ("", "arg"):
            return f"{prefix}{number}"
        return prefix if number == 0 else f"{prefix}_{number - 1}"

    def _generic(self, operation: Operation) -> str:
        text = f'"{operation.name}"({self.operands(operation.operands)})'
        if operation.successors:
            text += f"[{', '.join(self.label(block) for block in operation.successors)}]"
        if operation.regions:
            regions = ", ".join(self.region(region, always_labelled=True) for region in operation.regions)
            text += f" ({regions})"
        if operation.attributes:
            text += f" {dictionary_text(operation.attributes)}"
        types = FunctionType([value.type for value in operation.operands], [value.type for value in operation.results])
        return f"{text} : {types}"

    # -- parts -----------------------------------------------------------------------------------------

    def value(self, value: Value) -> str:
        return f"%{self._names[value]}"

    def operands(self, values: Sequence[Value]) -> str:
        """Returns the names of values, separated by commas."""
        return ", ".join([f"%{self._names[value]}" for value in values])

    def dictionary(self, operation: Operation, shown: Collection[str] = ()) -> str:
        """Returns the attributes not in ``shown``, with braces; empty if there are none."""
        others = {key: value for key, value in operation.attributes.items() if key not in shown}
        return dictionary_text(others) if others else ""

    def keyword_attributes(self, operation: Operation, shown: Collection[str] = ()) -> str:
        """Returns the attributes not in ``shown``, after the word ``attributes``; possibly empty."""
        others = self.dictionary(operation, shown)
        return f" attributes {others}" if others else ""

    def attribute(self, operation: Operation, name: str) -> str:
        return attribute_text(operation.attributes[name])

    def label(self, block: Block) -> str:
        return self._labels.setdefault(block, f"^bb{len(self._labels)}")

    def argument(self, value: Value, prefix: str = "arg") -> str:
        """Names an argument of a block."""
        self._names[value] = self._fresh(prefix)
        return f"%{self._names[value]}"

    def alias(self, values: Sequence[Value], named: Sequence[Value]) -> None:
        """Prints values under the names of other values."""
        for value, other in zip(values, named, strict=True):
            self._names[value] = self._names[other]

    @property
    def indent(self) -> str:
        """Returns the spaces before a line of the current region."""
        return "  " * self._depth

    def scope(self, print_body: Callable[[], str]) -> str:
        """Returns the text of a body in a scope in which values are numbered from 0."""
        saved, self._counts = self._counts, {}
        names, self._names = self._names, {}
        labels, self._labels = self._labels, {}
        text = print_body()
        self._counts, self._names, self._labels = saved, names, labels
        return text

    def region(self, region: Region, always_labelled: bool = False) -> str:
        """Returns a region with its braces.

        Args:
            region: the region.
            always_labelled: whether the entry block has a label if it has arguments.
        """
        indent = "  " * self._depth
        counts = dict(self._counts)
        self._depth += 1
        lines = []
        for block in region.blocks:
            is_entry = block is region.blocks[0]
            if not is_entry or (always_labelled and block.arguments):
                arguments = ", ".join(f"{self.argument(value)}: {value.type}" for value in block.arguments)
                label = self.label(block)
                lines.append(f"{indent}{label}({arguments}):" if arguments else f"{indent}{label}:")
            lines.extend(f"{indent}  {self.operation(operation)}" for operation in block.operations)
        self._depth -= 1
        self._counts = counts
        return "{\n" + "".join(f"{line}\n" for line in lines) + indent + "}"
