"""The assembler: makes a module of VM assembly text.

::

    definition = assemble(path.read_text(), file_name=str(path))
    path.with_suffix(".vmfb").write_bytes(write_module(definition))

The text is described in :mod:`.parser`.
"""

from __future__ import annotations

from typing import Final

from ...status import InvalidArgumentError
from ..bytecode.isa import Isa
from ..bytecode.isa_tables import VERSIONS
from ..bytecode.module_def import ExportDef, FunctionDescriptor, ModuleDef, Signature
from .cursor import symbol_name
from .encoder import ModuleSymbols, encode_function
from .lexer import SourceText
from .parser import AssemblyParser
from .syntax import ModuleSyntax

_FUNCTION_ALIGNMENT: Final = 8
_MAX_BYTECODE: Final = 0x7FFF_FFFF


def assemble(text: str, *, file_name: str = "<text>", bytecode_version: int | None = None) -> ModuleDef:
    """The module that a text in VM assembly describes. It has no debug information.

    The bytecode is encoded as written and not verified.

    Args:
        text: as ``iree-as-module`` reads it, with extensions; see :mod:`.parser`.
        file_name: for error messages.
        bytecode_version: major << 16 | minor; the newest known by default.

    Raises:
        InvalidArgumentError: the text is not VM assembly; ``location`` is file:line:column, counted from 1, and the
            message shows the line.
        IncompatibleError: an unknown ``bytecode_version``.
    """
    if bytecode_version is None:
        major, minor = VERSIONS[-1]
        bytecode_version = major << 16 | minor
    isa = Isa.for_version(bytecode_version)
    source = SourceText(text, file_name)
    module = AssemblyParser(source, isa).parse()
    symbols = ModuleSymbols(source, module)
    bytecode = bytearray()
    functions: list[FunctionDescriptor] = []
    for function in module.functions.values():
        code, descriptor = encode_function(function, len(bytecode), symbols, source, isa)
        functions.append(descriptor)
        bytecode += code
        bytecode += bytes(-len(bytecode) % _FUNCTION_ALIGNMENT)
    if len(bytecode) > _MAX_BYTECODE:
        raise InvalidArgumentError(
            f"expected a module of at most {_MAX_BYTECODE} bytes of bytecode, got {len(bytecode)}"
        )
    requirements = 0
    for descriptor in functions:
        requirements |= descriptor.requirements
    return ModuleDef(
        name=module.name,
        version=module.version,
        requirements=requirements,
        attributes=module.attributes,
        types=tuple(symbols.types),
        dependencies=tuple(module.dependencies.values()),
        imports=tuple(module.imports.values()),
        exports=_exports(source, module),
        signatures=tuple(Signature(each.calling_convention, each.attributes) for each in module.functions.values()),
        rodata=tuple(memoryview(data) for data in module.rodata),
        global_bytes=symbols.global_bytes,
        global_refs=symbols.global_refs,
        functions=tuple(functions),
        bytecode_version=bytecode_version,
        bytecode=memoryview(bytes(bytecode)),
    )


def _exports(source: SourceText, module: ModuleSyntax) -> tuple[ExportDef, ...]:
    ordinals = {name: ordinal for ordinal, name in enumerate(module.functions)}
    exports = []
    for export, function in module.exports.items():
        name = symbol_name(function)
        if name not in ordinals:
            raise source.unknown("a function of this module", function, name, ordinals)
        exports.append(ExportDef(export, ordinals[name]))
    return tuple(exports)
