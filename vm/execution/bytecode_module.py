"""Bytecode modules: loaded, verified, and translated when called.

Thread rule: any thread. A module is immutable but for its cache of translations, which all contexts share.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable
from functools import cached_property
from types import CodeType
from typing import Any, Final

from ..bytecode.archive import ModuleArchive
from ..bytecode.code_map import CodeMap
from ..bytecode.module_def import ModuleDef
from ..bytecode.reader import read_module
from ..bytecode.verifier import VerifiedModule, verify_module
from ..translation.analysis import FunctionAnalysis
from ..translation.module_analysis import ModuleAnalysis
from ..translation.source import Source
from ..translation.translator import Translator
from ..types.buffer import VmBuffer
from .namespace import NAMESPACE

_BODY_NAME: Final = "f"  # of the function in translated source, inside the one that binds it to a context


class BytecodeModule:
    """A module of bytecode, loaded and verified.

    Attributes:
        definition: what the file says.
        verified: its functions, decoded.
        code_map: names its functions and instructions.
        name, version: as other modules import it.
        exports: function ordinals by name.
        archive: the file, whose constants are served in place; ``None`` for a module made in memory.
        analysis: of all functions, for their translation.
        translation_lock: held while a variant of a function is translated.
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
        self.analysis = ModuleAnalysis(self.verified)
        self._translations: dict[tuple[int, frozenset[int]], Translation] = {}
        self.translation_lock = threading.RLock()

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
        """The translation of a function for contexts in which some imports, by ordinal, never return a ``Wait``."""
        key = ordinal, non_suspending
        found = self._translations.get(key)
        if found is None:
            found = self._translations.setdefault(key, Translation(self, ordinal, non_suspending))
        return found

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


class Translation:
    """The variants of one function as Python code that each context binds; each is compiled when first needed."""

    def __init__(self, module: BytecodeModule, ordinal: int, non_suspending: frozenset[int]) -> None:
        self.code_map = module.code_map
        self.ordinal = ordinal
        self._module = module
        self._non_suspending = non_suspending
        self._translator: Translator | None = None
        self._variants: dict[int, tuple[Source, Callable[..., Any]]] = {}
        self._sources: dict[str, Source] = {}

    def variant(self, entry: int) -> tuple[Source, Callable[..., Any]]:
        """The source of the variant for an entry, and its ``make``."""
        found = self._variants.get(entry)
        if found is None:
            with self._module.translation_lock:
                found = self._variants.get(entry)
                if found is None:
                    found = self._variants[entry] = self._translate(entry)
        return found

    def _translate(self, entry: int) -> tuple[Source, Callable[..., Any]]:
        if self._translator is None:
            function = self._module.verified.functions[self.ordinal]
            self._translator = Translator(FunctionAnalysis(function, self._module.analysis, self._non_suspending))
        source = self._translator.translate(entry)
        # compile() takes no NUL, but a name in a module file may contain one.
        name = self.code_map.full_name(self.ordinal).replace("\0", "\\0")
        file_name = f"<{name} #{next(_serials)}>"
        namespace: dict[str, Any] = dict(NAMESPACE)
        exec(compile(source.text, file_name, "exec", dont_inherit=True), namespace)
        _translations[file_name] = self
        self._sources[file_name] = source
        return source, namespace["make"]

    def spilled(self, entry: int) -> tuple[str, ...]:
        """Names of the registers that a frame suspended at ``entry`` holds."""
        return self._translator.spilled(entry) if self._translator is not None else ()

    def source_text(self, entry: int = 0) -> str:
        """The Python source of a variant."""
        return self.variant(entry)[0].text

    def pc_of(self, file_name: str, line: int) -> int:
        """The pc that a line of source is translated from; -1 if it is from none."""
        pcs = self._sources[file_name].pcs
        return pcs[line - 1] if 0 < line <= len(pcs) else -1

    def place(self, pc: int) -> str:
        """Function, pc and source line, for messages."""
        return self.code_map.place(self.ordinal, pc)


# By the file name of the compiled code, for error locations. File names are unique; code objects compare equal across
# modules. A module that is dropped takes its entries along.
_translations: weakref.WeakValueDictionary[str, Translation] = weakref.WeakValueDictionary()
_serials = itertools.count(1)


def translated_function(code: CodeType, line: int) -> tuple[Translation, int] | None:
    """The translation that a Python frame runs, and the pc of its line; ``None`` if it runs no translated function."""
    translation = _translations.get(code.co_filename)
    if translation is None or code.co_name != _BODY_NAME:
        return None
    return translation, translation.pc_of(code.co_filename, line)
