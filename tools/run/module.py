"""Runs a function of a compiled program with the arguments of a command line, as iree-run-module does.

What can be checked without a device is checked first: the modules, the function, the text of the arguments.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...formats.element_type import ElementType
from ...hal_vulkan import BufferView
from ...hal_vulkan.vulkan.validation import validation_requested
from ...runtime.device import Device
from ...runtime.profiling.profile import Profile
from ...runtime.profiling.trace import check_perfetto
from ...runtime.sessions.argument import Argument
from ...runtime.sessions.binding import argument_binder
from ...runtime.sessions.instance import Instance
from ...runtime.sessions.session import Session
from ...runtime.sessions.session_function import SessionFunction
from ...runtime.sessions.session_options import SessionOptions
from ...runtime.sessions.signature import Signature, make_signature
from ...status import InvalidArgumentError, PumiceError, UnavailableError, shown
from ...terminal import printable
from ...vm.bytecode.declaration import declaration_of
from ...vm.execution.bytecode_module import BytecodeModule
from ..errors import ExpectationError, describe, usage, usage_error
from ..reports import device_text, repeat, say_times, seconds_text
from ..streams import note, put
from .arguments import Array
from .expectations import Tolerances
from .module_arguments import Given, Target, load_parameters, parse_expectations, parse_inputs, parse_targets
from .module_results import HostResult, compare, read_results, result_text, store_result

_STDIN: Final = "-"
_LISTED: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleRun:
    """The command line of ``pumice run`` for compiled programs, unparsed.

    ``modules`` are paths, ``-`` for stdin, in the order in which they are linked; the last one has the function.
    """

    modules: Sequence[str]
    function: str | None = None
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    expectations: Sequence[str] = ()
    parameters: Sequence[str] = ()
    devices: Sequence[str] = ()
    tolerances: Tolerances = field(default_factory=Tolerances)
    max_elements: int | None = 1024
    preload: bool = False
    timeout: float | None = None
    timed: bool = False
    statistics: bool = False
    profile: bool = False
    profile_json: str | None = None
    profile_trace: str | None = None
    validation: bool | None = None


def run_module(options: ModuleRun) -> None:
    """Runs it; results to stdout and to files, all else to stderr.

    Raises:
        click.UsageError: the options are malformed, or not what the function declares.
        ExpectationError: a result is not what was expected; all results are printed and stored by then.
        BrokenPipeError: whoever read stdout stopped reading; all files are stored by then.
        UnavailableError: results could not be printed or stored; those that could are.
        PumiceError: anything else that fails.
    """
    if options.modules.count(_STDIN) > 1:
        raise usage_error("only one module can be read from stdin (-)")
    if options.profile_trace is not None:
        check_perfetto()  # before a long run, not after it
    start = time.perf_counter()
    modules: list[BytecodeModule] = []
    try:
        for path in options.modules:
            modules.append(_open(path, preload=options.preload))
        name, signature = _choose(modules[-1], options.function)
        inputs = parse_inputs(options.inputs, signature)
        expected = parse_expectations(options.expectations, signature)
        targets = parse_targets(options.outputs, signature)
        with usage():
            validation = validation_requested(options.validation)
        parameters = load_parameters(options.parameters)
        with Instance(validation=validation) as instance:
            with usage("--device" if options.devices else ""):
                session = Session(
                    list(options.devices) or None, options=SessionOptions(parameters=parameters), instance=instance
                )
            with session:
                if any(map(_needs_device, modules)):
                    # Without the option an error is about PUMICE_DEVICE, and says so itself.
                    with usage():
                        session.default_device()
                for module in modules:
                    session.append_module(module, timeout=options.timeout)
                profiled = options.profile or options.profile_json or options.profile_trace
                load_seconds = time.perf_counter() - start
                call = _Call(session, name, inputs, options.timeout)
                profile = session.profile(most_slowdown=None) if profiled else None
                try:
                    results, seconds = _call_and_print(options, call, expected, targets)
                finally:
                    if profile is not None:
                        profile.stop()
                        _report_profile(options, profile, repeated=False)
                for device in instance.devices:
                    note(f"ran on {device_text(device)}")
                if options.timed:
                    _report_times(load_seconds, seconds, call)
                    if profiled:
                        profile = session.profile(most_slowdown=None)
                        with profile:
                            repeat(call.results)
                        _report_profile(options, profile, repeated=True)
                if options.statistics:
                    _report_statistics(instance.devices)
    finally:
        for module in modules:
            module.close()
    failed = compare(results, expected, options.tolerances) if expected else []
    if failed:
        put("\n".join(failed))
        raise ExpectationError(f"{len(failed)} of {len(results)} result(s) are not what was expected")
    if expected:
        put("[SUCCESS] all function outputs matched their expected values.")


# -- modules and functions ---------------------------------------------------------------------------


def _open(path: str, *, preload: bool) -> BytecodeModule:
    if path == _STDIN:
        if sys.stdin is None:
            raise UnavailableError("expected a module on stdin, which is closed")
        return BytecodeModule.from_bytes(sys.stdin.buffer.read(), "<stdin>")
    if preload:
        from ..input_files import read_file

        return BytecodeModule.from_bytes(read_file(Path(path)), path)
    return BytecodeModule.open(path)


def _needs_device(module: BytecodeModule) -> bool:
    definition = module.definition
    names = [
        *(one.name.partition(".")[0] for one in definition.imports),
        *(one.name for one in definition.dependencies),
    ]
    return "hal" in names


def _choose(module: BytecodeModule, wanted: str | None) -> tuple[str, Signature]:
    """The function to call: its name within the module, and its signature."""
    # Initializers and functions for the compiler's own use have other conventions than functions that users call.
    names = [name for name in module.exports if not name.startswith("__") and "$" not in name]
    if wanted is None:
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
        f"{module.name}.{name}",
        module.verified.functions[ordinal].signature,
        declaration_of(written),
        dict(written.attributes),
    )


def _listing(module: BytecodeModule, names: Sequence[str]) -> str:
    lines = []
    for name in names[:_LISTED]:
        try:
            lines.append(f"  {_signature(module, name)}")
        except InvalidArgumentError:
            convention = module.verified.functions[module.exports[name]].signature
            lines.append(f"  {module.name}.{name} {convention.text}")
    if len(names) > _LISTED:
        lines.append(f"  and {len(names) - _LISTED} more, which `pumice dump` lists")
    return "\n".join([f"module {shown(module.name)} exports {'these:' if names else 'none'}", *lines])


# -- the call ----------------------------------------------------------------------------------------


class _Call:
    """A function with its arguments, on the device."""

    def __init__(self, session: Session, name: str, inputs: Sequence[Given], timeout: float | None) -> None:
        self._session = session
        self._timeout = timeout
        self.name = name
        module = session.modules[-1]
        self.function: SessionFunction = session.lookup(f"{module.name}.{name}")
        self._values = tuple(
            _bind(self.function.name, argument, given, session)
            for argument, given in zip(self.function.signature.arguments, inputs, strict=True)
        )

    def __call__(self) -> object:
        """Calls it and waits until its results are there."""
        return self.function.call_bound(self._values, timeout=self._timeout)

    def results(self) -> list[HostResult]:
        """Calls it and brings the results to the host."""
        return read_results(self(), self.function.signature, self._session)


def _bind(function: str, argument: Argument, given: Given, session: Session) -> Any:
    """The VM's value for an argument."""
    value = given.value
    with usage(given.where):
        bind = argument_binder(argument, function, session.default_device)
        if isinstance(value, np.ndarray):
            assert given.element_type is not None
            view = _view(value, given.element_type, session.device)
            return bind(view.buffer if given.storage else view)
        return bind(0 if value is None and argument.letter != "r" else value)


def _view(array: Array, element_type: ElementType, device: Device) -> BufferView:
    """A tensor of the command line on the device."""
    if not element_type.is_sub_byte:
        return device.asarray(array).buffer_view(element_type)
    # Arrays have a byte for each of these elements, programs want them packed.
    packed = device.asarray(np.frombuffer(element_type.pack(array), np.uint8))
    return BufferView(packed.buffer_view(ElementType.UINT_8).buffer, array.shape, element_type)


# -- results -----------------------------------------------------------------------------------------


class _Printer:
    """stdout, whose failure does not prevent results from being stored in files."""

    def __init__(self) -> None:
        self.failure: BrokenPipeError | UnavailableError | None = None

    def put(self, text: str) -> None:
        if self.failure is None:
            try:
                put(text)
            except (BrokenPipeError, UnavailableError) as error:
                self.failure = error


def _call_and_print(
    options: ModuleRun, call: _Call, expected: Sequence[Given], targets: Sequence[Target]
) -> tuple[list[HostResult], float]:
    """Calls the function, and prints and stores its results; a failure of one does not prevent the others.

    Returns:
        the results, and the seconds that the call took.
    """
    printer = _Printer()
    printer.put(f"EXEC @{printable(call.name)}")
    start = time.perf_counter()
    results = call.results()
    seconds = time.perf_counter() - start
    failures: list[PumiceError] = []
    if targets:
        for index, (result, target) in enumerate(zip(results, targets, strict=True)):
            if target.printed:
                printer.put(result_text(result, options.max_elements))
            elif target.path is not None:
                try:
                    store_result(result, target.path, append=target.append, where=f"--output {index}")
                except PumiceError as error:
                    failures.append(error)
    elif not expected:
        for index, result in enumerate(results):
            printer.put(f"result[{index}]: {result_text(result, options.max_elements)}")
    raised: list[Exception] = [*([printer.failure] if printer.failure is not None else []), *failures]
    if raised:
        for other in failures:
            if other is not raised[0]:
                note(f"error: {printable(describe(other))}")
        raise raised[0]
    return results, seconds


# -- reports -----------------------------------------------------------------------------------------


def _report_times(load: float, first: float, call: _Call) -> None:
    warm = repeat(call.results)
    say_times(
        [
            ("load", f"{seconds_text(load)} host: open the device, load and link the modules, run their initializers"),
            ("first call", f"{seconds_text(first)} host: run, bring results back"),
            ("warm call", f"{seconds_text(statistics.median(warm))} host: the same again; median of {len(warm)}"),
        ]
    )


def _report_profile(options: ModuleRun, profile: Profile, *, repeated: bool) -> None:
    """Prints the table and writes the files that were asked for, also of a call that failed.

    Files describe the ``repeated`` calls if there are any, otherwise the first.
    """
    if options.profile:
        note("\ncalls after the first" if repeated else "the first call, with objects made and code compiled then")
        note(profile.table())
    if options.timed and not repeated and not any(call.error for call in profile.calls):
        return
    if options.profile_json is not None:
        profile.write_json(options.profile_json)
    if options.profile_trace is not None:
        profile.write_perfetto(options.profile_trace)


def _report_statistics(devices: Sequence[Device]) -> None:
    for device in devices:
        held = device.hal.allocator.statistics()
        note(
            f"memory of {device_text(device)}: {held.peak} bytes at most, {held.allocated} bytes now in "
            f"{held.allocations} allocation(s), {held.reserved} bytes reserved in {len(held.blocks)} block(s)"
        )
