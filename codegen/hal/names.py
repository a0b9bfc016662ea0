"""Names in a program's class: attributes of globals, flags constants, imported functions."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final

from ...formats.element_type import ElementType
from ...hal.memory import MemoryTypeFlags
from ...vm.translation.expressions import Attribute, Expression, Literal, Name, call
from ..program.ir import Instruction, Program, Rodata, Variable
from ..program.naming import Names, identifier
from .expressions import Hexadecimal

# The class in annotations and its module, by reference type.
CLASSES: Final = {
    "hal.allocator": ("ProgramAllocator", "hal.program"),
    "hal.buffer": ("Buffer", "hal.buffer"),
    "hal.buffer_view": ("BufferView", "hal.buffer_view"),
    "hal.command_buffer": ("ProgramCommandBuffer", "hal.program"),
    "hal.device": ("Device", "hal.device"),
    "hal.executable": ("Executable", "hal.program"),
    "hal.fence": ("AnyFence", "hal.programs.fence"),
    "hal.file": ("HalFile", "hal.programs.file"),
}
# Imported names by module.
HOMES: Final[Mapping[str, Sequence[str]]] = {
    "formats.element_type": ("ElementType",),
    "hal.memory": ("BufferUsage", "MemoryTypeFlags"),
    "hal.program": ("subspan",),
    "hal.programs.checks": ("pattern_of",),
    "hal.programs.fence": ("HalFence", "alias", "fail_with", "join", "status_of"),
    "hal.programs.file": ("HalFile", "import_memory"),
    "hal.programs.host_program": (
        *("HostProgram", "Semaphores", "answer_of", "await_fences", "failure", "fence_of", "slot"),
    ),
    "hal.programs.host_values": (
        *("cast", "clone_bytes", "compare_bytes", "copy_bytes", "fill", "get", "load", "new_bytes", "put", "resize"),
        "store",
    ),
    "hal.programs.transfers": (
        *("load_word", "queue_copy", "queue_execute", "queue_execute_all", "queue_fill", "queue_read"),
        *("queue_update", "queue_write", "store_word"),
    ),
    "hal.programs.views": (
        *("check_apart", "check_compatible", "check_view", "create_view", "dim_of", "discard", "element_type_of"),
        *("encoding_of", "is_terminal", "preserve", "rank_of", "trace_views"),
    ),
}
IMPORTED: Final = frozenset(name for home in HOMES.values() for name in home)
_NUMBERS: Final = {"i": "int", "I": "int", "f": "float", "F": "float"}


class Attributes:
    """The attributes that hold a program's globals.

    Attributes:
        names: the attributes' names, by the ordinal of a reference global.
        kept: the ordinals of globals that may be null.
        changed: the ordinals of globals that are stored outside of initializers.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.names: dict[int, str] = {}
        self.kept: set[int] = set()
        self.changed: set[int] = set()
        self._unique = Names(
            {"_load", "_record", "_table", *[f"_{function.name}" for function in program.functions.values()]}
        )
        self.numbers: dict[tuple[str, int], str] = {}
        subjects = self._subjects()
        for ordinal, kind in sorted(program.global_types.items()):
            if kind == "hal.device":
                continue
            wanted = subjects.get(ordinal)
            if wanted is None:
                wanted = identifier((kind or "value").rpartition(".")[2].split("<")[0])
            self.names[ordinal] = self._unique.unique(f"_{wanted}")
        stored, starting = self._stored()
        for function in program.functions.values():
            if function.ordinal not in starting or function.exported:
                self.changed |= {
                    instruction.ordinal
                    for instruction in function.instructions()
                    if instruction.operation == "global.store.ref"
                }
            for instruction in function.instructions():
                if instruction.operation == "global.load.ref" and instruction.ordinal not in stored:
                    self.kept.add(instruction.ordinal)
                if instruction.operation == "global.store.ref" and not isinstance(
                    instruction.operands[0], Variable | Rodata
                ):
                    self.kept.add(instruction.ordinal)

    def number(self, kind: str, offset: int) -> str:
        """Returns the attribute of a primitive global."""
        name = self.numbers.get((kind, offset))
        if name is None:
            name = self.numbers[kind, offset] = self._unique.unique(f"_global_{offset}")
        return name

    def annotation(self, ordinal: int) -> str:
        """Returns the annotation of a reference global."""
        return annotation("r", self.program.global_types[ordinal], optional=ordinal in self.kept)

    def _stored(self) -> tuple[set[int], set[int]]:
        """Returns the globals that initializers store, and the functions that they call."""
        seen = self.program.reached(self.program.initializers)
        instructions = [item for ordinal in seen for item in self.program.functions[ordinal].instructions()]
        stored = {item.ordinal for item in instructions if item.operation == "global.store.ref"}
        return stored, seen

    def _subjects(self) -> dict[int, str]:
        """Returns names for globals: executables and command buffers after the functions that they run."""
        subjects: dict[int, str] = {}
        recorded: dict[int, str] = {}
        for function in self.program.functions.values():
            if function.name.startswith("record_"):
                recorded[function.ordinal] = f"{function.name.removeprefix('record_')}_commands"
            loaded: dict[Variable, int] = {}
            for instruction in function.instructions():
                if instruction.operation == "global.load.ref":
                    loaded[instruction.results[0]] = instruction.ordinal
                elif instruction.callee == "hal.executable.lookup.function":
                    executable, name = instruction.operands
                    if isinstance(executable, Variable) and executable in loaded and isinstance(name, Rodata):
                        subjects.setdefault(loaded[executable], identifier(self.program.text(name)))
        for function in self.program.functions.values():
            made: dict[Variable, Instruction] = {}
            for instruction in function.instructions():
                for variable in instruction.results:
                    made[variable] = instruction
                if instruction.operation == "global.store.ref" and isinstance(instruction.operands[0], Variable):
                    source = made.get(instruction.operands[0])
                    if source is not None and isinstance(source.callee, int) and source.callee in recorded:
                        subjects.setdefault(instruction.ordinal, recorded[source.callee])
        return subjects


def annotation(kind: str, type_: str | None, *, optional: bool = False) -> str:
    """Returns the annotation of a variable."""
    if kind != "r":
        return _NUMBERS[kind]
    if type_ is None:
        return "Any"
    if type_.startswith("vm.list"):
        text = "list[Any]"
    elif type_ == "vm.buffer":
        text = "memoryview"
    else:
        text = CLASSES.get(type_, ("Any", ""))[0]
    return f"{text} | None" if optional and text != "Any" else text


def flags_text(value: int, kind: type[enum.IntFlag]) -> str | None:
    """Returns an expression for flags, such as ``BufferUsage.DEFAULT | BufferUsage.MAPPING``; ``None`` if a bit has no
    name.
    """
    parts: list[str] = []
    rest = value
    members = sorted(kind.__members__.items(), key=lambda item: -int(item[1]).bit_count())
    for name, member in members:
        bits = int(member)
        if bits and bits & rest and bits & value == bits:
            parts.append(f"{kind.__name__}.{name}")
            rest &= ~bits
    return " | ".join(parts) if parts and not rest else None


def flags_name(value: int, kind: type[enum.IntFlag]) -> str:
    """Returns the name of a flags constant."""
    text = flags_text(value, kind)
    if text is None:
        return f"_{kind.__name__.upper()}_{value:X}"
    prefix = "_MEMORY" if kind is MemoryTypeFlags else "_USAGE"
    return "_".join([prefix, *(part.partition(".")[2] for part in text.split(" | "))])


def element_type(code: int) -> Expression:
    """Returns an element type, by its name if it has one."""
    try:
        name = ElementType(code).name
    except Exception:
        return Literal(code)
    if name in ElementType.__members__:
        return Attribute(Name("ElementType"), name)
    return call("ElementType", Hexadecimal(code))
