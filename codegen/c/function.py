"""The writer of one function in C: variables, labels and gotos."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ...status import StatusCode, UnimplementedError
from ...vm.translation.expressions import Cast, Comparison, Conditional, Expression, Literal, Name
from ..program.ir import Block, Constant, Edge, Function, Instruction, Operand, Program, Rodata, Variable
from .arguments import literal
from .calls import call_text
from .executables import Executables
from .expressions import DIVISIONS, EXPRESSIONS, c_text
from .host_values import bytes_text, list_text
from .support import reserved
from .types import KEYWORDS, c_type, global_name, is_owned, number_text

_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_ASSIGNMENT: Final = re.compile(r" +(\w+) = ")


class FunctionWriter:
    """Writes one function.

    Args:
        program: the function's program.
        function: the function.
        names: of all functions in C, by ordinal.
        executables: of the program.

    Attributes:
        constants: ordinals of constants that the function uses as buffers of host memory.
    """

    def __init__(self, program: Program, function: Function, names: dict[int, str], executables: Executables) -> None:
        self.program = program
        self.function = function
        self.executables = executables
        self.constants: dict[int, None] = {}
        self._functions = names
        self._names: dict[Variable, str] = {}
        self._taken: set[str] = set()
        for variable in function.arguments:
            self._give(variable)

    def where(self) -> str:
        """Returns the function's name, for messages."""
        return f"function {self.function.name or self.function.ordinal}"

    def _give(self, variable: Variable) -> str:
        wanted = base = variable.name or "value"
        number = 0
        while wanted in self._taken or wanted in reserved() or wanted in KEYWORDS:
            wanted = f"{base}_{number}"
            number += 1
        self._taken.add(wanted)
        self._names[variable] = wanted
        return wanted

    def name(self, variable: Variable) -> str:
        """Returns the name of a variable."""
        return self._names.get(variable) or self._give(variable)

    def value(self, value: Operand) -> str:
        """Returns a value as an expression that binds closer than any operator."""
        if isinstance(value, Variable):
            return self.name(value)
        if isinstance(value, Rodata):
            self.constants.setdefault(value.ordinal)
            return f"p->globals.rodata_{value.ordinal}"
        assert isinstance(value, Constant)
        return number_text(value.kind, value.number)

    def prototype(self) -> str:
        """Returns the function's declaration, without the semicolon."""
        parameters = ["NAME_program *p"]
        for variable in self.function.arguments:
            kind = c_type(variable)
            if kind is not None:
                parameters.append(f"{kind} {'*' if variable.kind == 'r' else ''}{self.name(variable)}")
        for index, kind in enumerate(self.result_types()):
            if kind is not None:
                parameters.append(f"{kind}{'' if kind.endswith('*') else ' '}*{self.result(index)}")
        return f"static int {self._functions[self.function.ordinal]}({', '.join(parameters)})"

    def result(self, index: int) -> str:
        """Returns the name of a result's parameter."""
        return f"result_{index}"

    def result_types(self) -> list[str | None]:
        """Returns the C types of the results; those of references end with a star."""
        types = []
        for kind, named in zip(self.function.results, self.function.result_types, strict=True):
            found = c_type(Variable(kind, named))
            types.append(f"{found} *" if kind == "r" and found is not None else found)
        return types

    def text(self) -> str:
        """Returns the function's definition."""
        function = self.function
        gotos = self._targets()
        body: list[str] = []
        for index, block in enumerate(function.blocks):
            if index in gotos:
                body.append(f"block_{index}:;")
            location = None
            for instruction in block.instructions[:-1]:
                lines = self._statement(instruction)
                if lines and instruction.location and instruction.location != location:
                    location = instruction.location
                    body.append(f"    /* {location.replace('*/', '* /')} */")
                body += [f"    {line}" for line in lines]
            body += [f"    {line}" for line in self._terminator(block, index)]
        while body and body[-1].strip() == "goto done;":
            body.pop()
        body = self._without_dead(body)
        joined = "\n".join(body)
        words = set(_WORD.findall(joined))
        releases = []
        lines = [self.prototype(), "{", "    int status = OK;"]
        for variable in function.arguments:
            name = self.name(variable)
            if variable.definitions > 1 and is_owned(variable):
                lines.append(f"    retain({name});")
                releases.append(name)
            elif c_type(variable) is not None and name not in words:
                lines.append(f"    (void){name};")
        declarations = []
        for variable, name in self._names.items():
            kind = c_type(variable)
            if variable in function.arguments or kind is None or name not in words:
                continue
            declarations.append(f"    {kind} *{name} = NULL;" if variable.kind == "r" else f"    {kind} {name} = 0;")
            if is_owned(variable):
                releases.append(name)
        lines[3:3] = declarations
        lines += body
        if "TRY" in words or "done" in words:
            lines.append("done:")
        lines += [f"    release(p, {name});" for name in releases]
        if "p" not in words and not releases:
            lines.insert(3 + len(declarations), "    (void)p;")
        return "\n".join([*lines, "    return status;", "}"])

    def _without_dead(self, body: list[str]) -> list[str]:
        """Removes assignments to numbers that nothing reads."""
        numbers = {name for variable, name in self._names.items() if variable.kind != "r"}
        while True:
            read: set[str] = set()
            for line in body:
                target = _ASSIGNMENT.match(line)
                read |= set(_WORD.findall(line[target.end() :] if target else line))
            kept = [line for line in body if not ((target := _ASSIGNMENT.match(line)) and target[1] in numbers - read)]
            if len(kept) == len(body):
                return body
            body = kept

    def _targets(self) -> set[int]:
        """Returns the blocks that a goto leads to."""
        found = set()
        for index, block in enumerate(self.function.blocks):
            for position, edge in enumerate(block.edges):
                is_next = edge.target == index + 1 and not (block.terminator.operation == "br_table" and position)
                if not is_next:
                    found.add(edge.target)
        return found

    # -- control flow ----------------------------------------------------------------------------------

    def _terminator(self, block: Block, index: int) -> list[str]:
        one = block.terminator
        if one.operation == "br":
            return self._jump(block.edges[0], index)
        if one.operation == "cond_br":
            condition = self.value(one.operands[0])
            yes, no = (self._jump(edge, index) for edge in block.edges)
            if yes and no and block.edges[0].target == index + 1:
                return [f"if ({condition}) {{", *_indented(yes), "} else {", *_indented(no), "}"]
            if not yes:
                yes, no, condition = no, yes, f"!{condition}"
            return [*([f"if ({condition}) {{", *_indented(yes), "}"] if yes else []), *no]
        if one.operation == "br_table":
            lines = [f"switch ({self.value(one.operands[0])}) {{"]
            for case, edge in enumerate(block.edges[1:]):
                lines += [f"case {case}:", *_indented([*self._copies(edge), f"goto block_{edge.target};"])]
            default = self._jump(block.edges[0], index)
            return [
                *lines,
                "default:",
                *_indented([*default, *([] if default[-1:] and "goto" in default[-1] else ["break;"])]),
                "}",
            ]
        if one.operation == "return":
            return self._return(one)
        if one.operation == "fail":
            code = one.operands[0]
            shown = self.value(code)
            if isinstance(code, Constant):
                shown = StatusCode(int(code.number) & 31).name if 0 < int(code.number) & 31 <= 16 else "UNKNOWN"
            text = literal(one.text or "the program failed")
            return [f'status = fail(p, {shown}, "%s", {text});', "goto done;"]
        raise UnimplementedError(f"{self.where()} ends a block with {one.operation}, which has no form in C")

    def _jump(self, edge: Edge, index: int) -> list[str]:
        return [*self._copies(edge), *([] if edge.target == index + 1 else [f"goto block_{edge.target};"])]

    def _copies(self, edge: Edge) -> list[str]:
        """Writes parallel copies, with temporaries if one copy reads what another writes."""
        copies = [(target, source) for target, source in edge.copies if target is not source and c_type(target)]
        written = {target for target, _ in copies[:-1]}
        if not any(source in written for _, source in copies[1:] if isinstance(source, Variable)):
            return [line for target, source in copies for line in self._assign(target, self.value(source))]
        lines, ends = ["{"], []
        for number, (target, source) in enumerate(copies):
            kind, temporary = c_type(target), f"next_{number}"
            if target.kind != "r":
                lines.append(f"    const {kind} {temporary} = {self.value(source)};")
                ends.append(f"    {self.name(target)} = {temporary};")
            elif is_owned(target):
                lines.append(f"    {kind} *{temporary} = retain({self.value(source)});")
                ends.append(f"    REPLACE({self.name(target)}, {temporary});")
            else:
                lines.append(f"    {kind} *{temporary} = {self.value(source)};")
                ends.append(f"    {self.name(target)} = {temporary};")
        return [*lines, *ends, "}"]

    def _assign(self, target: Variable, value: str) -> list[str]:
        if not is_owned(target):
            return [f"{self.name(target)} = {value};"]
        name = self.name(target)
        return [f"REPLACE({name}, NULL);" if value == "NULL" else f"ASSIGN({name}, {value});"]

    def _return(self, instruction: Instruction) -> list[str]:
        lines = []
        for index, (value, kind) in enumerate(zip(instruction.operands, self.result_types(), strict=True)):
            if kind is None:
                continue
            place, text = f"*{self.result(index)}", self.value(value)
            if not kind.endswith("*") or kind == "executable *":
                lines.append(f"{place} = {text};")
            else:
                lines.append(f"REPLACE({place}, NULL);" if text == "NULL" else f"ASSIGN({place}, {text});")
        return [*lines, "goto done;"]

    # -- instructions ----------------------------------------------------------------------------------

    def _statement(self, instruction: Instruction) -> list[str]:
        operation = instruction.operation
        if operation == "call":
            return self._call(instruction) if isinstance(instruction.callee, int) else call_text(self, instruction)
        if operation in DIVISIONS:
            name, bits, sign = operation.split(".")
            flags = f"{'true' if sign == 's' else 'false'}, {'true' if name == 'rem' else 'false'}"
            left, right = (self.value(each) for each in instruction.operands)
            return [f"TRY(divide_{bits}(p, {flags}, {left}, {right}, &{self.name(instruction.results[0])}));"]
        if operation in EXPRESSIONS:
            if not instruction.results[0].uses:
                return []
            tree = EXPRESSIONS[operation](*(Name(self.value(operand)) for operand in instruction.operands))
            return [f"{self.name(instruction.results[0])} = {c_text(tree)};"]
        head = operation.split(".")[0]
        if operation == "assign":
            target = instruction.results[0]
            if not target.uses or c_type(target) is None:
                return []
            return self._assign(target, self.value(instruction.operands[0]))
        if operation.startswith("select") or head == "switch":
            return self._select(instruction)
        if operation.startswith("cmp."):
            return self._compare(instruction)
        if head == "global" and "indirect" not in operation:
            return self._global(instruction)
        if head == "list":
            return list_text(self, instruction)
        if head == "buffer":
            return bytes_text(self, instruction)
        raise UnimplementedError(f"{self.where()} does {operation}, which has no form in C; run it with pumice run")

    def _call(self, instruction: Instruction) -> list[str]:
        assert isinstance(instruction.callee, int)
        callee = self.program.functions[instruction.callee]
        arguments = ["p"]
        for value, variable in zip(instruction.operands, callee.arguments, strict=True):
            if c_type(variable) is not None:
                arguments.append(self.value(value))
        arguments += [f"&{self.name(each)}" for each in instruction.results if c_type(each) is not None]
        return [f"TRY({self._functions[instruction.callee]}({', '.join(arguments)}));"]

    def _select(self, instruction: Instruction) -> list[str]:
        target = instruction.results[0]
        if not target.uses or c_type(target) is None:
            return []
        test: Expression
        test, *values = (Name(self.value(operand)) for operand in instruction.operands)
        choices: list[Expression] = [*values]
        if target.kind == "r":  # null has a type of its own
            choices = [Cast("void *", value) for value in values]
        if instruction.operation.startswith("select"):
            return self._assign(target, c_text(Conditional(test, *choices)))
        tree, *cases = choices
        for number in reversed(range(len(cases))):
            tree = Conditional(Comparison("==", test, Literal(number)), cases[number], tree)
        return self._assign(target, c_text(tree))

    def _compare(self, instruction: Instruction) -> list[str]:
        if instruction.operation not in ("cmp.eq.ref", "cmp.ne.ref", "cmp.nz.ref"):
            raise UnimplementedError(f"{self.where()} does {instruction.operation}, which has no form in C")
        if not instruction.results[0].uses:
            return []
        devices = [isinstance(each, Variable) and c_type(each) is None for each in instruction.operands]
        if any(devices):
            text = "1" if instruction.operation != "cmp.ne.ref" else "0"
        elif instruction.operation == "cmp.nz.ref":
            text = c_text(Comparison("!=", Name(self.value(instruction.operands[0])), Name("NULL")))
        else:
            left, right = (Cast("const void *", Name(self.value(operand))) for operand in instruction.operands)
            text = c_text(Comparison("==" if instruction.operation == "cmp.eq.ref" else "!=", left, right))
        return [f"{self.name(instruction.results[0])} = {text};"]

    def _global(self, instruction: Instruction) -> list[str]:
        kind = instruction.operation.rpartition(".")[2]
        is_load = ".load." in instruction.operation
        value = instruction.results[0] if is_load else instruction.operands[0]
        place = f"p->globals.{kind}_{instruction.ordinal}"
        if isinstance(value, Variable) and c_type(value) is None:
            return []
        if kind == "ref":
            if self._is_stateless(instruction.ordinal):
                return []
            place = f"p->globals.{global_name(self.program, instruction.ordinal)}"
        if is_load:
            return self._assign(instruction.results[0], place) if instruction.results[0].uses else []
        text = self.value(instruction.operands[0])
        if kind != "ref" or self.program.global_types.get(instruction.ordinal) == "hal.executable":
            return [f"{place} = {text};"]
        return [f"REPLACE({place}, NULL);" if text == "NULL" else f"ASSIGN({place}, {text});"]

    def _is_stateless(self, ordinal: int) -> bool:
        return c_type(Variable("r", self.program.global_types.get(ordinal))) is None


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]
