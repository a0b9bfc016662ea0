"""From a program's text to a module, stage by stage."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Final

from ..files import CachedFile, reading_errors
from ..vm.bytecode.writer import write_module
from .codegen.target import Target
from .dialects.text import parse, to_text
from .ir.operation import Operation
from .ir.source import SourceText
from .module.emit import emit_module
from .passes.canonical import canonicalize, inlined
from .passes.decompose import decompose
from .passes.expand import expand_chlo
from .passes.outline import outline
from .passes.regions import form_regions
from .passes.schedule import schedule
from .passes.steps import Schedule
from .passes.verify import verify

STAGES: Final = ("hlo", "canonical", "regions", "hl_seq", "module")
"""Stages in order; each is a program as text, but for the last, which is a file."""


@dataclass(slots=True)
class Compilation:
    """A program on its way.

    Attributes:
        name: of the module.
        text: of the program at each stage reached, by the stage's name.
        module: the module file, once the last stage is reached.
        schedules: of the exported functions, by name.
    """

    name: str
    text: dict[str, str] = field(default_factory=dict)
    module: bytes = b""
    schedules: dict[str, Schedule] = field(default_factory=dict)


def compile(source: str | PathLike[str], *, file_name: str = "<text>") -> bytes:
    """Compiles a tensor program for Vulkan.

    Args:
        source: a StableHLO program as text, as ``jax.jit(f).lower(…).as_text()`` gives it, or the path of a file.
        file_name: as errors name the text; a path names itself.

    Returns:
        A module file that ``Session.load`` takes. Its public functions are exported; they take and give tensors.

    Raises:
        CompileError: the program is wrong, or something in it is not supported; the message has its place and line.
        NotFoundError: there is no such file.
    """
    if isinstance(source, str):
        return compile_text(source, file_name, Target()).module
    return compile_file(Path(source))


def compile_file(path: Path) -> bytes:
    """The module of a program's file, compiled once for each content and release of pumice.

    Raises:
        CompileError: as for ``compile``.
        NotFoundError: there is no such file.
    """
    with reading_errors(path):
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    entry = CachedFile("modules", (_fingerprint(), str(path), text))
    found = entry.load()
    if found is None:
        found = compile_text(text, str(path), Target()).module
        entry.store(found)
    return found


@functools.cache
def _fingerprint() -> str:
    """What changes when the compiler does: names, sizes and times of its files."""
    root = Path(__file__).parent
    folders = (root, root.parent / "spirv", root.parent / "formats", root.parent / "vm" / "assembly")
    files = sorted(file for folder in folders for file in folder.rglob("*.py"))
    stats = [(str(file.relative_to(root.parent)), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return hashlib.sha256(repr(stats).encode()).hexdigest()


def compile_text(
    text: str, file_name: str, target: Target, until: str = "module", keep_text: bool = False
) -> Compilation:
    """Compiles a StableHLO program.

    Args:
        text: of the program.
        file_name: as errors name it.
        target: the device that kernels are made for.
        until: the last stage, of ``STAGES``.
        keep_text: whether every stage's text is kept, or only that of the last.

    Raises:
        CompileError: the program is wrong, or something in it is not supported.
    """
    source = SourceText(text, file_name)
    name, functions = _functions(parse(text, file_name), source)
    made = Compilation(name)
    last = STAGES.index(until)

    def reached(stage: str, operations: Sequence[Operation]) -> bool:
        if keep_text or stage == until:
            made.text[stage] = to_text(operations)
        return STAGES.index(stage) >= last

    verify(functions, source)
    if reached("hlo", list(functions.values())):
        return made
    for function in functions.values():
        for region in function.regions:
            expand_chlo(region.block)
    exported = [inlined(each, functions, source) for each in functions.values() if _is_exported(each)]
    if not exported:
        raise source.error(0, "the program has no public function with a body")
    for function in exported:
        canonicalize(function.regions[0].block)
        decompose(function.regions[0].block)
        canonicalize(function.regions[0].block)
    if reached("canonical", exported):
        return made
    for function in exported:
        form_regions(function.regions[0].block)
    if reached("regions", exported):
        return made
    executables: list[Operation] = []
    sequences: list[Operation] = []
    for function in exported:
        *outlined, sequence = outline(function)
        executables += outlined
        sequences.append(sequence)
    if reached("hl_seq", [*executables, *sequences]):
        return made
    planned = [(sequence, schedule(sequence)) for sequence in sequences]
    made.schedules = {str(sequence.attributes["sym_name"]): plan for sequence, plan in planned}
    made.module = write_module(emit_module(name, planned, executables, target))
    return made


def _functions(operations: Sequence[Operation], source: SourceText) -> tuple[str, Mapping[str, Operation]]:
    """The module's name and its functions by name."""
    name = "module"
    if len(operations) == 1 and operations[0].name == "builtin.module":
        named = operations[0].attributes.get("sym_name")
        name = named if isinstance(named, str) else name
        operations = operations[0].regions[0].block.operations
    functions: dict[str, Operation] = {}
    for operation in operations:
        if operation.name != "func.func":
            if operation.name.startswith("sdy."):
                continue
            raise source.error(operation.location.offset, f"expected functions in a module, got {operation.name}")
        symbol = str(operation.attributes["sym_name"])
        if symbol in functions:
            raise source.error(operation.location.offset, f"the function @{symbol} is defined twice")
        functions[symbol] = operation
    return name, functions


def _is_exported(function: Operation) -> bool:
    return bool(function.regions) and function.attributes.get("sym_visibility") != "private"
