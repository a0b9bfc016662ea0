"""Links a module against previously added modules: checks dependencies and binds each import to its provider."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from ...base.lazy_dataclass import dataclass
from ...status import IncompatibleError, NotFoundError, close_to
from ...waits.wait_frame import Wait
from ..bytecode.calling_convention import CallingConvention
from ..bytecode.module_def import ImportDef
from ..native.calls import checked_native, driven
from ..native.module import NativeExport, NativeModule
from .bytecode_module import BytecodeModule
from .module_state import ContextFunction, LinkedImport, ModuleState

Module: TypeAlias = BytecodeModule | NativeModule


@dataclass(frozen=True, slots=True, eq=False)
class LoadedModule:
    """A module of a context, and its state: a ``ModuleState``, or the object made by a native module's factory."""

    module: Module
    state: object


def _split_name(full_name: str, modules: Mapping[str, LoadedModule]) -> tuple[LoadedModule | None, str]:
    """Returns the module that a full name begins with, and the rest of the name.

    Names of modules and functions may contain dots: the result is the first module with the function, or else the
    shortest name.
    """
    first: tuple[LoadedModule, str] | None = None
    prefix, _, rest = full_name.partition(".")
    while rest:
        loaded = modules.get(prefix)
        if loaded is not None:
            if rest in loaded.module.exports:
                return loaded, rest
            first = first or (loaded, rest)
        more, _, rest = rest.partition(".")
        prefix = f"{prefix}.{more}"
    return first or (None, full_name)


def find_function(full_name: str, modules: Mapping[str, LoadedModule]) -> tuple[LoadedModule, str]:
    """Returns the module that a function's full name begins with, and the function's own name; raises NotFoundError."""
    loaded, name = _split_name(full_name, modules)
    if loaded is not None:
        return loaded, name
    near = [f"{module}.{full_name}" for module, linked in modules.items() if full_name in linked.module.exports]
    if not near:
        every = [f"{module}.{name}" for module, linked in modules.items() for name in linked.module.exports]
        near = close_to(full_name, every)
    raise NotFoundError(
        f"no function {full_name!r}: full names are module.function, and the modules are {names_of(modules)}"
        + (f"; did you mean {' or '.join(near[:3])}?" if near else "")
    )


def unknown_export(module: Module, name: str) -> NotFoundError:
    """Returns the error for a function that a module does not export, with similar names."""
    names = [export for export in module.exports if not export.startswith("__")]
    near = close_to(name, names)
    shown = ", ".join(near or names[:10]) or "none"
    return NotFoundError(
        f"module {module.name!r} has no function {name!r}; {'close to it' if near else 'it has'}: {shown}"
    )


def native_function(loaded: LoadedModule, export: NativeExport) -> Callable[..., Any]:
    """Binds an export of a native module to its state; results are checked unless the module is trusted."""
    function = export.bind(loaded.state)
    if not export.trusted:
        name = f"{loaded.module.name}.{export.name}"
        return checked_native(function, name, export.convention, may_wait=export.suspends)
    return driven(function) if inspect.iscoroutinefunction(function) else function


def link(module: BytecodeModule, modules: Mapping[str, LoadedModule]) -> list[LinkedImport]:
    """Links each import of a module; optional imports may stay unresolved.

    Raises:
        NotFoundError: a required import, or a module that it depends on, is missing.
        IncompatibleError: a module is older than requested, or a function has another calling convention.
    """
    for dependency in module.definition.dependencies:
        name, version = dependency.name, dependency.minimum_version
        loaded = modules.get(name)
        if loaded is None and dependency.required:
            raise NotFoundError(
                f"module {module.name!r} needs module {name!r}, which was not added; there are {names_of(modules)}: "
                "add it first"
            )
        if loaded is not None and loaded.module.version < version:
            raise IncompatibleError(
                f"module {module.name!r} needs module {name!r} of version {version} or later, this one has version "
                f"{loaded.module.version}: compile {module.name!r} for that version, or use a newer release of pumice"
            )
    return [
        _resolve(module, imported, convention, modules) or _missing(imported.name)
        for imported, convention in zip(module.definition.imports, module.imports, strict=True)
    ]


def non_suspending_imports(module: BytecodeModule, natives: Iterable[NativeModule]) -> frozenset[int]:
    """Returns the imports that never suspend if these native modules provide them; for dumps."""
    modules = {native.name: LoadedModule(native, None) for native in natives}
    imports = set()
    for ordinal, convention in enumerate(module.imports):
        loaded, name = _split_name(module.definition.imports[ordinal].name, modules)
        if loaded is not None and isinstance(loaded.module, NativeModule):
            exports = loaded.module.find_export(name)
            if any(export.convention == convention and not export.suspends for export in exports):
                imports.add(ordinal)
    return frozenset(imports)


def _resolve(
    module: BytecodeModule, imported: ImportDef, convention: CallingConvention, modules: Mapping[str, LoadedModule]
) -> LinkedImport | None:
    loaded, name = _split_name(imported.name, modules)
    if loaded is None:
        if imported.required:
            raise NotFoundError(
                f"module {module.name!r} imports {imported.name}, but there is no module "
                f"{imported.name.partition('.')[0]!r}; there are {names_of(modules)}: add it first"
            )
        return None
    provider = loaded.module
    missing: list[str] = []
    if isinstance(provider, NativeModule):
        for export in provider.find_export(name):
            if export.convention == convention:
                function = native_function(loaded, export)
                return LinkedImport(function, is_native=True, suspends=export.suspends, trusted=export.trusted)
            missing.append(export.convention.text)
    elif name in provider.exports:
        ordinal = provider.exports[name]
        signature = provider.signatures[ordinal]
        if signature == convention:
            assert isinstance(loaded.state, ModuleState)
            return LinkedImport(_bytecode_import(loaded.state.function(ordinal)))
        missing.append(signature.text)
    if missing:
        raise IncompatibleError(
            f"module {module.name!r} imports {imported.name} with calling convention {convention.text}, module "
            f"{provider.name!r} (version {provider.version}) has it with {', '.join(missing)}: the two were made for "
            "different versions of each other"
        )
    if imported.required:
        near = close_to(name, provider.exports)
        hint = f"; close to it: {', '.join(near)}" if near else ""
        raise NotFoundError(
            f"module {module.name!r} imports {imported.name}, but module {provider.name!r} (version "
            f"{provider.version}) has no function {name!r}{hint}"
        )
    return None


def names_of(modules: Mapping[str, LoadedModule]) -> str:
    """Returns the names of modules, for messages."""
    return ", ".join(map(repr, modules)) or "none"


def _missing(name: str) -> LinkedImport:
    def missing(*arguments: object) -> object:
        raise NotFoundError(
            f"{name} is an optional import that no module provides; the program called it without asking"
        )

    return LinkedImport(missing, is_resolved=False, suspends=False)


def _bytecode_import(function: ContextFunction) -> Callable[..., object]:
    """Calls a function of another bytecode module: returns a request to the interpreter."""

    def call(*arguments: object) -> Wait:
        request = Wait(resume=call)  # never called
        request.callee = (function, arguments)
        return request

    return call
