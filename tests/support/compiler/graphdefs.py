"""GraphDefs as text, a node a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

import pumice

Setting: TypeAlias = "bool | int | float | str | Sequence[int] | npt.NDArray[np.generic]"

TYPES = {
    "float32": "DT_FLOAT",
    "float64": "DT_DOUBLE",
    "float16": "DT_HALF",
    "int32": "DT_INT32",
    "int64": "DT_INT64",
    "int8": "DT_INT8",
    "uint8": "DT_UINT8",
    "uint32": "DT_UINT32",
    "uint64": "DT_UINT64",
    "bool": "DT_BOOL",
    "complex64": "DT_COMPLEX64",
}


def node(name: str, op: str, *inputs: str, **settings: Setting) -> str:
    """A node. Settings are attributes: strings that start with ``DT_`` are types, arrays tensors, lists integers, and
    ``shape`` is one."""
    text = f'node {{ name: "{name}" op: "{op}"'
    text += "".join(f' input: "{input}"' for input in inputs)
    text += "".join(f' attr {{ key: "{key}" value {{ {_value(key, value)} }} }}' for key, value in settings.items())
    return text + " }\n"


def _value(key: str, value: Setting) -> str:
    if isinstance(value, np.ndarray):
        return f"tensor {{ {tensor(value)} }}"
    if isinstance(value, bool):
        return f"b: {str(value).lower()}"
    if isinstance(value, int):
        return f"i: {value}"
    if isinstance(value, float):
        return f"f: {value}"
    if isinstance(value, str):
        return f"type: {value}" if value.startswith("DT_") else f's: "{value}"'
    if key == "shape":
        return f"shape {{ {' '.join(f'dim {{ size: {size} }}' for size in value)} }}"
    return f"list {{ {' '.join(f'i: {item}' for item in value)} }}"


def tensor(array: npt.NDArray[np.generic]) -> str:
    """A tensor by its bytes."""
    dims = " ".join(f"dim {{ size: {size} }}" for size in array.shape)
    content = "".join(f"\\{byte:03o}" for byte in array.tobytes())
    return f'dtype: {TYPES[array.dtype.name]} tensor_shape {{ {dims} }} tensor_content: "{content}"'


def const(name: str, value: npt.ArrayLike, dtype: npt.DTypeLike = np.float32) -> str:
    """A constant."""
    array = np.asarray(value, dtype)
    return node(name, "Const", dtype=TYPES[array.dtype.name], value=array)


def ints(name: str, values: npt.ArrayLike) -> str:
    """A constant of 32-bit integers."""
    return const(name, values, np.int32)


def placeholder(name: str, *shape: int, dtype: str = "DT_FLOAT") -> str:
    """A placeholder; lengths of -1 are open."""
    return node(name, "Placeholder", dtype=dtype, shape=shape)


def run(text: str, *feeds: str, fetches: Sequence[str] = (), **inputs: npt.NDArray[np.generic]) -> Any:
    """Returns the results of a graph on the reference device for its inputs, in the order of its arguments."""
    module = pumice.compile(text.encode(), file_name="case.pbtxt", targets=["reference"], feeds=feeds, fetches=fetches)
    with pumice.Session(device="reference") as session:
        loaded = session.load(module)
        found = session.call(f"{loaded.name}.case", *inputs.values())
        return [np.asarray(each) for each in found] if isinstance(found, tuple | list) else np.asarray(found)
