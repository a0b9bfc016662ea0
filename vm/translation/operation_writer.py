"""Writes operations within a block that call no function: arithmetic, globals, lists, buffers, references."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ..bytecode.decoder import Instruction
from ..bytecode.isa import MOVE_BIT, Access, FieldKind, Move
from .analysis import FunctionAnalysis
from .basic_block import Variable
from .constants import constant_text
from .operations import EFFECTS, EXPRESSIONS, Expression
from .ranges import FULL, Range, fits, result_range
from .register_types import write_type
from .simplify import comparison_fact, simpler_template
from .values import Text, ValueWriter

_MAX_DEPTH: Final = 16  # of nested expressions
# Operations whose result modulo 2**n is the same for operands that are not wrapped yet.
_TOLERANT: Final = frozenset(
    f"{name}.i{bits}" for name in ("add", "sub", "mul", "fma", "and", "or", "xor", "not") for bits in (32, 64)
)
_BITWISE: Final = frozenset(f"{name}.i{bits}" for name in ("and", "or", "xor", "not") for bits in (32, 64))
_FAR: Final = 1 << 20  # products with larger constants are taken for hashes or random numbers, mostly out of range


class OperationWriter(ValueWriter):
    """Writes operations.

    Args:
        analysis: of the function.
        constants: known in the whole function.
        typed_globals: reference globals that are only accessed as one type, whose loads need no check.
    """

    def __init__(
        self, analysis: FunctionAnalysis, constants: dict[Variable, str], typed_globals: frozenset[int]
    ) -> None:
        super().__init__(analysis, constants)
        self._typed_globals = typed_globals
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
            texts = [self.value(variable) for variable in operands.reads]
            self.line(EFFECTS[mnemonic].text.format(*texts))
        else:
            getattr(self, "_op_" + mnemonic.replace(".", "_"), self._other)(index, instruction)
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
        depth = max(one.depth for one in operands) + 1
        bounds = [one.bounds for one in operands if one.bounds is not None]
        wrap = expression.wrap
        if mnemonic in _BITWISE and any(one.wrap for one in operands):
            wrap = tolerant
        template = expression.text
        found: Range | None = None
        if bounds:
            template = simpler_template(mnemonic, operands) or template
            found = result_range(mnemonic, bounds)
        if found is None:
            found = (-(1 << 200), 1 << 200) if wrap else FULL.get(kind)
        if wrap and found is not None and fits(found, wrap):
            wrap = 0
        far = bool(wrap) and (
            any(one.far for one in operands)
            or (
                mnemonic[:4] in ("mul.", "fma.")
                and any(one.atom and not one.reads and abs(_literal(one)) >= _FAR for one in operands[:2])
            )
            or found == (-(1 << 200), 1 << 200)
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
            fact=comparison_fact(mnemonic, operands, reads) if expression.condition else None,
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
                        fact = ({"lt": "ge", "ge": "lt", "eq": "ne", "ne": "eq"}[fact[0]], *fact[1:])
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

    # -- constants -----------------------------------------------------------------------------------

    def _constant(self, index: int, instruction: Instruction) -> None:
        variable = self.analysis.operands[index].writes[0]
        text = constant_text(instruction)
        if self.raw:
            self.assign(variable, text)
        elif variable not in self.constants:
            name = f"{variable[0]}{variable[1]}"
            self.before_write(name)
            self.local_constants[name] = text

    def _other(self, index: int, instruction: Instruction) -> None:
        mnemonic = instruction.operation.mnemonic
        if mnemonic.startswith("const."):
            self._constant(index, instruction)
        elif mnemonic.startswith("global."):
            self._global(index, instruction)
        elif mnemonic.startswith("switch."):
            self._switch(index, instruction)
        else:
            raise AssertionError(f"no translation for {mnemonic}")

    def _op_const_ref_zero(self, index: int, instruction: Instruction) -> None:
        self.assign(self.analysis.operands[index].writes[0], "None")

    def _op_const_ref_rodata(self, index: int, instruction: Instruction) -> None:
        self.assign(self.analysis.operands[index].writes[0], self.bound(f"ro{instruction.values[0]}"))

    def _op_import_resolved(self, index: int, instruction: Instruction) -> None:
        ordinal = int(instruction.values[0]) & 0x7FFFFFFF  # type: ignore[arg-type]
        self.assign(self.analysis.operands[index].writes[0], self.bound(f"is{ordinal}"))

    # -- globals -------------------------------------------------------------------------------------

    def _global(self, index: int, instruction: Instruction) -> None:
        parts = instruction.operation.mnemonic.split(".")
        operands = self.analysis.operands[index]
        kind, indirect, load = parts[-1], "indirect" in parts, parts[1] == "load"
        if kind == "ref":
            self._global_ref(instruction, operands.reads, operands.writes, indirect=indirect, load=load)
            return
        size = 8 if kind in ("i64", "f64") else 4
        memory = self.bound(f"g_{kind}")
        if indirect:
            place = f"global_index({self.value(operands.reads[0])}, {size}, {memory})"
        else:
            offset = instruction.values[0]
            assert isinstance(offset, int)
            place = str(offset // size)
        if load:
            self.assign(operands.writes[0], f"{memory}[{place}]")
        else:
            self.line(f"{memory}[{place}] = {self.value(operands.reads[-1])}")

    def _global_ref(
        self,
        instruction: Instruction,
        reads: Sequence[Variable],
        writes: Sequence[Variable],
        *,
        indirect: bool,
        load: bool,
    ) -> None:
        refs = self.bound("g_ref")
        ordinal = _field_value(instruction, FieldKind.GLOBAL)
        type_ = self.bound(f"ty{_field_value(instruction, FieldKind.TYPE)}")
        place = f"global_ref_index({self.value(reads[0])}, {refs})" if indirect else str(ordinal)
        if not load:
            self.line(f"{refs}[{place}] = checked_ref({self.value(reads[-1])}, {type_})")
            return
        if indirect:
            self.line(f"t = {place}")
            place = "t"
        checked = indirect or ordinal not in self._typed_globals
        self.assign(writes[0], f"checked_ref({refs}[{place}], {type_})" if checked else f"{refs}[{place}]")
        if _result_moves(instruction):
            self.line(f"{refs}[{place}] = None")

    # -- references ----------------------------------------------------------------------------------

    def _switch(self, index: int, instruction: Instruction) -> None:
        operands = self.analysis.operands[index]
        at, default, *values = operands.reads
        texts = [self.value(one) for one in values]
        table = f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
        text = f"switch({self.value(at)}, {self.value(default)}, {table})"
        if operands.writes[0][0] == "r":
            text = f"checked_ref({text}, {self.bound(f'ty{_field_value(instruction, FieldKind.TYPE)}')})"
        self.assign(operands.writes[0], text)

    def _op_assign_ref(self, index: int, instruction: Instruction) -> None:
        operands = self.analysis.operands[index]
        self.assign(operands.writes[0], self.value(operands.reads[0]))

    def _op_discard_refs(self, index: int, instruction: Instruction) -> None:
        pass  # it moves the references that it reads, which ``operation`` sets to null

    def _op_cast_any_ref(self, index: int, instruction: Instruction) -> None:
        operands = self.analysis.operands[index]
        type_ = self.bound(f"ty{instruction.values[1]}")
        self.assign(operands.writes[0], f"checked_ref({self.value(operands.reads[0])}, {type_})")

    def _op_select_ref(self, index: int, instruction: Instruction) -> None:
        operands = self.analysis.operands[index]
        condition, yes, no = operands.reads
        test = self.read(condition, condition=True).text
        type_ = self.bound(f"ty{instruction.values[1]}")
        self.assign(operands.writes[0], f"checked_ref({self.value(yes)} if {test} else {self.value(no)}, {type_})")

    def _op_list_alloc(self, index: int, instruction: Instruction) -> None:
        operands = self.analysis.operands[index]
        type_ = self.bound(f"tn{instruction.values[0]}")
        self.assign(operands.writes[0], f"new_list({type_}, {self.value(operands.reads[0])})")

    def _op_list_get_ref(self, index: int, instruction: Instruction) -> None:
        operands = self.analysis.operands[index]
        type_ = self.bound(f"ty{_field_value(instruction, FieldKind.TYPE)}")
        source, at = (self.value(one) for one in operands.reads)
        move = ", move=True" if _result_moves(instruction) else ""
        self.assign(operands.writes[0], f"{source}.get_ref({at}, {type_}{move})")

    def _op_trace(self, index: int, instruction: Instruction) -> None:
        values = ", ".join(self.value(one) for one in self.analysis.operands[index].reads)
        hooks = self.bound("hooks")
        which = instruction.operation.mnemonic
        self.line(f"{hooks}.{which}({instruction.values[0]!r}, ({values}{',' if values else ''}))")

    _op_print = _op_trace


def _result_moves(instruction: Instruction) -> bool:
    for field, value in zip(instruction.operation.fields, instruction.values, strict=True):
        if field.kind is FieldKind.REGISTER and field.bank == "ref" and field.access is Access.WRITE:
            return field.move is Move.ALLOW and bool(int(value) & MOVE_BIT)  # type: ignore[arg-type]
    return False


def _literal(text: Text) -> int:
    return text.bounds[0] if text.bounds is not None and text.bounds[0] == text.bounds[1] else 0


def _field_value(instruction: Instruction, kind: FieldKind) -> object:
    """The value of an instruction's first field of a kind; ``None`` if it has none."""
    for field, value in zip(instruction.operation.fields, instruction.values, strict=True):
        if field.kind is kind:
            return value
    return None
