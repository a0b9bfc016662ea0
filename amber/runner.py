"""Running a script on a device."""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Iterable, Iterator
from typing import Final

from ..hal_vulkan.pipelines.executable import Executable
from ..hal_vulkan.pipelines.pipeline import ComputePipeline, check_groups
from ..hal_vulkan.pipelines.resources import Resource
from ..runtime.device import Device
from ..spirv.reflection.reflection_types import Binding as ShaderBinding
from ..spirv.reflection.reflection_types import SpecializationConstant
from ..status import (
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    PumiceError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
)
from .expectations import compare_buffers, compare_texels, compare_values
from .report import Failure, Outcome, RunTime, ScriptReport
from .requirements import lacking
from .resources import Resources
from .script import (
    Binding,
    Command,
    Copy,
    Expectation,
    ExpectBuffer,
    ExpectTexels,
    ExpectValues,
    Pipeline,
    Repeat,
    Run,
    Script,
    Shader,
    Specialization,
    Write,
)
from .shaders import compile_shader
from .source import Position, ScriptError

_MAX_FAILURES: Final = 100
_SOURCE_LINE: Final = re.compile(r"\bsource\.\w+:([0-9]+)")  # as compilers name a text
_PADDING: Final = 16  # push data is padded to it: scripts may leave out the padding at a block's end
# A shader's descriptor types, by the kinds that a script binds.
_DECLARED: Final = {
    "uniform": "uniform_buffer",
    "uniform_dynamic": "uniform_buffer",
    "storage": "storage_buffer",
    "storage_dynamic": "storage_buffer",
}


class ScriptRunner:
    """Runs one script once; ``run`` returns its report, whatever the outcome."""

    def __init__(self, device: Device, script: Script, timeout: float) -> None:
        self._device = device
        self._script = script
        self._timeout = timeout
        self._resources = Resources(device, script)
        self._executables: dict[tuple[str, tuple[str, ...], str], Executable] = {}
        self._pipelines: dict[tuple[str, str], ComputePipeline] = {}
        self._failures: list[Failure] = []
        self._timings: list[RunTime] = []
        self._compared = 0

    def run(self) -> ScriptReport:
        start = time.perf_counter()
        outcome, reason = self._outcome()
        return ScriptReport(
            self._script.path,
            outcome,
            reason,
            tuple(self._failures[:_MAX_FAILURES]),
            self._compared,
            tuple(self._timings),
            time.perf_counter() - start,
        )

    def _outcome(self) -> tuple[Outcome, str]:
        missing = lacking(self._script, self._device.vulkan)
        if missing:
            return Outcome.SKIPPED, "; ".join(dict.fromkeys(missing))
        try:
            self._prepare()
            self._commands(self._script.commands)
        except ScriptError as error:
            return Outcome.ERROR, self._text(error)
        except UnavailableError as error:  # a compiler, or a tool of SPIR-V
            return Outcome.UNSUPPORTED, self._text(error)
        except UnimplementedError as error:
            return Outcome.SKIPPED, self._text(error)
        except PumiceError as error:
            return Outcome.FAILED, self._text(error)
        finally:
            self._close()
        if not self._failures:
            return Outcome.PASSED, ""
        count = len(self._failures)
        return Outcome.FAILED, f"{count} of {self._compared:,} expectations did not hold"

    def _close(self) -> None:
        if not self._device.is_closed:
            for executable in self._executables.values():
                executable.close()
            self._resources.close()

    def _prepare(self) -> None:
        """Makes every pipeline before the first run: features that the device lacks are reported before errors of the
        script.
        """
        wrong: PumiceError | None = None
        for run in dict.fromkeys((r.pipeline, r.entry_point) for r in _runs(self._script.commands)):
            declared = self._script.pipelines[run[0]]
            try:
                self._pipeline(declared, run[1])
            except (UnimplementedError, UnavailableError):
                raise
            except ScriptError as error:
                wrong = wrong or error
            except (InvalidArgumentError, NotFoundError) as error:
                wrong = wrong or self._error(f"the pipeline {declared.name}: {error.message}", declared.position)
        if wrong is not None:
            raise wrong

    def _commands(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case Run():
                    self._dispatch(command)
                case Write():
                    self._resources.write(command.buffer, command.offset, command.data)
                case Copy():
                    self._resources.copy(command.source, command.target)
                case Repeat():
                    for _ in range(command.count):
                        self._commands(command.commands)
                case _:
                    self._expect(command)

    # -- expectations --------------------------------------------------------------------------------

    def _expect(self, expectation: Expectation) -> None:
        self._compared += 1
        buffer = self._script.buffers[expectation.buffer]
        data = self._resources.read(expectation.buffer)
        match expectation:
            case ExpectValues():
                wrong = compare_values(expectation, data)
            case ExpectTexels():
                wrong = compare_texels(expectation, buffer, data)
            case ExpectBuffer():
                wrong = compare_buffers(expectation, buffer, data, self._resources.read(expectation.other))
        if wrong:
            self._failures.append(Failure(self._where(expectation.position), f"{expectation.buffer}: {wrong}"))

    def _where(self, position: Position) -> str:
        return f"{self._script.path}:{position.line}"

    # -- dispatches ----------------------------------------------------------------------------------

    def _dispatch(self, run: Run) -> None:
        declared = self._script.pipelines[run.pipeline]
        pipeline = self._pipeline(declared, run.entry_point)
        try:
            check_groups(pipeline, run.groups)
        except ResourceExhaustedError as error:
            raise UnimplementedError(error.message) from error
        bindings = [self._bound(declared, binding) for binding in pipeline.entry.bindings]
        resources = [
            bound
            for binding, used in zip(bindings, pipeline.entry.bindings, strict=True)
            for bound in self._descriptors(binding, used)
        ]
        push = self._push(declared, pipeline)
        device = self._device
        commands = device.vulkan.create_command_buffer(name=run.pipeline, timing=run.timed)
        with commands:
            try:
                commands.begin().dispatch(pipeline, resources, run.groups, push)
            except (
                InvalidArgumentError,
                OutOfRangeError,
            ) as error:  # the bound resources do not fit the shader's declarations
                raise self._error(error.message, run.position) from error
            verdict = None if pipeline.report is None else pipeline.report.next_verdict()
            payload = device.submit((commands.end(),))
            if verdict is not None:  # an instrumented shader's report on this run
                verdict.payload = payload
                device.verdicts.hold(payload, verdict.alone)
            for binding, used in zip(bindings, pipeline.entry.bindings, strict=True):
                self._resources.used(binding, payload, written=used.writable)
            try:
                device.finish(payload, self._timeout)
            except PumiceError as error:
                raise self._in_script(error, self._script.shaders[declared.shader]) from error
            if run.timed:
                self._timings += [
                    RunTime(run.pipeline, run.position.line, timing.duration_ns) for timing in commands.timings()
                ]

    def _bound(self, declared: Pipeline, used: ShaderBinding) -> Binding:
        binding = declared.bindings.get((used.set, used.binding))
        description = f"{used.descriptor_type_name} {used.name or 'without a name'}"
        if binding is None:
            raise self._error(
                f"the pipeline {declared.name} binds nothing at DESCRIPTOR_SET {used.set} BINDING {used.binding}, "
                f"where its shader has the {description}",
                declared.position,
            )
        wanted = _DECLARED.get(binding.kind, binding.kind)
        if wanted != used.descriptor_type_name:
            raise self._error(
                f"this is bound AS {binding.kind}, and the shader declares the {description} there", binding.position
            )
        return binding

    def _descriptors(self, binding: Binding, used: ShaderBinding) -> list[Resource]:
        if used.count and len(binding.resources) != used.count:
            raise self._error(
                f"the shader declares {used.count} descriptor(s) at DESCRIPTOR_SET {used.set} BINDING {used.binding}, "
                f"{len(binding.resources)} are bound",
                binding.position,
            )
        return self._resources.bound(binding)

    def _push(self, declared: Pipeline, pipeline: ComputePipeline) -> bytes:
        size = pipeline.interface.push_constant_bytes
        data = self._resources.read(declared.push_constants).tobytes() if declared.push_constants else b""
        data = data.ljust(-(-len(data) // _PADDING) * _PADDING, b"\0")
        if len(data) < size:
            position = declared.position
            raise self._error(
                f"the shader reads {size} bytes of push constants, and the pipeline {declared.name} has {len(data)}: "
                "BIND BUFFER name AS push_constant",
                position,
            )
        return data[:size]

    def _pipeline(self, declared: Pipeline, entry_point: str) -> ComputePipeline:
        key = (declared.name, entry_point)
        pipeline = self._pipelines.get(key)
        if pipeline is None:
            name = entry_point or declared.entry_point or "main"
            executable = self._executable(declared, name)
            constants = {c.constant_id: c for c in executable.reflections[0].specialization_constants}
            subgroups = declared.subgroups
            profile = self._device.profile.subgroup
            size = {"MIN": profile.min_size, "MAX": profile.max_size}.get(str(subgroups.size), subgroups.size)
            pipeline = self._pipelines[key] = executable.pipeline(
                name,
                specialization={
                    id: self._constant(constants[id], value, declared)
                    for id, value in declared.specialization.items()
                    if id in constants
                },
                subgroup_size=size if isinstance(size, int) else None,
                full_subgroups=subgroups.full,
                varying_subgroup_size=subgroups.varying,
                array_sizes={
                    address: len(declared.bindings[address].resources)
                    for used in executable.reflections[0].entry_point(name).bindings
                    if not used.count and (address := (used.set, used.binding)) in declared.bindings
                },
            )
        return pipeline

    def _constant(self, constant: SpecializationConstant, value: Specialization, declared: Pipeline) -> int | float:
        """Returns the value of a constant: the script's bits as the shader's type."""
        scalar = constant.scalar
        if scalar.kind == "bool":
            return bool(value.bits)
        if scalar.bits != 32:
            raise self._error(
                f"the specialization constant {constant.constant_id} has {scalar.bits} bits; scripts give 32",
                declared.position,
            )
        code = {"float": "<f", "int": "<i", "uint": "<I"}[scalar.kind]
        number: int | float = struct.unpack(code, struct.pack("<I", value.bits))[0]
        return number

    def _executable(self, declared: Pipeline, entry_point: str) -> Executable:
        shader = self._script.shaders[declared.shader]
        # Modules of other languages have all of their entry points.
        key = (shader.name, declared.optimizations, entry_point if shader.format == "HLSL" else "")
        executable = self._executables.get(key)
        if executable is None:
            code = compile_shader(
                self._script, shader, declared.optimizations, entry_point, debug=self._device.names_lines
            )
            executable = self._executables[key] = self._device.vulkan.create_executable(code)
        return executable

    def _error(self, message: str, position: Position) -> ScriptError:
        return ScriptError(message, location=f"{self._script.path}:{position.line}:{position.column}")

    def _in_script(self, error: PumiceError, shader: Shader) -> PumiceError:
        """Returns an instrumented shader's report with line numbers of the script."""

        def line(match: re.Match[str]) -> str:
            return f"{self._script.path}:{shader.first_line + int(match[1]) - 1}"

        if not shader.first_line:
            return error
        message, location = (_SOURCE_LINE.sub(line, text) for text in (error.message, error.location or ""))
        return type(error)(message, code=error.code, location=location or None)

    def _text(self, error: PumiceError) -> str:
        """Returns the error's text; its location loses the path, which the report begins with."""
        return located_text(error, self._script.path)


def located_text(error: PumiceError, path: str) -> str:
    """Returns an error's text with its location, but for the path of the script."""
    location = (error.location or "").removeprefix(f"{path}:")
    text = f"{location}: {error.message}" if location else error.message
    return text if not error.vk_result or error.vk_result in text else f"{text} [{error.vk_result}]"


def _runs(commands: Iterable[Command]) -> Iterator[Run]:
    for command in commands:
        if isinstance(command, Run):
            yield command
        elif isinstance(command, Repeat):
            yield from _runs(command.commands)
