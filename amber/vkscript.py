"""VkScript, the older form: ``[require]``, ``[compute shader …]`` and ``[test]`` sections."""

from __future__ import annotations

import re
from typing import Final

from ..status import shown
from .buffer_parser import MAX_BUFFER_BYTES
from .command_parser import read_tolerances
from .parser import NO_GRAPHICS
from .script import (
    Binding,
    Buffer,
    Command,
    Comparator,
    ExpectValues,
    Pipeline,
    Requirement,
    Run,
    Script,
    Shader,
    Tolerance,
    Write,
)
from .source import Position, Source, Statement, as_integer
from .types import Layout, Number, Standard, layout_of
from .values import pack, parse_values

_PIPELINE: Final = "compute"
_PUSH: Final = "push_constants"
_SECTION: Final = re.compile(r"\[([^\]]*)\]")
_SHADER_SECTION: Final = re.compile(r"(.+) shader(?: (spirv hex|spirv|passthrough))?")
_TYPE: Final = re.compile(r"(?:([a-z0-9]*?)vec([234])|(d?)mat([234])(?:x([234]))?|(\w+))")
_SCALARS: Final = {
    "int": Number("int", 32),
    "uint": Number("uint", 32),
    "float": Number("float", 32),
    "double": Number("float", 64),
    "float16_t": Number("float", 16),
    **{f"int{bits}_t": Number("int", bits) for bits in (8, 16, 64)},
    **{f"uint{bits}_t": Number("uint", bits) for bits in (8, 16, 64)},
}
_VECTORS: Final = {
    "": "float",
    "d": "double",
    "i": "int",
    "u": "uint",
    "f16": "float16_t",
    **{f"{sign}{bits}": f"{'u' if sign == 'u' else ''}int{bits}_t" for sign in "iu" for bits in (8, 16, 64)},
}
_COMPARATORS: Final[dict[str, Comparator]] = {
    "==": "EQ",
    "!=": "NE",
    "<": "LT",
    "<=": "LE",
    ">": "GT",
    ">=": "GE",
    "~=": "EQ",
}
_FUZZY: Final = (Tolerance(0.000001, True),)
_OF_GRAPHICS: Final = ("draw", "clear", "patch", "relative")
_TEST_COMMANDS: Final = ("compute", "ssbo", "uniform", "probe", "tolerance")
_SPIRV_1_4: Final = "VK_KHR_spirv_1_4"


class VkScriptParser:
    """Reads a VkScript file with a compute shader."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._requirements: list[Requirement] = []
        self._shaders: dict[str, Shader] = {}
        self._sizes: dict[str, int] = {}
        self._places: dict[str, Position] = {}
        self._pipeline = Pipeline(_PIPELINE, Position(1, 1))
        self._commands: list[Command] = []
        self._tolerances: tuple[Tolerance, ...] = ()
        self._entry_point = ""
        self._timeout: float | None = None

    def parse(self) -> Script:
        """Returns the script; raises ScriptError at the first mistake, UnsupportedScriptError at the first unsupported
        feature.
        """
        tests: list[tuple[int, int]] = []
        for name, position, first, last in self._sections():
            match = _SHADER_SECTION.fullmatch(name)
            if match is not None:
                self._shader(match[1], match[2] or "", position, first, last)
            elif name == "require":
                self._require(first, last)
            elif name == "test":
                tests.append((first, last))
            elif name in ("vertex data", "indices"):
                raise self._source.unsupported(NO_GRAPHICS, position)
            elif name != "comment":
                self._source.fail(f"expected [require], [compute shader] or [test], got [{name}]", position)
        if not self._shaders:
            self._source.fail("the script has no [compute shader] section", Position(1, 1))
        for first, last in tests:
            for line in self._statements(first, last):
                self._command(line)
        buffers = {
            name: Buffer(name, Number("uint", 8), "STD430", bytes(size), self._places[name])
            for name, size in self._sizes.items()
        }
        self._check_probes()
        # Modules of SPIR-V 1.4 are assembled as such: the text cannot say its version.
        newer = any(requirement.name == _SPIRV_1_4 for requirement in self._requirements)
        return Script(
            self._source.file_name,
            tuple(self._requirements),
            self._shaders,
            buffers,
            {},
            {_PIPELINE: self._pipeline},
            tuple(self._commands),
            target_env="spv1.4" if newer else "spv1.0",
            timeout=self._timeout,
        )

    def _sections(self) -> list[tuple[str, Position, int, int]]:
        """Returns (name, position, first line, line after the last) of each section; lines count from 0."""
        headings: list[tuple[str, Position, int]] = []
        for number, line in enumerate(self._source.lines):
            if line.startswith("["):
                match = _SECTION.match(line)
                if match is None:
                    self._source.fail("expected ] after the section's name", Position(number + 1, len(line) + 1))
                headings.append((match[1], Position(number + 1, 2), number))
            elif not headings and line.split("#")[0].strip():
                self._source.fail(
                    "expected #!amber on the first line, or a section such as [compute shader]", Position(number + 1, 1)
                )
        ends = [start for _, _, start in headings[1:]] + [len(self._source.lines)] * bool(headings)
        return [(name, position, start + 1, end) for (name, position, start), end in zip(headings, ends, strict=True)]

    def _statements(self, first: int, last: int) -> list[Statement]:
        """Returns the statements of some lines, located in the whole script."""
        part = Source("\n".join([*[""] * first, *self._source.lines[first:last]]), self._source.file_name)
        lines = []
        while (line := part.statement()) is not None:
            lines.append(line)
        return lines

    def _shader(self, stage: str, form: str, position: Position, first: int, last: int) -> None:
        if stage != "compute":
            raise self._source.unsupported(NO_GRAPHICS, position)
        if self._shaders:
            self._source.fail("there is a [compute shader] already; a script has one", position)
        text = "\n".join(self._source.lines[first:last]) + "\n"
        shader_format = {"": "GLSL", "spirv": "SPIRV-ASM", "spirv hex": "SPIRV-HEX"}.get(form)
        if shader_format is None:
            self._source.fail(f"a compute shader cannot be {form}", position)
        self._shaders[_PIPELINE] = Shader(_PIPELINE, "compute", shader_format, text, "", position, first + 1)
        self._pipeline.shader = _PIPELINE

    def _require(self, first: int, last: int) -> None:
        for line in self._statements(first, last):
            token = line.take("a requirement")
            if token.text in ("framebuffer", "depthstencil"):
                raise self._source.unsupported(NO_GRAPHICS, token.position)
            if token.text == "fbsize":
                line.integer("the width", 1)
                line.integer("the height", 1)
            elif token.text == "fence_timeout":
                self._timeout = line.integer("the milliseconds", 1) / 1000
            elif token.text.startswith("VK_"):
                self._requirements.append(Requirement("device extension", token.text, token.position))
            else:
                self._requirements.append(Requirement("feature", token.text, token.position))
            line.finish()

    # -- [test] --------------------------------------------------------------------------------------

    def _command(self, line: Statement) -> None:
        token = line.take("a command")
        if token.text == "compute":
            self._compute(line)
        elif token.text == "ssbo":
            self._ssbo(line)
        elif token.text == "uniform":
            self._uniform(line)
        elif token.text == "probe" and line.accept("ssbo"):
            self._probe(line)
        elif token.text == "tolerance":
            self._tolerances = read_tolerances(line, 4)
            line.finish()
        elif token.text in (*_OF_GRAPHICS, "probe"):
            raise self._source.unsupported(NO_GRAPHICS, token.position)
        else:
            raise line.unknown("a command", token, _TEST_COMMANDS)

    def _compute(self, line: Statement) -> None:
        if line.accept("entrypoint"):
            self._entry_point = line.take("the entry point's name").text
        else:
            groups = tuple(line.integer(f"the number of workgroups in {axis}") for axis in "xyz")
            run = Run(_PIPELINE, (groups[0], groups[1], groups[2]), False, line.first.position, self._entry_point)
            self._commands.append(run)
        line.finish()

    def _ssbo(self, line: Statement) -> None:
        name = self._bound(line, "storage")
        if line.accept("subdata"):
            self._write(line, name, "STD430")
            return
        self._grow(name, line.integer("the size in bytes", 1, MAX_BUFFER_BYTES))
        line.finish()

    def _uniform(self, line: Statement) -> None:
        if line.accept("ubo"):
            self._write(line, self._bound(line, "uniform"), "STD140")
            return
        self._places.setdefault(_PUSH, line.first.position)
        self._pipeline.push_constants = _PUSH
        self._write(line, _PUSH, "STD430")

    def _write(self, line: Statement, name: str, standard: Standard) -> None:
        layout = self._layout(line, standard)
        offset = line.integer("the offset")
        data = pack(parse_values(line, layout), layout)
        if offset + len(data) > MAX_BUFFER_BYTES:
            self._source.fail(f"the buffer would have more than {MAX_BUFFER_BYTES:,} bytes", line.first.position)
        self._grow(name, offset + len(data))
        self._commands.append(Write(name, offset, data, line.first.position))

    def _probe(self, line: Statement) -> None:
        layout = self._layout(line, "STD430")
        position = line.position
        set_index, binding = self._address(line)
        name = f"buffer_{set_index}_{binding}"
        if name not in self._places:
            self._source.fail(f"there is no buffer at {set_index}:{binding}; make one with ssbo", position)
        offset = line.integer("the offset")
        operator = line.word("a comparison", _COMPARATORS)
        tolerances = (self._tolerances or _FUZZY) if operator == "~=" else ()
        values = parse_values(line, layout)
        comparator = _COMPARATORS[operator]
        self._commands.append(ExpectValues(name, offset, comparator, values, layout, line.first.position, tolerances))

    def _check_probes(self) -> None:
        for command in self._commands:
            if isinstance(command, ExpectValues):
                elements = -(-len(command.values) // len(command.layout.segments))
                size = self._sizes.get(command.buffer, 0)
                if command.offset + elements * command.layout.size > size:
                    self._source.fail(f"the probe goes past the buffer's end ({size} bytes)", command.position)

    def _layout(self, line: Statement, standard: Standard) -> Layout:
        token = line.take("a data type")
        number = _number(token.text)
        if number is None:
            known = [*_SCALARS, *(f"{prefix}vec{n}" for prefix in _VECTORS for n in (2, 3, 4)), "mat2", "mat3x4"]
            raise line.unknown("a data type", token, known)
        return layout_of(number, standard)

    def _address(self, line: Statement) -> tuple[int, int]:
        token = line.take("the binding")
        parts = [as_integer(part) for part in token.text.split(":")]
        if len(parts) > 2 or any(part is None or part < 0 for part in parts):
            self._source.fail(f"expected BINDING or SET:BINDING, got {shown(token.text)}", token.position)
        numbers = [part or 0 for part in parts]
        return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, numbers[0])

    def _bound(self, line: Statement, kind: str) -> str:
        """Returns the name of the buffer at a binding; creates the buffer if there is none."""
        position = line.position
        key = self._address(line)
        name = "buffer_{}_{}".format(*key)
        binding = self._pipeline.bindings.get(key)
        if binding is not None and binding.kind != kind:
            self._source.fail(f"{key[0]}:{key[1]} is a {binding.kind} buffer already", position)
        self._places.setdefault(name, position)
        self._pipeline.bindings[key] = Binding(kind, (name,), *key, position)
        return name

    def _grow(self, name: str, size: int) -> None:
        self._sizes[name] = max(self._sizes.get(name, 0), size)


def _number(text: str) -> Number | None:
    match = _TYPE.fullmatch(text)
    if match is None:
        return None
    prefix, length, double, columns, rows, scalar = match.groups()
    if length is not None:
        component = _SCALARS.get(_VECTORS.get(prefix, ""))
        return None if component is None else Number(component.kind, component.bits, int(length))
    if columns is not None:
        return Number("float", 64 if double else 32, int(rows or columns), int(columns))
    return _SCALARS.get(scalar)
