"""Modules that the builder writes: valid, without repetition, with structured control flow."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from support.compiler.regions import input_built_ins

from pumice.spirv.binary.builder import Builder
from pumice.spirv.binary.declarations import BOOL, F32, F64, U32, U64
from pumice.spirv.binary.expression import Id
from pumice.spirv.binary.grammar import Op
from pumice.spirv.binary.words import read_binary
from pumice.spirv.checks.tools import disassemble, validate


def module(write: Callable[[Builder, Id], Id]) -> bytes:
    """A shader that stores what a function makes of the first word of a buffer."""
    builder = Builder()
    source, target = builder.buffer(0, "source", False), builder.buffer(1, "target", True)
    first = builder.load(source, builder.built_in("WorkgroupId")[0])
    builder.store(target, builder.word(0), write(builder, first))
    code = builder.finish("main", (64, 1, 1))
    validate(code, target_env="vulkan1.1")
    return code


def count(code: bytes, opcode: int) -> int:
    return sum(found == opcode for found, _, _ in read_binary(code))


def test_what_was_written_before_is_not_written_again() -> None:
    code = module(lambda builder, x: (x * 3 + 7) ^ (x * 3 + 7) * (x * 3))
    assert count(code, Op.IMul) == 2
    assert count(code, Op.IAdd) == 1


def test_known_integers_are_computed() -> None:
    def write(builder: Builder, x: Id) -> Id:
        assert ((builder.word(7) * 6 + 1) // 4 % 8).value == 43 // 4 % 8
        assert (builder.word(3) - 5).value == 2**32 - 2
        assert (builder.word(3) < 5).value == 1 and (builder.word(5) <= builder.word(3)).value == 0
        assert builder.boolean(True).select(x, 5) is x
        assert (x & 0).value == 0 and (x * 0).value == 0 and (x % 1).value == 0
        assert x + 0 is x and x * 1 is x and x // 1 is x and x << 0 is x and 0 + x is x
        assert (builder.word(1) // 0).value is None
        return x

    code = module(write)
    assert count(code, Op.IAdd) == 0


def test_capabilities_are_those_of_the_types_used() -> None:
    plain = disassemble(module(lambda builder, x: x))
    assert "Float64" not in plain and "Int64" not in plain
    wide = disassemble(
        module(lambda builder, x: x.convert(Op.UConvert, U64).convert(Op.ConvertUToF, F64).convert(Op.ConvertFToU, U32))
    )
    assert "OpCapability Float64" in wide and "OpCapability Int64" in wide


def test_a_built_in_is_declared_once() -> None:
    def write(builder: Builder, x: Id) -> Id:
        sides = (lambda: [builder.built_in("LocalInvocationId")[0]], lambda: [builder.built_in("LocalInvocationId")[1]])
        return builder.conditional(x < 5, *sides)[0] + builder.built_in("LocalInvocationId")[2]

    assert sorted(input_built_ins(module(write))) == ["LocalInvocationId", "WorkgroupId"]


def test_floats_are_not_contracted_unless_asked() -> None:
    def product(builder: Builder, x: Id) -> Id:
        y = x.bits(F32)
        builder.contracts = True
        free = y * y + y
        builder.contracts = False
        return (free - y * 2.0).bits(U32)

    assert disassemble(module(product)).count("NoContraction") == 2


def test_conditionals_give_what_their_sides_give() -> None:
    def write(builder: Builder, x: Id) -> Id:
        first, second = builder.conditional(x < 5, lambda: [x + 1, x], lambda: [x * 2, x])
        assert second is x
        return first

    code = module(write)
    assert (count(code, Op.Phi), count(code, Op.SelectionMerge)) == (1, 1)


def test_a_side_is_not_known_outside_of_it() -> None:
    def write(builder: Builder, x: Id) -> Id:
        (found,) = builder.conditional(x < 5, lambda: [x * 9], lambda: [x])
        return found + x * 9

    assert count(module(write), Op.IMul) == 2


def test_loops_carry_values() -> None:
    def write(builder: Builder, x: Id) -> Id:
        def step(values: Sequence[Id]) -> tuple[Sequence[Id], Id]:
            number, total = values
            return [number + 1, total + number * x], number + 1 < 10

        return builder.loop([builder.word(0), x], step)[1]

    code = module(write)
    assert (count(code, Op.Phi), count(code, Op.LoopMerge)) == (3, 1)  # the two values, and whether it goes on


def test_tables_are_constants() -> None:
    table = [3, 1, 4, 1, 5]
    code = module(lambda builder, x: builder.lookup(table, x) + builder.lookup(table, builder.word(2)))
    assert count(code, Op.ConstantComposite) == 1


def test_an_expression_has_no_truth_value() -> None:
    builder = Builder()
    with pytest.raises(TypeError, match="no truth value"):
        bool(builder.word(3) < 4)
    assert builder.boolean(1).kind == BOOL
