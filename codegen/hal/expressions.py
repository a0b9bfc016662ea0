"""Operations as Python expressions, with the wrapping that their values may need and no more."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...vm.translation.operations import EXPRESSIONS
from ...vm.translation.ranges import FULL, Range, fits, result_range
from ...vm.types.numerics import bitcast_f32_i32, bitcast_f64_i64
from ..program.ir import Constant, Instruction, Value, Variable

_OPPOSITES: Final = (
    (" == ", " != "),
    (" != ", " == "),
    (" is not ", " is "),
    (" is ", " is not "),
    (" < ", " >= "),
    (" > ", " <= "),
)
_MASKS: Final = {32: "0xFFFFFFFF", 64: "0xFFFFFFFFFFFFFFFF"}


@dataclass(slots=True)
class Text:
    """A Python expression.

    Attributes:
        text: the source.
        atom: whether it needs no parentheses as an operand.
        condition: whether it is a truth value, which stands for 1 or 0.
        bounds: of an integer.
        opposite: of a condition, its opposite, if that is as simple.
        truth: of a number, what is true where it is not 0, if that is simpler.
    """

    text: str
    atom: bool = True
    condition: bool = False
    bounds: Range | None = None
    opposite: str | None = None
    truth: str | None = None

    def operand(self) -> str:
        """As an operand, a number."""
        if self.condition:
            return f"int({self.text})"
        return self.text if self.atom else f"({self.text})"

    def number(self) -> str:
        """As a statement's value, a number."""
        return f"int({self.text})" if self.condition else self.text

    def test(self) -> str:
        """As the condition of a statement."""
        return self.text

    def negated(self) -> str:
        """As the opposite condition of a statement."""
        return self.opposite or f"not {self.text if self.atom else f'({self.text})'}"


def constant(value: Constant) -> Text:
    """The text of a constant."""
    if value.kind == "r":
        return Text("None")
    number = value.number
    if isinstance(number, float):
        if math.isnan(number):
            if value.kind == "f":
                return Text(f"bitcast_i32_f32({bitcast_f32_i32(number)})")
            return Text(f"bitcast_i64_f64({bitcast_f64_i64(number)})")
        if math.isinf(number):
            return Text(f'float("{number!r}")')
        return Text(repr(number), number >= 0 and math.copysign(1.0, number) > 0)
    return Text(repr(number), number >= 0, bounds=(number, number))


def expression(instruction: Instruction, operands: Sequence[Text], counters: Mapping[Variable, Value]) -> Text:
    """The value of an operation of the VM's tables; ``counters`` are variables that a loop counts up below a bound."""
    mnemonic = instruction.operation
    kind = instruction.results[0].kind
    template = EXPRESSIONS[mnemonic]
    bounds = [one.bounds or FULL.get("i", (0, 0)) for one in operands]
    if _is_integer(mnemonic):
        logical = _logical(mnemonic, instruction, operands)
        if logical is not None:
            return logical
    found = _range(mnemonic, bounds) if _is_integer(mnemonic) else None
    simple = _simpler(mnemonic, operands, bounds)
    if mnemonic.startswith(("cmp.eq.i", "cmp.ne.i")) and isinstance(instruction.operands[0], Constant):
        operands = operands[::-1]
    shape = simple or template.text
    whole = shape == "{0}" or re.fullmatch(r"\w+\([^()]*\)", shape) is not None  # operands need no parentheses
    texts = [one.number() if whole else one.operand() for one in operands]
    text = shape.format(*texts)
    if template.condition:
        return Text(
            text, False, condition=True, bounds=(0, 1), opposite=_opposite(mnemonic, simple or template.text, texts)
        )
    if kind in "fF":
        if template.single:
            return Text(f"round_f32({text})")
        return Text(text, whole and shape != "{0}")
    if template.wrap and not (found is not None and fits(found, template.wrap)):
        if _counts(instruction, counters):
            return Text(text, False, bounds=(0, FULL[kind][1]))
        return Text(f"wrap{template.wrap}({text})", bounds=FULL[kind])
    return Text(text, operands[0].atom if shape == "{0}" else whole, bounds=found or FULL.get(kind))


def _opposite(mnemonic: str, template: str, texts: Sequence[str]) -> str | None:
    """The opposite of a comparison; ``None`` of what has none as simple."""
    for sign, other in (
        (" == ", " != "),
        (" != ", " == "),
        (" is not ", " is "),
        (" is ", " is not "),
        (" < ", " >= "),
    ):
        if template.count(sign) == 1 and not (sign in (" < ", " > ") and ".f" in mnemonic) and "not (" not in template:
            return template.replace(sign, other).format(*texts)
    return None


def _range(mnemonic: str, bounds: Sequence[Range]) -> Range | None:
    """The bounds of a result, if they are narrower than its type's."""
    name, _, kind = mnemonic.partition(".")
    if name in ("div", "rem") and kind.endswith(".u") and bounds[1][0] == bounds[1][1] > 1:
        highest, divisor = (1 << int(kind[1:3])) - 1, bounds[1][0]
        return 0, highest // divisor if name == "div" else divisor - 1
    return result_range(mnemonic, bounds)


def _is_integer(mnemonic: str) -> bool:
    return ".f" not in mnemonic and ".ref" not in mnemonic


def _counts(instruction: Instruction, counters: Mapping[Variable, Value]) -> bool:
    first = instruction.operands[0]
    return instruction.results[0] in counters and first is instruction.results[0]


def _logical(mnemonic: str, instruction: Instruction, operands: Sequence[Text]) -> Text | None:
    """Bitwise operations on truth values as ``and``, ``or`` and ``not``."""
    truths = [one.condition for one in operands]
    if mnemonic in ("and.i32", "or.i32") and all(truths):
        word = " and " if mnemonic == "and.i32" else " or "
        texts = [f"({one.text})" if _mixes(one.text, word) else one.text for one in operands]
        return Text(word.join(texts), False, condition=True, bounds=(0, 1))
    if mnemonic == "and.i32":
        for this, other in ((0, 1), (1, 0)):
            value = instruction.operands[other]
            if truths[this] and isinstance(value, Constant) and int(value.number) & 1:
                return operands[this]
    if mnemonic == "cmp.nz.i32" and truths[0]:
        return operands[0]
    if mnemonic.startswith("cmp.nz.") and operands[0].truth is not None:
        return Text(operands[0].truth, condition=True, bounds=(0, 1))
    if mnemonic == "xor.i32":
        for this, other in ((0, 1), (1, 0)):
            value = instruction.operands[other]
            if truths[this] and isinstance(value, Constant) and value.number == 1:
                opposite = operands[this].text
                return Text(operands[this].negated(), False, condition=True, bounds=(0, 1), opposite=opposite)
    return None


def _mixes(text: str, word: str) -> bool:
    other = " or " if word == " and " else " and "
    return other in text or " if " in text or text.startswith("not ")


def _simpler(mnemonic: str, operands: Sequence[Text], bounds: Sequence[Range]) -> str | None:
    """A simpler template for operands within bounds; ``None`` if there is none."""
    name, _, kind = mnemonic.partition(".")
    width = re.search(r"\bi(32|64)\b", kind)
    bits = int(width[1]) if width is not None and ".f" not in mnemonic else 0
    if not bits:
        return "{0}" if mnemonic == "ext.i32.i64.u" and bounds[0][0] >= 0 else None
    sides = [f"{{{at}}}" if low >= 0 else f"({{{at}}} & {_MASKS[bits]})" for at, (low, _) in enumerate(bounds)]
    if name == "cmp" and ".lt." in mnemonic:
        left, right = sides if mnemonic.endswith(".u") else ("{0}", "{1}")
        constant_first = bounds[0][0] == bounds[0][1] and operands[0].text.isdecimal()
        return f"{right} > {left}" if constant_first else f"{left} < {right}"
    if name in ("div", "rem") and bounds[1][0] > 0:
        sign = "//" if name == "div" else "%"
        if mnemonic.endswith(".u") and (bounds[0][0] >= 0 or bounds[1][0] > 1):
            return f"{sides[0]} {sign} {{1}}"
        if bounds[0][0] >= 0:
            return f"{{0}} {sign} {{1}}"
    if name in ("shl", "shr") and bounds[1][0] >= 0 and bounds[1][1] < bits:
        if name == "shl":
            return "{0} << {1}"
        return "{0} >> {1}" if mnemonic.endswith(".s") or bounds[0][0] >= 0 else f"({{0}} & {_MASKS[bits]}) >> {{1}}"
    if name in ("min", "max") and (mnemonic.endswith(".s") or all(low >= 0 for low, _ in bounds)):
        return f"{name}({{0}}, {{1}})"
    if mnemonic.startswith("ext.i32.i64.u") and bounds[0][0] >= 0:
        return "{0}"
    if name == "abs" and bounds[0][0] >= 0:
        return "{0}"
    return None
