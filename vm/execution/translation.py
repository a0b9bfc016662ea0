"""Drives the translation of one function: its variants are translated and compiled when first needed.

Thread rule: any thread; variants are made under a lock that the functions of a module share.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any, Final

from ..bytecode.code_map import CodeMap
from ..translation.source import Source
from ..translation.translator import Translator
from .namespace import NAMESPACE

_BODY_NAME: Final = "f"  # of the function in translated source, inside the one that binds it to a context


class Translation:
    """The variants of one function as Python code that each context binds.

    Args:
        code_map: of the module.
        ordinal: of the function.
        make_translator: called once, when the first variant is needed.
        lock: held while a variant is made.
    """

    def __init__(
        self, code_map: CodeMap, ordinal: int, make_translator: Callable[[], Translator], lock: threading.RLock
    ) -> None:
        self.code_map = code_map
        self.ordinal = ordinal
        self._make_translator = make_translator
        self._lock = lock
        self._translator: Translator | None = None
        self._variants: dict[int, tuple[Source, Callable[..., Any]]] = {}
        self._sources: dict[str, Source] = {}

    def variant(self, entry: int) -> tuple[Source, Callable[..., Any]]:
        """The source of the variant for an entry, and its ``make``."""
        found = self._variants.get(entry)
        if found is None:
            with self._lock:
                found = self._variants.get(entry)
                if found is None:
                    found = self._variants[entry] = self._translate(entry)
        return found

    def _translate(self, entry: int) -> tuple[Source, Callable[..., Any]]:
        if self._translator is None:
            self._translator = self._make_translator()
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
