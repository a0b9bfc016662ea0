"""The last calls of kernels and programs in a test, with their inputs, for reports of failures.

While a `Recorder` is active, it notes the calls of every kernel and session function of the process. ``Kernel`` and
``SessionFunction`` know nothing of it, and run at full speed without it.

Inputs are copied at the call: host arrays on the host, device arrays on the device in the order of its work, so that
the test need not wait.
"""

from __future__ import annotations

import functools
import math
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any, Final

import numpy as np

from ..base.lazy_dataclass import dataclass
from ..formats.element_type import format_shape
from ..runtime import ArraySpec, DeviceArray, DeviceImage, Kernel, Sampler, SessionFunction
from ..runtime.arrays.array import new_array
from ..runtime.images.bound import HostImage
from ..runtime.kernels.parameters.image_parameter import ImageParameter, SamplerParameter
from ..runtime.kernels.parameters.parameter import Parameter
from ..runtime.values.sampler_text import format_sampler
from ..status import PumiceError, UnimplementedError

_MAX_CALLS: Final = 8
_KIND: Final = "an argument of this kind is not kept"
_MAX_BYTES: Final = 32 << 20


@dataclass(frozen=True, slots=True)
class KeptImage:
    """An image at the time of a call.

    Attributes:
        head: the shape and format, ``64x64xrgba8unorm``.
        sampler: the sampler in the form of ``--sampler``, ``""`` for none.
        array: the texels as an array of the host, or ``None``.
        texels: the bytes of an image on a device, as an array there, or ``None``.
        nbytes: the size of the kept bytes.
    """

    head: str
    sampler: str
    array: np.ndarray | None = None
    texels: DeviceArray | None = None
    nbytes: int = 0


def keep_image(image: HostImage | DeviceImage, *, reads: bool) -> KeptImage:
    """Keeps the texels that a kernel reads; copies those of a device image in the order of its work, without waiting.

    Raises:
        UnimplementedError: the image has no textual form: it has levels or samples, or is compressed.
    """
    head = f"{format_shape(image.layout.grid)}x{image.format.name}"
    sampler = "" if image.sampler is None else sampler_text(image.sampler)
    if isinstance(image, HostImage):
        array = image.array.copy() if reads and image.array is not None else None
        return KeptImage(head, sampler, array, nbytes=0 if array is None else array.nbytes)
    if image.levels > 1 or image.hal.samples > 1 or image.format.is_compressed:
        raise UnimplementedError("an image with levels or samples, or of a compressed format, is not kept")
    if not reads:
        return KeptImage(head, sampler)
    texels = new_array(image.device, (image.nbytes,), np.dtype(np.uint8))
    texels.mark(image.read_to(texels.buffer), written=True)
    return KeptImage(head, sampler, texels=texels, nbytes=image.nbytes)


def sampler_text(sampler: Sampler) -> str:
    """Returns a sampler's settings in the form of ``--sampler``."""
    return format_sampler(sampler.hal.settings)


Value = np.ndarray | ArraySpec | DeviceArray | KeptImage | int | float | None


@dataclass(frozen=True, slots=True)
class Input:
    """One argument of a call.

    Attributes:
        value: a copy of an array or an image, a specification of an array that is only written, a number, or ``None``
            for values that cannot be kept (``why`` explains) and for arguments without a value.
        key: the key of a kernel's binding in ``pumice run``.
        sampler: the sampler in the form of ``--sampler``.
        written: whether the kernel may write it.
    """

    value: Value
    why: str = ""
    key: str = ""
    sampler: str = ""
    written: bool = False

    def read(self) -> Input:
        """Returns the input, with a device array copied to the host."""
        if not isinstance(self.value, DeviceArray):
            return self
        try:
            return replace(self, value=host_copy(self.value))
        except PumiceError as error:
            return replace(self, value=None, why=f"it cannot be read: {error.message}")


@dataclass(slots=True)
class Call:
    """A call of a kernel, with an input for each descriptor, or of a session's function."""

    target: Kernel | SessionFunction
    inputs: Sequence[Input]
    groups: object = None
    push: bytes = b""
    results: tuple[object, ...] = field(default=())


_NOT_KEPT: Final = Input(None, _KIND)


class Recorder:
    """Notes the last few calls, with up to 32 MiB of inputs per call."""

    def __init__(self) -> None:
        self.calls: deque[Call] = deque(maxlen=_MAX_CALLS)

    @contextmanager
    def active(self) -> Iterator[None]:
        """Notes calls until the block ends."""
        watched: tuple[tuple[type, str, Any], ...] = (
            (Kernel, "__call__", _kernel_call),
            (SessionFunction, "__call__", _session_call),
            (SessionFunction, "submit", _session_call),
        )
        real = [getattr(kind, name) for kind, name, _ in watched]
        for (kind, name, note), call in zip(watched, real, strict=True):
            setattr(kind, name, self._wrapped(call, note))
        try:
            yield
        finally:
            for (kind, name, _), call in zip(watched, real, strict=True):
                setattr(kind, name, call)

    def _wrapped(self, real: Callable[..., Any], note: Callable[..., Call | None]) -> Callable[..., Any]:
        within = threading.local()  # calls may be nested

        @functools.wraps(real)
        def call(target: Any, /, *arguments: Any, **named: Any) -> Any:
            if getattr(within, "one", False):
                return real(target, *arguments, **named)
            within.one = True
            try:
                # The call itself rejects arguments that cannot be noted.
                try:
                    noted = note(target, arguments, named)
                except (PumiceError, TypeError, ValueError):
                    noted = None
                if noted is not None:
                    self.calls.append(noted)
                result = real(target, *arguments, **named)
            finally:
                within.one = False
            if noted is not None:
                noted.results = result if isinstance(result, tuple) else () if result is None else (result,)
            return result

        return call


def _kernel_call(kernel: Kernel, arguments: tuple[Any, ...], named: dict[str, Any]) -> Call | None:
    groups, push, out = (named.get(name) for name in ("groups", "push", "out"))
    rest = {name: value for name, value in named.items() if name not in ("groups", "push", "out", "uses", "wait")}
    parameters, arrays, packed = kernel.placed(arguments, out=out, push=push, named=rest)
    budget = _Budget()
    inputs = []
    elements: Counter[str] = Counter()
    for array, parameter in zip(arrays, parameters, strict=True):
        number = (
            f"{parameter.binding.set}.{parameter.binding.binding}"
            if parameter.binding.set
            else str(parameter.binding.binding)
        )
        key = number if parameter.binding.count == 1 else f"{number}[{elements[number]}]"
        elements[number] += 1
        kept = _kept(budget, kernel, parameter, array)
        inputs.append(replace(kept, key=key, written=parameter.written))
    return Call(kernel, inputs, groups, packed)


def _kept(budget: _Budget, kernel: Kernel, parameter: Parameter, value: Any) -> Input:
    """Returns the record of one argument of a kernel."""
    if value is None:
        return Input(None)
    if isinstance(parameter, SamplerParameter):
        return Input(None, sampler=sampler_text(value)) if isinstance(value, Sampler) else Input(None, _KIND)
    if not isinstance(parameter, ImageParameter):
        return budget.keep(value, reads=parameter.binding.readable) if parameter.binding.image is None else _NOT_KEPT
    try:
        image = keep_image(parameter.prepare(value, kernel.name), reads=parameter.binding.readable)
    except UnimplementedError as error:
        return Input(None, error.message)
    return budget.charged(Input(image, sampler=image.sampler), image.nbytes)


def _session_call(function: SessionFunction, arguments: tuple[Any, ...], named: dict[str, Any]) -> Call | None:
    options = ("out", "donate", "timeout", "wait", "signal", "policy", "loop")
    rest = {name: value for name, value in named.items() if name not in options}
    values = function.signature.place(arguments, rest) if rest else arguments
    budget = _Budget()
    return Call(function, [budget.keep(value, reads=True) for value in values])


class _Budget:
    """The bytes that may still be kept for a call."""

    def __init__(self) -> None:
        self._left = _MAX_BYTES

    def keep(self, value: Any, *, reads: bool) -> Input:
        """Returns a copy of an argument, or a specification to allocate it if it is not read."""
        if isinstance(value, (bool, np.generic)):
            value = value.item() if isinstance(value, np.generic) else int(value)
        if isinstance(value, (int, float, ArraySpec)):
            return Input(value)
        if not isinstance(value, (DeviceArray, np.ndarray)):
            value = np.asarray(value)
        if value.dtype.hasobject:
            return Input(None, _KIND)
        if not reads:
            return Input(ArraySpec(value.shape, value.dtype))
        if value.nbytes > self._left:
            return self.charged(Input(None), value.nbytes)
        return self.charged(Input(value.copy()), value.nbytes)

    def charged(self, argument: Input, nbytes: int) -> Input:
        """Returns the input if there is room for its bytes, otherwise a note in its place."""
        self._left -= nbytes
        if self._left >= 0:
            return argument
        size = f"{math.ceil(nbytes / 2**20)} MiB"
        return Input(None, f"its {size} are more than the {_MAX_BYTES >> 20} MiB that are kept of a call")


def host_copy(array: DeviceArray) -> np.ndarray:
    """Returns the contents; ignores shaders' reports on them, which the test checks itself."""
    out = np.empty(array.shape, array.dtype)
    array.device.reach(array.device.submitted)
    array.device.download(array.buffer, out)
    return out
