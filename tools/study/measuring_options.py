"""Options of commands that measure: the number of runs, further sampling of points, figures taken apart from samples,
the processes of both sides, and locked clocks.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ...base.terminal import printable
from ...status import shorten
from ..errors import usage, usage_error
from ..options import OptionDecorator, several_options
from ..streams import note
from .against import against

if TYPE_CHECKING:
    from ...study.definition.study import Study
    from ...study.machine.observers import Observer
    from .gate import Gate


RESUMPTION_OPTIONS: Final = ("runs", "continue_noisy", "more_time")
"""The parameter names, which are the fields of ``study.sampling.passes.Resumption``."""

resumption_options: OptionDecorator = several_options(
    click.option(
        "--runs",
        type=click.IntRange(1),
        metavar="N",
        help="Measure it N times, each in a process of its own; more may be added later.",
    ),
    click.option(
        "--continue",
        "continue_noisy",
        is_flag=True,
        help="Sample the points on that were too noisy, for another time_limit.",
    ),
    click.option(
        "--more-time",
        type=click.FloatRange(0, min_open=True),
        metavar="S",
        help="Sample each finished point for S seconds more; with --continue, those that were too noisy.",
    ),
)


OBSERVING_OPTIONS: Final = ("statistics", "energy", "counters")
"""The parameter names of ``observing_options``, which ``observers`` takes."""

observing_options: OptionDecorator = several_options(
    click.option(
        "--statistics",
        is_flag=True,
        help="What the driver says of each pipeline: registers, spills, memory; and the occupancy.",
    ),
    click.option(
        "--energy",
        is_flag=True,
        help="Joules of a sample, by the counters of NVIDIA's devices and of processors, in a second of samples.",
    ),
    click.option(
        "--counters",
        metavar="NAME,...",
        help="Performance counters of the device over a command buffer's dispatches, by the driver's names.",
    ),
)


def observers(
    options: Mapping[str, Any],
    study: Study,
    devices: Sequence[str],
    validation: bool | None,
    *,
    scheduler: str | None = None,
) -> list[Observer]:
    """Creates the requested observers. UnavailableError: a device lacks such figures."""
    from ...study.machine.observers import CounterObserver, EnergyObserver, PipelineObserver
    from ...study.runs.observing import check_observers
    from ...study.runs.runner import default_devices

    wanted: list[Observer] = []
    if options["statistics"]:
        wanted.append(PipelineObserver())
    if options["energy"]:
        wanted.append(EnergyObserver())
    if options["counters"] is not None:
        counters = [name.strip() for name in options["counters"].split(",")]
        if not all(counters):
            raise usage_error(f"--counters: expected names between commas, got {printable(options['counters'])}")
        wanted.append(CounterObserver(counters))
    sides = [study] if study.against is None else [study, study.against]
    if wanted and (scheduler is not None or any(side.process is not None for side in sides)):
        names = " and ".join(f"--{name}" for name in OBSERVING_OPTIONS if options[name])
        raise usage_error(f"{names}: taken in this process; leave --scheduler and processes of a side's own out")
    check_observers(wanted, devices or study.devices or default_devices(), validation)
    return wanted


def take_observations(wanted: Sequence[Observer], study: Study, folder: Path, validation: bool | None) -> None:
    """Takes the figures of the points in a folder, and reports what is missing."""
    from ...study.runs.observing import observe

    for observer in wanted:
        for text in observer.notes:
            note(printable(text))
        missing: Mapping[str, str] = observe(study, folder, observer, validation=validation)
        for label, why in missing.items():
            note(printable(f"no {observer.kind} figures of {label}: {why}"))


PROCESS_OPTIONS: Final = ("apart", "against_python", "against_env")
"""The parameter names of ``process_options``."""

process_options: OptionDecorator = several_options(
    click.option("--apart", is_flag=True, help="Measure both versions in processes of their own that take turns."),
    click.option(
        "--against-python",
        metavar="PATH",
        help="The interpreter, with a pumice of its own, that measures the other version.",
    ),
    click.option(
        "--against-env",
        multiple=True,
        metavar="NAME=VALUE",
        help="A variable of the environment of the other version's process; repeatable.",
    ),
)


def wants_processes(options: Mapping[str, Any]) -> bool:
    return any(options[name] for name in PROCESS_OPTIONS)


def with_processes(described: Study, options: Mapping[str, Any], gate: Gate) -> Study:
    """Returns the study with its sides in the requested processes.

    By default a side from results is measured in the same kind of process as before, which a note states. Without
    another version the other side is the same study in another installation or environment; ``gate`` is the gate of the
    verdicts.
    """
    from ...study.definition.settings import Process

    variables = {}
    for text in options["against_env"]:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise usage_error(f"--against-env {shorten(text)}: expected NAME=VALUE")
        variables[name] = value
    asked = None
    if wants_processes(options):
        with usage():
            asked = Process(options["against_python"] or "", variables)
        alone = asked == Process()
        if described.against is None:
            if alone:
                raise usage_error(
                    "--apart measures two versions in processes of their own, and there is one: name the other with "
                    "--against OLD, which may be the same again"
                )
            described = against(described, described, gate)
        other = described.against
        assert other is not None
        old = (other.process if alone else None) or asked
        described = replace(described, process=described.process or Process(), against=replace(other, process=old))
    for side, name in ((described.against, "old"), (described, "new")):
        if side is not None and side.kept is not None and side.kept.origin and side.process not in (None, asked):
            note(printable(f"the {name} side is measured as {side.kept.origin} were, {side.process}"))
    return described


_DEFAULT = "default"

clocks_option: OptionDecorator = click.option(
    "--lock-clocks",
    is_flag=False,
    flag_value=_DEFAULT,
    metavar="[MHZ]",
    help="Lock the clock of an NVIDIA device meanwhile, by default to that for applications; needs root.",
)


@contextlib.contextmanager
def requested_clocks(
    asked: str | None,
    study: Study,
    devices: Sequence[str],
    validation: bool | None,
    *,
    scheduler: str | None = None,
) -> Iterator[None]:
    """Locks the clocks of the study's devices within the block, if requested.

    Else reports clocks that a killed run left locked.
    """
    from ...hal_vulkan import shared_driver
    from ...study.machine.clock_lock import left_locked, locked_clocks
    from ...study.runs.runner import default_devices

    if asked is None:
        for text in left_locked():
            note(printable(text))
        yield
        return
    if scheduler is not None:
        raise usage_error("--lock-clocks is of this machine's devices; leave --scheduler out")
    if asked != _DEFAULT and not (asked.isdecimal() and int(asked)):
        raise usage_error(f"--lock-clocks: expected a number of MHz, got {printable(asked)}")
    driver = shared_driver(validation=validation)
    uris = devices or study.devices or default_devices()
    profiles = [driver.profiles[index] for index in dict.fromkeys(driver.select(uri or None) for uri in uris)]
    with contextlib.ExitStack() as stack:
        with usage("--lock-clocks"):
            locked = stack.enter_context(locked_clocks(profiles, None if asked == _DEFAULT else int(asked)))
        for profile, mhz in zip(profiles, locked, strict=True):
            note(printable(f"the clock of {profile.name} is locked to {mhz} MHz"))
        yield
