"""Bytecode modules: loaded, verified, and translated when called.

Thread rule: any thread. A module is immutable but for its cache of translations, which all contexts share.
"""

from __future__ import annotations

import os
import threading
from functools import cached_property, partial

from ..bytecode.archive import ModuleArchive
from ..bytecode.code_map import CodeMap
from ..bytecode.module_def import ModuleDef
from ..bytecode.reader import read_module
from ..bytecode.verifier import VerifiedModule, verify_module
from ..translation.analysis import FunctionAnalysis
from ..translation.module_analysis import Callees, ModuleAnalysis
from ..translation.translator import Translator
from ..types.buffer import VmBuffer
from .translation import Translation


class BytecodeModule:
    """A module of bytecode, loaded and verified.

    Attributes:
        definition: what the file says.
        verified: its functions, decoded.
        code_map: names its functions and instructions.
        name, version: as other modules import it.
        exports: function ordinals by name.
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
        self.code_map = CodeMap(self.verified)
        self.name = definition.name
        self.version = definition.version
        self.exports = self.code_map.exports
        self._analysis = ModuleAnalysis(self.verified)
        self._translations: dict[tuple[int, frozenset[int]], Translation] = {}
        self._translation_lock = threading.RLock()

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
        return self.code_map.function_name(ordinal)

    def source_location(self, ordinal: int, pc: int) -> str | None:
        """The place of an instruction in the source program, if the module has debug information for it."""
        return self.code_map.source_location(ordinal, pc)

    def translation(self, ordinal: int, non_suspending: frozenset[int] = frozenset()) -> Translation:
        """The translation of a function.

        Args:
            ordinal: of the function.
            non_suspending: ordinals of the imports that never return a ``Wait`` in the contexts that use it.
        """
        key = ordinal, non_suspending
        found = self._translations.get(key)
        if found is None:
            made = Translation(self.code_map, ordinal, partial(self._translator, *key), self._translation_lock)
            found = self._translations.setdefault(key, made)
        return found

    def _translator(self, ordinal: int, non_suspending: frozenset[int]) -> Translator:
        analysis = self._analysis
        function = FunctionAnalysis(self.verified.functions[ordinal], analysis.conventions)
        return Translator(function, Callees(analysis.leaves, non_suspending), analysis.typed_globals)

    @cached_property
    def rodata(self) -> tuple[VmBuffer, ...]:
        """The constants as read-only buffers over the file's own bytes."""
        return tuple(VmBuffer.wrap(segment, writable=False) for segment in self.definition.rodata)

    def close(self) -> None:
        """Unmaps the file once no constant of it is in use; idempotent."""
        if self.archive is not None:
            self.archive.close()

    def __repr__(self) -> str:
        return f"<BytecodeModule {self.name}, {len(self.verified.functions)} functions, {len(self.exports)} exports>"
