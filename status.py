"""Status codes and the one error hierarchy of pumice.

The sixteen canonical codes and their numbers are those of gRPC and Abseil
(https://abseil.io/docs/cpp/guides/status-codes); ``DEFERRED`` and ``INCOMPATIBLE`` are the two that
IREE adds to them (``runtime/src/iree/base/status.h``, 3.13).
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Iterable
from typing import ClassVar, Final

_MAX_SHOWN: Final = 200


class StatusCode(enum.IntEnum):
    """The kind of an error, in terms of what the caller can do about it."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    DATA_LOSS = 15
    UNAUTHENTICATED = 16
    DEFERRED = 17
    INCOMPATIBLE = 18


class PumiceError(Exception):
    """The base class of pumice's errors.

    Attributes:
        code: the canonical status code; each subclass has a fixed one.
        message: the text without the code: the expected value, the actual value and the remedy.
        location: the place in a program (module, function, source line), or ``None``.
        vk_result: the name of the ``VkResult`` behind the error (``"VK_ERROR_DEVICE_LOST"``), or ``None``.
    """

    code: StatusCode = StatusCode.UNKNOWN
    default_code: ClassVar[StatusCode] = StatusCode.UNKNOWN

    def __init__(
        self,
        message: str,
        *,
        code: StatusCode | None = None,
        location: str | None = None,
        vk_result: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message: Final = message
        self.code = self.default_code if code is None else code
        self.location = location
        self.vk_result = vk_result

    def __str__(self) -> str:
        parts = [f"{self.code.name}: "]
        if self.location:
            parts.append(f"{self.location}: ")
        parts.append(self.message)
        if self.vk_result and self.vk_result not in self.message:
            parts.append(f" [{self.vk_result}]")
        return "".join(parts)

    def again(self) -> PumiceError:
        """Returns a new error of the same class and content.

        A sticky failure is raised once for every waiter, in several threads; each gets a separate exception object, and
        so a separate traceback.
        """
        copy = type(self)(self.message, code=self.code, location=self.location, vk_result=self.vk_result)
        copy.__cause__ = self
        return copy


class CancelledError(PumiceError):
    """The operation was cancelled by its owner."""

    default_code = StatusCode.CANCELLED


class UnknownError(PumiceError):
    """An error with no better code, such as a VkResult this version does not know."""

    default_code = StatusCode.UNKNOWN


class InvalidArgumentError(PumiceError, ValueError):
    """An argument that is never valid, whatever the state of the system."""

    default_code = StatusCode.INVALID_ARGUMENT


class DeadlineExceededError(PumiceError, TimeoutError):
    """The deadline passed. The awaited operation continues and can be awaited again."""

    default_code = StatusCode.DEADLINE_EXCEEDED


class NotFoundError(PumiceError, LookupError):
    """A named thing (device, file, entry point, export) does not exist; the message lists those that do."""

    default_code = StatusCode.NOT_FOUND

    def __str__(self) -> str:  # LookupError's subclasses may quote the message
        return PumiceError.__str__(self)


class AlreadyExistsError(PumiceError):
    """The object to create exists already."""

    default_code = StatusCode.ALREADY_EXISTS


class PermissionDeniedError(PumiceError):
    """The operating system or the memory's access bits forbid the access."""

    default_code = StatusCode.PERMISSION_DENIED


class ResourceExhaustedError(PumiceError, MemoryError):
    """Out of memory or of a driver's limited objects; nothing was created."""

    default_code = StatusCode.RESOURCE_EXHAUSTED


class FailedPreconditionError(PumiceError, RuntimeError):
    """The object is not in the state that the call needs."""

    default_code = StatusCode.FAILED_PRECONDITION


class ClosedError(FailedPreconditionError):
    """The caller has closed the object; nothing broke."""


class AbortedError(PumiceError):
    """The operation was ended from outside before it finished."""

    default_code = StatusCode.ABORTED


class OutOfRangeError(PumiceError, IndexError):
    """A well-formed range that exceeds the bounds of the object."""

    default_code = StatusCode.OUT_OF_RANGE


class UnimplementedError(PumiceError, NotImplementedError):
    """The device, or this version of pumice, cannot do it."""

    default_code = StatusCode.UNIMPLEMENTED


class InternalError(PumiceError):
    """A broken invariant of pumice, or wrong use of Vulkan that a validation layer found: please report it."""

    default_code = StatusCode.INTERNAL


class UnavailableError(PumiceError):
    """Something required is missing at present (a Vulkan loader, a driver); the message says how to get it."""

    default_code = StatusCode.UNAVAILABLE


class DataLossError(PumiceError):
    """Unrecoverable loss or corruption of data."""

    default_code = StatusCode.DATA_LOSS


class DeviceLostError(PumiceError):
    """The device was lost. It is sticky: every later use of the device raises it too."""

    default_code = StatusCode.UNAVAILABLE


class IncompatibleError(PumiceError):
    """A version of a format or interface that this build does not know."""

    default_code = StatusCode.INCOMPATIBLE


# The class of each code; an error known only as UNKNOWN stays a PumiceError.
_CLASSES: Final = {
    subclass.default_code: subclass
    for subclass in PumiceError.__subclasses__()
    if subclass not in (UnknownError, DeviceLostError)
}


def error_for(code: StatusCode, message: str) -> PumiceError:
    """Returns the error for a status code, of the most specific class.

    Raises:
        InvalidArgumentError: ``code`` is ``OK``, which is not an error.
    """
    if code == StatusCode.OK:
        raise InvalidArgumentError("error_for expects a failure code, got OK; return normally instead")
    return _CLASSES.get(code, PumiceError)(message, code=code)


def shorten(text: str, limit: int = _MAX_SHOWN) -> str:
    """Cuts a text to a readable length for a message."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def shown(value: object, limit: int = _MAX_SHOWN) -> str:
    """Returns a value's ``repr``, cut to a readable length for a message."""
    if isinstance(value, str) and len(value) > limit:
        return f"{value[:limit]!r}… ({len(value)} characters)"
    try:
        text = repr(value)
    except ValueError:  # an int with more digits than Python converts
        text = f"a number of {int(value).bit_length()} bits" if isinstance(value, int) else type(value).__name__
    except RecursionError:
        text = f"a deeply nested {type(value).__name__}"
    return shorten(text, limit)


def close_to(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Returns the known names most similar to an unknown one, the closest first, for a message's *did you mean*."""
    import difflib  # imported here, since only errors need it

    # Comparing takes quadratic time in the length. With a cutoff below two thirds, 'local' would match 'calls'.
    return difflib.get_close_matches(name[:64], itertools.islice(known, 1000), count, 0.65)
