"""The one file that loads the Vulkan library and owns the cffi ``ffi``.

Every other file of ``hal_vulkan`` takes ``ffi`` and the function tables from here; none imports ``vulkan`` or ``cffi``
itself, which a test checks.

The ``vulkan`` package carries a complete, pre-parsed cffi declaration of the Vulkan API (``vulkan._vulkancache``) and a
wrapper around it. Only the declaration is used: the wrapper costs three times the call (see ``docs/design/hal.md``).
Importing the package also loads the Vulkan library, so without that library not even ``import pumice`` would work. Here
the library is loaded on first use, and its absence is an error that says what to install.

Calling sequence: ``InstanceFunctions()`` → ``InstanceFunctions(instance)`` → ``DeviceFunctions(device)``. Device
functions come from ``vkGetDeviceProcAddr``, which skips the loader's trampoline. The tables may be shared between
threads.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
import sys
import sysconfig
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from ...base.locks import RLock
from ...status import UnavailableError, UnimplementedError
from .vendored import vendored_loader

# cffi objects have no useful static type: a handle, a struct pointer and an array are all CData.
CData: TypeAlias = Any
NativeFunction: TypeAlias = Callable[..., Any]


def _load_declaration() -> Any:
    """Returns the ``ffi`` of the ``vulkan`` package, without running the package (which would load the library)."""
    spec = importlib.util.find_spec("vulkan")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("pumice needs the `vulkan` package (pip install vulkan==1.3.275.1); it is not installed")
    path = Path(next(iter(spec.submodule_search_locations))) / "_vulkancache.py"
    spec = importlib.util.spec_from_file_location("pumice.hal_vulkan._vulkan_declaration", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return _CompletingDeclaration(module.ffi) if sysconfig.get_config_var("Py_GIL_DISABLED") else module.ffi


class _CompletingDeclaration:
    """An ``ffi`` for free-threaded Python, which completes types under a lock.

    cffi completes a structure's type at its first use. If two threads do so at once without the GIL, cffi 2.1 aborts
    the process ("lost a struct/union!") or refuses the type.
    """

    def __init__(self, declaration: Any) -> None:
        self._declaration = declaration
        self._lock = RLock()
        self._names: set[Any] = set()  # used names, whose types are complete
        self._completed: set[Any] = set()
        self.new = self._complete_first(declaration.new)
        self.cast = self._complete_first(declaration.cast)
        self.typeof = self._complete_first(declaration.typeof)
        self.sizeof = self._complete_first(declaration.sizeof)
        self.callback = self._complete_first(declaration.callback)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._declaration, name)
        setattr(self, name, value)
        return value

    def _complete_first(self, function: Callable[..., Any]) -> Callable[..., Any]:
        declaration, names = self._declaration, self._names

        def call(kind: Any, *arguments: Any) -> Any:
            if isinstance(kind, declaration.CData):
                return function(kind, *arguments)
            if kind not in names:
                with self._lock:
                    self._complete(declaration.typeof(kind) if isinstance(kind, str) else kind)
                    names.add(kind)
            return function(kind, *arguments)

        return call

    def _complete(self, kind: Any) -> None:
        if kind in self._completed:
            return
        self._completed.add(kind)
        if kind.kind in ("pointer", "array"):
            self._complete(kind.item)
        elif kind.kind in ("struct", "union"):
            for _, member in kind.fields or ():
                self._complete(member.type)


ffi: Final = _load_declaration()
NULL: Final = ffi.NULL

WHOLE_SIZE: Final = 0xFFFF_FFFF_FFFF_FFFF
UINT64_MAX: Final = 0xFFFF_FFFF_FFFF_FFFF

_keep_alive: weakref.WeakKeyDictionary[Any, tuple[Any, ...]] = weakref.WeakKeyDictionary()


def enum_value(enum_name: str, member: str) -> int:
    """Returns the value of an enumerant, e.g. ``("VkObjectType", "VK_OBJECT_TYPE_QUEUE")``."""
    return _enum_values(enum_name)[member]


@functools.cache
def _enum_values(enum_name: str) -> dict[str, int]:
    return dict(ffi.typeof(enum_name).relements)


@functools.cache
def _structure_types() -> dict[str, int]:
    """Returns ``sType`` by structure name without underscores and case, which the registry spells inconsistently."""
    types = _enum_values("VkStructureType").items()
    return {name.removeprefix("VK_STRUCTURE_TYPE_").replace("_", "").lower(): value for name, value in types}


@functools.cache
def _layout(struct_name: str) -> tuple[CData, dict[str, Any], int | None]:
    """Returns the type of pointers to a structure, its fields by name, and its ``sType`` if it has one."""
    declared = dict(ffi.typeof(struct_name).fields)
    known = _structure_types()[struct_name.removeprefix("Vk").lower()] if "sType" in declared else None
    return ffi.typeof(struct_name + " *"), declared, known


def new(struct_name: str, **fields: Any) -> CData:
    """Returns a zeroed Vulkan structure with ``sType`` set (if it has one) and the passed fields.

    A ``list``, ``tuple`` or ``bytes`` for a pointer field becomes an array that lives as long as the
    structure, and so does every structure passed by pointer. For cold paths; hot paths keep structures.
    """
    pointer, declared, structure_type = _layout(struct_name)
    struct = ffi.new(pointer)
    if structure_type is not None:
        struct.sType = structure_type
    kept: list[Any] = []
    for name, value in fields.items():
        field_type = declared[name].type
        if field_type.kind == "pointer":
            if isinstance(value, (list, tuple)):
                item = field_type.item.cname.removeprefix("const ").strip()
                value = [ffi.new("char[]", v.encode()) if isinstance(v, str) else v for v in value]
                kept.extend(value)
                elements = [v[0] if _is_struct_pointer(v, field_type.item) else v for v in value]
                value = ffi.new(f"{item}[]", elements) if elements else NULL
            elif isinstance(value, str):
                value = ffi.new("char[]", value.encode())
            elif isinstance(value, bytes):
                value = ffi.new("char[]", value) if field_type.item.kind == "primitive" else ffi.from_buffer(value)
            elif value is None:
                value = NULL
            kept.append(value)
        elif field_type.kind == "struct" and ffi.typeof(value).kind == "pointer":
            kept.append(value)
            value = value[0]
        setattr(struct, name, value)
    if kept:
        _keep_alive[struct] = tuple(kept)
    return struct


def _is_struct_pointer(value: Any, item: Any) -> bool:
    if not isinstance(value, ffi.CData):
        return False
    kind = ffi.typeof(value)
    return bool(kind.kind == "pointer" and item.kind == "struct" and kind.item is item)


def words_of(array: CData) -> memoryview:
    """Returns a uint64_t array as a view, whose elements are set in half the time; it keeps the array alive."""
    return memoryview(ffi.buffer(array)).cast("Q")


def text(value: CData) -> str:
    """Returns a ``char`` array or pointer of a Vulkan structure as text; undecodable bytes are
    replaced, NULL is empty.
    """
    raw: bytes = ffi.string(value) if value else b""
    return raw.decode("utf-8", errors="replace")


def chain(*structs: CData) -> CData:
    """Links structures through ``pNext`` in order and returns the first; ``None`` entries are skipped."""
    present = [s for s in structs if s is not None]
    for first, second in itertools.pairwise(present):
        first.pNext = ffi.cast("void *", second)
        _keep_alive[first] = (*_keep_alive.get(first, ()), second)
    return present[0]


def _library_names() -> Sequence[str]:
    chosen = os.environ.get("PUMICE_VULKAN_LIBRARY")
    if chosen:
        return (chosen,)
    if sys.platform == "win32":
        return ("vulkan-1.dll",)
    if sys.platform == "darwin":
        from ctypes.util import find_library  # imported here so that programs start sooner

        library = find_library("vulkan")
        homebrew = ("/opt/homebrew/lib/libvulkan.1.dylib", "/usr/local/lib/libvulkan.1.dylib")
        return (*((library,) if library else ()), "libvulkan.1.dylib", *homebrew, "libMoltenVK.dylib")
    vendored = vendored_loader()
    return ("libvulkan.so.1", "libvulkan.so", *([] if vendored is None else [str(vendored)]))


def _is_vulkan(library: Any) -> bool:
    try:
        return library.vkGetInstanceProcAddr is not None
    except (AttributeError, ffi.error):  # depends on cffi's version
        return False


_library: Any = None
_library_lock = threading.Lock()


def load_library() -> Any:
    """Returns the Vulkan library, loaded on first use; ``PUMICE_VULKAN_LIBRARY`` names another file than the platform's
    loader.

    UnavailableError: there is no such library (the message says how to install it), or the file is not a Vulkan
    library.
    """
    global _library
    with _library_lock:
        if _library is None:
            reasons = []
            for name in _library_names():
                try:
                    library = ffi.dlopen(name)
                except OSError as error:
                    reasons.append(f"{name}: {error}")
                    continue
                if _is_vulkan(library):
                    _library = library
                    break
                reasons.append(f"{name}: it is no Vulkan library, as it has no vkGetInstanceProcAddr")
            else:
                from ...base.install_hints import install_hint

                hint = "A library elsewhere is named by PUMICE_VULKAN_LIBRARY."
                if os.environ.get("PUMICE_VULKAN_LIBRARY"):
                    hint = "PUMICE_VULKAN_LIBRARY names the file that was tried: unset it to use the platform's loader."
                raise UnavailableError(
                    f"no Vulkan loader could be opened (tried {'; '.join(reasons)}). {install_hint('loader')} {hint}"
                )
        return _library


class _Functions:
    """Native functions as attributes, each resolved when it is first used."""

    def __init__(self, resolve: Callable[[CData], CData]) -> None:
        self._resolve = resolve

    def __getattr__(self, name: str) -> NativeFunction:
        try:
            kind = ffi.typeof(f"PFN_{name}")
        except ffi.error:
            raise AttributeError(f"{name} is no function of Vulkan") from None
        address = self._resolve(ffi.new("char[]", name.encode()))
        if address == NULL:
            if name.endswith(("KHR", "EXT")):
                raise UnimplementedError(f"{name} is not offered by this device; its extension was not enabled")
            raise UnavailableError(
                f"the Vulkan driver does not offer {name}, which every Vulkan 1.2 driver has to: update the driver"
            )
        function: NativeFunction = ffi.cast(kind, address)
        setattr(self, name, function)
        return function


class InstanceFunctions(_Functions):
    """Functions of a VkInstance and its physical devices; without an instance, the functions that need none."""

    def __init__(self, instance: CData = NULL) -> None:
        resolve = load_library().vkGetInstanceProcAddr
        super().__init__(lambda name: resolve(instance, name))


class DeviceFunctions(_Functions):
    """Functions of a VkDevice, resolved past the loader."""

    def __init__(
        self, functions: InstanceFunctions, device: CData, resolve: Callable[[CData], CData] | None = None
    ) -> None:
        super().__init__(resolve or (lambda name: functions.vkGetDeviceProcAddr(device, name)))


def handle_value(handle: CData) -> int:
    """Returns the number of a Vulkan handle, for messages and for use as a dictionary key."""
    return int(ffi.cast("uint64_t", handle))
