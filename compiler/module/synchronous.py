"""The synchronous form of a function: it allocates the results, calls the asynchronous form, and waits."""

from __future__ import annotations

from ..abi.function_abi import Abi, FunctionAbi
from ..ir.sizes import Size
from ..passes.sequencing.steps import Schedule
from .allocation import DEVICE, HOST, allocate, new_fence
from .context import ModuleContext
from .declaration import ASYNC
from .dynamic_call import DynamicCall
from .function_builder import FunctionBuilder
from .lengths import Lengths
from .parameters import Parameters
from .scalars import load_scalar
from .views import view_of


def write_synchronous(
    code: FunctionBuilder, plan: Schedule, abi: FunctionAbi, call: DynamicCall, context: ModuleContext
) -> None:
    """Writes the synchronous form of a function.

    Args:
        code: of the form, empty so far. It has the arguments of the schedule, and returns the results or takes their
            storages.
        plan: its schedule.
        abi: of the function.
        call: what its calls have in common.
        context: of the module.
    """
    device, last = code.load_global("device", "!hal.device"), code.null()
    storages, memories = [], []
    if not abi.has_outs:
        lengths = Lengths(code, plan.plan, {})
        if any(isinstance(length, Size) for result in plan.results for length in result.type.lengths):
            lengths = call.begin(code, Parameters(code, plan, abi, context.rodata), device, last, context.kernels)
        for result, kind in zip(plan.results, abi.results, strict=True):
            use = HOST if kind is Abi.VALUE else DEVICE
            memory, last = allocate(code, device, last, use, lengths.words(result))
            memories.append(memory)
            storages.append(memory if kind is Abi.BUFFER else view_of(code, lengths, result, memory))
    done = new_fence(code, device)
    code.call(f"{code.name}{ASYNC}", [*code.arguments, *storages, last, done])
    code.await_fence(done)
    results = [
        load_scalar(code, memory, 0, result.type.scalar) if kind is Abi.VALUE else storage
        for result, kind, memory, storage in zip(plan.results, abi.results, memories, storages, strict=False)
    ]
    code.emit("return", results)
