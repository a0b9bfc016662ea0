"""The options of ``pumice bench`` for a kernel, checked against its declaration, as settings of a study's target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ...formats.element_type import ElementType
from ...hal_vulkan import Binding, BlockMember, EntryPoint, PushConstantBlock, ShaderModuleReflection, reflect
from ...runtime.kernels.push import describe_push
from ...runtime.kernels.shader_source import load_shader
from ...status import NotFoundError, shorten
from ..errors import usage, usage_error
from ..options import parse_defines
from ..run.arguments import BindingKey, parse_buffers, parse_groups
from ..run.kernel_arguments import Slots, push_bytes, specialization_values

_ADDRESS_BYTES: Final = 8


def kernel_settings(
    file: Path,
    *,
    bindings: Sequence[str] = (),
    size: int = 65536,
    size_varies: bool = False,
    pushes: Sequence[str] = (),
    specs: Sequence[str] = (),
    groups: str | None = None,
    entry: str | None = None,
    defines: Sequence[str] = (),
    addresses: bool = False,
) -> dict[str, object]:
    """The settings of kind ``kernel`` in ``study.target_settings`` that the options give.

    Args:
        file: SPIR-V or GLSL.
        bindings, pushes, specs, groups, entry, defines: as the command line has them.
        size: elements of bindings that are not given.
        size_varies: whether an axis ``size`` stands in for it.
        addresses: whether the kernel takes buffers by their addresses, which begin its push constants.

    Raises:
        click.UsageError: the options are malformed or not what the kernel declares.
        PumiceError: a file cannot be read or compiled.
    """
    macros = parse_defines(defines)
    code, name = load_shader(file, defines=macros, include_dirs=())
    reflection = reflect(code)
    with usage("--entry", *([NotFoundError] if entry is not None else [])):
        point = reflection.entry_point(entry)
    settings: dict[str, object] = {"source": str(file)}
    if entry is not None:
        settings["entry_point"] = entry
    if macros:
        settings["defines"] = macros
    if specs:
        settings["specialization"] = _specialization(specs, reflection)
    if groups is not None:
        text = groups.strip()
        settings["groups"] = text if text.startswith("$") else list(parse_groups(text))
    if addresses:
        return settings | _by_address(bindings, pushes, groups, point, name)
    settings["bindings"] = _bindings(bindings, size, size_varies, point)
    if push := _push(pushes, point.push_constants, name):
        settings["push"] = push
    return settings


def _bindings(texts: Sequence[str], size: int, size_varies: bool, entry: EntryPoint) -> list[object]:
    """A description for each descriptor: the given one, or ``--size`` elements of random data."""
    slots = Slots(entry)
    given: dict[int, str] = {}
    for argument, text in zip(parse_buffers("--binding", texts), texts, strict=True):
        slot = slots.find(argument.key, "--binding")
        if slot.index in given:
            raise usage_error(f"--binding {argument.key.text}: {slot.label} is given twice")
        given[slot.index] = text.partition("=")[2].strip()
    return [given.get(slot.index) or _default(slot.binding, size, size_varies) for slot in slots.slots]


def _default(binding: Binding, size: int, size_varies: bool) -> dict[str, object]:
    """``--size`` elements for a runtime array, else as many as the shader declares."""
    init = "random" if binding.readable else "zeros"
    element = binding.element
    if element is None or element.dtype is None:
        return {"shape": [max(4, binding.fixed_size)], "dtype": "u8", "init": "zeros"}
    dtype = ElementType.from_dtype(element.dtype).short_name
    if element.array != "runtime":
        return {"shape": [max(1, binding.fixed_size // element.dtype.itemsize)], "dtype": dtype, "init": init}
    per = element.stride // element.dtype.itemsize if element.stride else element.components * element.columns
    head = binding.fixed_size // element.dtype.itemsize
    length: object = f"${head} + {per} * size" if size_varies else head + per * size
    return {"shape": [length], "dtype": dtype, "init": init}


def _specialization(texts: Sequence[str], reflection: ShaderModuleReflection) -> dict[str, object]:
    """Values by constant id; expressions stay texts."""
    split = [(key.strip(), value.strip()) for key, _, value in (text.partition("=") for text in texts)]
    # The type of an expression is checked when it has a value; 1 is valid for any.
    checked = [f"{key}=1" if value.startswith("$") else text for (key, value), text in zip(split, texts, strict=True)]
    numbers = specialization_values(checked, reflection)
    return {
        str(number): expression if expression.startswith("$") else np.asarray(value).item()
        for (number, value), (_, expression) in zip(numbers.items(), split, strict=True)
    }


def _push(texts: Sequence[str], block: PushConstantBlock | None, name: str) -> dict[str, object]:
    """Values by name, parsed as by ``pumice run``; expressions stay texts."""
    if not texts:
        if block is not None and block.size:
            raise usage_error(
                f"{name} has push constants ({describe_push(block)}): give each as --push NAME=VALUE, "
                "where VALUE may be an expression over the axes such as $size"
            )
        return {}
    expressions: dict[str, str] = {}
    checked = []
    for text in texts:
        key, _, value = (part.strip() for part in text.partition("="))
        if value.startswith("$"):
            if block is None or key not in [member.name for member in block.members]:
                known = describe_push(block) if block is not None else "none"
                raise usage_error(f"--push {shorten(text)}: expressions are given by name, and {name} has: {known}")
            expressions[key] = value
            text = f"{key}=0"
        checked.append(text)
    data = push_bytes(checked, block, name)
    values = _members(block.members if block is not None else (), data)
    return {**values, **expressions}


def _members(members: Sequence[BlockMember], data: bytes) -> dict[str, object]:
    """The values in a push-constant block by name, from which ``pack_push`` makes the block."""
    values: dict[str, object] = {}
    for index, member in enumerate(members):
        name = member.name or f"member{index}"
        scalar = member.scalar
        boolean = scalar is not None and scalar.kind == "bool"  # a uint in a block
        dtype = np.dtype(np.uint32) if boolean else scalar.dtype if scalar is not None else None
        if dtype is None:
            raise usage_error(
                f"--push: {name} is a structure or of a type without numbers, which studies do not support"
            )
        shape, strides = member.array_shape, member.array_strides
        if member.columns > 1:
            far = member.matrix_stride or dtype.itemsize * member.components
            shape = (*shape, member.components, member.columns)
            strides = (*strides, far, dtype.itemsize) if member.row_major else (*strides, dtype.itemsize, far)
        elif member.components > 1:
            shape, strides = (*shape, member.components), (*strides, dtype.itemsize)
        array: np.ndarray = np.ndarray(shape, dtype, buffer=data, offset=member.offset, strides=strides)
        values[name] = (array if dtype.kind in "iu" else array.astype(np.float64)).tolist()
    return values


def _by_address(
    texts: Sequence[str], pushes: Sequence[str], groups: str | None, entry: EntryPoint, name: str
) -> dict[str, object]:
    """Bindings in the order of their addresses, and the words after these in the push constants."""
    if entry.bindings:
        raise usage_error(
            f"--descriptors address is for kernels that take addresses as their first push constants; {name} "
            "declares bindings"
        )
    if groups is None:
        raise usage_error("--descriptors address: give --groups, which cannot be inferred without bindings")
    arguments = parse_buffers("--binding", texts)
    for index, argument in enumerate(arguments):
        if _number(argument.key) != index:
            raise usage_error(
                f"--binding {argument.key.text}: addresses have no names; give 0=, 1=, … in the order of the push "
                "constants"
            )
    block = entry.push_constants
    rest = [
        member
        for member in (block.members if block is not None else ())
        if member.offset >= _ADDRESS_BYTES * len(texts)
    ]
    known = {member.name or f"member at byte {member.offset}": member for member in rest}
    values: dict[str, str] = {}
    for text in pushes:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or key not in known or key in values:
            raise usage_error(f"--push {shorten(text)}: expected NAME=VALUE, once, of {', '.join(known) or 'nothing'}")
        values[key] = value
    missing = [key for key in known if key not in values]
    if missing:
        raise usage_error(
            f"{name} has push constants behind {len(texts)} address(es): {', '.join(missing)}; give each as --push "
            "NAME=VALUE, and a --binding for each address"
        )
    words = []
    for key in known:
        with usage(f"--push {shorten(key)}"):
            words.append(values[key] if values[key].startswith("$") else _word(key, values[key]))
    return {"bindings": [text.partition("=")[2].strip() for text in texts], "push": words}


def _number(key: BindingKey) -> int | None:
    return None if key.name or key.set or key.element else key.binding


def _word(key: str, text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 32:
        raise usage_error(
            f"--push {shorten(key)}={shorten(text)}: expected an unsigned 32-bit number behind the addresses"
        )
    return int(text)
