"""Stacks: suspended frames, resumption in other threads, and that references live as long as registers hold them."""

from __future__ import annotations

import gc
import threading
import traceback
import weakref
from collections.abc import Callable, Iterator

import pytest
from support.vm import random_programs

from pumice.status import FailedPreconditionError, InternalError, PumiceError, ResourceExhaustedError
from pumice.vm.assembly.assembler import assemble
from pumice.vm.execution.bytecode_module import BytecodeModule
from pumice.vm.execution.context import Context, Function
from pumice.vm.execution.frame import Frame, NativeFrame
from pumice.vm.execution.stack import Stack
from pumice.vm.native.module import NativeModule
from pumice.waits.wait_frame import Wait, WaitFrame


class Token:
    """Something that a program holds references to."""


class Host:
    """A native module that looks at what is alive while a program runs."""

    def __init__(self) -> None:
        self.made: list[weakref.ref[Token]] = []
        self.seen: list[list[int]] = []
        self.module = NativeModule("host")
        self.module.function("make", "0v_r")(self.make)
        self.module.function("look", "0v_v")(self.look)
        self.module.function("pass", "0r_r")(lambda value: value)
        self.module.function("pair", "0r_ri")(lambda value: (value, 7))
        self.module.function("take", "0r_v")(lambda value: None)
        self.module.function("wait", "0r_r")(lambda value: Wait(resume=lambda error: value))
        self.module.function("fail", "0r_v")(self.fail)

    def make(self) -> Token:
        token = Token()
        self.made.append(weakref.ref(token))
        return token

    def alive(self) -> list[int]:
        return [index for index, one in enumerate(self.made) if one() is not None]

    def look(self) -> None:
        self.seen.append(self.alive())

    def fail(self, value: object) -> None:
        raise InternalError("as asked")


HEADER = """vm.module @m
vm.type !vm.buffer
vm.type !vm.list<?>
vm.import @host.make cconv "0v_r"
vm.import @host.look cconv "0v_v"
vm.import @host.pass cconv "0r_r"
vm.import @host.pair cconv "0r_ri"
vm.import @host.take cconv "0r_v"
vm.import @host.wait cconv "0r_r"
vm.import @host.fail cconv "0r_v"
"""
ANY = "!vm.ref<?>"


@pytest.fixture(autouse=True)
def no_cycles() -> Iterator[None]:
    """References go when the last one does, not when the collector finds them."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def program(text: str) -> tuple[Host, Context]:
    host = Host()
    return host, Context([host.module, BytecodeModule(assemble(HEADER + text))])


def run(text: str, *arguments: object) -> tuple[Host, object]:
    host, context = program(text)
    return host, context.invoke(context.lookup("m.main"), arguments)


def main(body: str, signature: str = "() -> ()") -> str:
    return f"vm.export @main\nvm.func @main{signature} {{\n^bb0:\n{body}\n}}\n"


# -- how long references live ------------------------------------------------------------------------


@pytest.mark.sample(4)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ("%r0 = vm.call @host.make()\nvm.call @host.look()\nvm.discard.refs %r0\nvm.call @host.look()", [[0], []]),
        ("%r0 = vm.call @host.make()\n%r1 = vm.assign.ref %R0\nvm.discard.refs %r1\nvm.call @host.look()", [[]]),
        ("%r0 = vm.call @host.make()\n%r0 = vm.call @host.make()\nvm.call @host.look()\nvm.discard.refs %r0", [[1]]),
        ("%r0 = vm.call @host.make()\nvm.call @host.take(%R0)\nvm.call @host.look()", [[]]),
        ("%r0 = vm.call @host.make()\n%r1 = vm.call @host.pass(%R0)\nvm.discard.refs %r1\nvm.call @host.look()", [[]]),
        (
            "%r0 = vm.call @host.make()\n%r1, %i0 = vm.call @host.pair(%R0)\nvm.discard.refs %r1\nvm.call @host.look()",
            [[]],
        ),
        ("%r0 = vm.call @host.make()\n%r1 = vm.call @host.wait(%R0)\nvm.discard.refs %r1\nvm.call @host.look()", [[]]),
        (
            "%r0 = vm.call @host.make()\nvm.global.store.ref %R0, .refs[0] : !vm.buffer\nvm.call @host.look()"
            "\n%r0 = vm.const.ref.zero\nvm.global.store.ref %r0, .refs[0] : !vm.buffer\nvm.call @host.look()",
            None,
        ),
        (
            "%r0 = vm.call @host.make()\n%r1 = vm.call @host.make()\n%i0 = vm.const.i32.zero\n"
            "%r2 = vm.switch.ref %i0[%R0] else %R1 -> !vm.buffer\nvm.discard.refs %r2\nvm.call @host.look()",
            None,
        ),
    ],
)
def test_what_is_dropped_is_released_at_once(body: str, seen: list[list[int]] | None) -> None:
    if seen is None:  # a token is no buffer: the program fails, and still keeps nothing
        host, context = program(main(body + "\nvm.return"))
        with pytest.raises(PumiceError):
            context.invoke(context.lookup("m.main"), ())
        assert host.alive() == []
        return
    host, _ = run(main(body + "\nvm.return"))
    assert host.seen == seen
    assert host.alive() == []


@pytest.mark.slow
@pytest.mark.parametrize("leaf", [True, False])
def test_a_callee_may_release_what_it_was_given(leaf: bool) -> None:
    text = main("%r0 = vm.call @host.make()\nvm.call @drop(%R0)\nvm.call @host.look()\nvm.return")
    look = "" if leaf else "vm.call @host.look()\n"
    host, _ = run(text + f"vm.func @drop(%r0: {ANY}) -> () {{\n^bb0:\nvm.discard.refs %r0\n{look}vm.return\n}}\n")
    assert host.seen == ([[]] if leaf else [[], []])


@pytest.mark.slow
def test_an_argument_is_not_kept_by_what_calls_the_function() -> None:
    host, context = program(
        main("vm.call @host.look()\nvm.discard.refs %r0\nvm.call @host.look()\nvm.return", f"(%r0: {ANY}) -> ()")
    )
    stack = context.stack_for(context.lookup("m.main"), (host.make(),))
    assert stack.step()
    assert host.seen == [[0], []]


@pytest.mark.slow
@pytest.mark.parametrize("results", ["r", "ri"])
def test_a_result_is_not_kept_by_what_handed_it_on(results: str) -> None:
    extra, taken, kind = ("", "", "") if results == "r" else (", %i0", ", %i0", ", i32")
    host, _ = run(
        main(f"%r0{taken} = vm.call @give()\nvm.discard.refs %r0\nvm.call @host.look()\nvm.return")
        + f"vm.func @give() -> ({ANY}{kind}) {{\n^bb0:\n%r0 = vm.call @host.make()\nvm.yield ^bb1()\n^bb1:\n"
        f"vm.return %R0{extra}\n}}\n"
    )
    assert host.seen == [[]]


@pytest.mark.slow
def test_a_reference_that_is_moved_twice_is_null_the_second_time() -> None:
    host, result = run(
        main("%r0 = vm.call @host.make()\n%r1, %r2 = vm.call @both(%R0, %R0)\nvm.return %r2", f"() -> ({ANY})")
        + f"vm.func @both(%r0: {ANY}, %r1: {ANY}) -> ({ANY}, {ANY}) {{\n^bb0:\nvm.yield ^bb1()\n^bb1:\n"
        "vm.return %R0, %R1\n}\n"
    )
    assert result is None
    assert host.alive() == []


@pytest.mark.slow
def test_a_branch_moves_references() -> None:
    host, result = run(
        main(
            "%r0 = vm.call @host.make()\n%r1 = vm.call @host.make()\n%r3 = vm.const.ref.zero\n"
            "vm.br ^bb1(%R0->%r2, %R1->%r0, %R2->%r1)\n"
            "^bb1:\nvm.call @host.look()\nvm.discard.refs %r0\nvm.call @host.look()\n%i0 = vm.cmp.nz.ref %r2\n"
            "vm.cond_br %i0, ^bb2(), ^bb2(%R1->%r2, %r3->%r0)\n^bb2:\nvm.call @host.look()\nvm.call @host.take(%r1)\n"
            "vm.call @host.take(%R2)\nvm.call @host.look()\nvm.return %i0",
            "() -> (i32)",
        )
    )
    assert result == 0  # %R2 took what was in %r2 by then
    assert host.seen == [[0, 1], [0], [0], []]


@pytest.mark.slow
def test_what_a_dead_register_gets_is_not_kept() -> None:
    host, _ = run(
        main(
            "%r0 = vm.call @host.make()\nvm.br ^bb1(%R0->%r1)\n^bb1:\nvm.yield ^bb2()\n^bb2:\nvm.call @host.look()\n"
            "vm.return"
        )
    )
    assert host.seen == [[]]


@pytest.mark.slow
@pytest.mark.parametrize("fails", ["vm.call @host.fail(%r0)", '%i0 = vm.const.i32 9\nvm.fail %i0, "x"'])
@pytest.mark.parametrize("nested", [False, True])
def test_an_error_keeps_no_registers_alive(fails: str, nested: bool) -> None:
    body = f"%r0 = vm.call @host.make()\n%r1 = vm.assign.ref %r0\n{fails}\n"
    if "vm.fail" not in fails:
        body += "vm.call @host.take(%r1)\nvm.return\n"
    text = (
        main("%r0 = vm.call @host.make()\nvm.call @inner()\nvm.call @host.take(%r0)\nvm.return")
        + f"vm.func @inner() -> () {{\n^bb0:\n{body}}}\n"
        if nested
        else main(body)
    )
    host, context = program(text)
    with pytest.raises(PumiceError) as caught:
        context.invoke(context.lookup("m.main"), ())
    # Frames of native functions keep their locals, as users may want to look at them.
    traceback.clear_frames(caught.tb) if "host.fail" in fails else None
    assert host.alive() == []
    assert caught.value.location is not None and caught.value.location.startswith("m.")


# -- suspension --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_frames_of_a_suspended_invocation() -> None:
    host, context = program(
        main(
            "%i2 = vm.const.i32 5\n%i2 = vm.add.i32 %i2, %i0\n%i4:5 = vm.ext.i32.i64.s %i2\n"
            "%r0 = vm.call @host.make()\n"
            "%i0 = vm.call @inner(%i0)\n%i3 = vm.trunc.i64.i32 %i4:5\n%i0 = vm.add.i32 %i0, %i3\n"
            "vm.call @host.take(%r0)\n"
            "vm.return %i0",
            "(%i0: i32) -> (i32)",
        )
        + "vm.func @inner(%i0: i32) -> (i32) {\n^bb0:\n%r0 = vm.call @host.make()\n%r0 = vm.call @host.wait(%r0)\n"
        "vm.discard.refs %r0\n"
        "vm.yield ^bb1()\n^bb1:\nvm.return %i0\n}\n"
    )
    stack = context.stack_for(context.lookup("m.main"), (3,))
    assert not stack.step()
    outer, inner, native, wait = stack.frames
    assert isinstance(outer, Frame) and isinstance(inner, Frame)
    assert isinstance(native, NativeFrame) and native.name == "host.wait"
    assert isinstance(wait, WaitFrame) and stack.wait_frame is wait
    assert outer.name == "m.main" and outer.register_values == {"I4": 8, "r0": host.made[0]()}
    assert inner.register_values == {"i0": 3}
    bytecode = context.lookup("m.main").bytecode
    assert bytecode is not None and outer.function is bytecode
    instruction = bytecode.translation.instruction_at(outer.pc)
    assert instruction is not None and instruction.operation.mnemonic == "call"
    with pytest.raises(FailedPreconditionError, match="waits"):
        stack.step()
    wait.complete()
    assert not stack.step()
    assert len(stack.frames) == 2 and not isinstance(stack.frames[-1], WaitFrame)
    assert host.alive() == [0]
    assert stack.step()
    assert stack.results == 11
    with pytest.raises(FailedPreconditionError, match="nothing to step"):
        stack.step()


@pytest.mark.slow
def test_depth_is_bounded() -> None:
    host, context = program(
        main("%i0 = vm.call @main(%i0)\nvm.call @host.look()\nvm.return %i0", "(%i0: i32) -> (i32)")
    )
    function = context.lookup("m.main")
    assert function.bytecode is not None
    stack = Stack(50, function.bytecode, (1,))
    with pytest.raises(ResourceExhaustedError, match="50 frames deep"):
        stack.step()
    assert stack.frames == [] and host.seen == []


@pytest.mark.slow
def test_deep_recursion_takes_no_host_stack() -> None:
    _, context = program(
        main(
            "%i1 = vm.const.i32 1\nvm.cond_br %i0, ^bb1(), ^bb2()\n^bb1:\n%i2 = vm.sub.i32 %i0, %i1\n"
            "%i2 = vm.call @main(%i2)\n"
            "%i2 = vm.add.i32 %i2, %i1\nvm.return %i2\n^bb2:\nvm.return %i0",
            "(%i0: i32) -> (i32)",
        )
    )
    assert context.invoke(context.lookup("m.main"), (9000,)) == 9000


def _cases(context: Context) -> list[Function]:
    return [one for one in context.functions("random") if one.name.startswith("case_")]


def _in_other_thread(work: Callable[[], object]) -> object:
    answers: list[object] = []

    def body() -> None:
        try:
            answers.append(work())
        except BaseException as error:
            answers.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if isinstance(answers[0], BaseException):
        raise answers[0]
    return answers[0]


@pytest.mark.slow
@pytest.mark.sample(3)
@pytest.mark.parametrize("slots", ["typed", "reused", "mixed"])
@pytest.mark.parametrize("seed", range(4))
def test_a_program_is_the_same_however_it_is_suspended(seed: int, slots: str) -> None:
    """Steps in another thread each time, looks at every frame, and aborts at each place once."""
    shape = random_programs.Shape(slots=slots, size=12, yields=True, functions=5)
    module = BytecodeModule(assemble(random_programs.random_program(seed, shape)))
    plain = BytecodeModule(assemble(random_programs.without_yields(random_programs.random_program(seed, shape))))
    suspensions = 0
    with Context([module]) as context, Context([plain]) as other:
        for function, straight in zip(_cases(context), _cases(other), strict=True):
            expected = other.invoke(straight, (), timeout=60)
            stack = context.stack_for(function, ())
            while not _in_other_thread(stack.step):
                suspensions += 1
                for frame in stack.frames:
                    assert isinstance(frame, Frame)
                    values = frame.register_values
                    assert len(values) == len(frame.registers)
                    for name, value in values.items():
                        _check(name, value)
                    pcs = {one.pc for one in module.verified.functions[frame.function.ordinal].instructions}
                    assert frame.pc in pcs
            assert stack.results == expected
            if suspensions < 200:
                _abort_everywhere(context, function)
    # (Not every random program comes by a place where it yields.)


def _check(name: str, value: object) -> None:
    kind = name[0]
    if kind in "iIs":
        assert type(value) is int
        low, high = {"i": (-(1 << 31), 1 << 31), "I": (-(1 << 63), 1 << 63), "s": (0, 1 << 32)}[kind]
        assert low <= value < high
    elif kind in "fF":
        assert type(value) is float
    else:
        assert kind == "r"


def _abort_everywhere(context: Context, function: Function) -> None:
    for count in range(1, 30):
        stack = context.stack_for(function, ())
        for _ in range(count):
            if stack.step():
                return
        stack.abort()
        stack.abort()
        assert stack.frames == [] and stack.wait_frame is None


@pytest.mark.slow
def test_aborting_releases_what_every_frame_holds() -> None:
    host, context = program(
        main(
            "%r0 = vm.call @host.make()\n%r1 = vm.call @inner(%r0)\nvm.call @host.take(%r0)\n"
            "vm.call @host.take(%r1)\nvm.return"
        )
        + f"vm.func @inner(%r0: {ANY}) -> ({ANY}) {{\n^bb0:\n%r1 = vm.call @host.make()\n%r2 = vm.call @host.make()\n"
        "%r2 = vm.call @host.wait(%R2)\nvm.call @host.take(%r1)\nvm.return %r0\n}\n"
    )
    stack = context.stack_for(context.lookup("m.main"), ())
    assert not stack.step()
    assert host.alive() == [0, 1, 2]
    stack.abort()
    assert host.alive() == []
