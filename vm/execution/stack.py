"""The stack of one invocation, and the interpreter's loop that runs its frames.

The loop is a trampoline: translated functions return to it to call, to yield and to wait, so the host's stack does not
grow with nested calls. ``step`` runs until the invocation is done or must wait; its caller performs the wait and steps
again, in any thread.

Calling sequence: construction with a function, or ``enter_native``; ``step`` until it returns ``True``; ``results``. If
``wait_frame`` is not ``None`` after a step, ``wait_frame.complete(…)`` before the next step. ``abort`` between steps
releases everything. Thread rule: any thread, one at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final

from ...status import FailedPreconditionError, InternalError, InvalidArgumentError, PumiceError, ResourceExhaustedError
from ...waits.wait_frame import OnWait, Wait, WaitFrame, step_mode
from ..native import calls as native_calls
from ..types import buffer, elements, float_numerics, numerics
from ..types import list as list_
from . import left_frames, namespace
from .bytecode_module import Translation, translated_function
from .frame import Frame, NativeFrame
from .left_frames import MACHINE_TIER, continue_frames
from .module_state import ContextFunction
from .namespace import CALL, RESUME, YIELD

DEFAULT_MAX_DEPTH: Final = 10_000
_SHOWN_FRAMES: Final = 10


class Stack:
    """Frames of one invocation.

    References that the program dropped are not kept alive here: arguments and results are passed on, not kept, and an
    error's traceback does not keep the registers of the functions that it passed.

    Attributes:
        frames: the frames from the outermost; ``Frame``, ``NativeFrame`` or ``WaitFrame``, the last only on top.
        results: the results of the outermost function: ``None``, a value, or a tuple of several. Valid once done.
        max_depth: the largest number of frames.
        on_wait: the behaviour of native functions that wait while it is stepped (waits/wait_frame.py).
    """

    __slots__ = ("_handed", "frames", "max_depth", "on_wait", "results")

    def __init__(
        self,
        max_depth: int = DEFAULT_MAX_DEPTH,
        function: ContextFunction | None = None,
        arguments: tuple[Any, ...] | None = None,
    ) -> None:
        """Begins a call of the outermost ``function`` with its ``arguments``."""
        self.frames: list[Frame | NativeFrame | WaitFrame] = []
        self.max_depth: int = max_depth
        self.on_wait: OnWait = "suspend"
        self.results: Any = None
        self._handed: list[Any] = []  # the next arguments or results of the top function; at most one entry
        if function is not None:
            self.frames.append(Frame(function, max_depth - 1))
            self._handed.append(arguments)

    def enter_native(self, name: str, function: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        """Puts a native function on an empty stack; the first ``step`` calls it."""

        def call(error: PumiceError | None) -> object:
            if error is not None:
                raise error
            return function(*arguments)

        self.push_wait(name, Wait(resume=call)).complete()

    @property
    def wait_frame(self) -> WaitFrame | None:
        """The wait on top, if the invocation is suspended in a wait."""
        frame = self.frames[-1] if self.frames else None
        return frame if isinstance(frame, WaitFrame) else None

    def step(self) -> bool:
        """Runs until the invocation is done (``True``) or suspended (``False``).

        Raises:
            FailedPreconditionError: the invocation is already done, or waits.
            PumiceError: the program or a native function failed; the error has the location, and the stack is empty.
            BaseException: a user's native function raised it; it has a note with the location.
        """
        frames = self.frames
        if not frames:
            raise FailedPreconditionError("the invocation is done, failed or was aborted: there is nothing to step")
        if type(frames[-1]) is WaitFrame and not frames[-1].done:
            raise FailedPreconditionError("the invocation waits; perform its wait before the next step")
        before, step_mode.on_wait = step_mode.on_wait, self.on_wait
        try:
            return self._run(frames)
        except BaseException as error:
            located = self._located(error)
            self.abort()
            if located is error:
                raise
            raise located from error
        finally:
            step_mode.on_wait = before

    def _run(self, frames: list[Frame | NativeFrame | WaitFrame]) -> bool:
        handed = self._handed
        hand, take = handed.append, handed.pop
        answer: Any
        frame: Any = frames[-1]
        if type(frame) is WaitFrame:
            if not self._resume(frames):
                return False
            if not frames:
                self.results = take()
                return True
            frame = frames[-1]
        elif not handed:
            hand(None)  # it yielded
        code: Callable[[Frame, Any], Any] = frame.function.code(frame.entry)
        while True:
            answer = code(frame, take())
            if type(answer) is Wait:
                if answer is CALL:
                    callee = frame.callee
                    hand(frame.arguments)
                    frame.callee = frame.arguments = None
                elif answer is YIELD:
                    return False
                elif answer is RESUME:
                    frame = self._continue(frame)
                    hand(None)
                    code = frame.function.code(frame.entry)
                    continue
                elif answer.callee is not None:
                    callee = answer.callee[0]
                    hand(answer.callee[1])
                    answer = None
                else:
                    self.push_wait(frame, answer)
                    return False
                if len(frames) >= self.max_depth:
                    raise ResourceExhaustedError(
                        f"the call stack is {len(frames)} frames deep, the most that max_stack_depth allows; "
                        "the program may recurse without end, or needs a larger setting"
                    )
                frame = Frame(callee, self.max_depth - len(frames) - 1)
                frames.append(frame)
                code = callee.start or callee.code(0)
            else:
                frames.pop()
                if not frames:
                    self.results = answer
                    return True
                hand(answer)
                answer = None
                frame = frames[-1]
                code = frame.function.code(frame.entry)

    def _continue(self, frame: Frame) -> Frame:
        """Puts the frames that machine code left on the stack, starting with ``frame``; returns the topmost."""
        assert frame.arguments is not None
        left, frame.arguments = frame.arguments, None
        for position, (function, entry, registers) in enumerate(left):
            if position:
                frame = Frame(function, self.max_depth - len(self.frames) - 1)
                self.frames.append(frame)
            frame.pc, frame.entry, frame.registers = function.translation.pc_before(entry), entry, registers
        return frame

    def _resume(self, frames: list[Frame | NativeFrame | WaitFrame]) -> bool:
        """Resumes the native function whose wait is over; returns whether it returned results, which are passed on."""
        wait, native = frames.pop(), frames.pop()
        assert type(wait) is WaitFrame and type(native) is NativeFrame
        resume = native.resume
        # The frame may be kept by the code that performed the wait; it must not keep the function's closure alive.
        native.resume = wait.resume = _resumed
        wait.sources = ()
        answer = resume(wait.error)
        if type(answer) is Wait:
            native.resume = answer.resume
            self.frames += (native, WaitFrame(answer))
            return False
        self._handed.append(answer)
        return True

    def push_wait(self, name: str | Frame, wait: Wait) -> WaitFrame:
        """Suspends a native function, given by its name or its caller's frame, in a wait."""
        frame = WaitFrame(wait)
        self.frames += (NativeFrame(name, wait.resume), frame)
        return frame

    def abort(self) -> None:
        """Drops every frame with its references; idempotent."""
        for frame in self.frames:
            if isinstance(frame, Frame):
                frame.registers = ()
                frame.arguments = None
            else:
                # A wait frame may be kept elsewhere; it must not keep the function's closure alive.
                frame.resume = _resumed
        self.frames.clear()
        self._handed.clear()
        self.results = None

    # -- errors --------------------------------------------------------------------------------------

    def _located(self, error: BaseException) -> BaseException:
        """Returns the error to raise, with its location in the program; a PumiceError if the program is at fault."""
        places: list[str] = []
        inner: tuple[Translation, int] | None = None
        in_native = nested = False
        traceback: TracebackType | None = error.__traceback__
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if code is _STEP and inner is not None:
                nested = True  # already located, by an invocation of a native function
                break
            translated = translated_function(code, traceback.tb_lineno)
            if code is continue_frames.__code__:
                waiting = traceback.tb_frame.f_locals
                del places[len(places) - waiting["replaced"] :]
                places += [
                    function.translation.place(function.translation.pc_before(entry))
                    for function, entry, _ in waiting["frames"]
                ]
            if translated is not None:
                inner = translated
                in_native = False
                places.append(translated[0].place(translated[1]))
            elif inner is not None:
                in_native = True
            if translated is not None or code.co_filename in _OPERATIONS:
                # Registers do not outlive the function, even if the error is kept.
                with contextlib.suppress(RuntimeError):
                    traceback.tb_frame.clear()
            traceback = traceback.tb_next
        if not isinstance(error, Exception):
            return error
        suspended = [frame for frame in self.frames if isinstance(frame, Frame)]
        if places:
            suspended.pop()
        places = [frame.function.translation.place(frame.pc) for frame in suspended] + places
        if not places:
            return error
        result: BaseException = error
        if not isinstance(error, PumiceError) and inner is not None:
            result = self._foreign(error, *inner, in_native=in_native)
        callers = places[:-1]
        if not isinstance(result, PumiceError):
            result.add_note(f"  in a native function called from {places[-1]}")
        elif result.location is None:
            result.location = places[-1]
        elif nested:
            callers = places
        for caller in reversed(callers[-_SHOWN_FRAMES:]):
            result.add_note(f"  called from {caller}")
        if len(callers) > _SHOWN_FRAMES:
            result.add_note(f"  … and {len(callers) - _SHOWN_FRAMES} more frames")
        return result

    def _foreign(self, error: Exception, translation: Translation, pc: int, *, in_native: bool) -> BaseException:
        """Returns the PumiceError for a foreign exception; a user's own exceptions stay unchanged."""
        instruction, imported = translation.instruction_at(pc), translation.import_at(pc)
        mnemonic = "?" if instruction is None else instruction.operation.mnemonic
        name = mnemonic if imported is None else imported[1]
        if isinstance(error, RecursionError):
            return ResourceExhaustedError(f"{name} ran out of the host's stack: {error}")
        if isinstance(error, MemoryError):
            return ResourceExhaustedError(f"{name} ran out of memory")
        if imported is None:
            if isinstance(error, (AttributeError, TypeError)):
                return InvalidArgumentError(f"{mnemonic}: an operand is null or of another type ({error})")
            return InternalError(f"{mnemonic} failed with {type(error).__name__}: {error}")
        caller = next(frame for frame in reversed(self.frames) if isinstance(frame, Frame))
        if caller.function.state.links[imported[0]].trusted or not in_native:
            return InvalidArgumentError(
                f"{name} was called with arguments that it does not take: {type(error).__name__}: {error}"
            )
        return error


def _resumed(error: PumiceError | None) -> object:
    raise FailedPreconditionError("this wait is over, and the invocation has continued")


# Code of these files is part of the program's operations.
_FILES: Final = (buffer, elements, float_numerics, left_frames, list_, namespace, native_calls, numerics)
_OPERATIONS: Final = frozenset((MACHINE_TIER, *(str(module.__file__) for module in _FILES)))
_STEP: Final = Stack.step.__code__
