"""Compiles LLVM IR to machine code with llvmlite, which is imported when the first function is hot.

Object files are cached on disk by their IR, LLVM's version and the processor (docs/design/cache.md explains why cached
code is trusted).
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable
from typing import Any, Final

from ...base.cache import CachedFile
from .operations import LIBRARY

# Calls keep the interpreter lock, as fuel limits their duration.
_PROTOTYPE: Final = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)


class MachineCode:
    """The machine code of one unit; valid as long as this object.

    Attributes:
        call: the function ``call(context, frame, entry)`` of two addresses and the entry to start at, which returns the
            number of frames to continue.
    """

    def __init__(self, address: int, owner: object) -> None:
        self._owner = owner
        self.call: Callable[[int, int, int], int] = _PROTOTYPE(address)


class Compiler:
    """LLVM's compiler for this machine; ``compiler`` returns the only instance. Thread rule: any thread."""

    def __init__(self) -> None:
        import importlib.metadata

        import llvmlite.binding as llvm

        self._llvm: Any = llvm
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._names = itertools.count()
        target = llvm.Target.from_default_triple()
        cpu, features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        self._maker = (importlib.metadata.version("llvmlite"), llvm.llvm_version_info, target.triple, cpu, features)
        # Without optimisation, for the reason in docs/design/vm.md.
        self._machine, machine = (
            target.create_target_machine(cpu=cpu, features=features, opt=0, jit=True) for _ in range(2)
        )
        self._jit = llvm.create_lljit_compiler(machine)
        self._addresses = {symbol: llvm.address_of_symbol(name) for name, symbol in LIBRARY.items()}

    def compile(self, text: str, function: str) -> MachineCode | None:
        """Compiles LLVM IR with one callable function; returns ``None`` if LLVM cannot compile it."""
        kept = CachedFile("machine-code", (*self._maker, text))
        code = kept.load()
        try:
            if code is None:
                code = self.object_code(text)
                kept.store(code)
            return self.load(code, function)
        except RuntimeError:
            return None

    def object_code(self, text: str) -> bytes:
        """Compiles LLVM IR to an object file."""
        module = self._llvm.parse_assembly(text)
        module.verify()
        code: bytes = self._machine.emit_object(module)
        return code

    def load(self, code: bytes, function: str) -> MachineCode:
        """Loads an object file and returns its function."""
        library = self._llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(function)
        for symbol, address in self._addresses.items():
            if address:
                library.import_symbol(symbol, address)
        tracker = library.link(self._jit, f"unit{next(self._names)}")
        return MachineCode(tracker[function], tracker)


class _Loader:
    """Imports llvmlite in a separate thread, as the import takes about 100 ms and no call should wait for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.compiler: Compiler | None = None

    def start(self) -> threading.Thread:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._load, name="pumice llvmlite", daemon=True)
                self._thread.start()
            return self._thread

    def _load(self) -> None:
        try:
            self.compiler = Compiler()
        except (ImportError, OSError, RuntimeError, AttributeError):
            is_broken.set()


is_broken: Final = threading.Event()
"""Whether llvmlite does not work on this machine."""
_loader: Final = _Loader()


def compiler(*, wait: bool = False) -> Compiler | None:
    """Returns the compiler; ``None`` while it is being loaded, or if it cannot be loaded."""
    if _loader.compiler is None and not is_broken.is_set():
        thread = _loader.start()
        if wait:
            thread.join()
    return _loader.compiler
