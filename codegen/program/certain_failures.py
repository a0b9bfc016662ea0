"""An analysis that recognises failures that are certain.

A ``fail`` with status 0 does nothing, and control continues after it. Compilers test the status of a wait and branch
to a shared ``fail`` only if it is not 0, so control never continues there. The code after it belongs to another path
and has other register types.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...vm.translation.analysis import FunctionAnalysis
from ...vm.translation.basic_block import Block


class CertainFailures(FunctionAnalysis):
    """An analysis of a function without the edges after certain failures."""

    def _find_blocks(self) -> list[Block]:
        blocks = super()._find_blocks()
        # For each block the i32 slots that are not 0 at its start, on all paths seen so far.
        known: dict[int, frozenset[int]] = {0: frozenset()}
        pending = [0]
        while pending:
            block = blocks[pending.pop()]
            slots = self._behind(block, known[block.index])
            terminator = self.instructions[block.end - 1].operation.mnemonic
            status = self.operands[block.end - 1].reads[0][1] if terminator in ("cond_br", "fail") else -1
            for position, edge in enumerate(block.edges):
                if terminator == "fail" and status in slots:
                    continue
                here = slots | {status} if terminator == "cond_br" and not position else slots
                there = _over(here, edge.values)
                before = known.get(edge.target)
                if before is None or not before <= there:
                    known[edge.target] = there if before is None else before & there
                    pending.append(edge.target)
        for block in blocks:
            fails = self.instructions[block.end - 1].operation.mnemonic == "fail" and block.index in known
            if fails and self.operands[block.end - 1].reads[0][1] in self._behind(block, known[block.index]):
                block.edges = []
        return blocks

    def _behind(self, block: Block, slots: frozenset[int]) -> frozenset[int]:
        """Returns the slots that are not 0 at the end of a block."""
        known = set(slots)
        for index in range(block.start, block.end):
            for kind, number in self.operands[index].writes:
                if kind != "r":
                    known -= {number, number + 1} if kind in "IF" else {number}
            instruction = self.instructions[index]
            if instruction.operation.mnemonic == "const.i32" and instruction.values[0] != 0:
                known.add(self.operands[index].writes[0][1])
        return frozenset(known)


def _over(slots: frozenset[int], copies: Mapping[int, int]) -> frozenset[int]:
    """Returns the slots that are not 0 after the copies of an edge."""
    return frozenset(slots - copies.keys()) | {target for target, source in copies.items() if source in slots}
