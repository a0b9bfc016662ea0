"""Reports loops that a driver ends before their time.

llvmpipe, the software driver of Mesa, runs invocations together as a SIMD vector, and the vector has one counter for
all its loops. The counter starts at 65,535, and each pass of any loop decrements it. Once it is used up, the current
loop ends after the current pass, regardless of its condition, and every later loop ends after its first pass. Source:
Mesa, ``lp_exec_endloop`` in src/gallium/auxiliary/gallivm/lp_bld_ir_common.c; seen with version 22.3.

So the pass need not count iterations. Each outermost loop is followed by a *sentinel*, a loop of three passes. Its
bounds follow from the workgroup's number, so that no compiler knows them. If it made fewer passes, the counter was used
up, and an earlier loop was cut. A counter within three of its end cannot be distinguished from an exhausted counter.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from ..binary.grammar import ExecutionModel, Op
from ..binary.words import encode
from .blocks import Block, Flow, Loop
from .conditions import ask_again, condition_of
from .editor import Editor, Words, opcode_of
from .lines import Lines
from .reporter import Reporter
from .reports import ReportKind, Site
from .rewrite import Writer
from .trip_counts import TripCounts

# Compilers may peel the first pass of a loop, so one more pass than the two that show a cut.
_PASSES: Final = 3
# Kernels whose loops have fewer iterations in total are not guarded.
_SHORT: Final = 65_000


def guard_loops(editor: Editor, reporter: Reporter) -> None:
    """Adds sentinels to a module, unless all its loops together are short."""
    flows = {flow.id: flow for flow in map(Flow.of, editor.functions)}
    guard = _Guard(editor, reporter, flows)
    guard.run()
    editor.functions[:] = [flow.code() for flow in flows.values()]


class _Guard:
    def __init__(self, editor: Editor, reporter: Reporter, flows: dict[int, Flow]) -> None:
        self._editor = editor
        self._reporter = reporter
        self._flows = flows
        self._lines = Lines(editor)
        self._entries = [entry[2] for entry in editor.entry_points if entry[1] == ExecutionModel.GLCompute]

    def run(self) -> None:
        counts = TripCounts(self._editor, self._flows)
        if all(counts.of_function(item) < _SHORT for item in self._entries):
            return
        reached = self._reached()
        looping = {item for item in reached if self._loops_within(item)}
        if not looping:
            return
        once = self._run_once(reached)
        last: Site | None = None
        for number in reached:
            flow = self._flows[number]
            if number not in once:
                continue
            in_loops = frozenset().union(*(loop.blocks for loop in flow.loops))
            for loop in [item for item in flow.loops if item.is_outermost]:
                site = self._site(flow, loop)
                returns = any(flow.blocks[label].returns for label in loop.blocks)
                if not self._guard_loop(flow, loop, site) or (returns and not self._is_leaf(flow, loop)):
                    last = last or site
            for label, callee in flow.calls():
                if label not in in_loops and callee in looping and callee not in once:
                    last = last or self._site(self._flows[callee], None)
        if last is not None:
            # Loops from which invocations return, loops whose end is not reached, and functions called from many
            # places.
            self._reporter.number_of(last)  # a module without sites is left as it is
            self._reporter.endings.append(partial(self._sentinel, last))

    # -- which functions ------------------------------------------------------------------------------

    def _reached(self) -> list[int]:
        """Returns the functions that compute shaders call, callers first."""
        reached = [function for function in self._entries if function in self._flows]
        for number in reached:
            reached += [
                function
                for _, function in self._flows[number].calls()
                if function not in reached and function in self._flows
            ]
        return list(dict.fromkeys(reached))

    def _loops_within(self, number: int) -> bool:
        pending, seen = [number], {number}
        while pending:
            flow = self._flows[pending.pop()]
            if flow.loops:
                return True
            callees = {function for _, function in flow.calls() if function in self._flows} - seen
            seen |= callees
            pending += callees
        return False

    def _run_once(self, reached: list[int]) -> set[int]:
        """Returns the functions that are called outside loops only."""
        once = set(reached)
        while True:
            inside: set[int] = set()
            for number in reached:
                flow = self._flows[number]
                in_loops = frozenset().union(*(loop.blocks for loop in flow.loops))
                inside |= {function for label, function in flow.calls() if number not in once or label in in_loops}
            if not inside & once:
                return once
            once -= inside

    # -- code ------------------------------------------------------------------------------------------

    def _site(self, flow: Flow, loop: Loop | None) -> Site:
        name = self._editor.names.get(flow.id, "").partition("(")[0]
        file, line = self._lines.of(flow, loop.header) if loop is not None else ("", 0)
        return Site(ReportKind.LOOPS_CUT, name, file=file, line=line)

    def _is_leaf(self, flow: Flow, loop: Loop) -> bool:
        """Whether it contains no other loop."""
        inner = any(other.header in loop.blocks for other in flow.loops if other is not loop)
        return not inner and not any(
            label in loop.blocks and function in self._flows and self._loops_within(function)
            for label, function in flow.calls()
        )

    def _guard_loop(self, flow: Flow, loop: Loop, site: Site) -> bool:
        """Puts a sentinel after a loop; returns whether there was room for one."""
        merge = flow.blocks[loop.merge]
        is_header = any(opcode_of(instruction) == Op.LoopMerge for instruction in merge.code)
        if is_header or merge.is_unreachable:
            return False
        condition = condition_of(self._editor, flow, loop) if self._is_leaf(flow, loop) else None
        if condition is not None:
            writer = Writer(self._editor)
            is_repeated = ask_again(writer, self._reporter, condition)
            self._reporter.note(writer, is_repeated, self._reporter.number_of(site))
            merge.code[merge.first : merge.first] = writer.out
            return True
        after = self._editor.fresh()
        first = merge.first
        rest = merge.code[first:]
        merge.code[first:] = self._sentinel(site, after)
        tail = Block(after, [encode(Op.Label, after), *rest], merge.targets)
        merge.targets = ()
        blocks: dict[int, Block] = {}
        for label, block in flow.blocks.items():
            blocks[label] = block
            if block is merge:
                blocks[after] = tail
        flow.blocks = blocks
        for block in blocks.values():
            block.code[:] = [_renamed(instruction, loop.merge, after) for instruction in block.code]
        for other in flow.loops:
            if loop.merge in other.blocks:
                other.blocks |= {after}
        return True

    def _sentinel(self, site: Site, after: int = 0) -> list[Words]:
        """Returns a loop of three iterations, a note for fewer iterations, and a branch to ``after``."""
        editor, reporter, writer = self._editor, self._reporter, Writer(self._editor)
        u32, boolean = editor.u32(), editor.bool_type()
        zero, unit, passes = (editor.constant_u32(value) for value in (0, 1, _PASSES))
        before, header, body, latch, merge, count, next_count = (editor.fresh() for _ in range(7))
        writer.do(Op.Branch, before)
        writer.block(before)
        bound = writer.op(Op.IAdd, u32, reporter.zero(writer, 0), passes)
        writer.do(Op.Branch, header)
        writer.block(header)
        writer.do(Op.Phi, u32, count, zero, before, next_count, latch)
        writer.do(Op.LoopMerge, merge, latch, 0)
        writer.do(Op.Branch, body)
        writer.block(body)
        writer.do(Op.BranchConditional, writer.op(Op.ULessThan, boolean, count, bound), latch, merge)
        writer.block(latch)
        writer.do(Op.IAdd, u32, next_count, count, unit)
        writer.do(Op.Branch, header)
        writer.block(merge)
        expected = writer.op(Op.IAdd, u32, reporter.zero(writer, 1), passes)
        is_cut = writer.op(Op.INotEqual, boolean, count, expected)
        reporter.note(writer, is_cut, reporter.number_of(site))
        if after:
            writer.do(Op.Branch, after)
        return writer.out


def _renamed(instruction: Words, old: int, new: int) -> Words:
    """Returns a phi with a parent replaced; other instructions unchanged."""
    if opcode_of(instruction) != Op.Phi or old not in instruction[4::2]:
        return instruction
    words = list(instruction)
    words[4::2] = [new if parent == old else parent for parent in words[4::2]]
    return tuple(words)
