"""Schedules: random steps compute the same with copies elided and buffers in one arena as with memory of their own."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.compiler.dialects.text import parse
from pumice.compiler.ir.operation import Operation
from pumice.compiler.ir.types import F32, MemRefType
from pumice.compiler.passes.coalesce import elide_copies
from pumice.compiler.passes.outline import outline
from pumice.compiler.passes.regions import form_regions
from pumice.compiler.passes.schedule import place, schedule
from pumice.compiler.passes.steps import Branch, Buffer, Copy, Dispatch, Loop, Schedule, Step

SOMEWHERE = Operation("test.step")


class Maker:
    """Draws steps that read only what was written on every way to them."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def buffer(self, kind: str = "transient") -> Buffer:
        return Buffer(MemRefType((self._draw(st.sampled_from([4, 100])),), F32), kind)

    def steps(self, known: list[Buffer], depth: int) -> list[Step]:
        found: list[Step] = []
        kinds = ["dispatch", "dispatch", "copy", "copy"] + (["loop", "branch"] if depth else [])
        for _ in range(self._draw(st.integers(0, 4))):
            kind = self._draw(st.sampled_from(kinds))
            if kind == "dispatch":
                self._dispatch(known, found)
            elif kind == "copy":
                self._copy(known, found)
            elif kind == "loop":
                self._loop(known, found, depth - 1)
            else:
                self._branch(known, found, depth - 1)
        return found

    def _any(self, known: Sequence[Buffer]) -> Buffer:
        return self._draw(st.sampled_from(list(known)))

    def _dispatch(self, known: list[Buffer], into: list[Step]) -> Buffer:
        made = self.buffer()
        into.append(Dispatch(SOMEWHERE, [self._any(known), self._any(known), made], 1))
        known.append(made)
        return made

    def _copy(self, known: list[Buffer], into: list[Step]) -> Buffer:
        source = self._any(known)
        made = Buffer(source.type, "transient")
        into.append(Copy(source, made, SOMEWHERE))
        known.append(made)
        return made

    def _flag(self, known: list[Buffer], into: list[Step]) -> Buffer:
        source = self._any(known)
        into.append(Copy(source, Buffer(source.type, "flag"), SOMEWHERE))
        return into[-1].target

    def _loop(self, known: list[Buffer], into: list[Step], depth: int) -> None:
        carried = [self._copy(known, into) for _ in range(self._draw(st.integers(0, 3)))]
        condition = self.steps(tested := [*known], depth)
        flag = self._flag(tested, condition)
        body = self.steps(inside := [*tested], depth)
        for buffer in carried:
            alike = [each for each in inside if each.size == buffer.size]
            body.append(Copy(self._any(alike), buffer, SOMEWHERE))
        into.append(Loop(SOMEWHERE, condition, flag, body))
        known.extend(tested[len(known) :])

    def _branch(self, known: list[Buffer], into: list[Step], depth: int) -> None:
        results = [self.buffer() for _ in range(self._draw(st.integers(0, 2)))]
        index = self._flag(known, into)
        branches = []
        for _ in range(2):
            steps = self.steps(inside := [*known], depth)
            for result in results:
                alike = [each for each in inside if each.size == result.size]
                if alike:
                    steps.append(Copy(self._any(alike), result, SOMEWHERE))
                else:
                    steps.append(Dispatch(SOMEWHERE, [self._any(inside), result], 1))
            branches.append(steps)
        into.append(Branch(SOMEWHERE, index, branches))
        known.extend(results)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    maker = Maker(draw)
    arguments = [maker.buffer("argument"), maker.buffer("argument")]
    steps = maker.steps(known := [*arguments], 2)
    results = []
    for _ in range(draw(st.integers(1, 3))):
        source = draw(st.sampled_from(known))
        results.append(Buffer(source.type, "result"))
        steps.append(Copy(source, results[-1], SOMEWHERE))
    for number, argument in enumerate(arguments):
        argument.number = number
    return Schedule(steps, arguments, results, [])


class Machine:
    """Runs steps on hashes: each 256 bytes of memory hold what they were last given."""

    def __init__(self, plan: Schedule, with_arena: bool) -> None:
        self._plan = plan
        self._with_arena = with_arena
        self._memory: dict[object, object] = {}
        self._calls: dict[int, int] = {}

    def run(self) -> list[object]:
        for number, buffer in enumerate(self._plan.arguments):
            self._write(buffer, ("argument", number))
        self._steps(self._plan.steps)
        return [self._read(buffer) for buffer in self._plan.results]

    def _places(self, buffer: Buffer) -> list[object]:
        root = buffer.root if self._with_arena else buffer
        parts = range(-(-root.size // 256))
        if root.kind == "transient" and self._with_arena:
            start = self._plan.plan.offsets[root.number]
            return [("arena", start + 256 * part) for part in parts]
        return [(root, part) for part in parts]

    def _read(self, buffer: Buffer) -> object:
        (found,) = {self._memory[place] for place in self._places(buffer)}
        return found

    def _write(self, buffer: Buffer, value: object) -> None:
        self._memory.update(dict.fromkeys(self._places(buffer), value))

    def _steps(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Copy):
                self._write(step.target, self._read(step.source))
            elif isinstance(step, Dispatch):
                *inputs, made = step.buffers
                self._write(made, None)  # what a kernel reads must not lie where it writes
                self._write(made, hash((id(step), *(self._read(each) for each in inputs))))
            elif isinstance(step, Loop):
                self._loop(step)
            elif isinstance(step, Branch):
                self._steps(step.branches[hash(self._read(step.index)) % 2])

    def _loop(self, step: Loop) -> None:
        for _ in range(3):
            self._steps(step.condition)
            if hash(self._read(step.flag)) % 3 == 0:
                return
            self._steps(step.body)
        self._steps(step.condition)


@given(schedules())
def test_buffers_that_are_one_hold_what_each_would(plan: Schedule) -> None:
    expected = Machine(plan, with_arena=False).run()
    elide_copies(plan)
    place(plan)
    assert Machine(plan, with_arena=True).run() == expected


CARRIED = """
func.func @main(%a: tensor<8x8xf32>, %n: tensor<i32>) -> tensor<8x8xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %v = %a) : tensor<i32>, tensor<8x8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.dot_general %v, %v, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %3 = stablehlo.dot_general %2, %2, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %4 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %4, %3 : tensor<i32>, tensor<8x8xf32>
  }
  return %0#1 : tensor<8x8xf32>
}
"""


def scheduled(text: str) -> Schedule:
    (function,) = parse(text)
    form_regions(function.regions[0].block)
    return schedule(outline(function)[-1])


def test_a_loop_writes_what_it_carries_in_place() -> None:
    plan = scheduled(CARRIED)
    (loop,) = (step for step in plan.steps if isinstance(step, Loop))
    copies = [step for step in loop.body if isinstance(step, Copy) and step.target.size == 256]
    assert not copies
    assert plan.results[0] in {
        buffer.root for step in loop.body if isinstance(step, Dispatch) for buffer in step.buffers
    }


def chain(count: int) -> str:
    type = "tensor<8x8xf32>"
    lines = [f"func.func @main(%0: {type}) -> {type} {{"]
    for number in range(1, count + 1):
        operands = f"%{number - 1}, %{max(number - 1 - number * 7 % 23, 0)}"
        lines.append(
            f"%{number} = stablehlo.dot_general {operands}, contracting_dims = [1] x [0] : ({type}, {type}) -> {type}"
        )
    return "\n".join([*lines, f"return %{count} : {type}", "}"])


@pytest.mark.timing
def test_time_grows_as_the_number_of_steps() -> None:
    seconds = {}
    for count in (500, 5000):
        (function,) = parse(chain(count))
        form_regions(function.regions[0].block)
        sequence = outline(function)[-1]
        tries = []
        for _ in range(3):
            start = time.perf_counter()
            schedule(sequence)
            tries.append(time.perf_counter() - start)
        seconds[count] = min(tries)
    assert seconds[5000] < 30 * seconds[500], seconds
