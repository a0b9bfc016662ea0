"""The names that translated functions use besides their own: operations, allocation, errors, suspension."""

from __future__ import annotations

import math
from array import array
from typing import Final

from ...status import InternalError, InvalidArgumentError, OutOfRangeError, PumiceError, StatusCode, error_for
from ...waits.wait_frame import Wait
from ..types import float_numerics, numerics
from ..types.buffer import VmBuffer
from ..types.list import VmList
from ..types.ref_types import ref_type_name

# The results with which translated functions suspend, besides the ``Wait`` of a native function.
CALL: Final = Wait(resume=lambda error: None)
YIELD: Final = Wait(resume=lambda error: None)
# Continues frames that machine code left; The frame's ``arguments`` follow it.
RESUME: Final = Wait(resume=lambda error: None)
# The result of ``tier`` if translated code must continue.
COLD: Final = object()


def _failure(status: int, message: str) -> PumiceError:
    if status == 0:
        return InternalError("control ran past the function's end, behind a failure whose status is OK")
    try:
        code = StatusCode(status)
    except ValueError:
        return error_for(StatusCode.UNKNOWN, f"{message or 'the program failed'} (status {status})")
    return error_for(code, message or "the program failed without a message")


def _checked_ref(value: object, classes: tuple[type, ...] | None) -> object:
    if value is None or (classes is not None and isinstance(value, classes)):
        return value
    wanted = (
        "of a type that this context knows"
        if classes is None
        else " or ".join(kind.__name__ for kind in classes) or "none"
    )
    raise InvalidArgumentError(f"expected a reference {wanted}, got {ref_type_name(value)}")


def _global_index(offset: int, size: int, memory: memoryview) -> int:
    if offset < 0 or offset % size or offset // size >= len(memory):
        raise OutOfRangeError(f"global at byte {offset} is misaligned or outside the {memory.nbytes} bytes of globals")
    return offset // size


def _global_ref_index(index: int, refs: list[object]) -> int:
    if not 0 <= index < len(refs):
        raise OutOfRangeError(f"reference global {index} is outside the {len(refs)} of the module")
    return index


def _switch(index: int, default: object, values: tuple[object, ...]) -> object:
    return values[index] if 0 <= index < len(values) else default


NAMESPACE: Final[dict[str, object]] = {
    **{name: value for module in (numerics, float_numerics) for name, value in vars(module).items() if name[0] != "_"},
    "CALL": CALL,
    "COLD": COLD,
    "YIELD": YIELD,
    "Wait": Wait,
    "checked_ref": _checked_ref,
    "failure": _failure,
    "global_index": _global_index,
    "global_ref_index": _global_ref_index,
    "inf": math.inf,
    "nan": math.nan,
    "new_buffer": VmBuffer.allocate,
    "new_f32": lambda: array("f", (0.0,)),
    "new_list": VmList.for_type,
    "switch": _switch,
}
