"""Results in the caller's arrays: ``out=``.

A result is written in place if the function takes a *storage* for it: an argument with the attribute
``iree.abi.output``. Other results are copied on the device once they are computed. An omitted storage takes memory of a
donated argument if the program allows it (donation.py), else it is allocated.

``Outputs`` is shared by all calls of a function; ``OutputCall`` (output_call.py) is one call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...formats.element_type import EncodingType, format_shape_and_type
from ...hal.buffer import Buffer, first_overlap
from ...hal.buffer_view import BufferView
from ...hal.memory import BufferUsage, MemoryAccess, MemoryTypeFlags
from ...hal.programs.device_context import DeviceContext, DeviceTable
from ...status import ClosedError, InvalidArgumentError, NotFoundError, PermissionDeniedError
from ...vm.bytecode.declaration import ValueKind
from ..arrays.array import DeviceArray, new_array
from .donation import Donate, buffer_of, donated_numbers
from .session_devices import CallTarget
from .signature import Argument, Signature, shape_text

Target: TypeAlias = "DeviceArray | BufferView"
Out: TypeAlias = "Target | Sequence[Target]"
"""Arrays for the results: a single array, or one for each result in order."""
Binder: TypeAlias = Callable[[Any], Any]

BUFFER: Final = "!hal.buffer"
_TENSORS: Final = ("!hal.buffer_view", BUFFER)
_MEMORY: Final = int(MemoryTypeFlags.DEVICE_LOCAL)
_USAGE: Final = int(BufferUsage.DEFAULT)


@dataclass(frozen=True, slots=True)
class Output:
    """A tensor among the results.

    Attributes:
        number: the position among the results.
        tensor: the tensor's name and type.
        storage: the argument that the program writes it into.
        nbytes: the bytes of the elements; ``None`` if only the program knows it.
        is_packed: whether elements share bytes, unlike those of arrays.
        takes_buffer: whether the storage is a bare buffer.
    """

    number: int
    tensor: Argument
    storage: Argument | None
    nbytes: int | None
    is_packed: bool = False
    takes_buffer: bool = False

    @property
    def text(self) -> str:
        """Its name in messages."""
        return f"result {self.number} ({self.tensor})"


class Outputs:
    """The destinations of a function's results, shared by its calls.

    ``numbers`` are the results that callers get as numbers although the program writes them into storages.

    Attributes:
        inputs: the arguments without storages.
        count: the number of all results.
        tensors: the tensors in the order of ``out=``.
        stored: the tensors that the program writes into storages, including those in ``tensors``.
        is_returned: whether the program returns them, instead of only writing them into storages.
    """

    def __init__(
        self,
        signature: Signature,
        binders: Sequence[Binder],
        unbinders: Sequence[Binder],
        numbers: Container[int],
        target: CallTarget,
    ) -> None:
        self.signature = signature
        self.binders = binders
        self.unbinders: list[Binder] = [
            target.devices.wrap_number if number in numbers else unbind for number, unbind in enumerate(unbinders)
        ]
        self.target = target
        self.inputs: tuple[Argument, ...] = signature.inputs
        self._donated: dict[int | tuple[int | str, ...], tuple[int, ...]] = {}
        storages = {output.storage: output for output in signature.arguments if output.storage is not None}
        self.is_returned: bool = bool(signature.results)
        self.count: int = len(signature.results or storages)
        outputs = [_output(number, signature, storages.get(number)) for number in range(self.count)]
        tensors = [output for output in outputs if output is not None]
        self.tensors: tuple[Output, ...] = tuple([output for output in tensors if output.number not in numbers])
        self.stored: tuple[tuple[Output, Argument], ...] = tuple(
            [(output, output.storage) for output in tensors if output.storage is not None]
        )

    def contexts(self) -> Mapping[Any, DeviceContext]:
        """Returns the device contexts of the session's programs, by device; empty without the ``hal`` module."""
        try:
            state = self.target.context.module_state("hal")
        except NotFoundError:
            return {}
        return state.contexts if isinstance(state, DeviceTable) else {}

    def donated_numbers(self, donate: Donate) -> tuple[int, ...]:
        """Returns the inputs in ``donate``, without duplicates."""
        if type(donate) is not tuple and type(donate) is not int:
            return donated_numbers(self.signature, self.inputs, donate)
        numbers = self._donated.get(donate)
        if numbers is None:
            numbers = self._donated[donate] = donated_numbers(self.signature, self.inputs, donate)
        return numbers

    def new_view(self, output: Output, memory: Buffer | None) -> BufferView:
        """Returns the storage of an omitted result, in ``memory`` if passed, else in new memory."""
        tensor = output.tensor
        if output.nbytes is None or tensor.shape is None or tensor.element_type is None:
            raise InvalidArgumentError(
                f"{self.signature.name}: only the program knows the shape of {output.text}; give an array for it with "
                "out="
            )
        if memory is None:
            device = self.target.devices.first()
            context = self.contexts().get(device.hal)
            if context is not None:
                memory = context.allocator.allocate(_MEMORY, _USAGE, output.nbytes)
            else:
                memory = new_array(device, (output.nbytes,), np.dtype(np.uint8)).shared()
        shape = tuple([length or 0 for length in tensor.shape])
        return BufferView.of_checked(memory, shape, tensor.element_type, EncodingType.DENSE_ROW_MAJOR)

    @property
    def is_allocatable(self) -> bool:
        """Whether omitted storages can be allocated before a call."""
        return all(output.nbytes is not None for output, _ in self.stored)

    # -- checks --------------------------------------------------------------------------------------

    def targets(self, out: object) -> tuple[Target, ...]:
        """Returns the arrays of ``out``, one for each of ``tensors``, checked."""
        name, tensors = self.signature.name, self.tensors
        if type(out) is DeviceArray and len(tensors) == 1:
            self._check(tensors[0], out)
            return (out,)
        arrays = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        for array in arrays:
            if not isinstance(array, (DeviceArray, BufferView)):
                raise InvalidArgumentError(
                    f"{name}: out takes a pumice.DeviceArray, or a tuple of one for each result, got "
                    f"{'a NumPy array' if isinstance(array, np.ndarray) else type(array).__name__}; make one with "
                    "session.device.empty(shape, dtype), and read it with numpy()"
                )
        if not tensors:
            raise InvalidArgumentError(f"{name} has no tensor among its results that out= could take")
        if len(arrays) != len(tensors):
            raise InvalidArgumentError(
                f"{name}: out takes {len(tensors)} array{'s' * (len(tensors) != 1)}, for "
                f"{', '.join(str(output.tensor) for output in tensors)}; got {len(arrays)}"
            )
        for output, target in zip(tensors, arrays, strict=True):
            self._check(output, target)
        pair = first_overlap([target.buffer for target in arrays])
        if pair is not None:
            first, second = (tensors[number].text for number in pair)
            raise InvalidArgumentError(f"{name}: out for {second} and out for {first} share memory; give two arrays")
        return arrays

    def _check(self, output: Output, target: Target) -> None:
        tensor, buffer = output.tensor, target.buffer
        # The fast path: an array that fits.
        if (
            target.shape == tensor.shape
            and type(target) is DeviceArray
            and target.dtype in tensor.dtypes
            and target.device in self.target.devices.known
            and buffer.parent is None
            and not buffer._closed
            and buffer.access is MemoryAccess.ALL
            and not output.is_packed
        ):
            return
        problem: str | None = None
        if buffer._closed or buffer.is_closed:
            raise ClosedError(self._wrong(output, target, buffer.moved_text or "it was closed"))
        if not _fits(tensor.shape, target.shape):
            problem = f"expected shape {shape_text(tensor.shape or ())}"
        elif isinstance(target, DeviceArray):
            if tensor.element_type is not None and target.dtype not in tensor.dtypes:
                wanted = " or ".join(map(str, tensor.dtypes))
                problem = f"expected dtype {wanted}" if wanted else f"NumPy has no dtype for {tensor.element_type.name}"
            elif output.is_packed:
                problem = "its elements are packed; give a buffer view of that element type"
            elif target.device not in self.target.devices.known:
                self.target.devices.first()  # opens the devices
                if target.device not in self.target.devices.known:
                    problem = f"it is on another device object, {target.device.name}, than the session"
        elif tensor.element_type not in (None, target.element_type):
            problem = f"expected elements of type {tensor.element_type}"
        elif buffer.device not in {device.hal for device in self.target.devices.open()}:
            problem = "it is on another device object than the session"
        if problem is not None:
            raise InvalidArgumentError(self._wrong(output, target, problem))
        if buffer.access is not MemoryAccess.ALL and not buffer.access & MemoryAccess.WRITE:
            raise PermissionDeniedError(self._wrong(output, target, "its memory may only be read"))

    def _wrong(self, output: Output, target: Target, problem: str) -> str:
        kind = target.dtype if isinstance(target, DeviceArray) else target.element_type.short_name
        return f"{self.signature.name}: out for {output.text} is an array of shape {target.shape} and {kind}; {problem}"

    def check_inputs(self, targets: Sequence[Target], values: Sequence[object]) -> None:
        """Rejects outputs that share memory with inputs, as the program would read overwritten values."""
        pair = first_overlap([target.buffer for target in targets], [buffer_of(value) for value in values])
        if pair is not None:
            number, index = pair[0], pair[1] - len(targets)
            argument = self.inputs[index]
            raise InvalidArgumentError(
                f"{self.signature.name}: out for {self.tensors[number].text} shares memory with argument "
                f"{argument.position} ({argument}), which the program may read later; give another array, or leave "
                f"out= out and donate the argument (donate={index})"
            )

    def check_result(self, output: Output, target: Target, result: object, view: BufferView | None) -> None:
        """Checks a returned view against its array and its storage."""
        tensor, shape = output.tensor, target.shape
        if isinstance(result, BufferView):
            kind = result.element_type
            if isinstance(target, BufferView):
                same = kind is target.element_type
            else:
                same = kind.dtype == target.dtype or (kind is tensor.element_type and target.dtype in tensor.dtypes)
            same = same and result.shape == shape and result.encoding is EncodingType.DENSE_ROW_MAJOR
        else:
            same = isinstance(result, Buffer) and result.size == target.buffer.size
        source = buffer_of(result)
        if same and source is not None:
            if view is None and source.device is target.buffer.device:
                return
            if view is not None and (source.overlaps(view.buffer) or not source.size):
                return
        text = type(result).__name__
        if isinstance(result, BufferView):
            text = f"{format_shape_and_type(result.shape, result.element_type)} on {result.buffer.device.name}"
        written = "nothing was written"
        if view is not None:
            written = (
                "its first bytes were written" if not same else "it is not in the storage that the program was given"
            )
        raise InvalidArgumentError(self._wrong(output, target, f"the program's result is {text}; {written}"))


def _output(number: int, signature: Signature, storage: Argument | None) -> Output | None:
    """Describes a tensor result before a call; ``None`` for numbers and other objects."""
    result = signature.results[number] if signature.results else storage
    assert result is not None
    declared = result.declared
    if result.letter != "r" or (
        declared is not None and declared.kind is ValueKind.REF and declared.type_text not in _TENSORS
    ):
        return None
    tensor = Argument.of(result.name, "r", declared, number)
    nbytes = None
    if tensor.shape is not None and None not in tensor.shape and tensor.element_type is not None:
        nbytes = tensor.element_type.storage_bytes(math.prod(length or 0 for length in tensor.shape))
    is_packed = tensor.element_type is not None and tensor.element_type.is_sub_byte
    return Output(number, tensor, storage, nbytes, is_packed, storage is not None and storage.type_text == BUFFER)


def _fits(wanted: tuple[int | None, ...] | None, shape: tuple[int, ...]) -> bool:
    if wanted is None or wanted == shape:
        return True
    return len(wanted) == len(shape) and all(a is None or a == b for a, b in zip(wanted, shape, strict=True))
