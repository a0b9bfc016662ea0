"""Results of a compiled program: reads them to the host, prints, stores and compares them like iree-run-module.

Texts and messages are those of IREE's tools (``function_io.c``, ``comparison.cc`` and ``buffer_view_matchers.c`` in
``runtime/src/iree/tooling``, 3.13), with these differences: those tools consider scalars unequal to every expectation,
and print scalar floats narrower than 32 bits as the integer of their bits. Here expected real scalars have the
tolerances of tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ...base.lazy_dataclass import dataclass
from ...formats.element_type import ElementType, EncodingType, format_shape_and_type
from ...hal.buffer import Buffer
from ...hal.buffer_view import BufferView
from ...runtime.sessions.binding import declared_view
from ...runtime.sessions.session import Session
from ...runtime.sessions.signature import Signature
from ...runtime.values.format import format_scalar, format_value
from ...status import InvalidArgumentError, UnimplementedError
from ...vm.types.buffer import VmBuffer
from ...vm.types.list import VmList
from ...vm.types.ref_types import ref_type_name
from .expectations import Tolerances, comparable, differing
from .keys import Array
from .module_arguments import Given, scalar_type

_VIEW: Final = "hal.buffer_view"
_MAX_NESTED: Final = 16
_SHOWN: Final = 1024  # elements in messages, whatever --output_max_element_count says


@dataclass(frozen=True, slots=True)
class HostResult:
    """A result on the host.

    The element type is that of a number or of a view's elements; ``array`` is ``None`` if NumPy has no such type.
    """

    name: str
    element_type: ElementType | None = None
    array: Array | None = None
    data: bytes = b""
    children: tuple[HostResult, ...] = ()
    kind: str = ""

    @property
    def is_number(self) -> bool:
        return self.element_type is not None and self.element_type.short_name == self.name


def read_results(values: object, signature: Signature, session: Session) -> list[HostResult]:
    """Returns a function's results with the contents of buffers."""
    several = values if isinstance(values, tuple) else (values,)
    results = []
    for result, value in zip(signature.results, several[: len(signature.results)], strict=True):
        if result.letter == "r":
            results.append(_reference(declared_view(result.declared)(value), session))
        else:
            results.append(_number(value, scalar_type(result)))
    return results


def _number(value: object, element_type: ElementType) -> HostResult:
    dtype = element_type.require_dtype()
    if isinstance(value, int) and element_type.is_float:
        mask = (1 << 8 * dtype.itemsize) - 1
        array = np.asarray(value & mask, f"u{dtype.itemsize}").view(dtype)
    else:
        array = np.asarray(value, dtype)
    return HostResult(element_type.short_name, element_type, array, array.tobytes())


def _reference(value: object, session: Session, depth: int = 0) -> HostResult:
    if depth > _MAX_NESTED:  # a list may even contain itself
        raise UnimplementedError(f"expected lists nested at most {_MAX_NESTED} deep among the results, got deeper ones")
    name = ref_type_name(value)
    if isinstance(value, BufferView):
        element_type = value.element_type
        data = _read(value.buffer, value.byte_length, session)
        array = None
        if value.encoding is EncodingType.DENSE_ROW_MAJOR and element_type.dtype is not None:
            array = element_type.unpack(data, value.shape)
        kind = format_shape_and_type(value.shape, element_type)
        return HostResult(name, element_type, array, data, kind=kind)
    if isinstance(value, Buffer):
        return _bytes(name, _read(value, value.size, session))
    if isinstance(value, VmBuffer):
        return _bytes(name, bytes(value.as_memoryview()))
    if isinstance(value, VmList):
        children = []
        for index, child in enumerate(value.values()):
            if isinstance(child, (int, float)):
                children.append(_number(child, ElementType.parse(value.kind_of(index))))
            else:
                children.append(_reference(child, session, depth + 1))
        return HostResult(name, children=tuple(children))
    return HostResult(name)


def _bytes(name: str, data: bytes) -> HostResult:
    return HostResult(name, ElementType.INT_8, np.frombuffer(data, np.int8), data)


def _read(buffer: Buffer, size: int, session: Session) -> bytes:
    if not size:
        return b""
    device = next((candidate for candidate in session.devices if candidate.hal is buffer.device), None)
    if device is None:
        raise InvalidArgumentError("expected a result on one of the session's devices, got one of another device")
    out = np.empty(size, np.uint8)
    device.download(buffer if buffer.size == size else buffer.subspan(0, size), out)
    return out.tobytes()


# -- text --------------------------------------------------------------------------------------------


def result_text(result: HostResult, max_elements: int | None) -> str:
    """Returns the text form of a result; several lines for references."""
    if result.name == "null":
        return "(null)"
    if result.is_number:
        assert result.element_type is not None and result.array is not None
        value: int | float = result.array.astype(np.float64 if result.element_type.is_float else np.int64).item()
        return format_scalar(value, result.element_type)
    if result.name == _VIEW:
        return f"{result.name}\n{_view_text(result, max_elements)}"
    if result.name == "vm.list":
        children = "".join(f"child_list[{i}]: {result_text(c, max_elements)}\n" for i, c in enumerate(result.children))
        return f"{result.name}\n{children}"
    return f"{result.name}\n(no printer)"


def _view_text(result: HostResult, max_elements: int | None) -> str:
    if result.array is None:
        return f"{result.kind}={result.data.hex().upper()}"
    return format_value(result.array, max_elements=max_elements, element_type=result.element_type)


# -- files -------------------------------------------------------------------------------------------


def store_result(result: HostResult, path: Path, *, append: bool, where: str) -> None:
    """Writes a result to a file: a NumPy array if the path ends in ``.npy``, else its bytes."""
    array = result.array
    if result.name == "null":
        array = np.zeros(0, np.int8)
    elif result.element_type is None:
        raise UnimplementedError(f"{where}: a result of type {result.name} has no form in files")
    elif array is None and path.suffix == ".npy":
        raise UnimplementedError(
            f"{where}: NumPy has no type for {result.kind}; store its bytes in another kind of file"
        )
    from .arguments import store_array  # imported here: most results are printed

    store_array(path, array, lambda: result.data, append=append, where=where)


# -- expectations ------------------------------------------------------------------------------------


def compare(results: Sequence[HostResult], expected: Sequence[Given], tolerances: Tolerances) -> list[str]:
    """Returns the differences: one or more lines for each result that differs from its expectation."""
    texts = []
    for index, (result, expectation) in enumerate(zip(results, expected, strict=True)):
        if expectation.value is None:
            continue
        detail = _difference(result, expectation, tolerances)
        if detail is not None:
            texts.append(f"[FAILED] result[{index}]: {detail}")
    return texts


def _difference(got: HostResult, expected: Given, tolerances: Tolerances) -> str | None:
    if not isinstance(expected.value, np.ndarray):
        return _number_difference(got, expected.value, tolerances)
    assert expected.element_type is not None
    if got.name != _VIEW:
        return f"variant types mismatch; expected hal.buffer_view but got {'empty' if got.name == 'null' else got.name}"
    got_type = got.element_type or ElementType.NONE
    kind = format_shape_and_type(expected.value.shape, expected.element_type)
    if got.array is None or got.array.shape != expected.value.shape or not comparable(got_type, expected.element_type):
        detail = f"metadata is {got.kind}; expected that the view matches {kind}"
    else:
        array = got.array.view(expected.value.dtype)
        wrong = differing(array, expected.value, expected.element_type, tolerances)
        position = int(np.argmax(wrong)) if wrong.any() else -1
        if position < 0:
            return None
        shown = [
            format_value(
                part.reshape(-1)[position : position + 1].reshape(()), element_type=expected.element_type
            ).partition("=")[2]
            for part in (array, expected.value)
        ]
        detail = f"element at index {position} ({shown[0]}) does not match the expected ({shown[1]})"
    return (
        f"{detail}; expected that the view is equal to contents of a view of {kind}\n  expected:\n"
        f"{format_value(expected.value, max_elements=_SHOWN, element_type=expected.element_type)}\n  actual:\n"
        f"{_view_text(got, _SHOWN)}"
    )


def _number_difference(got: HostResult, expected: object, tolerances: Tolerances) -> str | None:
    if not got.is_number:
        return f"variant types mismatch; expected a number but got {'empty' if got.name == 'null' else got.name}"
    assert got.element_type is not None and got.array is not None
    wanted = np.asarray(expected, got.array.dtype)
    if not differing(got.array, wanted, got.element_type, tolerances).any():
        return None
    shown = [format_value(array, element_type=got.element_type).partition("=")[2] for array in (wanted, got.array)]
    return f"{got.name} values differ\n  expected: {shown[0]}\n  actual: {shown[1]}"
