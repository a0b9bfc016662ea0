"""Runs `pumice run` in steps and says on stderr when each was done, in seconds since the epoch. For `start.py`."""

from __future__ import annotations

import sys
import time

_marks = [("interpreter", time.time())]


def _mark(step: str) -> None:
    _marks.append((step, time.time()))


def main() -> None:
    """Arguments are those of ``pumice``."""
    import pumice.tools.cli

    _mark("click and the command line")
    import numpy  # noqa: F401

    _mark("NumPy")
    import pumice.hal_vulkan.device
    import pumice.tools.run.command
    import pumice.tools.run.module

    _mark("other imports")
    from pumice.hal_vulkan.instance.driver import shared_driver
    from pumice.runtime.sessions.session import Session

    shared_driver()
    _mark("Vulkan driver")
    for method, step in (("default_device", "device"), ("append_module", "module, shaders and pipelines")):
        real = getattr(Session, method)

        def marked(self, *arguments, _real=real, _step=step, **named):  # type: ignore[no-untyped-def]
            result = _real(self, *arguments, **named)
            if _marks[-1][0] != _step and _step not in [name for name, _ in _marks]:
                _mark(_step)
            return result

        setattr(Session, method, marked)
    end = pumice.tools.cli._end_quickly

    def last(status: int) -> None:
        _mark("call and results")
        print(*(f"{step}={at!r}" for step, at in _marks), sep="\n", file=sys.stderr)
        end(status)

    pumice.tools.cli._end_quickly = last
    sys.argv[0] = "pumice"
    pumice.tools.cli.main()


main()
