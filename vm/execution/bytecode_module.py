"""Bytecode modules: loaded, verified, and translated when called.

Thread rule: any thread. A module is immutable except for its cache of translations, which all contexts share.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from functools import cached_property
from types import CodeType
from typing import TYPE_CHECKING, Any, Final

from ...base.locks import RLock
from ..bytecode.archive import ModuleArchive
from ..bytecode.calling_convention import CallingConvention, parse_named
from ..bytecode.module_def import ModuleDef
from ..bytecode.reader import read_module
from ..machine_code.settings import is_available
from ..translation.expressions import Source
from ..types.buffer import VmBuffer
from .code_cache import MAX_CONTENT_BYTES, CodeCache, KeptCode
from .namespace import NAMESPACE

# Verifier and translator are imported at their use, as modules loaded before need neither.
if TYPE_CHECKING:
    from ..bytecode.decoder import Instruction
    from ..bytecode.verifier import VerifiedModule
    from ..machine_code.unit import UnitModule
    from ..translation.module_analysis import ModuleAnalysis
    from ..translation.translator import Translator


_BODY_NAME: Final = "f"  # the function's name in translated source, inside ``make``


class BytecodeModule:
    """A module of bytecode, loaded and verified.

    Attributes:
        definition: the file's contents.
        verified: the module's functions, decoded.
        name, version: the name and version under which other modules import the module.
        exports: the function ordinals by name.
        export_names: the names by function ordinal.
        archive: the file, whose constants are served in place; ``None`` for a module in memory.
        analysis: the state that the translation of its functions shares.
        translation_lock: a lock that is held while a variant of a function is translated.
    """

    def __init__(
        self, definition: ModuleDef, archive: ModuleArchive | None = None, cache: CodeCache | None = None
    ) -> None:
        """Verifies a module, unless ``cache`` records that it was verified.

        Raises:
            InvalidArgumentError: the bytecode breaks a rule.
            IncompatibleError: the bytecode version or a feature is unknown.
        """
        self.definition = definition
        self.archive = archive
        self.cache = cache
        if cache is None:
            _ = self.verified
        elif not cache.is_verified():
            _ = self.verified
            cache.keep_verdict()
        self.name: str = definition.name
        self.version: int = definition.version
        self.exports: dict[str, int] = {}  # the first of equal names is used
        for export in definition.exports:
            self.exports.setdefault(export.name, export.ordinal)
        self.export_names: dict[int, str] = {ordinal: name for name, ordinal in reversed(self.exports.items())}
        self._translations: dict[tuple[int, frozenset[int]], Translation] = {}
        self.translation_lock: threading.RLock = RLock()

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> BytecodeModule:
        """Loads a module file, mapped into memory. Its code is kept on disk.

        Raises:
            NotFoundError: there is no such file.
            InvalidArgumentError: the file is no module, or damaged.
            IncompatibleError: the file's version is unknown.
        """
        return cls._load(ModuleArchive.open(path), keep=True)

    @classmethod
    def from_bytes(
        cls, data: bytes | bytearray | memoryview, name: str = "<memory>", *, keep: bool = False
    ) -> BytecodeModule:
        """Loads a module from shared memory, which must not change; ``keep`` keeps its code on disk."""
        return cls._load(ModuleArchive.from_bytes(data, name), keep=keep)

    @classmethod
    def _load(cls, archive: ModuleArchive, *, keep: bool) -> BytecodeModule:
        try:
            content = archive.flatbuffer
            cache = CodeCache(content) if keep and len(content) <= MAX_CONTENT_BYTES else None
            return cls(read_module(archive), archive, cache)
        except BaseException:
            archive.close()
            raise

    @cached_property
    def verified(self) -> VerifiedModule:
        from ..bytecode.verifier import verify_module

        return verify_module(self.definition)

    @cached_property
    def analysis(self) -> ModuleAnalysis:
        from ..translation.module_analysis import ModuleAnalysis

        return ModuleAnalysis(self.verified)

    @cached_property
    def signatures(self) -> tuple[CallingConvention, ...]:
        """The calling conventions of its functions."""
        return tuple(
            parse_named(f"{self.name}.{self.function_name(ordinal)}", signature.calling_convention)
            for ordinal, signature in enumerate(self.definition.signatures)
        )

    @cached_property
    def imports(self) -> tuple[CallingConvention, ...]:
        """The calling conventions of its imports."""
        return tuple(
            parse_named(f"import {imported.name}", imported.signature.calling_convention)
            for imported in self.definition.imports
        )

    def function_name(self, ordinal: int) -> str:
        """Returns the name of an export, or a number for an internal function."""
        return self.export_names.get(ordinal, f"@{ordinal}")

    def translation(self, ordinal: int, non_suspending: frozenset[int] = frozenset()) -> Translation:
        """Returns a function's translation for contexts in which the imports with these ordinals never suspend."""
        key = ordinal, non_suspending
        known = self._translations.get(key)
        return known or self._translations.setdefault(key, Translation(self, ordinal, non_suspending))

    @cached_property
    def machine_code(self) -> UnitModule | None:
        """The machine code of its functions; ``None`` if there is none. Hold ``translation_lock`` to use it."""
        if not is_available():
            return None
        from ..machine_code.unit import UnitModule

        return UnitModule(self.verified, self.analysis)

    @cached_property
    def rodata(self) -> tuple[VmBuffer, ...]:
        """The constants as read-only buffers over the file's own bytes."""
        return tuple(VmBuffer.wrap(segment, writable=False) for segment in self.definition.rodata)

    def close(self) -> None:
        """Unmaps the file once none of its constants is in use; idempotent."""
        if self.archive is not None:
            self.archive.close()

    def __repr__(self) -> str:
        return f"<BytecodeModule {self.name}, {len(self.definition.functions)} functions, {len(self.exports)} exports>"


class Translation:
    """The variants of one function as Python code that each context binds, compiled when first needed."""

    def __init__(self, module: BytecodeModule, ordinal: int, non_suspending: frozenset[int]) -> None:
        self.full_name: str = f"{module.name}.{module.function_name(ordinal)}"
        self._ordinal = ordinal
        self._module = module
        self._non_suspending = non_suspending
        self._variants: dict[int, tuple[Source, Callable[..., Any]]] = {}
        self._sources: dict[str, Source] = {}

    def variant(self, entry: int) -> tuple[Source, Callable[..., Any]]:
        """Returns the source of the variant for an entry, and its ``make``."""
        variant = self._variants.get(entry)
        if variant is None:
            with self._module.translation_lock:
                variant = self._variants.get(entry)
                if variant is None:
                    variant = self._variants[entry] = self._translate(entry)
        return variant

    def _translate(self, entry: int) -> tuple[Source, Callable[..., Any]]:
        # compile() takes no NUL, but a name in a module file may contain one.
        name = self.full_name.replace("\0", "\\0")
        file_name = f"<{name} #{next(_serials)}>"
        cache = self._module.cache
        variant = self._ordinal, sorted(self._non_suspending), entry, is_available()
        made = cache.load(variant, file_name) if cache is not None else None
        if made is None:
            source = self._translator.translate(entry)
            made = KeptCode(source, compile(source.text, file_name, "exec", dont_inherit=True))
            if cache is not None:
                cache.store(variant, made)
        namespace: dict[str, Any] = dict(NAMESPACE)
        exec(made.code, namespace)
        _translations[file_name] = self
        self._sources[file_name] = made.source
        return made.source, namespace["make"]

    @cached_property
    def _translator(self) -> Translator:
        from ..translation.analysis import FunctionAnalysis
        from ..translation.flow import COLD_FUNCTION
        from ..translation.translator import Translator

        function = self._module.verified.functions[self._ordinal]
        analysis = FunctionAnalysis(function, self._module.analysis, self._non_suspending)
        machine_code = self._module.machine_code
        return Translator(analysis, COLD_FUNCTION if machine_code is None else machine_code.warmth(analysis))

    def register_names(self, entry: int) -> tuple[str, ...]:
        """Returns the names of the registers in a frame suspended at ``entry``."""
        with self._module.translation_lock:
            return self._translator.analysis.names_at(entry) if entry else ()

    def source_text(self, entry: int = 0) -> str:
        """Returns the Python source of a variant."""
        return self.variant(entry)[0].text

    def pc_of(self, file_name: str, line: int) -> int:
        """Returns the pc from which a line of source is translated; -1 if there is none."""
        pcs = self._sources[file_name].pcs
        return pcs[line - 1] if 0 < line <= len(pcs) else -1

    def pc_before(self, entry: int) -> int:
        """Returns the pc of the instruction before an entry."""
        return self._module.verified.functions[self._ordinal].instructions[entry - 1].pc

    def source_location(self, pc: int) -> str | None:
        """Returns an instruction's location in the source program, if the module has debug information for it."""
        debug, name = self._module.definition.debug, self._module.export_names.get(self._ordinal)
        if debug is None:
            return None
        location = None if name is None else debug.location_of(name, pc)
        return location or debug.location_of(self._ordinal, pc)

    def place(self, pc: int) -> str:
        """Returns ``module.function pc 120 (file.mlir:3:5)``; only the name for a negative pc."""
        if pc < 0:
            return self.full_name
        source = self.source_location(pc)
        return f"{self.full_name} pc {pc}{f' ({source})' if source else ''}"

    def instruction_at(self, pc: int) -> Instruction | None:
        """Returns the instruction at a pc; ``None`` if none begins there."""
        instructions = self._module.verified.functions[self._ordinal].instructions
        return next((instruction for instruction in instructions if instruction.pc == pc), None)

    def import_at(self, pc: int) -> tuple[int, str] | None:
        """Returns ordinal and full name of the import that the instruction at a pc calls; ``None`` if it calls none."""
        from ..bytecode.isa import CALLS, IMPORT_BIT  # imported here: only messages need it

        instruction = self.instruction_at(pc)
        if instruction is None or instruction.operation.mnemonic not in CALLS:
            return None
        callee = int(instruction.values[0])  # type: ignore[arg-type]
        number = callee & ~IMPORT_BIT
        return (number, self._module.definition.imports[number].name) if callee & IMPORT_BIT else None


# By the file name of the compiled code, for error locations. File names are unique; code objects compare equal across
# modules. Entries go with their module.
_translations: weakref.WeakValueDictionary[str, Translation] = weakref.WeakValueDictionary()
_serials = itertools.count(1)


def translated_function(code: CodeType, line: int) -> tuple[Translation, int] | None:
    """Returns the translation that a Python frame runs, and the pc of its line; ``None`` for other code."""
    translation = _translations.get(code.co_filename)
    if translation is None or code.co_name != _BODY_NAME:
        return None
    return translation, translation.pc_of(code.co_filename, line)
