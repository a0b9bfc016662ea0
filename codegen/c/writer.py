"""A module as a C program: a file, its header, and the files that build and run them."""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ...status import UnimplementedError
from ...vm.bytecode.module_def import ModuleDef
from ...vm.translation.expressions import Literal, Unary, call
from ..program.ir import Constant, Function, Program, Rodata, Value, Variable
from ..program.reader import program_of
from ..program.simplify import reachable, simplify_function, substitute
from .arguments import global_member
from .executables import FEATURES, Executables, words_text
from .exports import element_of, exports_of
from .function import FunctionWriter
from .interface import InterfaceWriter
from .statements import Definition, Evaluate, P, attempt, comment_text, declarator
from .support import arranged, chosen, filled, prefixed, reserved, template
from .types import KINDS, c_type, global_name, pointer

FORMATS: Final = ("vulkan-spirv-fb",)
_PARAMETERS: Final = (("NAME_program *", "p"),)
_TABLE_NAMES: Final = ("feature", "features", "COUNT")
_EXECUTABLE_NAMES: Final = ("descriptor", "pipeline_source", "executable_source", "NO_FEATURE", "executables_destroy")
"""Names of the support files in tables, and with executables."""
_MAX_SEMAPHORES: Final = 16
CMAKE_MARK: Final = "# Written by pumice."  # the first line of a CMakeLists.txt
_DATA_ALIGNMENT: Final = 16
_DATA_MAGIC: Final = b"PUMICE01"


def write_c(
    module: ModuleDef, stem: str, source: str, *, main: bool = False, cmake: bool = False, data: bool = False
) -> dict[str, bytes]:
    """Returns the files of a C program, by name.

    Args:
        module: the program.
        stem: names the files, also in ``#include``, and is the prefix of all names in C, with ``_`` for other
            characters.
        source: the names the module in comments.
        main: whether to add ``stem_main.c``, a program that runs the functions on ``.npy`` files.
        cmake: whether to add ``CMakeLists.txt``.
        data: whether to put shaders and constants into ``stem.data`` beside the program, which reads it at run time.

    Raises:
        InvalidArgumentError: the module is damaged.
        UnimplementedError: the module has an operation without a C form; the message names it.
    """
    return CProgram(module, stem, source, is_data_beside=data).files(main=main, cmake=cmake)


@dataclass
class _Data:
    """The content of the data file: a header, and blobs at aligned offsets."""

    content: bytearray

    def add(self, blob: bytes | memoryview) -> int:
        """Adds a blob; returns its offset."""
        self.content += bytes(-len(self.content) % _DATA_ALIGNMENT)
        offset = len(self.content)
        self.content += blob
        return offset


class CProgram:
    """The C program of a module."""

    def __init__(self, module: ModuleDef, stem: str, source: str, *, is_data_beside: bool) -> None:
        self._stem = stem
        self._source = comment_text(source)
        self._prefix = re.sub(r"\W", "_", stem, flags=re.ASCII)
        if not self._prefix or self._prefix[0].isdigit():
            self._prefix = f"p{self._prefix}"
        self._program = program_of(module, formats=FORMATS)
        self._executables = Executables()
        self._is_data_beside = is_data_beside
        self._data = _Data(bytearray(32))
        functions = self._program.functions
        for function in functions.values():
            for instruction in function.instructions():
                if instruction.callee == "hal.executable.create" and isinstance(instruction.operands[-2], Rodata):
                    ordinal = instruction.operands[-2].ordinal
                    self._executables.add(ordinal, self._program.rodata[ordinal])
        for function in functions.values():
            _settle_lookups(self._program, function, self._executables)
        for ordinal in self._program.initializers:
            _check_starts(functions[ordinal])
        self._exports = exports_of(self._program, module)
        called = [function for export in self._exports for function in (export.known, export.unknown)]
        self._program.exports = {function.name: function for function in called if function is not None}
        self._program.functions = reachable(self._program)
        self._names = self._function_names()
        self._interface = InterfaceWriter(self._exports, self._names)

    def _function_names(self) -> dict[int, str]:
        names: dict[int, str] = {}
        for ordinal, function in self._program.functions.items():
            is_named = not function.exported and function.name
            wanted = name = function.name if is_named else f"run_{function.name}"
            if ordinal in self._program.initializers:
                wanted = name = "initializer"
            number = 1
            while name in names.values() or name in reserved():
                name, number = f"{wanted}_{number}", number + 1
            names[ordinal] = name
        return names

    def files(self, *, main: bool, cmake: bool) -> dict[str, bytes]:
        """Returns all files by name."""
        if main:
            for export in self._exports:
                for value in (*export.inputs, *export.outputs):
                    element = element_of(value)
                    if element.is_sub_byte:
                        raise UnimplementedError(f"{value}: NumPy's files have no elements of {element.bits} bits")
        contents = {f"{self._stem}.c": self._code(), f"{self._stem}.h": self._header()}
        if main:
            contents[f"{self._stem}_main.c"] = self._main()
        if cmake:
            contents["CMakeLists.txt"] = self._cmake(main)
        files = {name: self._named(text) for name, text in contents.items()}
        if self._is_data_beside:
            content = bytes(self._data.content)
            head = _DATA_MAGIC + struct.pack("<Q", len(content)) + self._digest()
            files[f"{self._stem}.data"] = head + content[32:]
        return files

    def _named(self, text: str) -> bytes:
        text = text.replace('#include "NAME.h"', f'#include "{self._stem}.h"')
        return (prefixed(text, self._prefix).rstrip() + "\n").encode()

    def _digest(self) -> bytes:
        return hashlib.sha256(bytes(self._data.content[32:])).digest()[:16]

    # -- the program -----------------------------------------------------------------------------------

    def _code(self) -> str:
        functions = self._program.functions.values()
        writers = [FunctionWriter(self._program, function, self._names, self._executables) for function in functions]
        definitions = [writer.definition() for writer in writers]
        constants = sorted({ordinal for writer in writers for ordinal in writer.constants})
        members = self._globals(constants)
        definitions.append(self._initialize(constants))
        if members:
            definitions.append(_globals_release(members))
        public = self._interface.definitions()
        tables = self._executables.tables()
        tables = "\n\n".join(text for text in (self._executables.feature_table(), tables) if text)
        names = {*_TABLE_NAMES, *(name for definition in (*definitions, *public) for name in definition.names())}
        parts = {"PROGRAM_GLOBALS": "", "DATA_MEMBER": "", "GLOBALS_RELEASE": "", "EXECUTABLES_DESTROY": ""}
        parts |= {"DATA_OPEN": "", "DATA_CLOSE": ""}
        if members:
            declared = [f"        {declarator(type, name)};" for type, name in members]
            parts["PROGRAM_GLOBALS"] = "\n".join(["    struct {", *declared, "    } globals;"])
            parts["GLOBALS_RELEASE"] = "    globals_release(p);"
        if self._executables.sources:
            names.update(_EXECUTABLE_NAMES)
            parts["EXECUTABLES_DESTROY"] = "        executables_destroy(p);"
        if self._is_data_beside:
            names |= {"data_open", "data_close"}
            parts["DATA_MEMBER"] = "    uint8_t *data; /* what lies beside the program */"
            parts |= {"DATA_OPEN": "    TRY(data_open(p, options));", "DATA_CLOSE": "    data_close(p);"}
        types, support = arranged(chosen(names))
        everything = [
            self._start(),
            *types,
            self._constants(constants),
            tables,
            "\n".join(f"{definition.prototype()};" for definition in definitions),
            *support,
            *(definition.text() for definition in definitions),
            self._interface.tables(),
            *(definition.text() for definition in public),
            self._interface.table_of_functions(),
        ]
        return filled("\n\n".join(text for text in everything if text), parts).replace("STEM", self._stem)

    def _start(self) -> str:
        most = self._executables
        return (
            f"/* NAME: written by pumice from {self._source}. See NAME.h. */\n"
            '#include "NAME.h"\n\n'
            "#include <inttypes.h>\n#include <math.h>\n#include <stdarg.h>\n#include <stdbool.h>\n#include <stddef.h>\n"
            "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\n"
            "enum {\n"
            f"    MAX_SEMAPHORES = {_MAX_SEMAPHORES}, /* of callers, in one submission */\n"
            f"    MAX_SETS = {most.most_sets}, /* of descriptors, of a kernel */\n"
            f"    MAX_BINDINGS = {most.most_bindings}, /* of a kernel */\n"
            f"    HAS_UNIFORMS = {int(most.has_uniforms)}, /* whether kernels read uniform buffers */\n"
            f"    EXECUTABLE_COUNT = {max(1, len(most.sources))}\n"
            "};"
        )

    def _globals(self, constants: list[int]) -> list[tuple[str, str]]:
        """Returns types and names of the members of the struct of globals."""
        kinds: dict[int, str] = {}
        for function in self._program.functions.values():
            for instruction in function.instructions():
                if not instruction.operation.startswith("global.") or "indirect" in instruction.operation.split("."):
                    continue
                kind = instruction.operation.rpartition(".")[2]
                if kind != "ref" and kinds.setdefault(instruction.ordinal, kind) != kind:
                    raise UnimplementedError(
                        f"a global at byte {instruction.ordinal} is used as {kinds[instruction.ordinal]} and {kind}"
                    )
        references = [(Variable("r", named), ordinal) for ordinal, named in sorted(self._program.global_types.items())]
        return [
            *(("bytes *", f"rodata_{ordinal}") for ordinal in constants),
            *((KINDS[kind], f"{kind}_{ordinal}") for ordinal, kind in sorted(kinds.items())),
            *(
                (pointer(variable), global_name(self._program, ordinal))
                for variable, ordinal in references
                if c_type(variable) is not None
            ),
        ]

    def _initialize(self, constants: list[int]) -> Definition:
        body = [
            attempt(
                "bytes_constant",
                call("RODATA", P, Literal(ordinal)),
                Literal(len(self._program.rodata[ordinal])),
                Unary("&", global_member(f"rodata_{ordinal}")),
            )
            for ordinal in constants
        ]
        body += [attempt(self._names[ordinal]) for ordinal in self._program.initializers]
        return Definition("initialize", _PARAMETERS, body)

    # -- data ------------------------------------------------------------------------------------------

    def _constants(self, constants: list[int]) -> str:
        """Returns shaders and constants, as arrays or as offsets in the data file."""
        shaders, rodata = self._executables.shaders, self._program.rodata
        parts = []
        if self._is_data_beside:
            rows = [f"    {{{len(code)}, {self._data.add(code)}}}," for code in shaders]
            if rows:
                parts.append(
                    "static const struct {\n    size_t size, offset;\n} shaders[] = {\n" + "\n".join(rows) + "\n};"
                )
                parts.append(
                    "#define SHADER_CODE(p, index) \
    ((const uint32_t *)(const void *)((p)->data + shaders[index].offset))"
                )
            for ordinal in constants:
                parts.append(f"enum {{ RODATA_{ordinal} = {self._data.add(rodata[ordinal])} }};")
            if constants:
                parts.append("#define RODATA(p, ordinal) ((p)->data + RODATA_##ordinal)")
            digest = ", ".join(f"{byte:#x}" for byte in self._digest())
            parts.append(f"static const uint8_t data_digest[] = {{{digest}}};")
            parts.append(f"static const uint32_t data_checksum = {zlib.adler32(self._data.content[32:]):#x};")
            parts.append(f"static const uint64_t data_size = {len(self._data.content)};")
            return "\n\n".join(parts)
        for index, code in enumerate(shaders):
            parts.append(words_text(f"spirv_{index}", code, f"A shader: SPIR-V of {len(code)} bytes."))
        if shaders:
            rows = [f"    {{sizeof spirv_{index}, spirv_{index}}}," for index in range(len(shaders))]
            parts.append(
                "static const struct {\n    size_t size;\n    const uint32_t *code;\n} shaders[] = {\n"
                + "\n".join(rows)
                + "\n};"
            )
            parts.append("#define SHADER_CODE(p, index) (shaders[index].code)")
        for ordinal in constants:
            size = len(rodata[ordinal])
            parts.append(words_text(f"rodata_{ordinal}", rodata[ordinal], f"Constants: {size} bytes."))
        if constants:
            parts.append("#define RODATA(p, ordinal) ((const uint8_t *)rodata_##ordinal)")
        return "\n\n".join(parts)

    # -- beside the program ----------------------------------------------------------------------------

    def _header(self) -> str:
        enabled = [name for name in self._executables.features if not FEATURES[name].startswith("properties.")]
        listed = ",\n     * ".join(["timelineSemaphore", *enabled])
        beside = f"    const char *data_path;   /* of {self._stem}.data, which is its default */"
        text = template("header.h").replace("MAX_RANK_VALUE", str(self._interface.max_rank))
        text = text.replace("FEATURE_LIST", listed).replace("SOURCE", self._source, 1)
        return filled(
            text,
            {
                "DATA_OPTION": beside if self._is_data_beside else "",
                "FUNCTION_DECLARATIONS": self._interface.declarations() + "\n",
            },
        )

    def _main(self) -> str:
        parts = {"DATA_USAGE": "", "DATA_DEFAULT": "", "DATA_ARGUMENT": ""}
        if self._is_data_beside:
            data = f"{self._stem}.data".replace("%", "%%")  # a ``%`` in a format string
            parts["DATA_USAGE"] = f'            "      --data FILE        {data}; beside this program by default\\n"'
            parts["DATA_ARGUMENT"] = (
                '        } else if (!strcmp(each, "--data")) {\n            options.data_path = value;'
            )
            parts["DATA_DEFAULT"] = (
                "    static char beside[4096];\n"
                "    char self[4000];\n"
                '    const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);\n'
                "    if (length > 0) self[length] = 0;\n"
                "    const char *found = length > 0 ? self : program_path, *slash = strrchr(found, '/');\n"
                "    const int folder = slash ? (int)(slash - found) + 1 : 0;\n"
                f'    snprintf(beside, sizeof beside, "%.*s{data}", folder, found);\n'
                "    options.data_path = beside;"
            )
        return filled(template("main.c"), parts)

    def _cmake(self, main: bool) -> str:
        lines = [
            CMAKE_MARK,
            "cmake_minimum_required(VERSION 3.16)",
            f"project({self._prefix} C)",
            "set(CMAKE_C_STANDARD 11)",
            "set(CMAKE_C_STANDARD_REQUIRED ON)",
            "set(CMAKE_C_EXTENSIONS OFF)",
            "if(NOT CMAKE_BUILD_TYPE)",
            "  set(CMAKE_BUILD_TYPE Release)",
            "endif()",
            "find_package(Vulkan REQUIRED)",
            f'add_library({self._prefix}_program STATIC "{self._stem}.c" "{self._stem}.h")',
            f"target_include_directories({self._prefix}_program PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})",
            f"target_link_libraries({self._prefix}_program PUBLIC Vulkan::Vulkan)",
            "if(UNIX)",
            f"  target_link_libraries({self._prefix}_program PUBLIC m)",
            "endif()",
        ]
        if main:
            lines += [
                f'add_executable({self._prefix} "{self._stem}_main.c")',
                f"target_link_libraries({self._prefix} PRIVATE {self._prefix}_program)",
            ]
            if self._is_data_beside:
                lines.append(
                    f'configure_file("{self._stem}.data" "${{CMAKE_CURRENT_BINARY_DIR}}/{self._stem}.data" COPYONLY)'
                )
        return "\n".join(lines) + "\n"


def _check_starts(function: Function) -> None:
    """Refuses a program whose initializer always fails to find a Vulkan device, with the program's message."""
    if not any(block.terminator.operation == "return" for block in function.blocks):
        said = next(
            (instruction.text for instruction in function.instructions() if instruction.operation == "fail"),
            "it fails when it starts",
        )
        raise UnimplementedError(
            f"C programs are for Vulkan with descriptors ({FORMATS[0]}), for which the module has no executables; it "
            f"says: {said}"
        )


def _settle_lookups(program: Program, function: Function, executables: Executables) -> None:
    """Replaces function names by numbers if all executables agree on them."""
    replaced: dict[Variable, Value] = {}
    for instruction in function.instructions():
        if instruction.callee == "hal.executable.lookup.function" and isinstance(instruction.operands[1], Rodata):
            numbers = executables.functions(program.text(instruction.operands[1]))
            if len(numbers) == 1 and instruction.results[0].definitions == 1:
                replaced[instruction.results[0]] = Constant("I", numbers.pop())
    if replaced:
        substitute(function, replaced)
        simplify_function(program, function, FORMATS)


def _globals_release(members: Sequence[tuple[str, str]]) -> Definition:
    """Returns the function that releases the references among the globals."""
    held = [name for type, name in members if type.endswith("*") and type != "executable *"]
    body = [Evaluate(call("release", P, global_member(name))) for name in held]
    return Definition("globals_release", _PARAMETERS, body, result="static void")
