"""The writer of one function in C: variables, labels and gotos."""

from __future__ import annotations

from collections.abc import Sequence

from ...status import StatusCode, UnimplementedError
from ...vm.translation.expressions import (
    Cast,
    Comparison,
    Conditional,
    Expression,
    Literal,
    Name,
    Not,
    Unary,
    call,
)
from ..program.ir import Block, Constant, Edge, Function, Instruction, Program, Variable
from .arguments import Values, global_member
from .calls import write_bytes, write_call, write_list
from .executables import Executables
from .expressions import DIVISIONS, EXPRESSIONS
from .statements import (
    DONE,
    NULL,
    Assign,
    Break,
    Comment,
    Declare,
    Definition,
    Evaluate,
    Goto,
    Group,
    If,
    Label,
    P,
    Statement,
    Switch,
    assign_reference,
    attempt,
    names_in,
    without_dead,
)
from .types import c_type, global_name, is_owned, pointer, zero


class FunctionWriter(Values):
    """Writes one function.

    Args:
        program: the function's program.
        function: the function.
        functions: the names of all functions in C, by ordinal.
        executables: the program's executables.
    """

    def __init__(
        self, program: Program, function: Function, functions: dict[int, str], executables: Executables
    ) -> None:
        super().__init__(program, function, executables)
        self._functions = functions
        for variable in function.arguments:
            self.name(variable)

    def definition(self) -> Definition:
        """Returns the function's definition."""
        function = self.function
        body = self._body()
        while body and body[-1] == DONE:
            body.pop()
        numbers = {name for variable, name in self.names.items() if variable.kind != "r"}
        kept = without_dead(body, numbers)
        used = set(names_in(kept))
        starts: list[Statement] = []
        releases = []
        for variable, name in self.names.items():
            if c_type(variable) is None:
                continue
            if variable in function.arguments:
                if variable.definitions > 1 and is_owned(variable):
                    kept = [Evaluate(call("retain", Name(name))), *kept]
                    releases.append(name)
            elif name in used:
                starts.append(Declare(pointer(variable), name, zero(variable)))
                if is_owned(variable):
                    releases.append(name)
        parameters = [("NAME_program *", "p")]
        parameters += [
            (pointer(variable), self.names[variable]) for variable in function.arguments if c_type(variable) is not None
        ]
        for index, result in enumerate(self._results()):
            if c_type(result) is not None:
                parameters.append((f"{pointer(result)}{'' if result.kind == 'r' else ' '}*", f"result_{index}"))
        ends = [Evaluate(call("release", P, Name(name))) for name in releases]
        return Definition(self._functions[function.ordinal], parameters, [*starts, *kept], ends)

    def _results(self) -> list[Variable]:
        results = zip(self.function.results, self.function.result_types, strict=True)
        return [Variable(kind, named) for kind, named in results]

    def _body(self) -> list[Statement]:
        targets = {
            edge.target
            for index, block in enumerate(self.function.blocks)
            for position, edge in enumerate(block.edges)
            if edge.target != index + 1 or (block.terminator.operation == "br_table" and position)
        }
        body: list[Statement] = []
        for index, block in enumerate(self.function.blocks):
            if index in targets:
                body.append(Label(f"block_{index}"))
            location = None
            for instruction in block.instructions[:-1]:
                statements = self._statement(instruction)
                if statements and instruction.location and instruction.location != location:
                    location = instruction.location
                    body.append(Comment(location))
                body += statements
            body += self._terminator(block, index)
        return body

    # -- control flow ----------------------------------------------------------------------------------

    def _terminator(self, block: Block, index: int) -> list[Statement]:
        instruction = block.terminator
        match instruction.operation:
            case "br":
                return self._jump(block.edges[0], index)
            case "cond_br":
                test = self.value(instruction.operands[0])
                yes, no = (self._jump(edge, index) for edge in block.edges)
                if yes and no and block.edges[0].target == index + 1:
                    return [If(test, yes, no)]
                if not yes:
                    yes, no, test = no, yes, Not(test)
                return [*([If(test, yes)] if yes else []), *no]
            case "br_table":
                default, *edges = block.edges
                cases = [[*self._copies(edge), Goto(f"block_{edge.target}")] for edge in edges]
                last = self._jump(default, index)
                ends_elsewhere = last and isinstance(last[-1], Goto)
                return [
                    Switch(
                        self.value(instruction.operands[0]), [*cases, [*last, *([] if ends_elsewhere else [Break()])]]
                    )
                ]
            case "return":
                return [*self._return(instruction), DONE]
            case "fail":
                code = instruction.operands[0]
                status = self.value(code)
                if isinstance(code, Constant):
                    number = int(code.number) & 31
                    status = Name(StatusCode(number).name if 0 < number <= 16 else "UNKNOWN")
                text = Literal(instruction.text or "the program failed")
                return [Assign(Name("status"), call("fail", P, status, Literal("%s"), text)), DONE]
        raise UnimplementedError(f"{self.where()} ends a block with {instruction.operation}, which has no form in C")

    def _jump(self, edge: Edge, index: int) -> list[Statement]:
        return [*self._copies(edge), *([] if edge.target == index + 1 else [Goto(f"block_{edge.target}")])]

    def _copies(self, edge: Edge) -> list[Statement]:
        """Writes parallel copies, with temporaries if a copy reads another copy's target."""
        copies = [(target, source) for target, source in edge.copies if target is not source and c_type(target)]
        written = {target for target, _ in copies[:-1]}
        if not any(source in written for _, source in copies[1:] if isinstance(source, Variable)):
            return [self._assign(target, self.value(source)) for target, source in copies]
        starts: list[Statement] = []
        ends: list[Statement] = []
        for number, (target, source) in enumerate(copies):
            temporary, value = Name(f"next_{number}"), self.value(source)
            type = pointer(target) if target.kind == "r" else f"const {c_type(target)}"
            starts.append(Declare(type, temporary.name, call("retain", value) if is_owned(target) else value))
            name = self.name(target)
            ends.append(Evaluate(call("REPLACE", name, temporary)) if is_owned(target) else Assign(name, temporary))
        return [Group([*starts, *ends])]

    def _assign(self, target: Variable, value: Expression) -> Statement:
        return assign_reference(self.name(target), value) if is_owned(target) else Assign(self.name(target), value)

    def _return(self, instruction: Instruction) -> list[Statement]:
        statements: list[Statement] = []
        for index, (value, result) in enumerate(zip(instruction.operands, self._results(), strict=True)):
            if c_type(result) is not None:
                target, returned = Unary("*", Name(f"result_{index}")), self.value(value)
                statements.append(assign_reference(target, returned) if is_owned(result) else Assign(target, returned))
        return statements

    # -- instructions ----------------------------------------------------------------------------------

    def _statement(self, instruction: Instruction) -> list[Statement]:
        operation = instruction.operation
        if operation == "call":
            return self._call(instruction) if isinstance(instruction.callee, int) else write_call(self, instruction)
        head = operation.partition(".")[0]
        if head == "list":
            return write_list(self, instruction)
        if head == "buffer":
            return write_bytes(self, instruction)
        if head == "global" and "indirect" not in operation:
            return self._global(instruction)
        operands = [self.value(operand) for operand in instruction.operands]
        if operation in DIVISIONS:
            name, bits, sign = operation.split(".")
            flags = (Name("true" if flag else "false") for flag in (sign == "s", name == "rem"))
            return [attempt(f"divide_{bits}", *flags, *operands, self.result(instruction))]
        target = instruction.results[0]
        tree = self._expression(instruction, operands)
        return [self._assign(target, tree)] if target.uses and c_type(target) is not None else []

    def _call(self, instruction: Instruction) -> list[Statement]:
        assert isinstance(instruction.callee, int)
        callee = self.program.functions[instruction.callee]
        pairs = zip(instruction.operands, callee.arguments, strict=True)
        arguments = [self.value(value) for value, variable in pairs if c_type(variable) is not None]
        results = [Unary("&", self.name(result)) for result in instruction.results if c_type(result) is not None]
        return [attempt(self._functions[instruction.callee], *arguments, *results)]

    def _expression(self, instruction: Instruction, operands: Sequence[Expression]) -> Expression:
        """Returns the result of an operation without effects."""
        operation = instruction.operation
        if operation in EXPRESSIONS:
            return EXPRESSIONS[operation](*operands)
        if operation == "assign":
            return operands[0]
        if operation.startswith(("select.", "switch.")):
            test, *choices = operands
            if instruction.results[0].kind == "r":  # null has a separate type
                choices = [Cast("void *", choice) for choice in choices]
            if operation.startswith("select."):
                return Conditional(test, *choices)
            tree, *cases = choices
            for number in reversed(range(len(cases))):
                tree = Conditional(Comparison("==", test, Literal(number)), cases[number], tree)
            return tree
        if operation in ("cmp.eq.ref", "cmp.ne.ref", "cmp.nz.ref"):
            sign = "==" if operation == "cmp.eq.ref" else "!="
            if any(isinstance(operand, Variable) and c_type(operand) is None for operand in instruction.operands):
                return Literal(int(operation != "cmp.ne.ref"))  # there is a single device
            if operation == "cmp.nz.ref":
                return Comparison(sign, operands[0], NULL)
            left, right = (Cast("const void *", operand) for operand in operands)
            return Comparison(sign, left, right)
        does = "which has no form in C" + ("" if operation.startswith("cmp.") else "; run it with pumice run")
        raise UnimplementedError(f"{self.where()} does {operation}, {does}")

    def _global(self, instruction: Instruction) -> list[Statement]:
        kind = instruction.operation.rpartition(".")[2]
        is_load = instruction.operation.split(".")[1] == "load"
        value = instruction.results[0] if is_load else instruction.operands[0]
        named = self.program.global_types.get(instruction.ordinal)
        held = Variable("r", named) if kind == "ref" else Variable("i")
        if c_type(held) is None or (isinstance(value, Variable) and c_type(value) is None):
            return []
        name = global_name(self.program, instruction.ordinal) if kind == "ref" else f"{kind}_{instruction.ordinal}"
        target = global_member(name)
        if is_load:
            return [self._assign(instruction.results[0], target)] if instruction.results[0].uses else []
        stored = self.value(instruction.operands[0])
        return [assign_reference(target, stored) if is_owned(held) else Assign(target, stored)]
