"""The synchronous form of a function: it allocates the results, calls the asynchronous form, and waits."""

from __future__ import annotations

from collections.abc import Mapping

from ..abi.function_abi import Abi, FunctionAbi
from ..ir.sizes import Size
from ..kernels.kernel import Kernel
from ..passes.sequencing.steps import Schedule
from .allocation import DEVICE, HOST, allocate, new_fence
from .declaration import ASYNC
from .dynamic_call import DynamicCall
from .function_text import FunctionText
from .lengths import Lengths
from .parameters import Parameters
from .rodata import Rodata
from .scalars import load_scalar
from .views import view_of


def write_synchronous(
    text: FunctionText,
    plan: Schedule,
    abi: FunctionAbi,
    call: DynamicCall,
    kernels: Mapping[str, Kernel],
    rodata: Rodata,
) -> None:
    """Writes the synchronous form of a function.

    Args:
        text: to which it is written; the function has the arguments of the schedule, and returns the results, or takes
            their storages.
        plan: its schedule.
        abi: of it.
        call: what its calls have in common.
        kernels: by entry point.
        rodata: of the module.
    """
    device, last = text.load_global("device", "hal.device"), text.null()
    storages, memories = [], []
    if not abi.has_outs:
        lengths = Lengths(text, plan.plan, {})
        if any(isinstance(length, Size) for each in plan.results for length in each.type.lengths):
            lengths = call.begin(text, Parameters(text, plan, abi, rodata), device, last, kernels)
        for each, kind in zip(plan.results, abi.results, strict=True):
            use = HOST if kind is Abi.VALUE else DEVICE
            memory, last = allocate(text, device, last, use, lengths.words(each))
            memories.append(memory)
            storages.append(memory if kind is Abi.BUFFER else view_of(text, lengths, each, memory))
    done = new_fence(text, device)
    text.line(f"vm.call @{text.name}{ASYNC}({', '.join([*text.arguments, *storages, last, done])})")
    text.await_fence(done)
    results = [
        load_scalar(text, memory, 0, each.type.scalar) if kind is Abi.VALUE else storage
        for each, kind, memory, storage in zip(plan.results, abi.results, memories, storages, strict=False)
    ]
    text.line(f"vm.return {', '.join(results)}" if results else "vm.return")
