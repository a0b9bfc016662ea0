"""Runs a function of a compiled program with the arguments of a command line, as iree-run-module does.

The modules, the function and the texts of the arguments are checked first, as this needs no device.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...base.terminal import printable
from ...formats.element_type import ElementType
from ...hal.buffer_view import BufferView
from ...runtime.device import Device
from ...runtime.opening import is_reference
from ...runtime.sessions.binding import argument_binder
from ...runtime.sessions.instance import Instance
from ...runtime.sessions.session import Session
from ...runtime.sessions.session_modules import imported_modules
from ...runtime.sessions.session_options import SessionOptions
from ...runtime.sessions.signature import Argument, Signature, make_signature
from ...status import InvalidArgumentError, shown
from ...vm.bytecode.declaration import declaration_of
from ...vm.execution.bytecode_module import BytecodeModule
from ..errors import ExpectationError, usage, usage_error
from ..input_files import read_file
from ..output_files import Outputs
from ..programs import device_kinds, is_program, module_on_stdin, open_program
from ..reports import device_text, repeat, say_time, seconds_text
from ..streams import note, put
from .expectations import Tolerances
from .keys import Array
from .module_arguments import Given, Target, load_parameters, parse_expectations, parse_inputs, parse_targets
from .module_results import HostResult, compare, read_results, result_text, store_result

if TYPE_CHECKING:
    from ...runtime.profiling.profile import Profile

_STDIN: Final = "-"
_LISTED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleRun:
    """The command line of ``pumice run`` for compiled programs, unparsed.

    ``modules`` are in the order in which they are linked. ``max_elements`` below 0 means no limit.
    """

    modules: Sequence[str]
    function: str | None = None
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    expected_outputs: Sequence[str] = ()
    parameters: Sequence[str] = ()
    devices: Sequence[str] = ()
    tolerances: Tolerances = field(default_factory=Tolerances)
    max_elements: int = 1024
    preload: bool = False
    timeout: float | None = None
    timed: bool = False
    statistics: bool = False
    profile: bool = False
    profile_json: str | None = None
    profile_trace: str | None = None
    validation: bool | None = None
    sanitize: bool | None = None


def run_module(options: ModuleRun) -> None:
    """Runs a function; results go to stdout and to files, all else to stderr."""
    if options.modules.count(_STDIN) > 1:
        raise usage_error("only one module can be read from stdin (-)")
    if options.profile_trace is not None:
        from ...runtime.profiling.trace_writer import check_perfetto

        check_perfetto()  # before a long run, not after it
    start = time.perf_counter()
    with contextlib.ExitStack() as stack:
        modules: list[BytecodeModule] = []
        for path in options.modules:
            modules.append(stack.enter_context(contextlib.closing(_open(path, options))))
        name, signature = choose_function(modules[-1], options.function)
        if len(options.inputs) == len(signature.inputs):
            signature = signature.without_storages()
        inputs = parse_inputs(options.inputs, signature)
        expected = parse_expectations(options.expected_outputs, signature)
        targets = parse_targets(options.outputs, signature)
        kinds = device_kinds(options.devices)
        validation = _validation(options.validation) if "vulkan" in kinds else False
        session_options = SessionOptions(parameters=load_parameters(options.parameters))
        instance = stack.enter_context(Instance(validation=validation, sanitize=options.sanitize))
        with usage("--device" if options.devices else ""):
            session = Session(list(options.devices) or None, options=session_options, instance=instance)
        stack.enter_context(session)
        if any("hal" in imported_modules(module) for module in modules):
            # Without the option, an error is about PUMICE_DEVICE, and says so.
            with usage():
                session.default_device()
        for module in modules:
            session.append_module(module, timeout=options.timeout)
        profiled = options.profile or options.profile_json or options.profile_trace
        load_seconds = time.perf_counter() - start
        call = _caller(session, name, signature, inputs, options.timeout)
        profile = session.profile(most_slowdown=None) if profiled else None
        try:
            outputs = Outputs()
            outputs.put(f"EXEC @{printable(name)}")
            start = time.perf_counter()
            results = call()
            seconds = time.perf_counter() - start
            _put_results(outputs, options, results, targets, silent=bool(expected))
        finally:
            if profile is not None:
                profile.stop()
                _report_profile(options, profile, repeated=False)
        for device in instance.devices:
            note(f"ran on {device_text(device)}")
        if options.timed:
            _report_times(load_seconds, seconds, call)
            if profiled:
                with session.profile(most_slowdown=None) as profile:
                    repeat(call)
                _report_profile(options, profile, repeated=True)
        for device in instance.devices if options.statistics else ():
            if is_reference(device.uri):
                note("memory of the reference device: NumPy's, which is not counted")
                continue
            held = device.vulkan.allocator.statistics()
            note(
                f"memory of {device_text(device)}: {held.peak} bytes at most, {held.allocated} bytes now in "
                f"{held.allocations} allocation(s), {held.reserved} bytes reserved in {len(held.blocks)} block(s)"
            )
    failed = compare(results, expected, options.tolerances) if expected else []
    if failed:
        put("\n".join(failed))
        raise ExpectationError(f"{len(failed)} of {len(results)} result(s) are not what was expected")
    if expected:
        put("[SUCCESS] all function outputs matched their expected values.")


# -- modules and functions ---------------------------------------------------------------------------


def _open(path: str, options: ModuleRun) -> BytecodeModule:
    if path == _STDIN:
        return BytecodeModule.from_bytes(module_on_stdin(options.devices or [None]), "<stdin>")
    if options.preload and not is_program(path):
        return BytecodeModule.from_bytes(read_file(Path(path)), path, keep=True)
    return open_program(path, options.devices or [None])


def _validation(asked: bool | None) -> bool:
    from ...hal_vulkan.vulkan.validation import validation_requested

    with usage():
        return validation_requested(asked)


def choose_function(module: BytecodeModule, wanted: str | None) -> tuple[str, Signature]:
    """Returns the function of ``--function``: its name within the module, and its signature."""
    # Initializers and internal functions of the compiler have other conventions than functions that users call.
    names = [name for name in module.exports if not name.startswith("__") and "$" not in name]
    if not wanted:
        if len(names) == 1:
            return names[0], _signature(module, names[0])
        if not names:
            raise usage_error(f"module {printable(module.name)} exports no function that can be called")
        raise usage_error(f"--function is missing; {_listing(module, names)}")
    name = wanted
    if name not in module.exports and name.startswith(f"{module.name}."):
        name = name[len(module.name) + 1 :]
    if name not in module.exports:
        raise usage_error(f"--function {wanted}: no such function; {_listing(module, names)}")
    with usage(f"--function {wanted}"):
        return name, _signature(module, name)


def _signature(module: BytecodeModule, name: str) -> Signature:
    ordinal = module.exports[name]
    written = module.definition.signatures[ordinal]
    return make_signature(
        f"{module.name}.{name}", module.signatures[ordinal], declaration_of(written), written.attributes
    )


def _listing(module: BytecodeModule, names: Sequence[str]) -> str:
    lines = []
    for name in names[:_LISTED]:
        try:
            lines.append(f"  {_signature(module, name)}")
        except InvalidArgumentError:
            convention = module.signatures[module.exports[name]]
            lines.append(f"  {module.name}.{name} {convention.text}")
    if len(names) > _LISTED:
        lines.append(f"  and {len(names) - _LISTED} more, which `pumice dump` lists")
    return "\n".join([f"module {shown(module.name)} exports {'these:' if names else 'none'}", *lines])


# -- the call ----------------------------------------------------------------------------------------


def _caller(
    session: Session, name: str, signature: Signature, inputs: Sequence[Given], timeout: float | None
) -> Callable[[], list[HostResult]]:
    """Returns a function that calls with arguments already on the device and brings the results to the host."""
    function = session.lookup(f"{session.modules[-1].name}.{name}")
    values = tuple(
        _bind(function.name, argument, input_value, session)
        for argument, input_value in zip(signature.arguments, inputs, strict=True)
    )
    return lambda: read_results(function.call_bound(values, timeout=timeout), signature, session)


def _bind(function: str, argument: Argument, input_value: Given, session: Session) -> Any:
    value = input_value.value
    with usage(input_value.where):
        bind = argument_binder(argument, function, session.default_device)
        if isinstance(value, np.ndarray):
            assert input_value.element_type is not None
            view = _view(value, input_value.element_type, session.device)
            is_buffer = input_value.storage and (argument.storage is None or argument.type_text == "!hal.buffer")
            return bind(view.buffer if is_buffer else view)
        return bind(0 if value is None and argument.letter != "r" else value)


def _view(array: Array, element_type: ElementType, device: Device) -> BufferView:
    if not element_type.is_sub_byte:
        return device.asarray(array).buffer_view(element_type)
    # Arrays have a byte for each of these elements; programs need them packed.
    packed = device.asarray(np.frombuffer(element_type.pack(array), np.uint8))
    return BufferView(packed.buffer_view(ElementType.UINT_8).buffer, array.shape, element_type)


# -- results -----------------------------------------------------------------------------------------


def _put_results(
    outputs: Outputs, options: ModuleRun, results: Sequence[HostResult], targets: Sequence[Target], *, silent: bool
) -> None:
    """Prints and stores the results; without targets it prints them, unless ``silent``."""
    max_elements = options.max_elements if options.max_elements >= 0 else None
    if targets:
        for index, (result, target) in enumerate(zip(results, targets, strict=True)):
            if target.printed:
                outputs.put(result_text(result, max_elements))
            elif target.path is not None:
                with outputs.storing():
                    store_result(result, target.path, append=target.append, where=f"--output {index}")
    elif not silent:
        for index, result in enumerate(results):
            outputs.put(f"result[{index}]: {result_text(result, max_elements)}")
    outputs.finish()


# -- reports -----------------------------------------------------------------------------------------


def _report_times(load: float, first: float, call: Callable[[], object]) -> None:
    say_time("load", f"{seconds_text(load)} host: open the device, load and link the modules, run their initializers")
    say_time("first call", f"{seconds_text(first)} host: run, bring results back")
    import statistics  # imported here: it takes ten milliseconds

    warm = repeat(call)
    say_time("warm call", f"{seconds_text(statistics.median(warm))} host: the same again; median of {len(warm)}")


def _report_profile(options: ModuleRun, profile: Profile, *, repeated: bool) -> None:
    """Prints the table and writes the requested files; of the ``repeated`` calls if there are any."""
    if options.profile:
        note("\ncalls after the first" if repeated else "the first call, with objects made and code compiled then")
        note(profile.table())
    if options.timed and not repeated and not any(call.error for call in profile.calls):
        return
    if options.profile_json is not None:
        profile.write_json(options.profile_json)
    if options.profile_trace is not None:
        profile.write_perfetto(options.profile_trace)
