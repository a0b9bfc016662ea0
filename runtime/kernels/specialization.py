"""Values of specialization constants by id or name.

- An id or a name in the module sets every constant with the id.
- A constant that the module lacks is ignored, with a note in the log, if the source declares it, since compilers drop
  unused constants. The source is the compiled file, or text in the module's debug information.
- A 32-bit id that a module without source lacks is also ignored with a note, as in Vulkan: programs pass one list of
  values to many variants of a shader.
- Other keys are errors, which list the constants.
- Constants with the same id may have different defaults, and without a value each keeps its own. That is rarely
  intended, so a warning lists them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ...hal_vulkan import ShaderModuleReflection, SpecializationValue
from ...spirv.reflection.reflection_types import SpecializationConstant
from ...spirv.sources.constants import declares, embedded_source
from ...status import InvalidArgumentError, NotFoundError, shown

_log: Final = logging.getLogger("pumice.kernels")


def find_constant(
    key: int | str, constants: Sequence[SpecializationConstant], code: bytes, kernel: str, source: Callable[[], str]
) -> SpecializationConstant | None:
    """Returns the constant with an id or a name; ``None``, with a note in the log, if the compiler dropped it.

    Args:
        key: the id or name.
        constants: the module's constants.
        code: the module.
        kernel: the kernel's name.
        source: a function that returns the text that the module was compiled from, ``""`` for none.

    Raises:
        NotFoundError: neither the module nor its source has the constant.
        InvalidArgumentError: several constants have the name.
    """
    if isinstance(key, str):
        matching = [constant for constant in constants if key in constant.names]
    else:
        matching = [constant for constant in constants if constant.constant_id == key]
    if len(matching) > 1:
        ids = " and ".join(str(constant.constant_id) for constant in matching)
        raise InvalidArgumentError(f"{shown(str(key))} is the name of specialization constants {ids}; give an id")
    if matching:
        return matching[0]
    known = ", ".join(map(str, constants)) or "none"
    text = source() or embedded_source(code)
    is_id = isinstance(key, int) and 0 <= key < 1 << 32
    if not (declares(text, key) if text else is_id):
        name = shown(key) if isinstance(key, str) else key
        raise NotFoundError(f"the shader has no specialization constant {name}; it has: {known}")
    _log.warning(
        "%s: specialization constant %s is ignored: the compiled shader has %s. Compilers drop constants that no code "
        "uses",
        kernel,
        key,
        known,
    )
    return None


def specialization_by_id(
    reflection: ShaderModuleReflection,
    values: Mapping[int | str, SpecializationValue],
    code: bytes,
    kernel: str,
    source: Callable[[], str] = str,
) -> dict[int, SpecializationValue]:
    """Returns the values by id, for the module's constants. Logs ignored and ambiguous values.

    Raises:
        NotFoundError, InvalidArgumentError: see `find_constant`; also two values for one constant.
    """
    if not isinstance(values, Mapping):
        raise InvalidArgumentError(
            f"specialization is a mapping of ids or names to numbers, got {type(values).__name__}"
        )
    constants = reflection.specialization_constants
    by_id: dict[int, SpecializationValue] = {}
    for key, value in values.items():
        constant = find_constant(key, constants, code, kernel, source)
        if constant is None:
            continue
        if by_id.setdefault(constant.constant_id, value) != value:
            raise InvalidArgumentError(
                f"specialization constant {constant} is given twice, as {by_id[constant.constant_id]} and {value}"
            )
    for constant in constants:
        if len(constant.defaults) > 1 and constant.constant_id not in by_id:
            _log.warning("%s: %s", kernel, ambiguity(constant, reflection))
    return by_id


def ambiguity(constant: SpecializationConstant, reflection: ShaderModuleReflection) -> str:
    """Returns a warning about a constant with several defaults, with advice."""
    axes = {
        axis
        for entry in reflection.entry_points
        for axis, spec_id in zip("xyz", entry.local_size_spec_ids, strict=True)
        if spec_id == constant.constant_id
    }
    size = f", one of them of the workgroup's size in {' and '.join(sorted(axes))}" if axes else ""
    return (
        f"specialization constant {constant} has the defaults {' and '.join(map(str, constant.defaults))}{size}, and "
        "each is used where it stands, so that results may be wrong: pass a value for all, such as specialization="
        f"{{{constant.constant_id}: {constant.default}}}"
    )
