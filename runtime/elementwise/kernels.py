"""The base of the three kinds of generated kernels: names, texts, and the loaded kernels of each device."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ...status import InvalidArgumentError
from ..kernels.kernel import Kernel
from .parameters import Declared, parse_parameters

if TYPE_CHECKING:
    from ..device import Device


class Generated:
    """A kernel that is generated for the types and shapes of each call. Thread-safe.

    Attributes:
        name: the name in messages and profiles.
    """

    _inputs: tuple[Declared, ...]
    _outputs: tuple[Declared, ...]

    def __init__(self, name: object, preamble: object) -> None:
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name):
            raise InvalidArgumentError(f"name is an identifier, got {name!r}")
        self.name = name
        self._preamble = text_of("preamble", preamble)
        self._lock = threading.Lock()
        self._kernels: dict[Device, dict[object, Kernel]] = {}

    def _declare(self, in_params: object, out_params: object, noun: str) -> None:
        """Parses the parameters and the results; ``noun`` describes results with arrays of their own shape."""
        self._inputs = parse_parameters(in_params, "in_params")
        self._outputs = parse_parameters(out_params, "out_params", known=self._inputs)
        if not self._outputs:
            raise InvalidArgumentError("out_params is empty: there is no result")
        if any(parameter.is_raw for parameter in self._outputs):
            raise InvalidArgumentError(f"out_params: results of a {noun} are not raw")

    @property
    def _raw_lengths(self) -> dict[str, str]:
        """Expressions for the lengths of raw arrays, by name."""
        every = (*self._inputs, *self._outputs)
        return {parameter.name: f"{parameter.name}.length()" for parameter in every if parameter.is_raw}

    @property
    def _counted(self) -> str:
        """The declaration of ``n``, unless a parameter has that name."""
        every = (*self._inputs, *self._outputs)
        return "" if any(parameter.name == "n" for parameter in every) else "const int n = int(_n);\n"

    def _kernel(self, device: Device, key: object, load: Callable[[], Kernel]) -> Kernel:
        """Returns the kernel of a key on a device; loads it at the first use."""
        with self._lock:
            if device not in self._kernels:
                for closed in [known for known in self._kernels if known.is_closed]:
                    del self._kernels[closed]
            kernels = self._kernels.setdefault(device, {})
            kernel = kernels.get(key)
            if kernel is None:
                kernel = kernels[key] = load()
            return kernel

    def close(self) -> None:
        """Unloads its kernels, once work in flight is done; a later call loads them again."""
        with self._lock:
            for kernels in self._kernels.values():
                for kernel in kernels.values():
                    kernel.close()
            self._kernels.clear()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


def text_of(name: str, value: object) -> str:
    """Checks a text for generated code, and returns it."""
    if not isinstance(value, str):
        raise InvalidArgumentError(f"{name} is a text, got {type(value).__name__}")
    if "\0" in value:
        raise InvalidArgumentError(f"{name} is a text without NUL characters, got {value!r}")
    return value


def expression_of(name: str, value: object) -> str:
    """Checks that an expression is not empty and contains no statements, and returns it."""
    text = text_of(name, value).strip()
    if not text:
        raise InvalidArgumentError(f"{name} is an expression, got an empty text")
    if ";" in text:
        raise InvalidArgumentError(f"{name} is one expression, without semicolons; got {text!r}")
    return text


def constant_of(name: str, value: object) -> str:
    """Returns a constant for an expression, from a text or a number."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value) if value == value and abs(value) != float("inf") else _NOT_FINITE[str(value)]
    return expression_of(name, value)


_NOT_FINITE: Mapping[str, str] = {"inf": "(1.0 / 0.0)", "-inf": "(-1.0 / 0.0)", "nan": "(0.0 / 0.0)"}
