"""Loads, links and runs one damaged module, as a program would that trusts nobody, and says how it went.

What is right: an error of pumice's own hierarchy at any point, or a run. Anything else that a module can bring about
is a bug of pumice: another exception, and, seen from outside by case_pool.py, the end of the process, a hang, or
memory without bound. So is an INTERNAL error, but for a program's own ``vm.fail``: pumice met what it thought it could
not.

One runner has one device. A shader may run for ever, and Vulkan has no way to stop it: then the device is of no more
use, and ``busy`` says so. A process that has to go on gets itself another device in another process.
"""

from __future__ import annotations

import contextlib
import gc
import io
import itertools
import random
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from judging import SeededCases
from mutations import Base, Mutant, load_base, mutate
from support.case_pool import Outcome
from support.iree_releases import available_compilers

from pumice.hal.programs.fence import HalFence
from pumice.hal_vulkan import BufferView, Device, ElementType
from pumice.hal_vulkan.instance.driver import shared_driver
from pumice.hal_vulkan.instance.plan import PlanOptions
from pumice.hal_vulkan.vulkan.results import take_validation_errors
from pumice.runtime.modules.hal.module import hal_module
from pumice.status import DeadlineExceededError, DeviceLostError, InternalError, PumiceError
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.writer import write_module
from pumice.vm.execution.bytecode_module import BytecodeModule
from pumice.vm.execution.context import Context, Function
from pumice.vm.types.buffer import VmBuffer
from pumice.vm.types.list import VmList

__all__ = ["ASSEMBLED", "MutantCases", "Runner", "assembled_bases", "compiled_bases"]

TESTS: Final = Path(__file__).resolve().parents[1]
TIMEOUT_S: Final = 0.3
_MAX_DEPTH: Final = 200
_MOST_CALLS: Final = 4
_IDLE_S: Final = 1.0
_COLLECT_EVERY: Final = 64
_MOST_ELEMENTS: Final = 1 << 16

_I32: Final = (0, 1, 2, 3, 7, 100, -1, -(1 << 31), (1 << 31) - 1)
_I64: Final = (0, 1, 2, 64, -1, 1 << 32, -(1 << 63), (1 << 63) - 1)
_FLOATS: Final = (0.0, 1.0, -2.5, float("inf"), float("nan"), 3.4028234663852886e38)


class Runner:
    """Runs mutants on a device of its own, opened with bounds checks for shaders; ``close`` it at the end."""

    def __init__(self, device: Device | None = None) -> None:
        self._own = device is None
        if device is None:
            driver = shared_driver()
            device = Device(
                driver,
                driver.select("vulkan"),
                options=PlanOptions(robust_buffer_access=True),
                persistent_cache=False,
            )
        self.device = device
        self._hal = hal_module([device])
        self._runs = 0

    def run(self, mutant: Mutant) -> Outcome:
        """Runs one; never raises but for an interrupt."""
        self._runs += 1
        try:
            outcome = self._run(mutant)
        except (Exception, RecursionError, MemoryError):
            outcome = Outcome("?", "bug", traceback.format_exc(limit=-12))
        if outcome.stage == "load":
            return outcome
        if self._runs % _COLLECT_EVERY == 0:
            gc.collect()
        try:
            self.device.wait_idle(_IDLE_S)
        except DeadlineExceededError:
            return Outcome(outcome.stage, outcome.result, outcome.detail, busy=True)
        except PumiceError as error:
            return Outcome("device", "bug", f"the device was lost: {error}")
        # With validation layers (PUMICE_VALIDATION=1): what a driver was asked that it need not bear.
        messages = take_validation_errors()
        if messages:
            return Outcome(outcome.stage, "bug", "\n".join(f"validation: {one.message}" for one in messages))
        return outcome

    def _run(self, mutant: Mutant) -> Outcome:
        rng = random.Random(mutant.index)
        stage = "load"
        worst = ""
        detail = ""
        try:
            module = BytecodeModule.from_bytes(mutant.data, f"mutant {mutant.index}")
            stage = "link"
            with contextlib.ExitStack() as stack:
                stack.callback(module.close)
                stack.enter_context(contextlib.redirect_stderr(io.StringIO()))  # buffer_view.trace prints there
                context = Context(max_stack_depth=_MAX_DEPTH)
                stack.callback(context.close, timeout=TIMEOUT_S)
                context.add(self._hal)
                context.add(module, timeout=TIMEOUT_S)
                stage = "run"
                functions = list(context.functions(module.name))
                rng.shuffle(functions)
                for function in functions[:_MOST_CALLS]:
                    result, said = self._call(context, function, rng)
                    if worst in ("", "ran") or result == "bug":
                        worst, detail = result, said
                    if result == "bug":
                        break
        except PumiceError as error:
            return _refusal(stage, error)
        except Exception:
            return Outcome(stage, "bug", traceback.format_exc(limit=-12))
        return Outcome("run", worst or "ran", detail)

    def _call(self, context: Context, function: Function, rng: random.Random) -> tuple[str, str]:
        fences: list[HalFence] = []
        arguments = tuple(self._arguments(function, rng, fences))
        try:
            context.invoke(function, arguments, timeout=TIMEOUT_S)
            for fence in fences:
                fence.wait_until(time.monotonic() + TIMEOUT_S)
        except DeviceLostError:
            raise
        except PumiceError as error:
            outcome = _refusal("run", error)
            return outcome.result, outcome.detail
        except Exception:
            return "bug", traceback.format_exc(limit=-12)
        return "ran", ""

    def _arguments(self, function: Function, rng: random.Random, fences: list[HalFence]) -> Iterator[object]:
        kinds = function.convention.arguments
        declaration = function.declaration
        declared = declaration.arguments if declaration is not None else ()
        asynchronous = declaration is not None and declaration.is_async and len(kinds) >= 2
        for index, kind in enumerate(kinds):
            left = len(kinds) - index
            if kind == "r":
                if asynchronous and left <= 2:
                    fence = HalFence(self.device)
                    if left == 2:
                        fence.signal()
                    else:
                        fences.append(fence)
                    yield fence
                    continue
                tensor = declared[index] if index < len(declared) else None
                right = tensor is not None and tensor.shape is not None and rng.random() < 0.7
                if right and tensor is not None and tensor.shape is not None and tensor.element_type is not None:
                    shape = tuple(rng.choice((1, 3, 4)) if length is None else length for length in tensor.shape)
                    with contextlib.suppress(PumiceError):
                        yield self._view(shape, ElementType.parse(tensor.element_type))
                        continue
                yield self._any_reference(rng)
            elif kind == "i":
                yield rng.choice(_I32)
            elif kind == "I":
                yield rng.choice(_I64)
            else:
                yield rng.choice(_FLOATS)

    def _view(self, shape: tuple[int, ...], kind: ElementType) -> BufferView:
        count = 1
        for length in shape:
            count *= length
        if count > _MOST_ELEMENTS:
            shape, count = (), 1
        buffer = self.device.create_buffer(max(kind.storage_bytes(count), 1))
        buffer.write(b"\1" * buffer.size)
        return BufferView(buffer, shape, kind)

    def _any_reference(self, rng: random.Random) -> object:
        choice = rng.randrange(6)
        if choice == 0:
            return None
        if choice == 1:
            return VmBuffer.allocate(rng.choice((0, 1, 64)))
        if choice == 2:
            return VmList("?", 4)
        shape = rng.choice(((), (1,), (4,), (0,), (2, 2), (4, 4, 1)))
        view = self._view(
            shape, rng.choice((ElementType.FLOAT_32, ElementType.SINT_32, ElementType.SINT_8, ElementType.FLOAT_64))
        )
        return view.buffer if choice == 3 else view

    def close(self) -> None:
        """Closes the device, if it is the runner's own."""
        if self._own:
            self.device.close()


def _refusal(stage: str, error: PumiceError) -> Outcome:
    # The same holds for an exception of Python's that the interpreter turned into an error.
    internal = str(error) if isinstance(error, InternalError) or error.__cause__ else ""
    return Outcome(stage, "bug" if " failed with " in internal else error.code.name, internal)


# One of each bytecode version at least.
ASSEMBLED: Final = {
    "buffers": 0x00110000,
    "control_flow": 0x00110000,
    "lists": 0x000F0000,
    "references": 0x00110000,
    "globals": 0x00100000,
}
COMPILED: Final = ("async_mul", "dynamic_matmul", "globals_counter", "multi_function", "jacobi")


def assembled_bases(names: Sequence[str] = tuple(ASSEMBLED)) -> list[Base]:
    """Modules of tests/vm/assembly."""
    bases = []
    for name in names:
        text = (TESTS / "vm" / "assembly" / f"{name}.vmasm").read_text()
        version = ASSEMBLED[name]
        module = write_module(assemble(text, bytecode_version=version))
        bases.append(load_base(f"{name}.vmasm {version >> 16}.0", module))
    return bases


def compiled_bases(names: Sequence[str] = COMPILED) -> list[Base]:
    """Modules of conformance/programs by the newest and the oldest compiler in turn; none without a compiler."""
    compilers = available_compilers()
    bases = []
    for name, compiler in zip(names, itertools.cycle(compilers[:1] + compilers[-1:]), strict=False):
        path = compiler.compile((TESTS / "conformance" / "programs" / f"{name}.mlir").read_text())
        bases.append(load_base(f"{name} {compiler.release}", path.read_bytes()))
    return bases


class MutantCases(SeededCases[bytes]):
    """The mutants of some modules."""

    def __init__(self, bases: Sequence[Base]) -> None:
        self._bases = bases
        self._runner = Runner()

    def input(self, seed: int, index: int) -> bytes:
        return mutate(self._bases, seed, index).data

    def describe(self, seed: int, index: int) -> str:
        mutant = mutate(self._bases, seed, index)
        return f"{mutant.what} of {mutant.base}, {len(mutant.data)} bytes"

    def run(self, seed: int, index: int) -> Outcome:
        return self._runner.run(mutate(self._bases, seed, index))

    def close(self) -> None:
        self._runner.close()


def open_assembled(folder: Path) -> MutantCases:
    return MutantCases(assembled_bases())


def open_compiled(folder: Path) -> MutantCases:
    return MutantCases(compiled_bases(COMPILED[:3]))


def open_mutants(folder: Path) -> MutantCases:
    return MutantCases([*assembled_bases(), *compiled_bases()])
