"""Modules rewritten so that a faulty driver computes them right."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from ..reflection.reflection_types import ShaderModuleReflection
from .double_rounding import with_exact_rounding
from .driver_faults import DriverFault
from .loop_exits import with_kept_loop_values
from .narrow_rounding import with_narrow_rounding
from .signed_integers import with_opaque_extension, with_signed_modulo
from .special_constants import with_hidden_specials

# In order of application: a later repair may have to mend the code of an earlier repair.
_REPAIRS: Final[Mapping[DriverFault, Callable[[bytes, ShaderModuleReflection], bytes]]] = {
    DriverFault.DOUBLE_ROUNDING: with_exact_rounding,
    DriverFault.NARROW_ROUNDING: with_narrow_rounding,
    DriverFault.SIGNED_MODULO: with_signed_modulo,
    DriverFault.SIGN_EXTENSION: with_opaque_extension,
    DriverFault.SPECIAL_CONSTANTS: with_hidden_specials,
    DriverFault.LOOP_EXITS: with_kept_loop_values,
}


def with_repairs(code: bytes, reflection: ShaderModuleReflection, faults: Collection[DriverFault]) -> bytes:
    """Returns a valid module that a driver with these faults computes right; the same bytes if no fault concerns it."""
    for fault, repair in _REPAIRS.items():
        if fault in faults:
            code = repair(code, reflection)
    return code
