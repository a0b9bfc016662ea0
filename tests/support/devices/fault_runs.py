"""Runs workloads under planted faults, and prints how they end.

    python tests/support/devices/fault_runs.py --write    # all of it, and the page docs/design/faults.md
    python tests/support/devices/fault_runs.py --sample 300 --seed 7 kernels jit

A case is a workload and a fault. It ends *badly* if the process dies or hangs, an exception is none of pumice's, names
another cause or is only logged, a result is wrong, the device does not go on (after a loss: a new one), closing raises,
or a native object or a validation message is left. Cases run in a process of their own, which is started again after a
bad end.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import json
import logging
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

TESTS: Final = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(TESTS))

from support.devices.planted_faults import CODES, LOST, UNKNOWN, Fault, Faults, install  # noqa: E402

__all__ = ["Case", "End", "Kept", "all_cases", "count_calls", "run_cases"]

Value = TypeVar("Value")
MOST_S: Final = 240
"""After this time a case counts as hanging."""
POLLED: Final = "vkGetSemaphoreCounterValue"
MOST_POLLS: Final = 40
"""Its first calls fail: their number depends on how long the device takes."""
KINDS: Final = ("raised", "absorbed", "not reached", "bad")
PAGE: Final = TESTS.parent / "docs" / "design" / "faults.md"
_HEAD: Final = """\
# Failing calls

This page is written by `python tests/support/devices/fault_runs.py {options} --write`; do not edit it.

It shows what happens when calls of Vulkan fail. A shim between pumice and the driver
(`tests/support/devices/planted_faults.py`) makes the Nth call of a command answer a code that Vulkan's registry allows
for it, or `VK_ERROR_UNKNOWN`. N goes from 1 to the last call of a workload; errors are answered once, or by every call
from that one on. A failed call does not reach the driver, and leaves garbage in outputs that Vulkan leaves undefined.
After `VK_ERROR_DEVICE_LOST` waits end. Of the command that polls, only the first 40 calls of each workload fail.

A workload (`tests/support/devices/fault_workloads.py`) opens a device, works, compares its results and closes all.
After an error it runs again, on the same device with the objects that it had made; after a loss on a new one. A case
ends *badly* if

- the process dies or hangs, a result is wrong, or the second run fails;
- an exception is not pumice's, names another cause, or is only logged; or closing raises;
- the device counts as lost by another error, or the error of a loss says so twice;
- a native object or a message of the validation layers is left.

*Absorbed* is a fault that no caller sees, *not reached* one whose call did not come.

**Why a shim.** A layer in C sees the same calls, but needs a compiler. The shim wraps the functions that the tables of
`hal_vulkan/vulkan/functions.py` resolve, and refuses a command whose codes it does not know, so that none is left out.

**Late work.** `tests/hal_vulkan/submit/test_late_queues.py` gives a driver of one queue five, one of them in a family
that only copies (`tests/support/devices/late_queues.py`). A thread for each keeps submissions back for random times, so
that signals come late and queues overtake each other. The workloads and random graphs of copies run on them.

{run} of {possible} cases were run on {device}, with validation {validation}:
"""


@dataclass(frozen=True)
class Case:
    """A workload under a fault; without one its calls are counted."""

    workload: str
    fault: Fault | None


@dataclass(frozen=True)
class End:
    """How a case ended.

    Attributes:
        fired: calls that failed; 0 if the fault was not reached.
        errors: what the workload raised.
        bad: what was wrong; empty for a good end.
        counts: native calls by command.
    """

    fired: int
    errors: list[str]
    bad: list[str]
    counts: dict[str, int]


# -- in the child -------------------------------------------------------------------------------------


class Kept:
    """A ``Keep``: the objects of a case, closed last to first."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}

    def __call__(self, name: str, make: Callable[[], Value]) -> Value:
        if name not in self.objects:
            self.objects[name] = make()
        made: Value = self.objects[name]
        return made

    @property
    def lost(self) -> Any:
        device = self.objects.get("device")
        return device and device.hal.lost

    def close(self) -> None:
        """Closes what has to be closed before its device, and then the device."""
        while self.objects:
            _, made = self.objects.popitem()
            for name in ("close", "cleanup"):
                if (end := getattr(made, name, None)) is not None:
                    end()


class _Runner:
    """Runs cases in this process, one after another."""

    def __init__(self) -> None:
        self._faults: Faults = install()
        from support.devices.fault_workloads import WORKLOADS

        from pumice.hal_vulkan.instance.driver import shared_driver

        self._workloads = WORKLOADS
        self._driver = shared_driver()
        kept = Kept()
        self._workloads["kernels"](kept)  # tests the driver, once
        kept.close()
        self._strange: list[str] = []
        sys.unraisablehook = lambda args: self._strange.append(f"unraisable: {args.exc_value!r} in {args.object!r}")
        threading.excepthook = lambda args: self._strange.append(f"in a thread: {args.exc_value!r}")
        logging.getLogger("pumice").addHandler(_Noting(self._strange))

    def run(self, case: Case) -> End:
        from pumice.hal_vulkan.vulkan.live_objects import live_objects
        from pumice.hal_vulkan.vulkan.results import take_validation_errors

        self._strange.clear()
        work, fault, kept = self._workloads[case.workload], case.fault, Kept()
        errors: list[str] = []
        bad: list[str] = []
        before = live_objects()
        self._faults.plant(fault)
        is_right = self._attempt(work, kept, fault, errors, bad)
        if not is_right and not self._faults.fired:
            bad.append(f"failed without a fault: {errors}")
        while self._faults.fired and not bad:
            self._faults.lift()
            if (lost := kept.lost) is not None:
                if fault is None or fault.code != LOST or lost.message.count("was lost") != 1:
                    bad.append(f"lost: {lost.message}")
                self._close(kept, bad)
                kept = Kept()
            if self._attempt(work, kept, None, errors, bad):
                break
            if kept.lost is None:  # else a thread had not told of the loss yet
                bad.append(f"does not go on: {errors[-1] if errors else ''}")
        self._close(kept, bad)
        counts, fired = dict(self._faults.counts), self._faults.fired
        self._faults.plant(None)
        del kept
        if live_objects() != before:
            gc.collect()
        if (left := live_objects()) != before:
            bad.append(f"left: { ({k: n - before.get(k, 0) for k, n in left.items() if n != before.get(k, 0)}) }")
        bad += [f"validation: {error.message}" for error in take_validation_errors()]
        bad += self._strange
        return End(fired, errors, bad, counts)

    def _attempt(self, work: Any, kept: Kept, fault: Fault | None, errors: list[str], bad: list[str]) -> bool:
        from pumice.status import PumiceError

        try:
            work(kept)
        except PumiceError as error:
            text = f"{type(error).__name__}: {error}"
            errors.append(text)
            if fault is not None and f"VK_{fault.code}" not in str(error.vk_result or text):
                bad.append(f"names another cause: {_where(error)}")
        except BaseException as error:
            bad.append(f"raised {type(error).__name__}: {_where(error)}")
        else:
            return True
        return False

    def _close(self, kept: Kept, bad: list[str]) -> None:
        try:
            kept.close()
        except Exception as error:
            bad.append(f"closing raised {_where(error)}")


class _Noting(logging.Handler):
    """Notes exceptions that are only logged."""

    def __init__(self, strange: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._strange = strange

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        self._strange.append(f"logged: {record.getMessage()} {_where(error) if error else ''}")


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-5:]
    places = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
    return f"{type(error).__name__}: {error} @ {places}"


def _serve() -> None:
    """Runs the cases that come on stdin, a line each, and writes how each ended."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    runner = _Runner()
    for line in sys.stdin:
        workload, fault = json.loads(line)
        faulthandler.dump_traceback_later(MOST_S, exit=True)
        end = runner.run(Case(workload, Fault(**fault) if fault else None))
        faulthandler.cancel_dump_traceback_later()
        answers.write(json.dumps(asdict(end)) + "\n")


# -- in the parent ------------------------------------------------------------------------------------


class _Child:
    """A process that runs cases."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pumice-faults-")
        self._errors = (Path(self._folder.name) / "stderr").open("w+b")
        environment = os.environ | {
            "PUMICE_CACHE_DIR": f"{self._folder.name}/cache",
            "XDG_STATE_HOME": self._folder.name,
            "PUMICE_WAIT": "block",
            "PYTHONPATH": os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH")))),
        }
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=environment,
        )  # fmt: skip

    def run(self, case: Case) -> End | str:
        """Returns the end of a case, or what the process said when it died of it."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps([case.workload, case.fault and asdict(case.fault)]) + "\n")
            process.stdin.flush()
        answer = process.stdout.readline()
        if answer:
            return End(**json.loads(answer))
        process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace")
        return f"the process ended with {process.returncode}: {said[-3000:]}"

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()
        self._errors.close()
        self._folder.cleanup()


def run_cases(cases: Iterable[Case]) -> Iterator[tuple[Case, End]]:
    """Runs cases, and yields how each ended."""
    child = _Child()
    try:
        for case in cases:
            end = child.run(case)
            if isinstance(end, str):
                child.close()
                child = _Child()
                end = End(1, [], [end], {})
            yield case, end
    finally:
        child.close()


def count_calls(workloads: Sequence[str]) -> dict[str, dict[str, int]]:
    """Returns how many native calls of each command each workload makes, which all succeed."""
    counts = {}
    # The second run has the files that the first one made.
    for case, end in run_cases([Case(workload, None) for workload in workloads for _ in range(2)]):
        if end.bad:
            raise RuntimeError(f"{case.workload} fails without a fault: {end.bad}")
        counts[case.workload] = end.counts
    return counts


def all_cases(counts: Mapping[str, Mapping[str, int]]) -> list[Case]:
    """Returns every fault of workloads: each code at each of their calls, and errors also from that call on."""
    return [
        Case(workload, Fault(command, code, nth, lasting))
        for workload, calls in counts.items()
        for command, count in calls.items()
        for code in (*CODES[command], UNKNOWN)
        for nth in range(1, (min(count, MOST_POLLS) if command == POLLED else count) + 1)
        for lasting in (False, True)[: 1 + code.startswith("ERROR")]
    ]


def _kind(end: End) -> str:
    return "bad" if end.bad else "raised" if end.errors else "absorbed" if end.fired else "not reached"


# -- the page -----------------------------------------------------------------------------------------


def _page(
    counts: Mapping[str, Mapping[str, int]], possible: int, ends: Sequence[tuple[Case, End]], options: str
) -> str:
    from pumice.hal_vulkan.instance.driver import shared_driver

    commands: dict[str, Counter[str]] = {}
    workloads: dict[str, Counter[str]] = {name: Counter() for name in counts}
    for case, end in ends:
        assert case.fault is not None
        commands.setdefault(case.fault.command, Counter())[_kind(end)] += 1
        workloads[case.workload][_kind(end)] += 1

    def row(first: str, kinds: Counter[str]) -> str:
        return " | ".join([f"| {first} | {kinds.total()}", *(str(kinds[kind]) for kind in KINDS)]) + " |"

    head = f"cases | {' | '.join(KINDS)} |"
    driver = shared_driver()
    device, validation = driver.profiles[driver.select()].name, "on" if driver.validation else "off"
    lines = [_HEAD.format(options=options, run=len(ends), possible=possible, device=device, validation=validation)]
    lines += [f"| workload | calls | {head}", "| -- " * (3 + len(KINDS)) + "|"]
    lines += [row(f"`{name}` | {sum(calls.values())}", workloads[name]) for name, calls in counts.items()]
    lines += ["", f"| command | calls | codes | {head}", "| -- " * (4 + len(KINDS)) + "|"]
    for name in sorted(commands):
        calls = sum(each.get(name, 0) for each in counts.values())
        lines.append(row(f"`{name}` | {calls} | {len(CODES[name]) + 1}", commands[name]))
    return "\n".join([*lines, ""])


def _main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*")
    parser.add_argument("--sample", type=int, help="run only so many cases, chosen at random")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one for each core)")
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        _serve()
        return 0
    from support.devices.fault_workloads import WORKLOADS

    begin = time.monotonic()
    counts = count_calls(options.workloads or list(WORKLOADS))
    cases = all_cases(counts)
    possible = len(cases)
    print(f"{possible} cases", flush=True)
    if options.sample:
        cases = random.Random(options.seed).sample(cases, min(options.sample, len(cases)))
    ends: list[tuple[Case, End]] = []

    def run(part: Sequence[Case]) -> None:
        for case, end in run_cases(part):
            ends.append((case, end))
            if len(ends) % 500 == 0:
                print(f"{len(ends)} cases after {time.monotonic() - begin:.0f} s", flush=True)
            if end.bad:
                print(case.workload, case.fault, *end.bad, sep="\n  ", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(run, [cases[start :: options.jobs] for start in range(options.jobs)]))
    found = Counter(_kind(end) for _, end in ends)
    print(dict(found), f"{time.monotonic() - begin:.0f} s")
    if options.write:
        asked = " ".join(argument for argument in sys.argv[1:] if argument != "--write")
        PAGE.write_text(_page(counts, possible, ends, asked), encoding="utf-8")
    return int(found["bad"] > 0)


if __name__ == "__main__":
    sys.exit(_main())
