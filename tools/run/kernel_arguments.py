"""The options of ``pumice run`` matched with a kernel's bindings, push constants and specialization constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...formats.element_type import ElementType, format_shape_and_type, parse_shape_and_type
from ...formats.image_format import ImageFormat
from ...hal_vulkan import (
    Binding,
    BlockMember,
    EntryPoint,
    PushConstantBlock,
    ShaderModuleReflection,
    SpecializationValue,
    reflect,
)
from ...hal_vulkan.pipelines.specialization import pack_constants
from ...runtime import ArraySpec, Device, empty
from ...runtime.kernels.parameters.block import describe, member_layout
from ...runtime.kernels.parameters.parameter import KernelArgument
from ...runtime.kernels.parameters.push import Defaults, pack_push
from ...runtime.kernels.specialization import find_constant
from ...runtime.values.parse import parse_scalar, parse_value, zeros
from ...spirv.reflection.block_dtype import fits, member_names
from ...spirv.reflection.reflection_types import ScalarType
from ...spirv.repair.specialize import specialize
from ...spirv.sources.overrides import OverrideValue
from ...status import InvalidArgumentError, NotFoundError, shorten, shown
from ..errors import usage, usage_error
from ..input_files import read_file
from .block_arguments import BlockArgument, is_block_text, parse_json
from .image_arguments import ImageArgument, SamplerArgument
from .keys import Array, BindingKey, BufferArgument

_SAMPLER: Final = 0  # VkDescriptorType
_COMBINED: Final = 1
_BOOLEANS: Final = {"0": False, "1": True, "false": False, "true": True}


@dataclass(frozen=True, slots=True)
class Slot:
    """One argument of a kernel: a binding, or one descriptor of a binding with an array of descriptors.

    ``index`` is the argument's position in a call.
    """

    index: int
    binding: Binding
    element: int

    @property
    def label(self) -> str:
        """``binding[2]``, or ``binding[1.2]`` in set 1; a descriptor of an array is followed by its index."""
        return f"binding[{_number(self.binding)}]" + (f"[{self.element}]" if self.binding.count != 1 else "")


class Slots:
    """The arguments of an entry point, in call order. ``keys`` name the elements of a run-time sized array."""

    def __init__(self, entry: EntryPoint, keys: Iterable[BindingKey] = ()) -> None:
        sizes: dict[tuple[int, int], int] = {}
        named = list(keys)
        self._bindings = bindings = [binding for binding in entry.bindings if binding is not entry.loose_uniforms]
        for binding in bindings:
            mine = [k.element for k in named if _names(k, binding)]
            sizes[binding.set, binding.binding] = binding.count or max(mine, default=-1) + 1
        pairs = [(b, element) for b in bindings for element in range(sizes[b.set, b.binding])]
        self.slots: tuple[Slot, ...] = tuple(Slot(i, binding, element) for i, (binding, element) in enumerate(pairs))
        self._entry = entry

    def find(self, key: BindingKey, option: str) -> Slot:
        matching = [s for s in self.slots if _names(key, s.binding)]
        if key.name and len({(s.binding.set, s.binding.binding) for s in matching}) > 1:
            raise usage_error(f"{option} {key.text}: several bindings have that name; {self._declared()}")
        for slot in matching:
            if slot.element == key.element:
                return slot
        if matching:
            count = len(matching)
            raise usage_error(f"{option} {key.text}: the binding has {count} descriptor(s), the last is [{count - 1}]")
        raise usage_error(f"{option} {key.text}: no such binding; {self._declared()}")

    def in_call(self, values: Sequence[KernelArgument]) -> list[KernelArgument]:
        """Returns the values of the slots in the form of a call: those of a run-time sized array as one list."""
        arguments: list[KernelArgument] = []
        for binding in self._bindings:
            mine = [values[s.index] for s in self.slots if s.binding is binding]
            arguments += mine if binding.count else [mine]
        return arguments

    def _declared(self) -> str:
        known = [_number(b) + (f" ({b.name})" if b.name else "") for b in self._bindings]
        return f"{self._entry.name} has: {', '.join(known) or 'no bindings'}"


def _names(key: BindingKey, binding: Binding) -> bool:
    if key.name:
        return any(key.name in block.names for block in binding.blocks)
    return (key.set, key.binding) == (binding.set, binding.binding)


def _number(binding: Binding) -> str:
    return f"{binding.set}.{binding.binding}" if binding.set else f"{binding.binding}"


def bind(
    slots: Slots, arguments: Sequence[BufferArgument], samplers: Sequence[SamplerArgument], device: Device
) -> list[tuple[BufferArgument | None, KernelArgument]]:
    """Returns the argument for each slot, in order, and its value in a call.

    Without data it is an output if the binding is only written, otherwise zeros. A missing sampler is the default
    sampler, and other missing elements of arrays are ``None``.
    """
    by_slot: dict[int, BufferArgument] = {}
    for argument in arguments:
        slot = slots.find(argument.key, "--binding")
        if slot.index in by_slot:
            raise usage_error(f"--binding {argument.key.text}: {slot.label} is given twice")
        if isinstance(argument, (ImageArgument, BlockArgument)):
            argument = argument.resolved(slot.binding, f"--binding {argument.key.text}")
        by_slot[slot.index] = argument
    chosen: dict[int, SamplerArgument] = {}
    for sampler in samplers:
        slot = slots.find(sampler.key, "--sampler")
        if slot.binding.descriptor_type not in (_SAMPLER, _COMBINED) or slot.index in chosen:
            problem = "is given twice" if slot.index in chosen else f"is a {slot.binding.descriptor_type_name}"
            raise usage_error(f"--sampler {sampler.key.text}: {slot.label} {problem}")
        chosen[slot.index] = sampler
    missing = [
        slot
        for slot in slots.slots
        if slot.index not in by_slot
        and slot.binding.descriptor_type != _SAMPLER
        and (slot.binding.count == 1 or slot.binding.image is None)
    ]
    if missing:
        labels = ", ".join(s.label + (f" ({s.binding.name})" if s.binding.name else "") for s in missing)
        raise usage_error(
            f"expected a --binding for each that the kernel declares; missing: {labels}. "
            f"Write --binding {missing[0].label.removeprefix('binding[').replace(']', '', 1)}="
            f"{_example(missing[0].binding)} for zeros or an output"
        )
    bound: list[tuple[BufferArgument | None, KernelArgument]] = []
    for slot in slots.slots:
        slot_argument, choice = by_slot.get(slot.index), chosen.get(slot.index)
        if slot.binding.descriptor_type == _SAMPLER:
            if slot_argument is not None:
                raise usage_error(f"--binding {slot_argument.key.text}: the binding is a sampler; give --sampler")
            bound.append((None, device.sampler() if choice is None else choice.value(device)))
        elif isinstance(slot_argument, ImageArgument):
            value = slot_argument.value(device, slot.binding, None if choice is None else choice.value(device))
            bound.append((slot_argument, value))
        else:
            bound.append((slot_argument, None if slot_argument is None else _to_kernel(slot_argument, slot)))
    return bound


def _example(binding: Binding) -> str:
    image = binding.image
    if image is None or image.dim == "buffer":
        return "4xf32"
    sizes = {"1d": "256", "3d": "64x64x64", "cube": "6x256x256"}.get(image.dim, "256x256")
    stored = image.storage and image.format != "unknown"
    name = (
        ImageFormat.parse(image.format).name
        if stored
        else {"int": "rgba32sint", "uint": "rgba8uint"}.get(image.sampled.kind, "rgba8unorm")
    )
    return f"{'6x' if image.arrayed and image.dim != 'cube' else ''}{sizes}x{name}"


def _to_kernel(argument: BufferArgument, slot: Slot) -> Array | ArraySpec:
    if isinstance(argument, BlockArgument):
        assert argument.data is not None
        return argument.data
    element_type = argument.element_type
    as_bytes = _as_bytes(element_type)
    dtype = np.dtype(np.uint8) if as_bytes else _kernel_dtype(element_type, slot.binding)
    declared = [block.element.dtype for block in slot.binding.blocks if block.element is not None]
    if declared and declared[0] is not None and not any(kind is None or fits(kind, dtype) for kind in declared):
        wanted = ElementType.from_dtype(declared[0])
        raise usage_error(
            f"--binding {argument.key.text}: expected elements of {wanted.short_name}, as the kernel declares, got "
            f"{element_type.short_name}; write {argument.key.text}={format_shape_and_type(argument.shape, wanted)}=…"
        )
    if argument.data is None and not slot.binding.readable:
        shape = (element_type.storage_bytes(math.prod(argument.shape)),) if as_bytes else argument.shape
        return empty(shape, dtype)
    data = zeros(argument.shape, element_type) if argument.data is None else argument.data
    return np.frombuffer(element_type.pack(data), np.uint8).copy() if as_bytes else data.view(dtype)


def from_kernel(result: Array, argument: BufferArgument) -> Array:
    """Returns a binding's result in the shape and element type of its argument."""
    element_type = argument.element_type
    if isinstance(argument, BlockArgument):
        return result
    if _as_bytes(element_type):
        return element_type.unpack(result.tobytes(), argument.shape)
    return result.view(element_type.require_dtype())


def _as_bytes(element_type: ElementType) -> bool:
    """Whether a kernel gets the bytes of a buffer: for 4-bit types, which NumPy does not pack, and opaque types."""
    return element_type.is_sub_byte or element_type.is_opaque


def _kernel_dtype(element_type: ElementType, binding: Binding) -> np.dtype[np.generic]:
    """Returns the dtype that a kernel gets: signless integers take the declared signedness."""
    dtype = element_type.require_dtype()
    declared = binding.element.dtype if binding.element is not None else None
    if (
        declared is None
        or declared == dtype
        or not element_type.short_name.startswith("i")
        or not element_type.is_integer
    ):
        return dtype
    unsigned = np.dtype(f"u{dtype.itemsize}")
    # Bytes are accepted as elements of any type.
    return unsigned if declared == unsigned or unsigned == np.uint8 else dtype


# -- push constants ----------------------------------------------------------------------------------


def push_bytes(texts: Sequence[str], block: PushConstantBlock | None, kernel: str, defaults: Defaults = None) -> bytes:
    """Returns the push-constant block from ``TYPE=VALUE`` in order, ``NAME=VALUE``, a JSON object, or ``@FILE``.

    ``defaults`` are values of members that the texts leave out.
    """
    if any(text.startswith("@") and not is_block_text(text) for text in texts):
        if len(texts) > 1:
            raise usage_error("--push @FILE is the whole block; give no other --push with it")
        data = read_file(Path(texts[0][1:]))
        with usage(f"--push {texts[0]}"):
            return pack_push(block, data, {}, kernel)
    ordered: list[str] = []
    named: dict[str, str] = {}
    values: dict[str, object] = {}
    for text in texts:
        if text.lstrip().startswith("{") or is_block_text(text):
            parsed = parse_json(text.strip(), "--push")
            if not isinstance(parsed, dict):
                raise usage_error(f"--push {shorten(text)}: expected a JSON object of values by name")
            if twice := parsed.keys() & {*values, *named}:
                raise usage_error(f"--push {shorten(min(twice))} is given twice")
            values.update(parsed)
            continue
        key, equals, value = text.partition("=")
        key = key.strip()
        if not equals or not key:
            raise usage_error(f"--push {shown(text)}: expected TYPE=VALUE such as i32=4, NAME=VALUE or @FILE")
        if _type_of(key) is not None:
            ordered.append(text)
        elif key in named or key in values:
            raise usage_error(f"--push {shorten(key)} is given twice")
        else:
            named[key] = value
    if ordered and (named or values):
        raise usage_error("--push: give values in order (i32=4) or by name (n=4), not both")
    if ordered and block is None:
        raise usage_error(f"--push: {kernel} has no push constants, got {len(ordered)} value(s)")
    members = member_names(block.members if block else ())
    known = describe(block.members) if block else "none"
    if ordered and len(ordered) != len(members):
        raise usage_error(f"--push: {kernel} has {len(members)} push constant(s) ({known}), got {len(ordered)}")
    for (name, member), text in zip(members.items(), ordered, strict=False):
        values[name] = _parse_member(text, member, f"--push {shorten(text)}", name)
    for name, value in named.items():
        if name not in members:
            raise usage_error(f"--push {name}: {kernel} has no such push constant; it has: {known}")
        values[name] = _parse_member(value, members[name], f"--push {name}")
    with usage("--push"):
        return pack_push(block, None, values, kernel, defaults)


def _type_of(key: str) -> ElementType | None:
    try:
        return parse_shape_and_type(key)[1]
    except InvalidArgumentError:
        return None


def _as_member(array: Array, element_type: ElementType, scalar: ScalarType, where: str) -> np.ndarray:
    """Returns the array in the member's own type, if it represents the value."""
    dtype = scalar.dtype
    # In a block, a GLSL bool is a uint.
    if element_type.is_boolean and (scalar.kind == "bool" or dtype == np.uint32):
        return array.astype(np.uint32)
    if dtype is not None and scalar.kind == "float" and element_type.dtype == dtype:
        return array
    if dtype is not None and scalar.kind in ("int", "uint") and element_type.is_integer:
        other_sign = "ui" if scalar.kind == "int" else "si"
        if element_type.bits == scalar.bits and not element_type.short_name.startswith(other_sign):
            return array.view(dtype)
    raise usage_error(f"{where} is {_scalar_name(scalar)}, got {element_type.short_name}")


def _parse_member(value: str, member: BlockMember, where: str, name: str = "") -> object:
    """Returns the value of a member: ``4``, ``1,2,3,4``, or with a type (``i32=4``); the shader declares the type.

    ``where`` begins messages; ``name`` is the member's name for messages, if it has none of its own.
    """
    path = f"{where}: {name}" if name else where
    text = value.strip()
    if member.scalar is None:
        if not text.startswith(("{", "[")):
            raise usage_error(f"{path} is a structure; give its members as JSON, such as {name or 'NAME'}={{…}}")
        return parse_json(text, path)
    head = text.partition("=")[0].strip()
    element_type = _type_of(head) if "=" in text or text.startswith("@") else None
    if element_type is None:
        element_type = _element_type(member.scalar, where)
        text = f"{format_shape_and_type(member_layout(member, 1)[0], element_type)}={text}"
        if not value.strip():
            raise usage_error(f"{where}: expected a value of {_scalar_name(member.scalar)}")
    with usage(where):
        array = parse_value(text)
    assert isinstance(array, np.ndarray)
    return _as_member(array, element_type, member.scalar, path)


def _element_type(scalar: ScalarType, where: str) -> ElementType:
    if scalar.kind == "bool":
        return ElementType.BOOL_8
    if scalar.dtype is None:
        raise usage_error(f"{where} is {_scalar_name(scalar)}, which has no text form; use --push @FILE")
    if scalar.kind == "float":
        return ElementType.from_dtype(scalar.dtype)
    return ElementType[f"{'S' if scalar.kind == 'int' else 'U'}INT_{scalar.bits}"]


def _scalar_name(scalar: ScalarType) -> str:
    return (
        "bool" if scalar.kind == "bool" else f"{scalar.encoding or scalar.kind}{'' if scalar.encoding else scalar.bits}"
    )


# -- specialization constants ------------------------------------------------------------------------


def specialization_values(
    texts: Sequence[str], reflection: ShaderModuleReflection, code: bytes, source: Callable[[], str]
) -> dict[int, SpecializationValue]:
    """Returns values by constant id from ``ID=VALUE`` or ``NAME=VALUE``, each read in the constant's own type.

    Constants that the compiler dropped are ignored with a note; ``code`` is the module, ``source`` returns its source.
    """
    values: dict[int, SpecializationValue] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not equals or not key:
            raise usage_error(f"--spec {shown(text)}: expected ID=VALUE or NAME=VALUE, such as 0=64")
        where = f"--spec {shorten(key)}"
        number = int(key[:10]) if key.isdecimal() else key
        with usage(where, NotFoundError):
            constant = find_constant(number, reflection.specialization_constants, code, "the kernel", source)
        if constant is None:
            continue
        if constant.constant_id in values:
            raise usage_error(f"{where}: constant {constant.constant_id} is given twice")
        if constant.scalar.kind == "bool":
            if value.lower() not in _BOOLEANS:
                raise usage_error(f"{where}: expected true or false, got {shown(value)}")
            values[constant.constant_id] = _BOOLEANS[value.lower()]
        else:
            with usage(where):
                values[constant.constant_id] = parse_scalar(value, _element_type(constant.scalar, where))
    return values


def override_values(texts: Sequence[str]) -> dict[int | str, OverrideValue]:
    """Returns values of WGSL's overrides by name or id from ``NAME=VALUE`` or ``ID=VALUE``."""
    values: dict[int | str, OverrideValue] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        where = f"--spec {shorten(key)}"
        if not equals or not key:
            raise usage_error(f"--spec {shown(text)}: expected NAME=VALUE or ID=VALUE, such as block=64")
        name = int(key[:10]) if key.isdecimal() else key
        if name in values:
            raise usage_error(f"{where}: override {key} is given twice")
        try:
            values[name] = _BOOLEANS[value] if value in ("true", "false") else int(value, 0)
        except ValueError:
            try:
                values[name] = float(value)
            except ValueError:
                raise usage_error(f"{where}: expected a number, true or false, got {shown(value)}") from None
    return values


def specialised_entry(
    code: bytes, reflection: ShaderModuleReflection, values: Mapping[int, SpecializationValue], name: str
) -> EntryPoint:
    """Returns an entry point with constants set by id, and with the resulting sizes and lengths."""
    with usage("--spec"):
        packed = pack_constants(reflection.specialization_constants, values)
    return reflect(specialize(code, dict(packed))).entry_point(name)
