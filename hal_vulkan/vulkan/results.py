"""Failed VkResults and the validation layers' messages as errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ...status import (
    DeviceLostError,
    InternalError,
    InvalidArgumentError,
    PumiceError,
    ResourceExhaustedError,
    UnavailableError,
    UnimplementedError,
    UnknownError,
)
from .functions import CData, NativeFunction, ffi, new, text

_RESULT_NAMES: Final[dict[int, str]] = {}
for _name, _value in ffi.typeof("VkResult").relements.items():
    _RESULT_NAMES.setdefault(_value, _name)  # aliases follow the first name

VK_SUCCESS: Final = 0
VK_NOT_READY: Final = 1
VK_TIMEOUT: Final = 2
VK_INCOMPLETE: Final = 5
VK_ERROR_DEVICE_LOST: Final = -4
VK_ERROR_INCOMPATIBLE_DRIVER: Final = -9

_MOST_TRIES: Final = 8

_RESULT_CLASSES: Final[dict[str, type[PumiceError]]] = {
    "VK_ERROR_OUT_OF_HOST_MEMORY": ResourceExhaustedError,
    "VK_ERROR_OUT_OF_DEVICE_MEMORY": ResourceExhaustedError,
    "VK_ERROR_TOO_MANY_OBJECTS": ResourceExhaustedError,
    "VK_ERROR_OUT_OF_POOL_MEMORY": ResourceExhaustedError,
    "VK_ERROR_FRAGMENTED_POOL": ResourceExhaustedError,
    "VK_ERROR_FRAGMENTATION": ResourceExhaustedError,
    "VK_ERROR_MEMORY_MAP_FAILED": ResourceExhaustedError,
    "VK_ERROR_DEVICE_LOST": DeviceLostError,
    "VK_ERROR_INITIALIZATION_FAILED": UnavailableError,
    "VK_ERROR_INCOMPATIBLE_DRIVER": UnavailableError,
    "VK_ERROR_LAYER_NOT_PRESENT": UnavailableError,
    "VK_ERROR_EXTENSION_NOT_PRESENT": UnimplementedError,
    "VK_ERROR_FEATURE_NOT_PRESENT": UnimplementedError,
    "VK_ERROR_INVALID_EXTERNAL_HANDLE": InvalidArgumentError,
    "VK_ERROR_INVALID_OPAQUE_CAPTURE_ADDRESS": InvalidArgumentError,
    "VK_ERROR_INVALID_SHADER_NV": InvalidArgumentError,
    "VK_ERROR_UNKNOWN": UnknownError,
}


def error_from_result(result: int, action: str) -> PumiceError:
    """Returns the error for a failed native call; ``action`` names the operation, with its sizes."""
    name = _RESULT_NAMES.get(result, f"VkResult {result}")
    return _RESULT_CLASSES.get(name, InternalError)(f"{action}: the driver answered {name}", vk_result=name)


def check(result: int, action: str) -> None:
    """Raises the error of a negative ``VkResult``; success codes (timeouts, incomplete) pass.

    Messages of the validation layers take precedence: they describe the error.
    """
    if pending_validation:
        raise_pending_validation()
    if result < 0:
        raise error_from_result(result, action)


# Errors that the validation layers reported since the last check, in any thread. A plain list keeps the test on the hot
# path to one truth value.
pending_validation: list[InternalError] = []


def raise_pending_validation() -> None:
    """Raises the first validation error reported since the last call, and forgets the others."""
    if errors := take_validation_errors():
        raise errors[0]


def take_validation_errors() -> list[InternalError]:
    """Returns the validation errors not yet raised, which are then forgotten."""
    errors = list(pending_validation)
    pending_validation.clear()
    return errors


def listed_names(function: NativeFunction, struct: str, field: str, noun: str, *arguments: Any) -> frozenset[str]:
    """Returns a text field of each structure that ``listed`` yields."""
    return frozenset(text(getattr(element, field)) for element in listed(function, struct, noun, *arguments))


def listed(function: NativeFunction, struct: str, noun: str, *arguments: Any) -> Iterator[CData]:
    """Yields structures or handles by Vulkan's two-call idiom: the count first, then the data."""
    count = ffi.new("uint32_t *")
    for _ in range(_MOST_TRIES):
        check(function(*arguments, count, ffi.NULL) or 0, f"counting {noun}")
        items = ffi.new(f"{struct}[]", count[0])
        if ffi.typeof(items).item.kind == "struct" and "sType" in dict(ffi.typeof(items).item.fields):
            for item in items:
                item.sType = new(struct).sType
        result = function(*arguments, count, items) or 0
        check(result, f"enumerating {noun}")
        if result != VK_INCOMPLETE:  # more appeared since the count
            break
    for index in range(count[0]):  # a generator, as an element does not keep the array alive
        yield items[index]
