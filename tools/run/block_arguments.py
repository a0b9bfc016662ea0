"""Blocks in the options of ``pumice run``: JSON by member names, in the layout that the kernel declares.

Grammar, where the rest is JSON (RFC 8259) with ``NaN`` and ``Infinity`` for floats::

    VALUE   OBJECT | ARRAY | @FILE.json    a block by its members; where its only member is an array, that array
            [COUNTx]block                  zeros, or a place for an output: one block, or COUNT elements
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...formats.element_type import ElementType
from ...hal_vulkan import Binding
from ...runtime.kernels.parameters.block import pack_argument, unpack_argument
from ...runtime.values.image_text import element_type_of
from ...spirv.reflection.block_dtype import only_array, tail
from ...spirv.reflection.reflection_types import BufferBlock
from ...status import InvalidArgumentError, shorten, shown
from ..errors import usage, usage_error
from ..input_files import read_file
from .expectations import Tolerances, differing
from .keys import Array, BindingKey, BufferArgument

_ZEROS: Final = re.compile(r"(?:([0-9]{1,9})x)?block", re.ASCII)
_MAX_SHOWN: Final = 1024
_MAX_BYTES: Final = 1 << 31
_MAX_DIFFERENCES: Final = 5


def is_block_text(text: str) -> bool:
    """Whether a value is that of a block."""
    return text.startswith(("{", "[")) or _is_json_file(text) or _ZEROS.fullmatch(text) is not None


def _is_json_file(text: str) -> bool:
    return text.startswith("@") and text.lower().endswith(".json")


def parse_json(text: str, where: str) -> object:
    """Returns the value of a JSON text, or of the file that ``@FILE.json`` names."""
    if _is_json_file(text):
        text = read_file(Path(text[1:])).decode("utf-8", errors="replace")
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: _unique(pairs, where))
    except json.JSONDecodeError as error:
        line = error.doc.split("\n")[error.lineno - 1]
        start = max(error.colno - 60, 0)
        raise usage_error(
            f"{where}: JSON line {error.lineno} column {error.colno}: {error.msg}\n  {line[start : start + 100]}\n"
            f"  {' ' * (error.colno - 1 - start)}^"
        ) from None
    except RecursionError:
        raise usage_error(f"{where}: the JSON nests too deep") from None


def _unique(pairs: list[tuple[str, object]], where: str) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        twice = next(name for i, (name, _) in enumerate(pairs) if name in dict(pairs[:i]))
        raise usage_error(f"{where}: {shown(twice)} is given twice in one object")
    return members


@dataclass(frozen=True, slots=True)
class BlockArgument(BufferArgument):
    """A binding's block, whose shape and data are known once ``resolved``.

    Attributes:
        value: the parsed JSON; ``None`` for zeros.
        count: the number of elements, all zeros, ``None`` for one block.
        block: the layout.
    """

    value: object = None
    count: int | None = None
    block: BufferBlock | None = None

    def resolved(self, binding: Binding, where: str) -> BufferArgument:
        """Returns the argument in the binding's layout; a plain buffer if the layout is scalars of one type."""
        if not any(block.members for block in binding.blocks):
            raise usage_error(f"{where}: the binding is a {binding.descriptor_type_name}, which takes no block")
        names = set(self.value) if isinstance(self.value, Mapping) else set()
        fitting = [b for b in binding.blocks if names <= {member.name for member in b.members}]
        block = (fitting or binding.blocks)[0]
        with usage(where):
            data = (
                self._zeros(block)
                if self.value is None
                else pack_argument(block, self.value, block.name or "the block")
            )
        if data.dtype.names is None:
            return BufferArgument(
                self.key, data.shape, element_type_of(data.dtype), None if self.value is None else data
            )
        return dataclasses.replace(self, shape=data.shape, data=data, block=block)

    def _zeros(self, block: BufferBlock) -> Array:
        array = only_array(block.members)
        if array is None and self.count is None and tail(block.members) is None:
            return pack_bytes(block, bytes(block.fixed_size))
        last = array or tail(block.members)
        if last is None:
            raise InvalidArgumentError(f"{self.key.text} is one block; write block for zeros")
        count = self.count if self.count is not None else last.array_length
        if not count:
            raise InvalidArgumentError(f"{self.key.text} is of any length; write 16xblock for 16 elements of zeros")
        size = (0 if array is not None else block.fixed_size) + count * last.array_strides[0]
        if size > _MAX_BYTES:
            raise InvalidArgumentError(
                f"{count} elements of zeros are {size:,} bytes; up to {_MAX_BYTES:,} are made here"
            )
        return pack_bytes(block, bytes(size))

    def text(self, result: Array) -> str:
        """Returns a result's printed form: JSON, cut if it is long."""
        assert self.block is not None
        return _shortened(unpack_argument(self.block, result.tobytes()))

    def difference(self, label: str, result: Array, tolerances: Tolerances) -> str:
        """Returns a text with the number of differing scalars and the first few; ``""`` if all are equal."""
        assert self.block is not None
        assert self.data is not None
        if result.nbytes != self.data.nbytes:
            return f"{label}: expected a block of {self.data.nbytes} bytes, got {result.nbytes}"
        got = _scalars(unpack_argument(self.block, result.tobytes()), "")
        wanted = _scalars(unpack_argument(self.block, self.data.tobytes()), "")
        wrong = [
            f"  {path}: expected {b!s}, got {a!s}"
            for (path, a), (_, b) in zip(got, wanted, strict=True)
            if differing(np.asarray(a), np.asarray(b), element_type_of(a.dtype), tolerances).any()
        ]
        if not wrong:
            return ""
        more = [f"  and {len(wrong) - _MAX_DIFFERENCES} more"] if len(wrong) > _MAX_DIFFERENCES else []
        head = f"{label}: {len(wrong)} scalar(s) differ from what was expected"
        return "\n".join([head, *wrong[:_MAX_DIFFERENCES], *more])


def pack_bytes(block: BufferBlock, data: bytes) -> Array:
    return pack_argument(block, unpack_argument(block, data), "zeros")


def block_argument(key: BindingKey, text: str, where: str) -> BlockArgument:
    """Returns the argument of a text that ``is_block_text``, to be resolved."""
    zeros = _ZEROS.fullmatch(text)
    if zeros is not None:
        return BlockArgument(key, (), ElementType.NONE, None, None, None if zeros[1] is None else int(zeros[1]))
    value = parse_json(text, where)
    if not isinstance(value, (dict, list)):
        raise usage_error(f"{where}: a block is a JSON object, or an array of its elements, got {shorten(text)}")
    return BlockArgument(key, (), ElementType.NONE, None, value)


def _scalars(value: object, path: str) -> Iterator[tuple[str, np.generic]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _scalars(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _scalars(inner, f"{path}[{index}]")
    elif isinstance(value, np.ndarray):
        for position in np.ndindex(value.shape):
            scalar: np.generic = value[position]  # type: ignore[assignment]  # a whole index
            yield path + "".join(f"[{i}]" for i in position), scalar
    elif isinstance(value, np.generic):
        yield path, value


def _shortened(value: object) -> str:
    """Returns JSON of values, truncated with ``...`` after 1024 scalars."""
    left = [_MAX_SHOWN]

    def written(item: object) -> str:
        if isinstance(item, Mapping):
            return "{" + ", ".join(f"{json.dumps(name)}: {written(inner)}" for name, inner in item.items()) + "}"
        if isinstance(item, (list, np.ndarray)):
            parts = []
            for inner in item:
                if left[0] <= 0:
                    parts.append("...")
                    break
                parts.append(written(inner))
            return "[" + ", ".join(parts) + "]"
        left[0] -= 1
        assert isinstance(item, np.generic)
        return _number(item)

    return written(value)


def _number(value: np.generic) -> str:
    if value.dtype.kind == "V" and value.dtype.type is np.void:
        return json.dumps(value.tobytes().hex())
    text = str(value)  # the digits of the type
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text, text)
