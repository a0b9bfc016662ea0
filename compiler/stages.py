"""The stages of a program, and its text at each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..vm.assembly.disassembler import disassemble_module
from ..vm.bytecode.archive import ModuleArchive
from ..vm.bytecode.reader import read_module
from ..vm.bytecode.verifier import verify_module
from .dialects.syntax.text import parse, to_text
from .ir.operation import Operation, Region, block_of
from .ir.source import SourceText
from .passes.sequencing.ll_seq import sequence_of
from .passes.sequencing.steps import Schedule

STAGES: Final = ("graphdef", "hlo", "canonical", "regions", "hl_seq", "ll_seq", "targets", "module")
"""All stages in order. Each is text: TensorFlow's first, VM assembly last, and one grammar in between."""

GRAPH_SUFFIXES: Final = (".pb", ".pbtxt", ".prototxt", ".graphdef")
_GRAPH_START: Final = re.compile(rb"(?:\s++|#[^\n]*+)*+(?:node|library|versions|version)\s*[:{<]")

EXECUTABLE: Final = "iree.multi_arch_executable"


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A TensorFlow GraphDef.

    Attributes:
        data: the graph's content, as text or binary.
        file_name: the file's name, for errors.
    """

    data: bytes
    file_name: str

    def text(self, with_locations: bool = True) -> str:
        """Returns the graph as text; it has no locations.

        Raises:
            CompileError: the data is no GraphDef.
            UnavailableError: the extra ``graphdef`` is not installed.
        """
        # Imported here, so that other programs compile sooner.
        from .frontends.graphdef.file.document import graph_text

        return graph_text(self.data, self.file_name)


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """A module file.

    Attributes:
        data: the file's bytes.
    """

    data: bytes

    def text(self, with_locations: bool = True) -> str:
        """Returns the module as VM assembly, constants in hexadecimal; it has no locations."""
        definition = read_module(ModuleArchive.from_bytes(self.data))
        return disassemble_module(verify_module(definition), exact=True)


def is_assembly(text: str) -> bool:
    return re.match(r"(?:\s++|//[^\n]*+)*+vm\.module\b", text) is not None


def is_graph_file(data: bytes, file_name: str) -> bool:
    """Whether a file is a GraphDef, by its suffix, its start, or because it is binary."""
    return file_name.endswith(GRAPH_SUFFIXES) or b"\0" in data[:4096] or _GRAPH_START.match(data) is not None


def other_kind(data: bytes) -> str | None:
    """Describes a file that no front end reads, with a remedy; None if its first bytes do not identify its kind."""
    if data[8:12] == b"IREE":
        return "a compiled module, which `pumice run` runs"
    return next((kind for start, kind in _OTHER_KINDS.items() if data.startswith(start)), None)


_OTHER_KINDS: Final = {
    b"ML\xefR": "MLIR bytecode; write the program as text, as mlir_module() of jax.export gives it",
    b"PK\x03\x04": "a ZIP archive; `pumice run` runs compiled modules",
    b"\x03\x02\x23\x07": "a SPIR-V kernel, which `pumice run` runs",
    b"#version": "a GLSL kernel, which `pumice run` runs",
}
"""Kinds of files by their first bytes."""


@dataclass(slots=True)
class Program:
    """A program at a stage.

    Attributes:
        name: the module's name.
        operations: the executables, from ``hl_seq`` on; then the functions.
        source: the program's text, for errors.
        schedules: the functions' steps by name, from ``ll_seq`` on, instead of the operations in their bodies.
    """

    name: str
    operations: Sequence[Operation]
    source: SourceText
    schedules: Mapping[str, Schedule] = field(default_factory=dict)

    @property
    def functions(self) -> Mapping[str, Operation]:
        """Functions by name."""
        return {
            str(operation.attributes["sym_name"]): operation
            for operation in self.operations
            if operation.name == "func.func"
        }

    @property
    def executables(self) -> Sequence[Operation]:
        """Executables that the functions dispatch."""
        return [operation for operation in self.operations if operation.name == EXECUTABLE]

    @property
    def written(self) -> Sequence[Operation]:
        """The operations, with schedules as functions of the ``iree_ll_seq`` dialect."""
        names = [str(operation.attributes["sym_name"]) for operation in self.operations]
        return [
            sequence_of(operation, self.schedules[name]) if name in self.schedules else operation
            for name, operation in zip(names, self.operations, strict=True)
        ]

    def text(self, with_locations: bool = True) -> str:
        """Returns the program as text, which ``read_program`` reads back as an equal program.

        Args:
            with_locations: whether to print the source location of each operation. Otherwise debug information of
                modules made from the text refers to the text.
        """
        operations = self.written
        if self.name != _UNNAMED or self.executables:
            attributes = {} if self.name == _UNNAMED else {"sym_name": self.name}
            module = Operation("builtin.module", (), (), {**attributes}, [Region([block_of(operations)])])
            operations = [module]
        return to_text(operations, source=self.source if with_locations else None)


_UNNAMED: Final = "module"


def read_program(text: str, file_name: str) -> Program:
    """Parses the text of a program at any stage.

    Args:
        text: the text of a module, or only of functions and executables.
        file_name: the file's name, for errors.

    Raises:
        CompileError: the text has a syntax error; the error is at the first.
    """
    source = SourceText(text, file_name)
    return program_of(parse(text, file_name), source)


def program_of(operations: Sequence[Operation], source: SourceText) -> Program:
    """Makes a program of the operation of a module, or of the operations in it.

    Raises:
        CompileError: an operation is neither a function nor an executable, or two operations have the same name.
    """
    name = _UNNAMED
    if len(operations) == 1 and operations[0].name == "builtin.module":
        (module,) = operations
        named = module.attributes.get("sym_name")
        name = named if isinstance(named, str) else name
        if len(module.regions) != 1 or len(module.regions[0].blocks) != 1:
            raise source.error(module.location.offset, "expected a module of one region with one block")
        operations = module.regions[0].block.operations
    kept: dict[str, Operation] = {}
    for operation in operations:
        if operation.name.startswith("sdy."):
            continue
        offset = operation.location.offset
        if operation.name not in ("func.func", EXECUTABLE):
            raise source.error(offset, f"expected functions in a module, got {operation.name}")
        symbol = operation.attributes.get("sym_name")
        if not isinstance(symbol, str):
            raise source.error(offset, f"expected the attribute sym_name with a name, got {symbol}")
        if symbol in kept:
            raise source.error(offset, f"the function @{symbol} is defined twice")
        kept[symbol] = operation
    return Program(name, list(kept.values()), source)


def stage_of(program: Program) -> str:
    """Returns the stage of a program, by its operations; ``hlo`` even for a canonical program."""
    variants = [variant for executable in program.executables for variant in executable.regions[0].block.operations]
    if any(variant.attributes.get("target") != "Unspecified" for variant in variants):
        return "targets"
    names = {operation.name for function in program.functions.values() for operation in function.walk()}
    for stage, mark in (("ll_seq", "iree_ll_seq."), ("hl_seq", "iree_hl_seq."), ("regions", "iree.dispatch_region")):
        if any(name.startswith(mark) for name in names):
            return stage
    return "hl_seq" if variants else "hlo"
