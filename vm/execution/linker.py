"""Links a module against those added before it: its dependencies checked, each import bound to what provides it."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from ...status import IncompatibleError, NotFoundError
from ..bytecode.calling_convention import CallingConvention
from ..bytecode.module_def import ImportDef
from ..native.checked import checked_native
from ..native.coroutine import driven
from ..native.module import NativeExport, NativeModule
from ..wait.frame import Wait
from .bytecode_module import BytecodeModule, ContextFunction, ModuleState
from .function import Function

__all__ = ["LoadedModule", "Module", "is_native_import", "link", "native_function", "split_name"]

Module: TypeAlias = BytecodeModule | NativeModule
_BETWEEN_MODULES: Final = "__pumice_between_modules__"


class LoadedModule:
    """A module of a context.

    Attributes:
        module: the module.
        state: what the context has of it: a ``ModuleState``, or what a native module's factory made.
        functions: those that were looked up, by name.
    """

    __slots__ = ("functions", "module", "state")

    def __init__(self, module: Module, state: object) -> None:
        self.module = module
        self.state = state
        self.functions: dict[str, Function] = {}


def split_name(full_name: str, modules: Mapping[str, LoadedModule]) -> tuple[LoadedModule | None, str]:
    """The module that a full name begins with, and the rest.

    Names of modules and functions may have dots: of several modules it is the one that has the function, or the shortest.
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


def native_function(loaded: LoadedModule, export: NativeExport) -> Callable[..., Any]:
    """What to call for an export of a native module, bound to its state; its results are checked unless it is trusted."""
    function = export.bind(loaded.state)
    if not export.trusted:
        return checked_native(function, f"{loaded.module.name}.{export.name}", export.convention)
    return driven(function) if inspect.iscoroutinefunction(function) else function


def link(module: BytecodeModule, modules: Mapping[str, LoadedModule]) -> tuple[list[Callable[..., object]], list[bool]]:
    """What each import of a module calls, and whether there is such a function: optional ones may have none.

    Raises:
        NotFoundError: a required import, or a module that it depends on, is missing.
        IncompatibleError: a module is older than asked for, or a function has another calling convention.
    """
    for dependency in module.definition.dependencies:
        _check_dependency(module, dependency.name, dependency.minimum_version, dependency.required, modules)
    imports: list[Callable[..., object]] = []
    resolved: list[bool] = []
    for ordinal, imported in enumerate(module.definition.imports):
        function = _resolve(module, imported, module.verified.imports[ordinal], modules)
        resolved.append(function is not None)
        imports.append(function if function is not None else _missing(imported.name))
    return imports, resolved


def _check_dependency(
    module: BytecodeModule, name: str, version: int, required: bool, modules: Mapping[str, LoadedModule]
) -> None:
    loaded = modules.get(name)
    if loaded is None:
        if required:
            raise NotFoundError(
                f"module {module.name!r} needs module {name!r}, which was not added; there are {_names(modules)}: add it first"
            )
    elif loaded.module.version < version:
        raise IncompatibleError(
            f"module {module.name!r} needs module {name!r} of version {version} or later, this one has version {loaded.module.version}: "
            f"compile {module.name!r} for that version, or use a newer release of pumice"
        )


def _resolve(
    module: BytecodeModule, imported: ImportDef, convention: CallingConvention, modules: Mapping[str, LoadedModule]
) -> Callable[..., object] | None:
    loaded, name = split_name(imported.name, modules)
    if loaded is None:
        if imported.required:
            raise NotFoundError(
                f"module {module.name!r} imports {imported.name}, but there is no module {imported.name.partition('.')[0]!r}; "
                f"there are {_names(modules)}: add it first"
            )
        return None
    provider = loaded.module
    found: list[str] = []
    if isinstance(provider, NativeModule):
        for export in provider.find_export(name):
            if export.convention == convention:
                return native_function(loaded, export)
            found.append(export.convention.text)
    elif name in provider.exports:
        ordinal = provider.exports[name]
        signature = provider.verified.functions[ordinal].signature
        if signature == convention:
            assert isinstance(loaded.state, ModuleState)
            return _bytecode_import(loaded.state.function(ordinal))
        found.append(signature.text)
    if found:
        raise IncompatibleError(
            f"module {module.name!r} imports {imported.name} with calling convention {convention.text}, module {provider.name!r} "
            f"(version {provider.version}) has it with {', '.join(found)}: the two were made for different versions of each other"
        )
    if imported.required:
        near = difflib.get_close_matches(name, list(provider.exports), 3)
        hint = f"; close to it: {', '.join(near)}" if near else ""
        raise NotFoundError(
            f"module {module.name!r} imports {imported.name}, but module {provider.name!r} (version {provider.version}) has no "
            f"function {name!r}{hint}"
        )
    return None


def _names(modules: Mapping[str, LoadedModule]) -> str:
    return ", ".join(map(repr, modules)) or "none"


def _missing(name: str) -> Callable[..., object]:
    def missing(*arguments: object) -> object:
        raise NotFoundError(
            f"{name} is an optional import that no module provides; the program called it without asking"
        )

    return missing


def _bytecode_import(function: ContextFunction) -> Callable[..., object]:
    """What calls a function of another bytecode module: a request to the interpreter."""

    def call(*arguments: object) -> Wait:
        request = Wait(resume=_never)
        request.callee = (function, arguments)
        return request

    setattr(call, _BETWEEN_MODULES, True)
    return call


def is_native_import(function: Callable[..., object]) -> bool:
    """Whether what an import calls is a native function, not a request for one of another bytecode module."""
    return not hasattr(function, _BETWEEN_MODULES)


def _never(error: object) -> object:
    raise AssertionError("a call between modules has no wait to resume")
