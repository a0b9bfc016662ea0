"""Bytecode modules: a verified module, what is translated of it, and its state in one context.

``BytecodeModule`` is immutable but for its cache of translations, which all contexts share; ``ModuleState`` is what a context has of
it: globals, resolved imports, and functions bound to both. Thread rule: a module may be used by contexts in several threads; a state
as its context.
"""

from __future__ import annotations

import itertools
import math
import mmap
import os
import threading
import weakref
from array import array
from collections.abc import Callable
from functools import cached_property
from types import CellType, CodeType
from typing import TYPE_CHECKING, Any, Final

from ...status import (
    InternalError,
    InvalidArgumentError,
    OutOfRangeError,
    PumiceError,
    ResourceExhaustedError,
    StatusCode,
    error_for,
)
from ..bytecode.archive import ModuleArchive
from ..bytecode.calling_convention import CallingConvention
from ..bytecode.isa import IMPORT_BIT
from ..bytecode.module_def import ModuleDef
from ..bytecode.reader import read_module
from ..bytecode.verifier import VerifiedModule, verify_module
from ..translation import float_numerics, numerics
from ..translation.analysis import FunctionAnalysis
from ..translation.source import Source
from ..translation.translator import Translator
from ..types.buffer import VmBuffer
from ..types.list import VmList
from ..types.ref_types import ref_type_class, ref_type_name
from ..wait.frame import Wait
from .frame import CALL, YIELD
from .watchdog import rebind

if TYPE_CHECKING:
    from .context import Context

__all__ = ["BytecodeModule", "ContextFunction", "ModuleState", "Translation", "translated_function"]

_CALLS: Final = frozenset({"call", "call.variadic", "call.yieldable", "call.variadic.yieldable"})
_LEAF_DEPTH: Final = 4
_SMALL_MEMORY: Final = 1 << 16
_FEW_REFS: Final = 1 << 16
# What translated code calls the function itself, within the function that binds it to a context.
_BODY_NAME: Final = "f"
# Functions of these modules never answer with a Wait, but for those named.
_STEADY_MODULES: Final = ("hal.",)
_WAITING: Final = frozenset({"hal.fence.await"})


def _failure(status: int, message: str) -> PumiceError:
    if status == 0:
        return InternalError("control ran past the function's end, behind a failure whose status is OK")
    try:
        code = StatusCode(status)
    except ValueError:
        return error_for(StatusCode.UNKNOWN, f"{message or 'the program failed'} (status {status})")
    return error_for(code, message or "the program failed without a message")


def _checked_ref(value: object, classes: tuple[type, ...] | None) -> object:
    if value is None or (classes is not None and isinstance(value, classes)):
        return value
    wanted = (
        "of a type that this context knows"
        if classes is None
        else " or ".join(one.__name__ for one in classes) or "none"
    )
    raise InvalidArgumentError(f"expected a reference {wanted}, got {ref_type_name(value)}")


def _global_index(offset: int, size: int, memory: memoryview) -> int:
    if offset < 0 or offset % size or offset // size >= len(memory):
        raise OutOfRangeError(f"global at byte {offset} is misaligned or outside the {memory.nbytes} bytes of globals")
    return offset // size


def _global_ref_index(index: int, refs: list[object]) -> int:
    if not 0 <= index < len(refs):
        raise OutOfRangeError(f"reference global {index} is outside the {len(refs)} of the module")
    return index


def _switch(index: int, default: object, values: tuple[object, ...]) -> object:
    return values[index] if 0 <= index < len(values) else default


_NAMESPACE: Final[dict[str, object]] = {
    **{name: getattr(module, name) for module in (numerics, float_numerics) for name in dir(module) if not name.startswith("_")},
    "CALL": CALL,
    "YIELD": YIELD,
    "Wait": Wait,
    "checked_ref": _checked_ref,
    "failure": _failure,
    "global_index": _global_index,
    "global_ref_index": _global_ref_index,
    "inf": math.inf,
    "nan": math.nan,
    "new_buffer": VmBuffer.allocate,
    "new_f32": lambda: array("f", (0.0,)),
    "new_list": VmList.for_type,
    "switch": _switch,
}  # fmt: skip


class _SparseRefs(dict[int, object]):
    """Reference globals of a module that says it has very many: as many as are used."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def __missing__(self, index: int) -> object:
        return None

    def __len__(self) -> int:
        return self._count


class Translation:
    """The variants of one function, made when first needed, as Python code that each context binds.

    Attributes:
        module: whose function.
        ordinal: which.
    """

    def __init__(self, module: BytecodeModule, ordinal: int) -> None:
        self.module = module
        self.ordinal = ordinal
        self._translator: Translator | None = None
        self._variants: dict[int, tuple[Source, Callable[..., Any]]] = {}
        self._sources: dict[str, Source] = {}

    def source_named(self, file_name: str) -> Source:
        """The source that was compiled under this file name."""
        return self._sources[file_name]

    def variant(self, entry: int) -> tuple[Source, Callable[..., Any]]:
        """The source and the ``make`` of it for an entry."""
        found = self._variants.get(entry)
        if found is None:
            with self.module.translation_lock:
                found = self._variants.get(entry)
                if found is None:
                    found = self._variants[entry] = self._translate(entry)
        return found

    def _translate(self, entry: int) -> tuple[Source, Callable[..., Any]]:
        if self._translator is None:
            module = self.module
            analysis = FunctionAnalysis(module.verified.functions[self.ordinal], module.conventions)
            self._translator = Translator(analysis, module.leaves, module.typed_globals, module.steady_imports)
        source = self._translator.translate(entry)
        # compile() takes no NUL, and names are the file's to choose.
        name = f"{self.module.name}.{self.module.function_name(self.ordinal)}".replace("\0", "\\0")
        file_name = f"<{name} #{next(_serials)}>"
        namespace: dict[str, Any] = dict(_NAMESPACE)
        code = compile(source.text, file_name, "exec", dont_inherit=True)
        exec(code, namespace)
        _translations[file_name] = self
        self._sources[file_name] = source
        return source, namespace["make"]

    def spilled(self, entry: int) -> tuple[str, ...]:
        """Names of the registers that a frame suspended at ``entry`` holds."""
        return self._translator.spilled(entry) if self._translator is not None else ()

    def source_text(self, entry: int = 0) -> str:
        """The Python source of a variant, for study."""
        return self.variant(entry)[0].text


# From the file name of a translated function's code, which no other has, to what it is of, for error locations. The
# code itself would not do: equal code is one key, whosesoever it is. A module that is dropped takes its entries along.
_translations: weakref.WeakValueDictionary[str, Translation] = weakref.WeakValueDictionary()
_serials = itertools.count(1)


def translated_function(code: CodeType, line: int) -> tuple[Translation, int] | None:
    """What a Python frame is running, if it is a translated function: the translation, and the pc of a source line."""
    translation = _translations.get(code.co_filename)
    if translation is None or code.co_name != _BODY_NAME:
        return None
    pcs = translation.source_named(code.co_filename).pcs
    return translation, pcs[line - 1] if 0 < line <= len(pcs) else -1


class BytecodeModule:
    """A module of bytecode, loaded and verified.

    Attributes:
        definition: what the file says.
        verified: its functions, decoded.
        name, version: as other modules import it.
        archive: the file, whose constants are served in place; ``None`` for a module made in memory.
    """

    def __init__(self, definition: ModuleDef, archive: ModuleArchive | None = None) -> None:
        """Verifies a module.

        Raises:
            InvalidArgumentError: the bytecode breaks a rule.
            IncompatibleError: an unknown bytecode version or feature.
        """
        self.definition = definition
        self.archive = archive
        self.verified: VerifiedModule = verify_module(definition)
        self.name = definition.name
        self.version = definition.version
        self.translation_lock = threading.RLock()
        self._translations: dict[int, Translation] = {}
        self.exports: dict[str, int] = {}
        for export in definition.exports:
            self.exports.setdefault(export.name, export.ordinal)
        self._names = {ordinal: name for name, ordinal in reversed(self.exports.items())}

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> BytecodeModule:
        """Loads a module file, mapped into memory.

        Raises:
            NotFoundError: there is no such file.
            InvalidArgumentError: it is no module, or damaged.
            IncompatibleError: a version that is not known.
        """
        return cls._load(ModuleArchive.open(path))

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, name: str = "<memory>") -> BytecodeModule:
        """Loads a module from memory, which is shared and must not change."""
        return cls._load(ModuleArchive.from_bytes(data, name))

    @classmethod
    def _load(cls, archive: ModuleArchive) -> BytecodeModule:
        try:
            return cls(read_module(archive), archive)
        except BaseException:
            archive.close()
            raise

    def function_name(self, ordinal: int) -> str:
        """The name of an export, or a number for an internal function."""
        return self._names.get(ordinal, f"@{ordinal}")

    def translation(self, ordinal: int) -> Translation:
        """The translations of a function."""
        found = self._translations.get(ordinal)
        if found is None:
            found = self._translations.setdefault(ordinal, Translation(self, ordinal))
        return found

    @cached_property
    def conventions(self) -> dict[int, CallingConvention]:
        """Calling conventions by function ordinal, of imports with their bit."""
        conventions = {function.ordinal: function.signature for function in self.verified.functions}
        conventions |= {IMPORT_BIT | ordinal: convention for ordinal, convention in enumerate(self.verified.imports)}
        return conventions

    @cached_property
    def _called(self) -> list[frozenset[int] | None]:
        """For each function what it calls; ``None`` if it may give way by itself."""
        called: list[frozenset[int] | None] = []
        for function in self.verified.functions:
            ordinals: set[int] = set()
            gives_way = False
            for instruction in function.instructions:
                mnemonic = instruction.operation.mnemonic
                if mnemonic in _CALLS:
                    ordinals.add(int(instruction.values[0]))  # type: ignore[arg-type]
                elif mnemonic == "yield":
                    gives_way = True
            called.append(None if gives_way or any(one & IMPORT_BIT for one in ordinals) else frozenset(ordinals))
        return called

    @cached_property
    def leaves(self) -> frozenset[int]:
        """Functions that call nothing that could give way, to a small depth: they are called directly."""
        leaves: set[int] = set()
        for _ in range(_LEAF_DEPTH):
            leaves |= {
                ordinal for ordinal, called in enumerate(self._called) if called is not None and called <= leaves
            }
        return frozenset(leaves)

    @cached_property
    def steady_imports(self) -> frozenset[int]:
        """Imports that never answer with a ``Wait``."""
        return frozenset(
            ordinal
            for ordinal, imported in enumerate(self.definition.imports)
            if imported.name.startswith(_STEADY_MODULES) and imported.name not in _WAITING
        )

    @cached_property
    def typed_globals(self) -> frozenset[int]:
        """Reference globals that are only ever accessed as one type, so that what is loaded was checked when it was stored."""
        types: dict[int, set[int]] = {}
        for function in self.verified.functions:
            for instruction in function.instructions:
                mnemonic = instruction.operation.mnemonic
                if mnemonic == "global.store.indirect.ref":
                    return frozenset()
                if mnemonic in ("global.load.ref", "global.store.ref"):
                    index, type_index = instruction.values[0], instruction.values[1]
                    types.setdefault(int(index), set()).add(int(type_index))  # type: ignore[arg-type]
        return frozenset(index for index, used in types.items() if len(used) == 1)

    @cached_property
    def rodata(self) -> tuple[VmBuffer, ...]:
        """The constants as read-only buffers over the file's own bytes."""
        return tuple(VmBuffer.wrap(segment, writable=False) for segment in self.definition.rodata)

    def source_location(self, ordinal: int, pc: int) -> str | None:
        """Where in the compiled program an instruction is from, where the module says so."""
        debug = self.definition.debug
        if debug is None:
            return None
        name = self._names.get(ordinal)
        found = debug.location_of(name, pc) if name is not None else None
        return found or debug.location_of(ordinal, pc)

    def mnemonic_at(self, ordinal: int, pc: int) -> tuple[str, str | None]:
        """The operation at a pc, and the name of the import that it calls, if it does."""
        for instruction in self.verified.functions[ordinal].instructions:
            if instruction.pc == pc:
                imported = None
                if instruction.operation.mnemonic in _CALLS:
                    callee = int(instruction.values[0])  # type: ignore[arg-type]
                    if callee & IMPORT_BIT:
                        imported = self.definition.imports[callee & ~IMPORT_BIT].name
                return instruction.operation.mnemonic, imported
        return "?", None

    def close(self) -> None:
        """Gives the file back once no constant of it is in use; idempotent."""
        if self.archive is not None:
            self.archive.close()

    def __repr__(self) -> str:
        return f"<BytecodeModule {self.name}, {len(self.verified.functions)} functions, {len(self.exports)} exports>"


class ContextFunction:
    """A bytecode function bound to one context's state.

    Attributes:
        state: the module's state.
        ordinal: index into the module's functions.
        translation: its code, shared with other contexts.
        start: the Python function for entry 0, once ``code`` made it.
    """

    __slots__ = ("_entries", "ordinal", "start", "state", "translation")

    def __init__(self, state: ModuleState, ordinal: int) -> None:
        self.state = state
        self.ordinal = ordinal
        self.translation = state.module.translation(ordinal)
        self._entries: dict[int, Callable[..., object]] = {}
        self.start: Callable[..., object] | None = None

    def code(self, entry: int) -> Callable[..., object]:
        """The Python function for an entry."""
        found = self._entries.get(entry)
        if found is None:
            source, make = self.translation.variant(entry)
            bound = [self.state.bind(name) for name in source.names]
            found = make(*bound)
            self._entries[entry] = found
            if not entry:
                self.start = found
        return found

    def rebind_import(self, number: int, function: Callable[..., object]) -> None:
        """Has the code that there is call another function for an import."""
        name = f"im{number}"
        for code in list(self._entries.values()):
            if name in code.__code__.co_freevars:
                cells = getattr(code, "__closure__", None) or ()
                rebind(cells[code.__code__.co_freevars.index(name)], function)

    def call_cells(self) -> list[CellType]:
        """The cells through which its code calls imports. For the watchdog."""
        return [
            cell
            for function in list(self._entries.values())
            for name, cell in zip(
                function.__code__.co_freevars, getattr(function, "__closure__", None) or (), strict=False
            )
            if name.startswith("im")
        ]

    @property
    def full_name(self) -> str:
        """``module.function``."""
        return f"{self.state.module.name}.{self.state.module.function_name(self.ordinal)}"

    def source_location(self, pc: int) -> str | None:
        """Where in the compiled program a pc is."""
        return self.state.module.source_location(self.ordinal, pc)

    def __repr__(self) -> str:
        return f"<ContextFunction {self.full_name}>"


class ModuleState:
    """A bytecode module's state in one context.

    Attributes:
        module: the module.
        context: the context.
        imports: for each import what is called, or what raises for an optional one that is missing.
        resolved: for each import whether it was found.
        refs: reference globals.
    """

    def __init__(
        self, module: BytecodeModule, context: Context, imports: list[Callable[..., object]], resolved: list[bool]
    ) -> None:
        self.module = module
        self.context = context
        self.imports = imports
        self.resolved = resolved
        definition = module.definition
        size = -(-definition.global_bytes // 8) * 8
        try:
            memory = memoryview(bytearray(size) if size <= _SMALL_MEMORY else mmap.mmap(-1, size))
        except (OSError, MemoryError) as error:
            raise ResourceExhaustedError(f"no memory for {size} bytes of globals of module {module.name}") from error
        self._primitive: dict[str, memoryview[int] | memoryview[float]] = {
            "i32": memory.cast("i"),
            "i64": memory.cast("q"),
            "f32": memory.cast("f"),
            "f64": memory.cast("d"),
        }
        count = definition.global_refs
        self.refs: list[object] | _SparseRefs = [None] * count if count <= _FEW_REFS else _SparseRefs(count)
        self._functions: dict[int, ContextFunction] = {}

    def function(self, ordinal: int) -> ContextFunction:
        """A function of the module in this context."""
        found = self._functions.get(ordinal)
        if found is None:
            found = self._functions.setdefault(ordinal, ContextFunction(self, ordinal))
        return found

    def replace_import(self, number: int, function: Callable[..., object]) -> None:
        """Has an import call another function, also where invocations under way call it next. For profiles."""
        self.imports[number] = function
        for one in list(self._functions.values()):
            one.rebind_import(number, function)

    def bind(self, name: str) -> object:
        """What a name in translated source stands for in this context."""
        if name.startswith("g_"):
            return self.refs if name == "g_ref" else self._primitive[name[2:]]
        if name == "hooks":
            return self.context.hooks
        kind, number = name[:2], int(name[2:])
        module = self.module
        if kind == "im":
            return self.imports[number]
        if kind == "is":
            return int(self.resolved[number])
        if kind == "fn":
            return self.function(number)
        if kind == "lf":
            return self.function(number).code(0)
        if kind == "ro":
            return module.rodata[number]
        if kind == "ty":
            text = module.definition.types[number]
            return ref_type_class(text) if text.startswith("!") else ()
        if kind == "tn":
            return module.definition.types[number]
        raise AssertionError(name)

    def release(self) -> None:
        """Drops every reference that the state holds."""
        if isinstance(self.refs, list):
            self.refs[:] = [None] * len(self.refs)
        else:
            self.refs.clear()
