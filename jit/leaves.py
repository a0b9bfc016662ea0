"""Leaves of arguments and results: their part of a trace's key, their specs for JAX, their values for a session."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final

import jax
import numpy as np

from ..formats.element_type import ElementType
from ..hal.buffer_view import BufferView
from ..runtime import Device, DeviceArray
from ..runtime.arrays.spec import raw_bytes
from ..status import InvalidArgumentError

_jax: Final[Any] = jax  # parts of it have no types
# Importing host memory into Vulkan takes as long as copying this many bytes; figures are in docs/design/jit.md.
_IN_PLACE_BYTES: Final = 1 << 20


class TracedError(TypeError):
    """An argument, or a value that the function closes over, is a tracer: another function is being traced."""

    def __init__(self) -> None:
        super().__init__(
            "an argument, or what the function closes over, is traced by JAX: only the function itself is called from "
            "what JAX traces"
        )


def leaf_key(leaf: object) -> Hashable:
    """Returns an argument's part of the trace's key: shape, dtype, and whether the type is weak.

    Raises:
        TracedError: the argument is a tracer.
    """
    return _KEYS.get(type(leaf), _other_key)(leaf)


def _array_key(leaf: Any) -> Hashable:
    return leaf.shape, leaf.dtype


def _host_key(leaf: Any) -> Hashable:
    return leaf.shape, jax.dtypes.canonicalize_dtype(leaf.dtype)


def _other_key(leaf: Any) -> Hashable:
    if isinstance(leaf, jax.core.Tracer):
        raise TracedError
    if isinstance(leaf, jax.Array):
        return (leaf.shape, leaf.dtype, True) if _is_weak(leaf) else (leaf.shape, leaf.dtype)
    if isinstance(leaf, np.ndarray | np.generic) and not isinstance(leaf, np.ma.MaskedArray):  # JAX refuses those
        return _host_key(leaf)
    if isinstance(leaf, _jax.ShapeDtypeStruct):
        raise TypeError(f"expected an array, got {leaf}, which lower(…) takes")
    return type(leaf).__qualname__


_KEYS: Final[Mapping[type, Callable[[Any], Hashable]]] = {
    DeviceArray: _array_key,
    np.ndarray: _host_key,
    bool: type,
    int: type,
    float: type,
    complex: type,
}


def leaf_spec(leaf: object) -> object:
    """Returns the spec that JAX traces for an argument. JAX refuses other values itself, and names their path."""
    if isinstance(leaf, DeviceArray):
        dtype = jax.dtypes.canonicalize_dtype(leaf.dtype)
        if dtype != leaf.dtype:
            raise InvalidArgumentError(
                f"an array of dtype {leaf.dtype} came, and JAX computes in {dtype} unless 64-bit types are on: "
                f"jax.config.update('jax_enable_x64', True), or convert it with .astype('{dtype}')"
            )
        return _jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    if isinstance(leaf, jax.Array):
        return _jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, weak_type=_is_weak(leaf))
    return leaf


def _is_weak(leaf: jax.Array) -> bool:
    return bool(getattr(leaf, "weak_type", False))  # arrays of keys have none


def as_traced(leaf: object) -> object:
    """Returns an argument in a form that JAX accepts."""
    return leaf.numpy() if isinstance(leaf, DeviceArray) else leaf


def is_key(dtype: object) -> bool:
    """Whether a dtype is a type of typed random keys."""
    return bool(_jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key))


def host_argument(leaf: Any, dtype: Any, device: Device) -> DeviceArray | np.ndarray:
    """Converts an argument from the host for a session; imports large arrays in place if the device can.

    ``dtype`` is the traced dtype; ``None`` for typed random keys.
    """
    if dtype is None:
        return np.asarray(jax.random.key_data(leaf))
    host = np.asarray(leaf, dtype)
    if host.nbytes < _IN_PLACE_BYTES or device.staging or not host.flags.c_contiguous:
        return host
    buffer = device.hal.import_buffer(raw_bytes(host), copy=False)
    return host if buffer is None else DeviceArray(device, buffer, host.shape, host.dtype, host.nbytes)


def result_converter(info: jax.ShapeDtypeStruct, device: Device) -> Callable[[Any], object] | None:
    """Returns the function that converts a result for the caller; ``None`` if the DeviceArray itself is the result.

    Arrays of random keys become JAX's, and float0, the type of derivatives by integers, NumPy's zeros. Programs pack
    two integers of 4 bits in a byte; arrays do not.
    """
    dtype: Any = info.dtype
    if dtype == jax.dtypes.float0:
        return lambda value: np.zeros(info.shape, jax.dtypes.float0)
    if is_key(dtype):
        names: list[str] = []
        jax.eval_shape(lambda key: names.append(str(jax.random.key_impl(key))), info)
        (implementation,) = names
        return lambda value: jax.random.wrap_key_data(value.numpy(), impl=implementation)
    if ElementType.from_dtype(np.dtype(dtype)).is_sub_byte:
        return functools.partial(_unpacked, device)
    return None


def _unpacked(device: Device, view: BufferView) -> DeviceArray:
    size = view.element_type.storage_bytes(math.prod(view.shape))
    packed = DeviceArray(device, view.buffer.subspan(0, size), (size,), np.dtype(np.uint8), size).numpy()
    return device.asarray(view.element_type.unpack(packed.data, view.shape))
