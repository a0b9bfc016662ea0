"""The child process of ``pumice check``: opens the device and runs the cases that its parent names.

Cases run apart from the report, since a driver may end its process or never return: the parent ends such a child, keeps
its results and starts another. Each line of stdin names a case, each line of output is a JSON object: first
``{"device": …}`` or ``{"error": …}``, then an outcome for each case.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import time
import traceback
from typing import Any, TextIO

from ...runtime.device import Device
from ...runtime.opening import open_device
from ...status import ClosedError, DeviceLostError, PumiceError
from .case import Case, CaseResult, Ending, SkipCase

_LINES = 12  # of a traceback


def main(uri: str, catalogue: str) -> None:
    """Runs cases until stdin ends.

    Args:
        uri: the device's URI; empty for the best.
        catalogue: the module whose ``cases()`` are run.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to the parent, which ends the child
    answers = _own_stdout()
    try:
        with open_device(uri or None) as device:
            profile = device.profile.to_json()
            _put(answers, {"device": {"uri": device.uri, "name": device.name, "profile": profile}})
            cases = {case.name: case for case in importlib.import_module(catalogue).cases()}
            for line in sys.stdin:
                outcome = run_case(cases[line.strip()], device)
                _put(
                    answers,
                    {
                        "ending": outcome.ending.value,
                        "seconds": outcome.seconds,
                        "message": outcome.message,
                        "figures": dict(outcome.figures or {}),
                        "lost": bool(device.hal.lost),
                    },
                )
    except PumiceError as error:
        _put(answers, {"error": str(error)})


def run_case(case: Case, device: Device) -> CaseResult:
    """Runs a case and returns its result; never raises."""
    begin = time.perf_counter()
    ending, message, figures = Ending.PASSED, "", None
    try:
        figures = case.run(device)
    except SkipCase as reason:
        ending, message = Ending.SKIPPED, str(reason)
    except AssertionError as error:
        ending, message = Ending.FAILED, str(error) or "\n".join(traceback.format_exc().splitlines()[-_LINES:])
    except (DeviceLostError, ClosedError) as error:
        ending, message = Ending.FAILED, str(error)
    except Exception as error:
        lines = traceback.format_exc().splitlines()[-_LINES:]
        ending, message = Ending.FAILED, "\n".join([f"{type(error).__name__}: {error}", *lines])
    return CaseResult(ending, time.perf_counter() - begin, message, figures)


def _own_stdout() -> TextIO:
    """Returns stdout, reserved for answers; output of drivers and libraries goes to stderr."""
    own = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return own


def _put(stream: TextIO, value: dict[str, Any]) -> None:
    stream.write(json.dumps(value) + "\n")
    stream.flush()
