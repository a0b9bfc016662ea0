"""Writes operations within a block that call no function: arithmetic, globals, lists, buffers, references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from ..bytecode.decoder import Instruction
from ..bytecode.isa import IMPORT_BIT, MOVE_BIT, FieldKind, Move
from .analysis import FunctionAnalysis, constant_text
from .basic_block import Operands, Variable, field_value
from .operations import EFFECTS, EXPRESSIONS, Expression
from .ranges import FULL, Range, fits, result_range
from .register_types import write_type
from .values import OPPOSITE, Fact, Text, ValueWriter

_MAX_DEPTH: Final = 16  # of nested expressions
# Operations whose result modulo 2**n is the same for operands that are not wrapped yet.
_TOLERANT: Final = frozenset(
    f"{name}.i{bits}" for name in ("add", "sub", "mul", "fma", "and", "or", "xor", "not") for bits in (32, 64)
)
_BITWISE: Final = frozenset(f"{name}.i{bits}" for name in ("and", "or", "xor", "not") for bits in (32, 64))
_UNBOUNDED: Final = (-(1 << 200), 1 << 200)
_FAR: Final = 1 << 20  # products with larger constants are taken for hashes or random numbers, mostly out of range


class OperationWriter(ValueWriter):
    """Writes operations."""

    def __init__(self, analysis: FunctionAnalysis) -> None:
        super().__init__(analysis)
        self.single = False  # whether any result is rounded to f32

    def operation(self, index: int) -> None:
        """Writes an instruction that is no terminator, no call and no block marker."""
        instruction = self.analysis.instructions[index]
        mnemonic = instruction.operation.mnemonic
        self.pc = instruction.pc
        operands = self.analysis.operands[index]
        expression = EXPRESSIONS.get(mnemonic)
        if expression is not None:
            self._expression(index, mnemonic, expression, operands.reads, operands.writes[0])
        elif mnemonic in EFFECTS:
            self.line(EFFECTS[mnemonic].format(*[self.value(variable) for variable in operands.reads]))
        elif mnemonic.startswith("const.") and "ref" not in mnemonic:
            self._constant(instruction, operands.writes[0])
        elif mnemonic.startswith("global."):
            self._global(instruction, operands)
        elif mnemonic in ("trace", "print"):
            values = packed([self.value(one) for one in operands.reads])
            self.line(f"{self.bound('hooks')}.{mnemonic}({instruction.values[0]!r}, {values})")
        elif mnemonic != "discard.refs":
            self.assign(operands.writes[0], self._reference(instruction, operands.reads))
        if operands.moves:
            written = {number for kind, number in operands.writes if kind == "r"}
            self.null(number for number in operands.moves if number not in written)
        self.note_writes(operands.writes)

    def note_writes(self, writes: Sequence[Variable]) -> None:
        """Notes in ``state`` what an instruction wrote."""
        if not self.raw:
            for variable in writes:
                write_type(self.state, variable)

    # -- expressions ---------------------------------------------------------------------------------

    def _expression(
        self, index: int, mnemonic: str, expression: Expression, reads: tuple[Variable, ...], result: Variable
    ) -> None:
        if self.raw:
            self._raw_expression(expression, reads, result)
            return
        uses = self.uses.get(index, _FAR)
        name = f"{result[0]}{result[1]}"
        if not uses and expression.pure and result[0] != "r":
            self.before_write(name)
            return
        pure = expression.pure
        text = self._logical(mnemonic, reads)
        if text is None:
            text = self._computed(mnemonic, expression, reads, result[0])
            # Divisions by divisors known not to be zero are operators, which cannot fail.
            pure = pure or (mnemonic[:4] in ("div.", "rem.") and "_" not in text.text)
        if uses == 1 and pure and text.depth < _MAX_DEPTH and not expression.single and result[0] != "r":
            self.defer(name, text)
            return
        self.before_write(name)
        if expression.single:
            self.single = True
            self.line(f"single[0] = {text.text}")
            self.line(f"{name} = single[0]")
        else:
            self.put(name, text)

    def _raw_expression(self, expression: Expression, reads: tuple[Variable, ...], result: Variable) -> None:
        text = expression.text.format(*[self.value(one) for one in reads])
        if expression.condition:
            text = f"1 if {text} else 0"
        elif expression.single:
            text = f"round_f32({text})"
        if result[0] == "r":
            self.assign(result, text)
        else:
            self.write_raw(result, text)

    def _computed(self, mnemonic: str, expression: Expression, reads: tuple[Variable, ...], kind: str) -> Text:
        """The text of an operation's result."""
        tolerant = int(mnemonic[-2:]) if mnemonic in _TOLERANT else 64 if mnemonic == "trunc.i64.i32" else 0
        selects = mnemonic.startswith("select.")
        operands = [
            self.read(variable, atomic=expression.atomic, tolerant=tolerant, condition=selects and not position)
            for position, variable in enumerate(reads)
        ]
        texts = [one.text for one in operands]
        reads_names = frozenset().union(*[one.reads for one in operands])
        depth = max([one.depth for one in operands]) + 1
        if kind in "fF":
            same = expression.text == "{0}"
            return Text(expression.text.format(*texts), reads_names, depth - same, atom=same)
        bounds = [one.bounds for one in operands if one.bounds is not None]
        wrap = expression.wrap
        if mnemonic in _BITWISE and any(one.wrap for one in operands):
            wrap = tolerant
        template = expression.text
        found: Range | None = None
        if bounds:
            template = _simpler_template(mnemonic, operands) or template
            found = result_range(mnemonic, bounds)
        if found is None:
            found = _UNBOUNDED if wrap else FULL.get(kind)
        if wrap and found is not None and fits(found, wrap):
            wrap = 0
        far = bool(wrap) and (
            any(one.far for one in operands)
            or (
                mnemonic[:4] in ("mul.", "fma.")
                and any(one.atom and not one.reads and abs(_literal(one)) >= _FAR for one in operands[:2])
            )
            or found == _UNBOUNDED
        )
        same = template == "{0}"
        return Text(
            template.format(*texts),
            reads_names,
            depth - same,
            found if not expression.condition else None,
            atom=same,
            wrap=wrap,
            far=far,
            condition=expression.condition,
            fact=_comparison_fact(mnemonic, operands, reads) if expression.condition else None,
        )

    def _logical(self, mnemonic: str, reads: tuple[Variable, ...]) -> Text | None:
        """A bitwise operation on truth values as ``and``, ``or`` or ``not``; ``None`` for others."""
        if mnemonic not in ("xor.i32", "and.i32", "or.i32", "cmp.nz.i32"):
            return None
        waiting = [self.pending.get(f"i{number}") for _, number in reads]
        truths = [one is not None and one.condition for one in waiting]
        if mnemonic == "cmp.nz.i32":
            return self._truth(reads[0]) if truths[0] else None
        if mnemonic == "xor.i32":
            for this, other in ((0, 1), (1, 0)):
                if truths[this] and self._constant_at(reads[other]) == "1":
                    text = self._truth(reads[this])
                    fact = text.fact
                    if fact is not None:
                        fact = (OPPOSITE[fact[0]], *fact[1:])
                    return Text(f"not {text.as_operand().text}", text.reads, text.depth + 1, condition=True, fact=fact)
            return None
        if not all(truths):
            return None
        first, second = (self._truth(one).as_operand() for one in reads)
        joint = "and" if mnemonic == "and.i32" else "or"
        return Text(
            f"{first.text} {joint} {second.text}",
            first.reads | second.reads,
            max(first.depth, second.depth) + 1,
            condition=True,
        )

    def _truth(self, variable: Variable) -> Text:
        text = self.condition(variable)
        return Text(text.text, text.reads, text.depth, atom=text.atom, condition=True, fact=text.fact)

    def _constant_at(self, variable: Variable) -> str | None:
        return self.constants.get(variable) or self.local_constants.get(f"{variable[0]}{variable[1]}")

    # -- constants, globals, references --------------------------------------------------------------

    def _constant(self, instruction: Instruction, variable: Variable) -> None:
        text = constant_text(instruction)
        if self.raw:
            self.assign(variable, text)
        elif variable not in self.constants:
            name = f"{variable[0]}{variable[1]}"
            self.before_write(name)
            self.local_constants[name] = text

    def _global(self, instruction: Instruction, operands: Operands) -> None:
        parts = instruction.operation.mnemonic.split(".")
        kind, indirect, load = parts[-1], "indirect" in parts, parts[1] == "load"
        if kind == "ref":
            self._global_ref(instruction, operands, indirect=indirect, load=load)
            return
        size = 8 if kind in ("i64", "f64") else 4
        memory = self.bound(f"g_{kind}")
        if indirect:
            place = f"global_index({self.value(operands.reads[0])}, {size}, {memory})"
        else:
            place = str(cast(int, instruction.values[0]) // size)
        if load:
            self.assign(operands.writes[0], f"{memory}[{place}]")
        else:
            self.line(f"{memory}[{place}] = {self.value(operands.reads[-1])}")

    def _global_ref(self, instruction: Instruction, operands: Operands, *, indirect: bool, load: bool) -> None:
        refs = self.bound("g_ref")
        ordinal = field_value(instruction, FieldKind.GLOBAL)
        type_ = self._type(instruction)
        place = f"global_ref_index({self.value(operands.reads[0])}, {refs})" if indirect else str(ordinal)
        if not load:
            self.line(f"{refs}[{place}] = checked_ref({self.value(operands.reads[-1])}, {type_})")
            return
        if indirect:
            self.line(f"t = {place}")
            place = "t"
        checked = indirect or ordinal not in self.analysis.module.typed_globals
        self.assign(operands.writes[0], f"checked_ref({refs}[{place}], {type_})" if checked else f"{refs}[{place}]")
        if _result_moves(instruction):
            self.line(f"{refs}[{place}] = None")

    def _type(self, instruction: Instruction) -> str:
        return self.bound(f"ty{field_value(instruction, FieldKind.TYPE)}")

    def _reference(self, instruction: Instruction, reads: Sequence[Variable]) -> str:
        """The text of a result that needs the module's tables, or is a reference."""
        value = instruction.values[0]
        match instruction.operation.mnemonic:
            case "const.ref.zero":
                return "None"
            case "const.ref.rodata":
                return self.bound(f"ro{value}")
            case "import.resolved":
                return self.bound(f"is{cast(int, value) & ~IMPORT_BIT}")
            case "assign.ref":
                return self.value(reads[0])
            case "cast.any.ref":
                return f"checked_ref({self.value(reads[0])}, {self._type(instruction)})"
            case "select.ref":
                test = self.read(reads[0], condition=True).text
                yes, no = (self.value(one) for one in reads[1:])
                return f"checked_ref({yes} if {test} else {no}, {self._type(instruction)})"
            case "list.alloc":
                return f"new_list({self.bound(f'tn{value}')}, {self.value(reads[0])})"
            case "list.get.ref":
                source, at = (self.value(one) for one in reads)
                move = ", move=True" if _result_moves(instruction) else ""
                return f"{source}.get_ref({at}, {self._type(instruction)}{move})"
            case mnemonic if mnemonic.startswith("switch."):
                at, default, *values = [self.value(one) for one in reads]
                text = f"switch({at}, {default}, {packed(values)})"
                return text if mnemonic != "switch.ref" else f"checked_ref({text}, {self._type(instruction)})"
            case mnemonic:
                raise AssertionError(f"no translation for {mnemonic}")


def _result_moves(instruction: Instruction) -> bool:
    """Whether the last field, a reference that is written, moves it from where it was."""
    return bool(cast(int, instruction.values[-1]) & MOVE_BIT) and instruction.operation.fields[-1].move is Move.ALLOW


def _literal(text: Text) -> int:
    return text.bounds[0] if text.bounds is not None and text.bounds[0] == text.bounds[1] else 0


def packed(texts: Sequence[str]) -> str:
    """A tuple display."""
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


# -- bounds ------------------------------------------------------------------------------------------


def _simpler_template(mnemonic: str, operands: Sequence[Text]) -> str | None:
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


def _comparison_fact(mnemonic: str, operands: Sequence[Text], reads: Sequence[Variable]) -> Fact | None:
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
