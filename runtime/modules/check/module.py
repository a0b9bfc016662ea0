"""The native module ``check``: expectations that programs state about their values.

    recorder = CheckRecorder()
    context = Context([hal_module([device]), check_module(recorder), program])
    context.invoke(context.lookup("module.test"), ())
    for failure in recorder.take().failures:
        print(failure.format())

A failed expectation is recorded, and the program continues. Expectations that cannot be checked (a null reference, an
element type without the operation) raise. Values are read when the expectation is called; compiled programs wait for
them before.

Facts: ``runtime/src/iree/modules/check/module.cc`` and ``compiler/src/iree/compiler/Modules/Check/check.imports.mlir``,
IREE 3.1 to 3.13. ``expect_almost_eq`` has tolerances since 3.3; programs from before 3.0 pass no devices. Unlike IREE,
a NaN and a number are never almost equal (3.1 let them pass), and complex numbers can be.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Final

from ....base.lazy_dataclass import dataclass
from ....formats.element_type import format_shape
from ....hal.buffer_view import BufferView
from ....hal.program import check_buffer
from ....hal.programs.device_context import TransferContexts
from ....hal.programs.file import read_bytes
from ....status import InvalidArgumentError
from ....vm.execution.bytecode_module import translated_function
from ....vm.native.module import NativeModule, export
from .report import CheckFailure, ElementDifference
from .values import Differing, HostView, describe_difference, differing_bits, far_apart, zeros

# For expectations without tolerances: runtime/src/iree/modules/check/module.cc, 3.1.
_ATOL: Final = 1e-4
_NARROW_ATOL: Final = 1e-3
# Python frames between a failure and the translated function that states the expectation.
_MAX_FRAMES_UP: Final = 12


@dataclass(frozen=True, slots=True)
class CheckLog:
    """The checks recorded since the last ``take``: the first failures, and the counts of all."""

    failures: tuple[CheckFailure, ...]
    failure_count: int
    expectation_count: int


class CheckRecorder:
    """Records expectations. Thread rule: the same as for its context.

    Attributes:
        max_failures: the largest number of failures to keep; all are counted.
        max_differences: the number of elements of each failure to show.
        max_elements: the number of a tensor's elements to print before ``...``.
    """

    max_failures = 100
    max_differences = 10
    max_elements = 64

    def __init__(self) -> None:
        self._failures: list[CheckFailure] = []
        self._failure_count = 0
        self._expectation_count = 0

    def expected(self) -> None:
        """Counts an expectation."""
        self._expectation_count += 1

    def failed(self, make: Callable[[], CheckFailure]) -> None:
        """Counts a failure, and keeps it if there is room."""
        self._failure_count += 1
        if len(self._failures) < self.max_failures:
            self._failures.append(make())

    def take(self) -> CheckLog:
        """Returns the recorded expectations, and forgets them."""
        log = CheckLog(tuple(self._failures), self._failure_count, self._expectation_count)
        self._failures = []
        self._failure_count = self._expectation_count = 0
        return log


def check_module(recorder: CheckRecorder) -> NativeModule:
    """Returns the ``check`` module for contexts; its expectations go to ``recorder``."""
    return NativeModule("check", state=functools.partial(CheckState, recorder), trusted=True)


class CheckState:
    """The state of one VM context: a recorder, and contexts of devices without host-visible memory."""

    def __init__(self, recorder: CheckRecorder) -> None:
        self._recorder = recorder
        self._contexts = TransferContexts()

    # -- scalars -------------------------------------------------------------------------------------

    @export("expect_true", "0i_v")
    def expect_true(self, operand: int) -> None:
        """Checks that the operand is not zero."""
        self._expect_scalar("expect_true", operand, operand != 0, "a number other than 0")

    @export("expect_false", "0i_v")
    def expect_false(self, operand: int) -> None:
        """Checks that the operand is zero."""
        self._expect_scalar("expect_false", operand, operand == 0, "0")

    def _expect_scalar(self, name: str, operand: int, holds: bool, expected: str) -> None:
        self._recorder.expected()
        if not holds:
            self._recorder.failed(
                lambda: CheckFailure(name, f"expected {expected}, got {operand}", location=_location())
            )

    # -- buffer views, after an optional device ---------------------------------------------------

    @export("expect_all_true", "0rr_v", "0r_v")
    def expect_all_true(self, *operands: object) -> None:
        """Checks that no element is zero. A NaN is not zero, -0.0 is."""
        name = "expect_all_true"
        self._recorder.expected()
        value = self._read(operands[-1], f"{name} operand")
        if not value.has_values:
            raise InvalidArgumentError(f"{name}: expected integers, booleans or floats, got {value.kind}")
        failing = zeros(value, self._recorder.max_differences)
        if failing.count:
            self._recorder.failed(
                lambda: CheckFailure(
                    name,
                    f"{failing.count} of {value.count} element(s) are zero",
                    location=_location(),
                    lhs=value.format(self._recorder.max_elements),
                    differing=failing.count,
                    differences=tuple(ElementDifference(value.index(i), value.element(i)) for i in failing.first),
                )
            )

    @export("expect_eq", "0rrr_v", "0rr_v")
    def expect_eq(self, *operands: object) -> None:
        """Checks that type, shape and bits of elements are equal: NaN equals itself, and 0.0 differs from -0.0."""
        name = "expect_eq"
        self._recorder.expected()
        left, right = self._read(operands[-2], f"{name} lhs"), self._read(operands[-1], f"{name} rhs")
        if self._mismatched(name, left, right) or left.data == right.data:
            return
        if not left.is_dense:
            self._fail(name, "the bytes differ", left, right)
            return
        differing = differing_bits(left, right, self._recorder.max_differences)
        if differing.count:
            self._fail(name, f"{differing.count} of {left.count} element(s) differ", left, right, differing)

    @export("expect_almost_eq", "0rrrff_v")
    def expect_almost_eq(self, device: object, lhs: object, rhs: object, atol: float, rtol: float) -> None:
        """Checks that type and shape are the same, and elements are close: ``|lhs - rhs| <= atol + rtol * |rhs|``.

        NaN equals NaN, and an infinity only itself. Computed in f64; complex numbers by their absolute values.
        """
        name = "expect_almost_eq"
        self._recorder.expected()
        left, right = self._read(lhs, f"{name} lhs"), self._read(rhs, f"{name} rhs")
        if self._mismatched(name, left, right):
            return
        if not left.is_floating:
            raise InvalidArgumentError(f"{name}: expected floats or complex numbers, got {left.kind}; use expect_eq")
        if left.data == right.data:
            return
        differing = far_apart(left, right, atol, rtol, self._recorder.max_differences)
        if differing.count:
            summary = f"{differing.count} of {left.count} element(s) differ by more than {atol:g} + {rtol:g} * |rhs|"
            self._fail(name, summary, left, right, differing, (atol, rtol))

    @export("expect_almost_eq", "0rrr_v", "0rr_v")
    def expect_almost_eq_fixed(self, *operands: object) -> None:
        """Works like ``expect_almost_eq`` with fixed tolerances: 1e-4, or 1e-3 for floats of 16 and 8 bits."""
        lhs, rhs = operands[-2:]
        narrow = isinstance(lhs, BufferView) and lhs.element_type.bits < 32
        self.expect_almost_eq(None, lhs, rhs, _NARROW_ATOL if narrow else _ATOL, 0.0)

    # -- helpers -------------------------------------------------------------------------------------

    def _read(self, view: object, subject: str) -> HostView:
        """Returns the view's bytes now."""
        if not isinstance(view, BufferView):
            got = "null" if view is None else type(view).__name__
            raise InvalidArgumentError(f"{subject}: expected a !hal.buffer_view, got {got}")
        buffer = check_buffer(view.buffer, subject)
        if buffer.host_visible:
            return HostView(view, buffer.read(0, view.byte_length))
        return HostView(view, read_bytes(self._contexts[buffer.device], buffer, 0, view.byte_length))

    def _mismatched(self, name: str, left: HostView, right: HostView) -> bool:
        """Records a failure if types, shapes or encodings differ."""
        a, b = left.view, right.view
        wrong = []
        if a.element_type != b.element_type:
            wrong.append(f"element types differ: {a.element_type.short_name} and {b.element_type.short_name}")
        if a.shape != b.shape:
            wrong.append(f"shapes differ: [{format_shape(a.shape)}] and [{format_shape(b.shape)}]")
        if a.encoding != b.encoding:
            wrong.append(f"encodings differ: {a.encoding.name} and {b.encoding.name}")
        if wrong:
            self._fail(name, "; ".join(wrong), left, right)
        return bool(wrong)

    def _fail(
        self,
        name: str,
        summary: str,
        left: HostView,
        right: HostView,
        differing: Differing | None = None,
        tolerances: tuple[float, float] | None = None,
    ) -> None:
        def make() -> CheckFailure:
            first, largest = (differing.first, differing.largest) if differing is not None else ((), None)
            return CheckFailure(
                name,
                summary,
                location=_location(),
                lhs=left.format(self._recorder.max_elements),
                rhs=right.format(self._recorder.max_elements),
                differing=None if differing is None else differing.count,
                differences=tuple(describe_difference(left, right, i, tolerances) for i in first),
                largest=None if largest is None else describe_difference(left, right, largest, tolerances),
            )

        self._recorder.failed(make)


def _location() -> str | None:
    """Returns the expectation's source location: that of the nearest translated function in the Python frames."""
    frame: FrameType | None = sys._getframe(1)
    for _ in range(_MAX_FRAMES_UP):
        if frame is None:
            break
        position = translated_function(frame.f_code, frame.f_lineno)
        if position is not None:
            translation, pc = position
            return translation.source_location(pc) or translation.place(pc)
        frame = frame.f_back
    return None
