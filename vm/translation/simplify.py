"""Simpler source for integer operations whose operands have known bounds, and the facts that comparisons state."""

from __future__ import annotations

from collections.abc import Sequence

from .basic_block import Variable
from .values import Fact, Text


def simpler_template(mnemonic: str, operands: Sequence[Text]) -> str | None:
    """A simpler template for operands with these bounds; ``None`` if there is none."""
    name, _, kind = mnemonic.partition(".")
    bounds = [one.bounds or (-1, 0) for one in operands]
    bits = int(kind[1:3]) if kind[1:3].isdigit() else 0
    positive = all(low >= 0 for low, _ in bounds)
    if name == "cmp" and mnemonic.endswith(".u") and ".i" in mnemonic:
        return "{0} < {1}" if positive else None
    if name in ("shl", "shr") and bounds[1][0] >= 0 and bounds[1][1] < bits:
        if name == "shl":
            return "{0} << {1}"
        if mnemonic.endswith(".s") or bounds[0][0] >= 0:
            return "{0} >> {1}"
        return f"({{0}} & {(1 << bits) - 1}) >> {{1}}"
    if name in ("div", "rem") and bounds[1][0] > 0:
        sign = "//" if name == "div" else "%"
        if bounds[0][0] >= 0:
            return f"{{0}} {sign} {{1}}"
        if operands[0].atom and operands[0].depth == 0 and mnemonic.endswith(".s"):
            return f"{{0}} {sign} {{1}} if {{0}} >= 0 else -(-{{0}} {sign} {{1}})"
    if name in ("min", "max") and mnemonic.endswith(".u") and positive:
        return f"{{0}} if {{0}} {'<' if name == 'min' else '>'} {{1}} else {{1}}"
    if name == "abs" and positive:
        return "{0}"
    if mnemonic in ("ext.i32.i64.u", "trunc.i32.i8", "trunc.i32.i16", "ext.i8.i32.u", "ext.i16.i32.u"):
        most = {"ext.i32.i64.u": 1 << 32, "trunc.i32.i8": 1 << 8, "ext.i8.i32.u": 1 << 8}.get(mnemonic, 1 << 16)
        return "{0}" if positive and bounds[0][1] < most else None
    return None


def comparison_fact(mnemonic: str, operands: Sequence[Text], reads: Sequence[Variable]) -> Fact | None:
    """The fact that a comparison states of names and constants; ``None`` if it is not simple."""
    parts = mnemonic.split(".")
    if len(parts) < 3 or parts[2] not in ("i32", "i64"):
        return None
    sides: list[str | int] = []
    for one in operands:
        if one.bounds is None or one.depth or one.wrap:
            return None
        sides.append(one.text if one.reads else one.bounds[0])
    kind = reads[0][0]
    if parts[1] == "nz":
        return "ne", sides[0], 0, kind
    if parts[1] in ("eq", "ne"):
        return parts[1], sides[0], sides[1], kind
    if mnemonic.endswith(".s") or all(one.bounds is not None and one.bounds[0] >= 0 for one in operands):
        return "lt", sides[0], sides[1], kind
    return None
