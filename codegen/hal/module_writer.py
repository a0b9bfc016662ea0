"""Writes a program as a Python module on the HAL."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Final

from ...base.syntax_tree import syntax_tree
from ...status import UnimplementedError
from ...vm.bytecode.module_def import ModuleDef
from ...vm.translation.expressions import Literal, Name, call, listed
from ..program.ir import Function, Program
from ..program.naming import identifier, method_of
from ..program.reader import program_of
from .calls import method_name
from .functions import source_of
from .lift import lift
from .lines import broken, lines_of
from .module import DataTable, Module
from .names import CLASSES, HOMES, IMPORTED, annotation, flags_text
from .signatures import docstring, heading, reuses_of, sync_with_outs
from .structure import write_body

_OURS: Final = ("vulkan-spirv-fb-pushed-addresses", "pumice-reference")
_FORMATS: Final = ("vulkan-spirv-fb", "vulkan-spirv-fb-ptr", "vulkan-spirv-bda-v1", *_OURS)


@dataclass(frozen=True, slots=True)
class HalCode:
    """A generated module.

    Attributes:
        source: the Python module's source.
        data: the content of the data file; ``None`` if the constants are in the module.
    """

    source: str
    data: bytes | None


def write_hal(definition: ModuleDef, name: str, *, data: str | None = None) -> HalCode:
    """Returns a module as Python on the HAL.

    Args:
        definition: the module.
        name: the module's file name, for the class and the docstring.
        data: the name of a data file for the constants; ``None`` to put them into the module.

    Raises:
        UnimplementedError: the program has an operation that HAL code cannot express; the message says which and where.
        InvalidArgumentError: the file is damaged.
    """
    program = program_of(definition)
    if len(program.formats) == 1:
        program = program_of(definition, formats=program.formats)
    for kind in program.formats:
        if kind not in _FORMATS:
            raise UnimplementedError(
                f"{name}: the module has executables of the format {kind}; HAL code runs those of "
                f"{', '.join(_FORMATS)}: compile the program for vulkan or the reference device"
            )
    lift(program)
    return _ModuleWriter(program, name, data).write()


class _ModuleWriter:
    """Writes the module of one program."""

    def __init__(self, program: Program, name: str, data: str | None) -> None:
        self.program = program
        self.name = name
        self.data = DataTable(program.rodata, data)
        self.module = Module(program, self.data)
        self.class_name = _class_name(program, name)

    def write(self) -> HalCode:
        """Returns the source and the data."""
        body = self._class()
        flags = sorted(self.module.flags.items())
        constants = [f"{name}: Final = int({flags_text(value, kind) or hex(value)})" for name, (value, kind) in flags]
        functions, imported = source_of(_names("\n".join(body)))
        tail = [line for source in functions for line in ("", "", *source.splitlines())]
        data = self.data.lines()
        text = "\n".join([*body, *tail])
        head = self._imports(text, imported, bool(data))
        lines = [*self._title(), "", *head]
        if constants:
            lines += ["", *constants]
        lines += ["", "", *body, *tail]
        if data:
            lines += ["", "", *data]
        return HalCode("\n".join(lines) + "\n", self.data.content() if self.data.file is not None else None)

    # -- the head ------------------------------------------------------------------------------------

    def _title(self) -> list[str]:
        kinds = []
        if any(format.startswith("vulkan") for format in self.program.formats):
            kinds.append(("Vulkan", "pumice.hal_vulkan"))
        if "pumice-reference" in self.program.formats:
            kinds.append(("the reference device", "pumice.hal_reference"))
        devices = " or ".join(kind for kind, _ in kinds) or "any device"
        home = kinds[0][1] if kinds else "pumice.hal_reference"
        return [
            f'"""{self.class_name}: {_clean(self.name)} as code on the HAL, for {devices}.',
            "",
            "Written by `pumice codegen --hal`; written again, changes to it are lost.",
            "",
            f">>> from {home} import Device",
            f">>> with Device() as device, {self.class_name}.create(device) as program:",
            f">>>     {self._example()}",
            '"""',
        ]

    def _example(self) -> str:
        for function in self.program.exports.values():
            if function.declaration is not None and not function.declaration.is_async:
                results = ", ".join(identifier(value.name) for value in function.declaration.results)
                arguments = ", ".join(value.name for value in function.arguments)
                return f"{results}{' = ' if results else ''}program.{method_name(function)}({arguments})"
        return "..."

    def _imports(self, text: str, imported: set[str], data: bool) -> list[str]:
        used = _names(text)
        lines = ["from __future__ import annotations", ""]
        for name in ("math", "struct"):
            if name in imported:
                lines.append(f"import {name}")
        if data and self.data.file is None:
            lines.append("from base64 import b64decode")
        if "Callable" in imported:
            lines.append("from collections.abc import Callable")
        if data and self.data.file is not None:
            lines.append("from pathlib import Path")
        final = data or bool(self.module.flags) or "Final" in imported
        typing = [name for name, needed in (("Any", "Any" in used), ("Final", final)) if needed]
        if typing:
            lines.append(f"from typing import {', '.join(typing)}")
        if lines[-1]:
            lines.append("")
        homes: dict[str, set[str]] = {}
        for home, names in HOMES.items():
            for name in names:
                if name in used:
                    homes.setdefault(home, set()).add(name)
        for name, home in CLASSES.values():
            if name in used:
                homes.setdefault(home, set()).add(name)
        for value, kind in self.module.flags.values():
            if flags_text(value, kind):
                homes.setdefault("hal.memory", set()).add(kind.__name__)
        for name in ("InvalidArgumentError",):
            if name in imported:
                homes.setdefault("status", set()).add(name)
        for home in sorted(homes):
            names_here = ", ".join(sorted(homes[home], key=_import_order))
            plain = f"from pumice.{home} import {names_here}"
            lines += [plain] if len(plain) <= 120 else [f"from pumice.{home} import (", f"    {names_here},", ")"]
        return lines

    # -- the class -----------------------------------------------------------------------------------

    def _class(self) -> list[str]:
        methods: list[list[str]] = []
        order = sorted(
            (
                candidate
                for candidate in self.program.functions.values()
                if candidate.ordinal not in self.program.initializers
            ),
            key=lambda candidate: (
                candidate.exported,
                not self._is_sync(candidate) if candidate.exported else False,
                candidate.ordinal,
            ),
        )
        for function in order:
            if self._needs_waiting(function):
                methods.append(self._waiting(function))
            methods.append(self._method(function))
        attributes = self.module.attributes
        lines = [f"class {self.class_name}(HostProgram):"]
        about = f"The program ``{self.program.name}``; ``create`` and ``close`` are those of ``HostProgram``."
        lines.append(f'    """{about}"""')
        declared = [
            f"    {name}: {attributes.annotation(ordinal)}" for ordinal, name in sorted(attributes.names.items())
        ]
        declared += [f"    {name}: {annotation(kind, None)}" for (kind, _), name in sorted(attributes.numbers.items())]
        if declared:
            lines += ["", *declared]
        for method in (self._load(), *methods, *self._aliases()):
            if method:
                lines += ["", *[f"    {line}" if line else "" for line in method]]
        return lines

    def _aliases(self) -> list[list[str]]:
        """Returns assignments for further names under which the module exports functions."""
        taken = {function.name for function in self.program.functions.values()}
        aliases = []
        for export, function in self.program.exports.items():
            name = method_of(export, function)
            if name not in taken:
                taken.add(name)
                aliases.append([f"{name} = {method_name(function)}"])
        return aliases

    @staticmethod
    def _is_sync(function: Function) -> bool:
        return function.declaration is None or not function.declaration.is_async

    def _load(self) -> list[str]:
        attributes = self.module.attributes
        body: list[str] = []
        for ordinal in self.program.initializers:
            body += lines_of(write_body(self.module, self.program.functions[ordinal]))
        kept = [attributes.names[index] for index in sorted(attributes.kept) if index in attributes.names]
        start = [f"self.{name} = None" for name in kept]
        for (kind, _), name in sorted(attributes.numbers.items()):
            start.append(f"self.{name} = {'0.0' if kind in 'fF' else '0'}")
        lines = [*start, *body]
        return ["def _load(self) -> None:", *[f"    {line}" if line else "" for line in lines]] if lines else []

    def _method(self, function: Function) -> list[str]:
        called = sync_with_outs(self.program, function) if function.exported else None
        lines = heading(function, outs=called is not None)
        lines += [f"    {line}" if line else "" for line in docstring(self.program, function, outs=called is not None)]
        body = list(lines_of(write_body(self.module, function)))
        if function.declaration is not None and function.declaration.is_async:
            body = self._fences(function, body)
        if called is not None:
            is_single = len(function.results) == 1
            arguments = [variable.name for variable in function.arguments]
            passed = ", ".join([*arguments, "out" if is_single else "*out", "signal=done"])
            check = call(
                "check_apart",
                listed([Name("out")]) if is_single else Name("out"),
                listed(map(Name, arguments)),
                listed(listed(map(Literal, positions)) for positions in reuses_of(called)),
            )
            body = [
                "if out is not None:",
                *broken("    ", "", check),
                "    done = HalFence(self.device)",
                f"    self.{method_name(called)}({passed})",
                "    done.wait_until()",
                "    return out",
                *body,
            ]
        return [*lines, *[f"    {line}" if line else "" for line in body or ["pass"]]]

    def _needs_waiting(self, function: Function) -> bool:
        """Whether an exported asynchronous function has no synchronous sibling."""
        names = {other.name for other in self.program.exports.values()}
        return function.exported and not self._is_sync(function) and function.name.removesuffix("_async") not in names

    def _waiting(self, function: Function) -> list[str]:
        """Returns a synchronous method that calls an asynchronous method and waits."""
        arguments = ", ".join(argument.name for argument in function.arguments[:-2])
        call = f"self.{method_name(function)}({arguments}{', ' if arguments else ''}signal=done)"
        body = ["done = HalFence(self.device)"]
        body += [f"results = {call}" if function.results else call, "done.wait_until()"]
        body += ["return results"] if function.results else []
        text = docstring(self.program, function, outs=False, waiting=True)
        return [
            *heading(function, outs=False, waiting=True),
            *[f"    {line}" if line else "" for line in [*text, *body]],
        ]

    def _fences(self, function: Function, body: list[str]) -> list[str]:
        """Prepends the conversion of a user's semaphores to fences."""
        names = []
        for variable, parameter in zip(function.arguments[-2:], ("wait", "signal"), strict=True):
            if variable.uses:
                names.append(f"{variable.name} = fence_of({parameter})")
        return [*names, *body]


def _names(text: str) -> set[str]:
    """Returns the names that a source reads."""
    return {node.id for node in ast.walk(syntax_tree(text)) if isinstance(node, ast.Name)}


def _import_order(name: str) -> tuple[int, str]:
    """Orders constants, classes and functions as import sorters do."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def _clean(name: str) -> str:
    return re.sub(r'["\\]|[^\x20-\x7e]', "?", name)


def _class_name(program: Program, name: str) -> str:
    """Returns the class name: the module's, or the file's if the module has a default name."""
    base = program.name if program.name not in ("module", "") else re.split(r"[\\/]", name)[-1].partition(".")[0]
    words = re.split(r"_+", identifier(base).strip("_"))
    class_name = "".join(word[:1].upper() + word[1:] for word in words)
    if not class_name.isidentifier():
        return f"Program{class_name}"
    imported = {*IMPORTED, *(kind for kind, _ in CLASSES.values()), "Any", "Final", "Path"}
    return f"{class_name}Program" if class_name in imported else class_name
