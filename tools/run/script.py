"""Runs Amber scripts, with a line of results for each script, and figures at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...amber.report import Outcome
from ...amber.running import DEFAULT_TIMEOUT, Devices
from ...base.terminal import printable
from ...hal_vulkan.vulkan.validation import validation_requested
from ..errors import usage
from ..reports import device_text
from ..streams import note, put

_EXIT_STATUS: Final = {Outcome.FAILED: 1, Outcome.ERROR: 2, Outcome.UNSUPPORTED: 3}
ALL_SKIPPED: Final = 77
"""The exit status that Automake and Meson recognise as a skipped test."""


def run_scripts(
    paths: Sequence[Path], uri: str | None, validation: bool | None, sanitize: bool | None, timeout: float | None
) -> int:
    """Runs scripts on a device, and returns the exit status."""
    outcomes: Counter[Outcome] = Counter()
    with usage():
        validation = validation_requested(validation)
    with Devices(uri, validation=validation, sanitize=sanitize) as devices:
        with usage("--device" if uri is not None else ""):
            note(f"running on {device_text(devices.device())}")
        for path in paths:
            report = devices.run(path, DEFAULT_TIMEOUT if timeout is None else timeout)
            outcomes[report.outcome] += 1
            put(printable(report.format(), keep="\n"))
    if len(paths) > 1:
        put(", ".join(f"{outcomes[outcome]} {outcome.value}" for outcome in Outcome if outcomes[outcome]))
    for outcome, status in _EXIT_STATUS.items():
        if outcomes[outcome]:
            return status
    return ALL_SKIPPED if outcomes[Outcome.SKIPPED] == len(paths) else 0
