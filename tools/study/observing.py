"""Options for figures that are taken separately from samples, such as the driver's statistics of pipelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from ...base.terminal import printable
from ..errors import usage_error
from ..options import OptionDecorator, several_options
from ..streams import note

if TYPE_CHECKING:
    from ...study.definition.study import Study
    from ...study.machine.observers import Observer

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
    """Creates the observers that the options ask for. UnavailableError: a device has no such figures."""
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
