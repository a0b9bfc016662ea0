"""The options of ``pumice run`` that can be parsed without the kernel.

Grammar::

    --binding, --expect  KEY=VALUE       VALUE as runtime/values/parse.py reads it: 4xf32=1,2,3,4  @x.npy  4xf32=@x.bin
                         or as image_text.py does: 256x256xrgba8unorm=@cat.png
                         or as block_arguments.py does: {"scale": 2, "place": [1, 2, 3]}  @block.json  16xblock
    --sampler            KEY=NAME=VALUE,…
    --output             KEY=@PATH  KEY=-
    KEY                  [SET.]BINDING or NAME, and [INDEX] after it for one of an array of descriptors
    --groups             X  X,Y  X,Y,Z  NAME
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...formats.element_type import ElementType
from ...formats.picture import array_to_picture, encode_picture, is_picture
from ...runtime.values.files import ValueFiles
from ...runtime.values.image_text import is_image_text, parse_image_spec
from ...runtime.values.parse import BufferSpec, parse_buffer_spec
from ...status import shorten, shown
from ..errors import usage, usage_error
from ..output_files import store
from .block_arguments import block_argument, is_block_text
from .image_arguments import image_argument
from .keys import Array, BindingKey, BufferArgument, split_key

_NUMBER: Final = re.compile(r"[+-]?[0-9][0-9.]*", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_MAX_GROUPS: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class OutputArgument:
    """The destination of a binding's result; ``path`` is ``None`` for stdout."""

    key: BindingKey
    path: Path | None


def parse_buffers(option: str, texts: Sequence[str]) -> list[BufferArgument]:
    """Returns the arguments of a repeatable ``KEY=VALUE`` option; values may read one file in sequence (``+path``)."""
    arguments: list[BufferArgument] = []
    with ValueFiles() as files:
        for text in texts:
            key, value = split_key(option, text, "0=4xf32=1,2,3,4")
            where, body = f"{option} {key.text}", value.strip()
            if body.startswith("*"):
                name = shorten(body[1:])
                raise usage_error(f"{where}: a binding takes one array; read them in turn with @{name} and +{name}")
            if body.startswith("("):
                raise usage_error(f"{where}: expected a buffer such as 4xf32=1,2,3,4, got {shown(body)}")
            if _NUMBER.fullmatch(body):
                raise usage_error(f"{where}: expected a buffer, got {body}; with its type it is one: f32={body}")
            with usage(where):
                if is_block_text(body):
                    arguments.append(block_argument(key, body, where))
                    continue
                if is_image_text(body):
                    arguments.append(image_argument(key, parse_image_spec(body, files)))
                    continue
                if body.startswith(("@", "+")):
                    array = files.array(body[1:], restart=body[0] == "@")
                    spec = BufferSpec(array.shape, ElementType.from_dtype(array.dtype), array)
                else:
                    spec = parse_buffer_spec(value, files)
            arguments.append(BufferArgument(key, *spec))
        with usage(option):
            files.finish()
    return arguments


def parse_outputs(option: str, texts: Sequence[str]) -> list[OutputArgument]:
    """Returns the arguments of a repeatable ``KEY=@PATH`` or ``KEY=-`` option."""
    arguments = []
    for text in texts:
        key, value = split_key(option, text, "2=@c.npy")
        if value != "-" and not (value.startswith("@") and len(value) > 1):
            raise usage_error(f"{option} {key.text}: expected @PATH for a file or - for stdout, got {shown(value)}")
        arguments.append(OutputArgument(key, None if value == "-" else Path(value[1:])))
    return arguments


def parse_groups(text: str) -> tuple[int, ...] | str:
    """Returns workgroup counts, one to three of them, or the name of a binding."""
    return text.strip() if _NAME.fullmatch(text.strip()) else parse_counts(text, " or a binding's name")


def parse_counts(text: str, otherwise: str = "") -> tuple[int, ...]:
    """Returns workgroup counts, one to three of them; ``otherwise`` is added to what the message expects."""
    parts = [part.strip() for part in text.split(",")]
    if not 1 <= len(parts) <= 3 or not all(re.fullmatch("[0-9]{1,10}", part, re.ASCII) for part in parts):
        raise usage_error(f"--groups: expected X, X,Y or X,Y,Z with counts of 0 or more{otherwise}, got {shown(text)}")
    counts = tuple(int(part) for part in parts)
    if max(counts) > _MAX_GROUPS:
        raise usage_error(f"--groups: expected counts up to {_MAX_GROUPS}, got {shown(text)}")
    return counts


def store_array(
    path: Path, array: Array | None, data: Callable[[], bytes], *, where: str, append: bool = False
) -> None:
    """Writes an array to an ``.npy`` file, a picture to a ``.png`` file, or the data to other files; see `store`."""
    content = b""
    if is_picture(path) and path.suffix.lower() != ".png":
        raise usage_error(f"{where}: pictures are written as PNG: expected a name in .png, got {path.name}")
    if path.suffix.lower() == ".png" and array is not None:
        if append:
            raise usage_error(f"{where}: a PNG holds one picture; write it to a file of its own with @")
        content = encode_picture(array_to_picture(array, where))

    def write(file: BinaryIO) -> None:
        if path.suffix == ".npy":
            np.save(file, np.asarray(array), allow_pickle=False)
        else:
            file.write(content or data())

    store(path, write, where=where, append=append)
