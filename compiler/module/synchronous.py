"""The synchronous form of a function: it allocates the results, calls the asynchronous form, and waits."""

from __future__ import annotations

from collections.abc import Mapping

from ..codegen.kernel import Kernel
from ..ir.sizes import Size
from ..passes.sequencing.steps import Schedule
from .allocation import DEVICE, allocate, new_fence
from .declaration import ASYNC
from .dynamic_call import DynamicCall
from .function_text import FunctionText
from .lengths import Lengths
from .rodata import Rodata
from .views import Views, view_of


def write_synchronous(
    text: FunctionText,
    plan: Schedule,
    call: DynamicCall,
    kernels: Mapping[str, Kernel],
    rodata: Rodata,
    *,
    has_outs: bool,
) -> None:
    """Writes the synchronous form of a function.

    Args:
        text: to which it is written; the function has the arguments of the schedule, and gives a view of each result,
            or takes their storages.
        plan: its schedule.
        call: what its calls have in common.
        kernels: by entry point.
        rodata: of the module.
        has_outs: whether the caller gives the storages of results.
    """
    device, last = text.load_global("device", "hal.device"), text.null()
    views = Views(text, plan, rodata)
    given = [f"%r{index}" for index in range(len(plan.arguments))]
    made: list[str] = []
    if has_outs:
        given += [views.storage(index) for index in range(len(plan.results))]
    else:
        lengths = Lengths(text, plan.plan, {})
        if any(isinstance(length, Size) for each in plan.results for length in each.type.lengths):
            lengths = call.begin(text, views, device, last, kernels)
        for each in plan.results:
            memory, last = allocate(text, device, last, DEVICE, lengths.words(each))
            made.append(view_of(text, lengths, each, memory))
    done = new_fence(text, device)
    text.line(f"vm.call @{text.name}{ASYNC}({', '.join([*given, *made, last, done])})")
    text.await_fence(done)
    text.line(f"vm.return {', '.join(made)}" if made else "vm.return")
