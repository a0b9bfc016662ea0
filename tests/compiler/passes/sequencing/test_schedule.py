"""Schedules: random steps compute the same with copies elided, guards and one arena as without."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.compiler.analysis.reference_program import ProgramWriter
from pumice.compiler.dialects.syntax.text import parse
from pumice.compiler.ir.attributes import DenseArray, IntegerAttr, SymbolRef
from pumice.compiler.ir.operation import Operation
from pumice.compiler.ir.types import F32, I1, I32, I64, MemRefType, ScalarType
from pumice.compiler.passes.dispatch.outline import entry_of, outline
from pumice.compiler.passes.dispatch.regions import form_regions
from pumice.compiler.passes.sequencing import barriers, predicate
from pumice.compiler.passes.sequencing.barriers import reuses
from pumice.compiler.passes.sequencing.liveness import Liveness
from pumice.compiler.passes.sequencing.schedule import finish, schedule
from pumice.compiler.passes.sequencing.steps import (
    Barrier,
    Branch,
    Buffer,
    Copy,
    Dispatch,
    Loop,
    Repeat,
    Schedule,
    Step,
    is_recorded,
    rounds_together,
    uses,
    walk,
)
from pumice.hal_reference.operations import evaluate

SOMEWHERE = Operation("test.step", attributes={"entry": SymbolRef("test::@step")})
IN_PLACE = Operation("test.step", attributes={**SOMEWHERE.attributes, "in_place": DenseArray(I64, (0,))})
IN_BOTH = Operation("test.step", attributes={**SOMEWHERE.attributes, "in_place": DenseArray(I64, (0, 1))})
NEXT = Operation("test.next", attributes={"entry": SymbolRef("test::@next")})


class Maker:
    """Draws steps that read only what was written on every path to them."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def buffer(self, kind: str = "transient") -> Buffer:
        return Buffer(MemRefType((self._draw(st.sampled_from([4, 100])),), F32), kind)

    def steps(self, known: list[Buffer], depth: int) -> list[Step]:
        found: list[Step] = []
        kinds = ["dispatch", "dispatch", "copy", "copy"] + (["loop", "repeat", "branch"] if depth else [])
        for _ in range(self._draw(st.integers(0, 4))):
            kind = self._draw(st.sampled_from(kinds))
            if kind == "dispatch":
                self._dispatch(known, found)
            elif kind == "copy":
                self._copy(known, found)
            elif kind == "branch":
                self._branch(known, found, depth - 1)
            else:
                self._loop(known, found, depth - 1, kind == "repeat")
        return found

    def _any(self, known: Sequence[Buffer]) -> Buffer:
        return self._draw(st.sampled_from([each for each in known if each.type.rank]))

    def _dispatch(self, known: list[Buffer], into: list[Step]) -> None:
        first, second = self._any(known), self._any(known)
        kind = self._draw(st.sampled_from(["whole", "in place", "in both", "update"]))
        made = self.buffer() if kind == "whole" else Buffer(first.type, "transient")
        if kind == "update":
            into.append(Copy(first, made, SOMEWHERE))
            first = made
        operation = {"whole": SOMEWHERE, "in both": IN_BOTH}.get(kind, IN_PLACE)
        into.append(Dispatch(operation, [first, second, made], 1))
        known.append(made)

    def _copy(self, known: list[Buffer], into: list[Step]) -> Buffer:
        source = self._any(known)
        made = Buffer(source.type, "transient")
        into.append(Copy(source, made, SOMEWHERE))
        known.append(made)
        return made

    def _scalar(self, known: list[Buffer], into: list[Step], type: ScalarType, operation: Operation) -> Buffer:
        made = Buffer(MemRefType((), type), "transient")
        into.append(Dispatch(operation, [self._any(known), made], 1))
        known.append(made)
        return made

    def _loop(self, known: list[Buffer], into: list[Step], depth: int, is_counted: bool) -> None:
        carried = [self._copy(known, into) for _ in range(self._draw(st.integers(1, 3)))]
        counter = carried[0]
        trips = self._draw(st.integers(1, 10))
        is_known = self._draw(st.booleans())
        number = trips if is_known or not is_counted else self._scalar(known, into, I32, SOMEWHERE)
        condition = [] if is_counted else self.steps(tested := [*known], depth)
        if not is_counted:
            test = Operation(
                "test.less", attributes={"than": IntegerAttr(trips, I64), "entry": SymbolRef("test::@less")}
            )
            flag = Buffer(MemRefType((), I1), "transient")
            condition.append(Dispatch(test, [counter, flag], 1))
        body = self.steps(inside := [*known], depth)
        for buffer in carried[1:]:
            alike = [each for each in inside if each.size == buffer.size]
            body.append(Copy(self._any(alike), buffer, SOMEWHERE))
        after = Buffer(counter.type, "transient")
        body += [Dispatch(NEXT, [counter, after], 1), Copy(after, counter, SOMEWHERE)]
        into.append(Repeat(SOMEWHERE, number, body) if is_counted else Loop(SOMEWHERE, condition, flag, body))
        if not is_counted:
            known.extend(tested[len(known) :])

    def _branch(self, known: list[Buffer], into: list[Step], depth: int) -> None:
        results = [self.buffer() for _ in range(self._draw(st.integers(0, 2)))]
        index = self._scalar(known, into, self._draw(st.sampled_from([I1, I32])), SOMEWHERE)
        branches = []
        for _ in range(2 if index.type.scalar is I1 else 3):
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
    for number in range(draw(st.integers(1, 3))):
        source = draw(st.sampled_from([each for each in known if each.type.rank]))
        results.append(Buffer(source.type, "result", number))
        steps.append(Copy(source, results[-1], SOMEWHERE))
    for number, argument in enumerate(arguments):
        argument.number = number
    return Schedule(steps, arguments, results, [])


class Machine:
    """Runs steps on symbols: each 256 bytes of memory hold the symbol last written there.

    Args:
        plan: the steps.
        is_placed: whether buffers have offsets and there are barriers.
        reused: the argument whose memory each result has, by their numbers.
    """

    def __init__(self, plan: Schedule, is_placed: bool, reused: Mapping[int, int] | None = None) -> None:
        self._plan = plan
        self._reused = reused or {}
        self._is_placed = is_placed
        self._memory: dict[object, object] = {}
        self._programs = {}
        for executable in plan.executables:
            entry, function = entry_of(executable)
            self._programs[entry] = ProgramWriter({}).executable(function)

    def run(self) -> list[object]:
        for number, buffer in enumerate(self._plan.arguments):
            self._write(buffer, ("argument", number))
        for buffer, entries in self._plan.tables:
            self._write(buffer, ("table", ((1, 1, 1), *((2, 3, 4) for _ in entries))))
        self._steps(self._plan.steps)
        return [self._read(buffer) for buffer in self._plan.results]

    def _places(self, buffer: Buffer) -> list[object]:
        root = buffer.root if self._is_placed else buffer
        parts = range(-(-root.size // 256))
        if root.kind == "result" and root.number in self._reused:
            root = self._plan.arguments[self._reused[root.number]]
        if root.kind == "transient" and self._is_placed:
            start = self._plan.plan.offsets[root.number]
            return [("arena", start + 256 * part) for part in parts]
        return [(root, part) for part in parts]

    def _read(self, buffer: Buffer) -> object:
        # Where the enclosing guard is off, nothing writes the index that a guard reads, and the guard ignores it.
        (found,) = {self._memory.get(place) for place in self._places(buffer)}
        return found

    def _write(self, buffer: Buffer, value: object) -> None:
        self._memory.update(dict.fromkeys(self._places(buffer), value))

    def _number(self, buffer: Buffer) -> int:
        """The number in an index, a flag or a guard's first word."""
        value = self._read(buffer)
        if isinstance(value, tuple) and value[0] == "table":
            return value[1][0][0]
        return hash(value) % (2 if buffer.type.scalar is I1 else 5) if not isinstance(value, bool) else int(value)

    def _steps(self, steps: Sequence[Step]) -> None:
        for step in self._ordered(steps):
            if isinstance(step, Copy):
                self._write(step.target, self._read(step.source))
            elif isinstance(step, Dispatch):
                self._dispatch(step)
            elif isinstance(step, Repeat):
                for _ in range(step.trips if isinstance(step.trips, int) else self._number(step.trips)):
                    self._steps(step.body)
            elif isinstance(step, Loop):
                self._loop(step)
            elif isinstance(step, Branch):
                number = self._number(step.index)
                number = 1 - number if step.index.type.scalar is I1 else number
                self._steps(step.branches[min(number, len(step.branches) - 1)])

    def _ordered(self, steps: Sequence[Step]) -> Iterator[Step]:
        """Yields steps; reverses those between two barriers, once barriers are there."""
        together: list[Step] = []
        for step in steps:
            if isinstance(step, Dispatch | Copy) and self._is_placed:
                together.append(step)
                continue
            yield from reversed(together)
            together = []
            yield step
        yield from reversed(together)

    def _loop(self, step: Loop) -> None:
        for times in range(20):
            for _ in range(1 << times if step.is_repeatable else 1):
                self._steps(step.condition)
            if not self._number(step.flag):
                return
            self._steps(step.body)
        raise AssertionError("the loop does not end")

    def _dispatch(self, step: Dispatch) -> None:
        if step.guard is not None:
            table = self._read(step.guard[0])
            assert isinstance(table, tuple) and table[0] == "table"
            if not all(table[1][step.guard[1]]):
                return
        *inputs, made = step.buffers
        shared = step.operation.integers("in_place")
        early = {index: self._read(inputs[index]) for index in shared}
        self._write(made, None)  # a kernel must not write where it reads, except in place
        values = [early[index] if index in early else self._read(each) for index, each in enumerate(inputs)]
        if step.operation is NEXT:
            self._write(made, ("count", _count(values[0]) + 1))
        elif step.operation.name == "test.less":
            self._write(made, _count(values[0]) < step.operation.integer("than"))
        elif step.operation in (SOMEWHERE, IN_PLACE, IN_BOTH):
            self._write(made, hash((id(step), *values)))
        elif "_copy_" in step.entry:
            self._write(made, values[0])
        else:
            self._write(made, self._guard(step, inputs, values))

    def _guard(self, step: Dispatch, inputs: Sequence[Buffer], values: Sequence[object]) -> object:
        tables = [np.array(value[1], np.int32) for value in values[1:] if isinstance(value, tuple)]
        index = np.array(self._number(inputs[0]), inputs[0].type.scalar.dtype)
        (found,) = evaluate(self._programs[step.entry], [index, *tables])
        return ("table", tuple(map(tuple, np.asarray(found).tolist())))


def _count(value: object) -> int:
    return value[1] if isinstance(value, tuple) and value[0] == "count" else 0


@pytest.mark.slow
@given(schedules(), st.sampled_from([0, 3, 1000]))
def test_guards_and_shared_memory_change_no_result(plan: Schedule, most_guarded: int) -> None:
    expected = Machine(plan, is_placed=False).run()
    with patch.object(predicate, "MAX_GUARDED", most_guarded):
        finish(plan, "f")
    assert Machine(plan, is_placed=True).run() == expected


@pytest.mark.slow
@given(schedules(), st.sampled_from([0, 3, 1000]))
def test_results_may_be_in_the_memory_of_arguments(plan: Schedule, most_guarded: int) -> None:
    expected = Machine(plan, is_placed=False).run()
    with patch.object(predicate, "MAX_GUARDED", most_guarded):
        finish(plan, "f")
    allowed = reuses(plan)
    for number, arguments in enumerate(allowed):
        for argument in arguments:
            assert Machine(plan, True, {number: argument}).run() == expected
    for several in itertools.product(*[[*arguments, None] for arguments in allowed]):
        reused = {number: argument for number, argument in enumerate(several) if argument is not None}
        if len({*reused.values()}) == len(reused):
            assert Machine(plan, True, reused).run() == expected


@pytest.mark.slow
@given(schedules())
def test_that_results_may_be_in_the_memory_of_arguments_costs_no_barrier(plan: Schedule) -> None:
    shared = [each.operation for each in walk(plan.steps) if not isinstance(each, Barrier)]
    used = [buffer for step in walk(plan.steps) for side in uses(step) for buffer in side]
    types = [buffer.type for buffer in (*plan.arguments, *used)]
    other = copy.deepcopy(plan, {id(each): each for each in (*shared, *types)})
    finish(plan, "f")
    with patch.object(barriers, "read_in_place", lambda step: set()):
        finish(other, "f")
    counts = [sum(isinstance(step, Barrier) for step in walk(each.steps)) for each in (plan, other)]
    assert counts[0] <= counts[1]


@pytest.mark.slow
@given(schedules())
def test_buffers_have_the_order_of_their_first_use(plan: Schedule) -> None:
    used = dict.fromkeys(buffer for step in walk(plan.steps) for buffers in uses(step) for buffer in buffers)
    found = [*Liveness(plan).intervals]
    assert found == [buffer for buffer in used if buffer in found]


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
    steps = [*walk([loop])]
    assert not [step for step in steps if isinstance(step, Copy) and step.target.kind != "flag"]
    assert plan.results[0] in {buffer.root for step in steps for buffer in uses(step)[1]}


@pytest.mark.parametrize(("flops", "size", "rounds"), [(0, 1, 50), (0, 100, 10), (1 << 33, 1, 2), (1 << 40, 1, 1)])
def test_a_submission_does_bounded_work(flops: int, size: int, rounds: int) -> None:
    operation = Operation("test.step", attributes={**SOMEWHERE.attributes, "flops": IntegerAttr(flops, I64)})
    body: list[Step] = [Dispatch(operation, [Buffer(MemRefType((4,), F32), "transient")], 1)] * size
    assert rounds_together(body, 50) == rounds
    assert is_recorded(Repeat(operation, 50, body)) == (rounds == 50)


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
            start = time.process_time()
            schedule(sequence)
            tries.append(time.process_time() - start)
        seconds[count] = min(tries)
    assert seconds[5000] < 30 * seconds[500], seconds
