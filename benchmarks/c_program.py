"""The C program on plain Vulkan (submit_wait.c) that pumice is compared with: its build and its protocol.

``build()`` → ``with CProgram(device, MUL) as program`` → ``program.ask("prerecorded", 100)``, any number of times.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click
import numpy as np
import numpy.typing as npt
from timed_process import TimedProcess

import pumice
from pumice import shaders
from pumice.base.install_hints import install_hint

Floats = npt.NDArray[np.float32]

_FOLDER: Final = Path(__file__).parent
_SOURCE: Final = _FOLDER / "submit_wait.c"
_PROGRAM: Final = _FOLDER / "build" / "submit_wait"
_LIBRARY: Final = _FOLDER / "build" / "libsubmit_wait.so"
_WORKER: Final = _FOLDER / "_bare_worker.py"
FLOATS: Final = 4
"""Elements of each buffer."""
SETS: Final = 4
"""Descriptor sets, each with buffers of its own."""


@dataclass(frozen=True)
class Shader:
    """A kernel that both sides run over buffers of four floats.

    Attributes:
        name: in pumice.shaders.
        buffers: how many it takes.
        push_bytes: the size of its push constants.
        expected: the last buffer after one dispatch, from what the buffers held; the push constants are all 0.
    """

    name: str
    buffers: int
    push_bytes: int
    expected: Callable[[Sequence[Floats]], Floats]

    def inputs(self, descriptor_set: int) -> list[Floats]:
        """What the buffers of a descriptor set hold at first; submit_wait.c fills its own the same."""
        first = 1 + np.arange(FLOATS) + 100 * descriptor_set
        return [(first + 10 * n).astype(np.float32) for n in range(self.buffers)]


MUL: Final = Shader("mul", 3, 0, lambda inputs: inputs[0] * inputs[1])
SAXPY: Final = Shader("examples/saxpy", 2, 4, lambda inputs: inputs[1])


def check_output(who: str, shader: Shader, descriptor_set: int, got: npt.NDArray[np.generic]) -> None:
    """Raises if a dispatch did not compute what NumPy does."""
    expected = shader.expected(shader.inputs(descriptor_set))
    if not np.array_equal(got, expected):
        raise click.ClickException(f"{who}: {shader.name} over set {descriptor_set} gave {got}, not {expected}")


def _arguments(device: pumice.Device, shader: Shader) -> list[str | Path]:
    return [
        device.profile.device_uuid.replace("-", ""),
        str(device.hal.compute_queue.family),
        shaders.path(shader.name),
        str(shader.buffers),
        str(shader.push_bytes),
    ]


class BareCalls(TimedProcess):
    """A process of Python that makes the two calls of ``prerecorded`` by cffi and does nothing else."""

    def __init__(self, device: pumice.Device, shader: Shader) -> None:
        compile_c([_SOURCE], _LIBRARY, ("-shared", "-fPIC"))
        super().__init__([sys.executable, _WORKER, _LIBRARY, *_arguments(device, shader)], "the bare calls")


class CProgram(TimedProcess):
    """A running submit_wait for one shader; talks with it by lines. Use it as a context manager."""

    def __init__(self, device: pumice.Device, shader: Shader) -> None:
        super().__init__([_PROGRAM, *_arguments(device, shader)], "the C program")
        try:
            for number in range(SETS):
                check_output("the C program", shader, number, np.array(self.ask("output", number), np.float32))
        except BaseException:
            self.close()
            raise


def build() -> None:
    """Compiles submit_wait.c; where that fails, says what to install."""
    compile_c([_SOURCE], _PROGRAM)


def compile_c(sources: Sequence[Path], program: Path, flags: Sequence[str] = ()) -> None:
    """Compiles a C program on Vulkan, as one writes for speed; where that fails, says what to install."""
    remedy = f"{install_hint('c-compiler')} {install_hint('vulkan-headers')}"
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise click.ClickException(f"the C program to compare with needs a C compiler, and there is none. {remedy}")
    program.parent.mkdir(exist_ok=True)
    files = [str(source) for source in sources]
    command = [compiler, "-O2", "-std=c11", "-Wall", "-Wextra", *flags, *files, "-o", str(program), "-lvulkan", "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(f"{' '.join(command)} failed:\n{done.stderr.strip()}\n{remedy}")


def stay_on_core(cpu: int | None) -> None:
    """Keeps this process on one core (Linux); threads and processes that it starts later inherit that."""
    if cpu is not None:
        try:
            os.sched_setaffinity(0, {cpu})
        except (AttributeError, OSError) as error:
            raise click.ClickException(f"this process cannot be kept on core {cpu}: {error}") from error
