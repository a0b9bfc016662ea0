"""The option ``--lock-clocks`` of commands that measure."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from ...base.terminal import printable
from ..errors import usage, usage_error
from ..options import OptionDecorator
from ..streams import note

if TYPE_CHECKING:
    from ...study.definition.study import Study

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
    """Locks the clocks of the study's devices within the block, if asked for; else reports those that a killed run left
    locked.
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
