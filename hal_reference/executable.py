"""Executables: functions of tensor operations over the bytes of buffers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..hal.program import Executable as AnyExecutable
from ..status import InvalidArgumentError, NotFoundError, OutOfRangeError, PumiceError, ResourceExhaustedError
from .layout import Memory, load, store
from .logical_device import LogicalDevice
from .operations import DEFINITIONS
from .program import Evaluator
from .program_format import Function, decode


class Executable(AnyExecutable):
    """The functions of a blob of the format ``pumice-reference``."""

    device: LogicalDevice

    def __init__(self, device: LogicalDevice, blob: memoryview) -> None:
        self.device = device
        self._functions = decode(blob)

    def lookup(self, name: str) -> int:
        names = [function.name for function in self._functions]
        if name not in names:
            raise NotFoundError(f"this executable has no function {name!r}; it has: {', '.join(names) or 'none'}")
        return names.index(name)

    def function(self, number: int) -> Function:
        """Returns a function by id; raises OutOfRangeError for an unknown id."""
        if not 0 <= number < len(self._functions):
            raise OutOfRangeError(f"this executable has {len(self._functions)} function(s); {number} was asked for")
        return self._functions[number]

    def run(self, function: Function, bindings: Sequence[Memory]) -> None:
        """Runs a function: reads inputs from the first bindings, writes results to the others.

        Raises:
            OutOfRangeError: a binding is too short.
            InvalidArgumentError: an operation's attributes are invalid; only in forged executables.
            ResourceExhaustedError: there is no memory for a value.
            CancelledError: the device was closed.
        """
        name, inputs = function.name, len(function.inputs)
        evaluator = Evaluator(DEFINITIONS, self.device.check_running)
        arguments = [load(bindings[at], spec, f"{name}: input {at}") for at, spec in enumerate(function.inputs)]
        try:
            with np.errstate(all="ignore"):
                results = evaluator.run(function.body, arguments)
        except PumiceError:
            raise
        except MemoryError as error:
            raise ResourceExhaustedError(f"{name}: {error or 'no memory'}") from None
        except Exception as error:
            operation = "?" if evaluator.node is None else evaluator.node.name
            raise InvalidArgumentError(f"{name}: the operation {operation}: {type(error).__name__}: {error}") from error
        # A result may be a view of an input that another result overwrites.
        copies = [result.copy() for result in results] if len(results) > 1 else results
        for at, (spec, value) in enumerate(zip(function.outputs, copies, strict=True)):
            store(bindings[inputs + at], value, spec, f"{name}: result {at}")
