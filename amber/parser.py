"""AmberScript: declarations and commands, a line each."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ..base.files import reading_errors
from ..status import shown
from .buffer_parser import BufferParser
from .command_parser import REPEATABLE, CommandParser
from .pipeline_parser import PipelineParser
from .script import REQUIREMENT_WORDS, Command, Pipeline, Requirement, Script, Shader
from .source import Source, Statement, Token

_FORMATS: Final = ("GLSL", "HLSL", "SPIRV-ASM", "SPIRV-HEX", "SPIRV-BIN", "OPENCL-C")
_GRAPHICS_STAGES: Final = ("vertex", "fragment", "geometry", "tessellation_evaluation", "tessellation_control")
_RAY_STAGES: Final = ("ray_generation", "any_hit", "closest_hit", "miss", "intersection", "callable")
_STAGES: Final = ("compute", "multi", *_GRAPHICS_STAGES, *_RAY_STAGES)
_REQUIREMENTS: Final = {word: kind for kind, word in REQUIREMENT_WORDS.items()}
_COMMANDS: Final = (
    *(*_REQUIREMENTS, "SHADER", "VIRTUAL_FILE", "STRUCT", "BUFFER", "IMAGE", "SAMPLER", "PIPELINE"),
    *("DERIVE_PIPELINE", "SET", "REPEAT", "ACCELERATION_STRUCTURE", *REPEATABLE),
)
NO_GRAPHICS: Final = "graphics pipelines are not run: pumice runs compute pipelines"
NO_RAYS: Final = "ray tracing is not run: pumice runs compute pipelines"


class ScriptParser:
    """Reads an AmberScript file.

    Args:
        source: the script's text.
        folder: the folder of the files that it names.
    """

    def __init__(self, source: Source, folder: Path) -> None:
        self._source = source
        self._folder = folder
        self._data = BufferParser(source, folder)
        self._requirements: list[Requirement] = []
        self._shaders: dict[str, Shader] = {}
        self._pipelines: dict[str, Pipeline] = {}
        self._files: dict[str, str] = {}
        self._commands: list[Command] = []
        self._timeout: float | None = None

    def parse(self) -> Script:
        """Returns the script; raises ScriptError at the first mistake, UnsupportedScriptError at the first unsupported
        feature.
        """
        commands = CommandParser(self._source, self._data.buffers, self._pipelines)
        while (line := self._source.statement()) is not None:
            if line.first.text in ("REPEAT", *REPEATABLE):
                self._commands.append(commands.command(line))
            else:
                self._declaration(line.take("a command"), line)
        return Script(
            self._source.file_name,
            tuple(self._requirements),
            self._shaders,
            self._data.buffers,
            self._data.samplers,
            self._pipelines,
            tuple(self._commands),
            self._files,
            timeout=self._timeout,
        )

    def _declaration(self, token: Token, line: Statement) -> None:
        data = self._data
        match token.text:
            case "STRUCT":
                data.struct(line)
            case "BUFFER":
                data.buffer(line)
            case "IMAGE":
                data.image(line)
            case "SAMPLER":
                data.sampler(line)
            case "SHADER":
                self._shader(line)
            case "VIRTUAL_FILE":
                self._virtual_file(line)
            case "PIPELINE" | "DERIVE_PIPELINE":
                self._pipeline(token, line)
            case "SET":
                line.expect("ENGINE_DATA")
                line.choice("a setting of the engine", {"fence_timeout_ms": None})
                self._timeout = line.integer("the milliseconds", 1) / 1000
                line.finish()
            case "ACCELERATION_STRUCTURE":
                raise self._source.unsupported(NO_RAYS, token.position)
            case name if name in _REQUIREMENTS:
                wanted = line.take("a name")
                self._requirements.append(Requirement(_REQUIREMENTS[name], wanted.text, wanted.position))
                line.finish()
            case _:
                raise line.unknown("a command", token, _COMMANDS)

    # -- shaders -------------------------------------------------------------------------------------

    def _shader(self, line: Statement) -> None:
        position = line.position
        stage = line.word("the shader's type", _STAGES)
        if stage in _GRAPHICS_STAGES:
            raise self._source.unsupported(NO_GRAPHICS, position)
        if stage in _RAY_STAGES:
            raise self._source.unsupported(NO_RAYS, position)
        name = self._data.new_name(line, "SHADER", self._shaders)
        position = line.position
        shader_format = line.word("the shader's format", _FORMATS)
        if shader_format == "OPENCL-C":
            raise self._source.unsupported("OpenCL C is not compiled; give the shader as SPIR-V", position)
        if stage == "multi" and not shader_format.startswith("SPIRV"):
            self._source.fail(f"a multi shader is SPIR-V, not {shader_format}", name.position)
        target = line.take("the target environment").text if line.accept("TARGET_ENV") else ""
        where = line.accept("VIRTUAL_FILE", "FILE")
        source: str | bytes
        first_line, path = 0, ""
        if where is not None:
            token = line.take("the file's path")
            path = token.text
            line.finish()
            source = self._file_source(where, token, shader_format)
        else:
            line.finish()
            if shader_format == "SPIRV-BIN":
                self._source.fail(
                    "SPIRV-BIN comes from a FILE; in a script SPIR-V is SPIRV-ASM or SPIRV-HEX", name.position
                )
            source, first_line = self._source.raw(line.first)
            if not source.strip():
                self._source.fail(f"the shader {name.text} is empty", name.position)
        self._shaders[name.text] = Shader(
            name.text, stage, shader_format, source, target, name.position, first_line, path
        )

    def _file_source(self, where: str, token: Token, shader_format: str) -> str | bytes:
        if where == "VIRTUAL_FILE":
            if token.text not in self._files:
                known = ", ".join(self._files) or "none"
                self._source.fail(f"there is no VIRTUAL_FILE {shown(token.text)}; there are: {known}", token.position)
            return self._files[token.text]
        path = self._folder / token.text
        with reading_errors(path):
            data = path.read_bytes()
        return data if shader_format == "SPIRV-BIN" else data.decode("utf-8", "replace")

    def _virtual_file(self, line: Statement) -> None:
        name = self._data.new_name(line, "VIRTUAL_FILE", self._files)
        line.finish()
        self._files[name.text] = self._source.raw(line.first)[0]

    # -- pipelines -----------------------------------------------------------------------------------

    def _pipeline(self, token: Token, line: Statement) -> None:
        if token.text == "DERIVE_PIPELINE":
            name = self._data.new_name(line, "PIPELINE", self._pipelines)
            line.expect("FROM")
            pipeline = line.choice("the name of a PIPELINE", self._pipelines).derived(name.text, name.position)
        else:
            position = line.position
            wanted = line.word("the pipeline's type", ("compute", "graphics", "raytracing"))
            if wanted != "compute":
                raise self._source.unsupported(NO_GRAPHICS if wanted == "graphics" else NO_RAYS, position)
            name = self._data.new_name(line, "PIPELINE", self._pipelines)
            pipeline = Pipeline(name.text, name.position)
        line.finish()
        PipelineParser(self._source, self._data, self._shaders, pipeline).body(token)
        self._pipelines[name.text] = pipeline
