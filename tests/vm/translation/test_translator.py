"""What translated source looks like: common shapes become statements, the rest still runs; and nothing is too large."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

from pumice.vm.assembly.assembler import assemble
from pumice.vm.execution.bytecode_module import BytecodeModule
from pumice.vm.execution.context import Context
from pumice.vm.translation.analysis import FunctionAnalysis
from pumice.vm.translation.module_analysis import ModuleAnalysis
from pumice.vm.types.numerics import wrap32, wrap64


def module(text: str) -> BytecodeModule:
    return BytecodeModule(assemble("vm.module @m\n" + text))


def function(body: str, signature: str = "(%i0: i32) -> (i32)", name: str = "main") -> str:
    return f"vm.export @{name}\nvm.func @{name}{signature} {{\n{body}\n}}\n"


def source(loaded: BytecodeModule, name: str = "main", entry: int = 0) -> str:
    return loaded.translation(loaded.exports[name]).source_text(entry)


def is_structured(text: str) -> bool:
    return "while True:\n            if b < " not in text


def run(loaded: BytecodeModule, *arguments: object, name: str = "main") -> object:
    with Context([loaded], max_stack_depth=100_000) as context:
        return context.invoke(context.lookup(f"m.{name}"), arguments, timeout=100)


# -- shapes ------------------------------------------------------------------------------------------

WHILE = """^bb0:
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32.zero
  vm.br ^bb1()
^bb1:
  %i3 = vm.cmp.lt.i32.s %i2, %i0
  vm.cond_br %i3, ^bb2(), ^bb3()
^bb2:
  %i2 = vm.add.i32 %i2, %i1
  vm.br ^bb1()
^bb3:
  vm.return %i2"""

NESTED = """^bb0:
  %i1 = vm.const.i32 1
  %i9 = vm.const.i32.zero
  vm.br ^bb1(%i9->%i2, %i9->%i4)
^bb1:
  %i3 = vm.cmp.lt.i32.s %i2, %i0
  vm.cond_br %i3, ^bb2(%i9->%i5), ^bb5()
^bb2:
  %i3 = vm.cmp.lt.i32.s %i5, %i2
  vm.cond_br %i3, ^bb3(), ^bb4()
^bb3:
  %i6 = vm.mul.i32 %i2, %i5
  %i4 = vm.add.i32 %i4, %i6
  %i5 = vm.add.i32 %i5, %i1
  vm.br ^bb2()
^bb4:
  %i2 = vm.add.i32 %i2, %i1
  vm.br ^bb1()
^bb5:
  vm.return %i4"""

DIAMOND = """^bb0:
  %i1 = vm.const.i32 10
  %i2 = vm.cmp.lt.i32.s %i0, %i1
  vm.cond_br %i2, ^bb1(), ^bb2()
^bb1:
  %i3 = vm.mul.i32 %i0, %i0
  vm.br ^bb3()
^bb2:
  %i3 = vm.sub.i32 %i0, %i1
  vm.br ^bb3()
^bb3:
  %i3 = vm.add.i32 %i3, %i1
  vm.return %i3"""

# a && b || c, with shared arms
LOGIC = """^bb0:
  %i1 = vm.const.i32 10
  %i2 = vm.const.i32 20
  %i3 = vm.cmp.lt.i32.s %i0, %i2
  vm.cond_br %i3, ^bb1(), ^bb2()
^bb1:
  %i3 = vm.cmp.lt.i32.s %i1, %i0
  vm.cond_br %i3, ^bb3(), ^bb2()
^bb2:
  %i3 = vm.cmp.eq.i32 %i0, %i1
  vm.cond_br %i3, ^bb3(), ^bb4()
^bb3:
  %i4 = vm.add.i32 %i0, %i1
  vm.br ^bb5()
^bb4:
  %i4 = vm.sub.i32 %i0, %i2
  vm.br ^bb5()
^bb5:
  vm.return %i4"""

# Leaves a loop in its middle, to two places, and continues in another.
EXITS = """^bb0:
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32.zero
  %i5 = vm.const.i32 30
  %i6 = vm.const.i32 3
  vm.br ^bb1(%i2->%i3, %i2->%i4)
^bb1:
  %i3 = vm.add.i32 %i3, %i1
  %i7 = vm.cmp.lt.i32.s %i0, %i3
  vm.cond_br %i7, ^bb5(), ^bb2()
^bb2:
  %i7 = vm.and.i32 %i3, %i6
  vm.cond_br %i7, ^bb3(), ^bb1()
^bb3:
  %i4 = vm.add.i32 %i4, %i3
  %i7 = vm.cmp.lt.i32.s %i5, %i4
  vm.cond_br %i7, ^bb4(), ^bb1()
^bb4:
  %i4 = vm.sub.i32 %i2, %i4
  vm.br ^bb6()
^bb5:
  %i4 = vm.mul.i32 %i4, %i4
  vm.br ^bb6()
^bb6:
  %i4 = vm.add.i32 %i4, %i1
  vm.return %i4"""

SWITCH = """^bb0:
  %i1 = vm.const.i32 1
  vm.br_table %i0 { default: ^bb4(), 0: ^bb1(), 1: ^bb2(), 2: ^bb3(), 3: ^bb3(), 4: ^bb1() }
^bb1:
  %i0 = vm.add.i32 %i0, %i1
  vm.br ^bb2()
^bb2:
  %i0 = vm.mul.i32 %i0, %i0
  vm.br ^bb5()
^bb3:
  %i0 = vm.not.i32 %i0
  vm.br ^bb5()
^bb4:
  vm.br ^bb5(%i1->%i0)
^bb5:
  vm.return %i0"""


def _exits(n: int) -> int:
    at = total = 0
    while True:
        at += 1
        if n < at:
            return total * total + 1
        if at & 3:
            total += at
            if total > 30:
                return -total + 1


def _switch(n: int) -> int:
    if n in (0, 4):
        return (n + 1) ** 2
    return n * n if n == 1 else ~n if n in (2, 3) else 1


SHAPES: dict[str, tuple[str, Callable[[int], int]]] = {
    "while": (WHILE, lambda n: max(n, 0)),
    "nested": (NESTED, lambda n: sum(i * j for i in range(n) for j in range(i))),
    "diamond": (DIAMOND, lambda n: n * n + 10 if n < 10 else n),
    "logic": (LOGIC, lambda n: n + 10 if 10 < n < 20 or n == 10 else n - 20),
    "exits": (EXITS, _exits),
    "switch": (SWITCH, _switch),
}


@pytest.mark.parametrize("name", SHAPES)
def test_common_shapes_become_statements(name: str) -> None:
    body, expected = SHAPES[name]
    loaded = module(function(body))
    assert is_structured(source(loaded))
    for argument in (-3, 0, 1, 2, 3, 4, 5, 9, 10, 11, 15, 19, 20, 40):
        assert run(loaded, argument) == expected(argument)


def test_counted_loops_are_while_loops_without_range_checks() -> None:
    """The comparison bounds the counter, so that its increment is safe."""
    text = source(module(function(WHILE)))
    assert "while i2 < i0:\n            i2 = i2 + 1\n" in text


def test_products_of_indices_need_no_range_checks() -> None:
    text = source(
        module(
            function(
                NESTED.replace("%i4 = vm.add.i32 %i4, %i6", "%i10:11 = vm.ext.i32.i64.s %i2\n"
                "  %i12:13 = vm.ext.i32.i64.s %i5\n"
                "  %i10:11 = vm.mul.i64 %i10:11, %i12:13\n  %i8 = vm.const.i32 7\n"
                "  %i10:11 = vm.shr.i64.s %i10:11, %i8\n"
                "  %i4 = vm.trunc.i64.i32 %i10:11")
            )
        )
    )  # fmt: skip
    assert "i2 * i5 >> 7" in text


@pytest.mark.parametrize("start", [0, 5, (1 << 31) - 4, -4])
def test_a_counter_that_overflows_is_no_index(start: int) -> None:
    """It is taken to stay positive, until it is seen that it may not."""
    loaded = module(
        function(
            f"""^bb0:
  %i1 = vm.const.i32 1
  %i2 = vm.const.i32 {start}
  %i3 = vm.const.i32.zero
  %i4 = vm.const.i32 100
  %i6 = vm.const.i32 3
  vm.br ^bb1(%i3->%i7)
^bb1:
  %i5 = vm.cmp.lt.i32.s %i3, %i0
  vm.cond_br %i5, ^bb2(), ^bb3()
^bb2:
  %i8 = vm.cmp.lt.i32.u %i2, %i4
  %i9 = vm.shr.i32.u %i2, %i1
  %i10 = vm.rem.i32.s %i2, %i6
  %i11 = vm.div.i32.s %i2, %i6
  %i7 = vm.mul.i32 %i7, %i6
  %i7 = vm.add.i32 %i7, %i8
  %i7 = vm.add.i32 %i7, %i9
  %i7 = vm.add.i32 %i7, %i10
  %i7 = vm.add.i32 %i7, %i11
  %i2 = vm.add.i32 %i2, %i1
  %i3 = vm.add.i32 %i3, %i1
  vm.br ^bb1()
^bb3:
  vm.return %i7"""
        )
    )
    at, total = start, 0
    for _ in range(9):
        total = total * 3 + (at & 0xFFFFFFFF < 100) + ((at & 0xFFFFFFFF) >> 1)
        total += abs(at) % 3 * (1 if at >= 0 else -1) + abs(at) // 3 * (1 if at >= 0 else -1)
        total, at = wrap32(total), wrap32(at + 1)
    assert run(loaded, 9) == total


# -- values ------------------------------------------------------------------------------------------


def test_names_of_values_are_not_names_of_the_translation() -> None:
    """Slot 32 as f32 once had the name of what rounds to f32."""
    slots = "\n".join(f"  %i{slot} = vm.add.f32 %i{slot - 1}, %i0" for slot in range(1, 70))
    assert run(module(function(f"^bb0:\n{slots}\n  vm.return %i69", "(%i0: f32) -> (f32)")), 0.5) == 35.0


def test_a_value_that_goes_to_two_places() -> None:
    loaded = module(
        function(
            """^bb0:
  %i1 = vm.add.i32 %i0, %i0
  vm.br ^bb1(%i1->%i2, %i2->%i3, %i3->%i4, %i4->%i1)
^bb1:
  %i2 = vm.mul.i32 %i2, %i3
  %i2 = vm.sub.i32 %i2, %i4
  %i2 = vm.sub.i32 %i2, %i1
  vm.return %i2"""
        )
    )
    assert run(loaded, 5) == 10 * 10 - 10 - 10


def test_halves_of_a_pair_are_bits() -> None:
    loaded = module(
        function(
            """^bb0:
  %i5 = vm.bitcast.f32.i32 %i4
  %i2 = vm.add.i32 %i2, %i5
  vm.br ^bb1(%i3->%i6, %i2->%i7)
^bb1:
  vm.return %i6:7, %i2""",
            "(%i0: i32, %i2:3: i64, %i4: f32) -> (i64, i32)",
        )
    )
    bits = 0x0123456789ABCDEF
    low = wrap32(0x89ABCDEF + 0x3F800000)
    assert run(loaded, 0, bits, 1.0) == (wrap64((low << 32) | 0x01234567), low)


def test_chains_of_products_are_wrapped_before_they_are_huge() -> None:
    body = (
        "^bb0:\n" + "  %i0 = vm.mul.i32 %i0, %i0\n" * 3 + "  %i1 = vm.add.i32 %i0, %i0\n  %i2 = vm.mul.i32 %i0, %i1\n"
    )
    body += (
        "".join(f"  %i{slot} = vm.mul.i32 %i{slot - 1}, %i{slot - 2}\n" for slot in range(3, 60)) + "  vm.return %i59"
    )
    values = [pow(3, 8, 1 << 32)]
    values += [2 * values[0], 2 * values[0] ** 2]
    while len(values) < 60:
        values.append(values[-1] * values[-2] & 0xFFFFFFFF)
    assert run(module(function(body)), 3) == wrap32(values[59])


def test_types_at_a_place_are_the_same_whatever_was_asked_before() -> None:
    loaded = module(
        function(
            """^bb0:
  %i1 = vm.const.i32 1
  %i2 = vm.add.i32 %i0, %i1
  %i4:5 = vm.ext.i32.i64.s %i2
  vm.return %i2"""
        )
    )
    analysis = FunctionAnalysis(loaded.verified.functions[0], ModuleAnalysis(loaded.verified))
    (block,) = analysis.blocks
    assert 4 not in analysis.types_before(block, block.end - 2)
    assert analysis.types_before(block, block.end)[4] == "I"
    assert 4 not in analysis.types_before(block, block.end - 2)


# -- size --------------------------------------------------------------------------------------------


def chain(count: int, block: Callable[[int], str], end: str) -> str:
    """Blocks 1 … count, each of which goes on to the next, between an entry with %i1 = 1 and an end."""
    blocks = "\n".join(f"^bb{index}:\n{block(index)}" for index in range(1, count + 1))
    return f"^bb0:\n  %i1 = vm.const.i32 1\n  vm.br ^bb1()\n{blocks}\n^bb{count + 1}:\n{end}"


def checks(count: int, length: int) -> str:
    """Checks that all go to one long failure."""
    work = "\n".join(
        f"  %i{3 + index} = vm.add.i32 %i0, %i{2 + index}\n  vm.global.store.i32 %i{3 + index}, .rwdata[0]"
        for index in range(length)
    )
    body = chain(
        count,
        lambda index: (
            f"  %i2 = vm.cmp.eq.i32 %i0, %i1\n  %i0 = vm.add.i32 %i0, %i1\n"
            f"  vm.cond_br %i2, ^bb{count + 2}(), ^bb{index + 1}()"
        ),
        "  vm.return %i0",
    )
    return f'{body}\n^bb{count + 2}:\n{work}\n  %i2 = vm.const.i32 9\n  vm.fail %i2, "no"'


@pytest.mark.slow
@pytest.mark.parametrize("length", [0, 8])
def test_three_hundred_checks_are_one_after_another(length: int) -> None:
    loaded = module(function(checks(300, length)))
    assert is_structured(source(loaded))
    assert max(len(line) - len(line.lstrip()) for line in source(loaded).splitlines()) < 30
    assert run(loaded, 5) == 305


def nested_ifs(depth: int) -> str:
    lines = ["^bb0:", "  %i1 = vm.const.i32 1", "  vm.br ^bb1()"]
    for level in range(1, depth + 1):
        lines += [f"^bb{level}:", "  %i2 = vm.cmp.lt.i32.s %i1, %i0", "  %i0 = vm.sub.i32 %i0, %i1"]
        lines.append(f"  vm.cond_br %i2, ^bb{level + 1}(), ^bb{2 * depth + 2 - level}()")
    lines += [f"^bb{depth + 1}:", f"  vm.br ^bb{depth + 2}()"]
    for level in range(depth, 0, -1):  # behind each if, one after another
        lines += [
            f"^bb{2 * depth + 2 - level}:",
            "  %i0 = vm.add.i32 %i0, %i0",
            f"  vm.br ^bb{2 * depth + 3 - level}()",
        ]
    return "\n".join([*lines, f"^bb{2 * depth + 2}:", "  vm.return %i0"])


def _nested_ifs(depth: int, n: int) -> int:
    level = 1
    while level <= depth:
        n -= 1
        if not n + 1 > 1:
            break
        level += 1
    for _ in range(min(level, depth)):
        n = wrap32(2 * n)
    return n


@pytest.mark.sample(3)
@pytest.mark.slow
@pytest.mark.parametrize("depth", [1, 20, 40, 100, 300, 1000])
def test_nesting_however_deep(depth: int) -> None:
    loaded = module(function(nested_ifs(depth)))
    for argument in (-1, 1, 2, 17, 25, 60, 5000):
        assert run(loaded, argument) == _nested_ifs(depth, argument)


@pytest.mark.parametrize("depth", [1, 5, 15, 16, 30])
def test_loops_however_deep(depth: int) -> None:
    """Each loop goes round twice."""
    lines = [
        "^bb0:",
        "  %i1 = vm.const.i32 1",
        "  %i2 = vm.const.i32 2",
        "  %i9 = vm.const.i32.zero",
        "  vm.br ^bb1(%i9->%i10)",
    ]
    for level in range(1, depth + 1):
        slot = 9 + level
        lines += [f"^bb{level}:", f"  %i3 = vm.cmp.lt.i32.s %i{slot}, %i{2 if level < 8 else 1}"]
        lines.append(
            f"  vm.cond_br %i3, ^bb{level + 1}({f'%i9->%i{slot + 1}' if level < depth else ''}), "
            f"^bb{2 * depth + 2 - level}()"
        )
    lines += [
        f"^bb{depth + 1}:",
        "  %i0 = vm.add.i32 %i0, %i1",
        f"  %i{9 + depth} = vm.add.i32 %i{9 + depth}, %i1",
        f"  vm.br ^bb{depth}()",
    ]
    for level in range(depth, 1, -1):
        lines += [
            f"^bb{2 * depth + 2 - level}:",
            f"  %i{8 + level} = vm.add.i32 %i{8 + level}, %i1",
            f"  vm.br ^bb{level - 1}()",
        ]
    loaded = module(function("\n".join([*lines, f"^bb{2 * depth + 1}:", "  vm.return %i0"])))
    assert is_structured(source(loaded)) == (depth <= 15)
    assert run(loaded, 0) == 2 ** min(depth, 7)


LARGE: dict[str, tuple[Callable[[], str], int, int]] = {
    "4,000 blocks": (
        lambda: chain(
            4_000,
            lambda index: (
                f"  %i2 = vm.and.i32 %i0, %i1\n  vm.cond_br %i2, ^bb{index + 1}(), ^bb{min(index + 2, 4_001)}()"
            ),
            "  vm.return %i0",
        ),
        6,
        6,
    ),
    "2,000 loops": (
        lambda: chain(
            2_000,
            lambda index: (
                f"  %i0 = vm.sub.i32 %i0, %i1\n  %i2 = vm.cmp.lt.i32.s %i1, %i0\n"
                f"  vm.cond_br %i2, ^bb{index}(), ^bb{index + 1}()"
            ),
            "  vm.return %i0",
        ),
        11,
        1 - 1_999,
    ),
    "2,000 checks": (lambda: checks(2_000, 2), 5, 2_005),
    "a table of 5,000": (
        lambda: (
            "^bb0:\n  vm.br_table %i0 { default: ^bb1(), "
            + ", ".join(f"{index}: ^bb{index + 2}()" for index in range(5000))
            + " }\n^bb1:\n  vm.return %i0\n"
            + "\n".join(
                f"^bb{index + 2}:\n  %i1 = vm.const.i32 {index + 7}\n  vm.br ^bb1(%i1->%i0)" for index in range(5000)
            )
        ),
        4321,
        4328,
    ),
    "64 KiB of constants": (
        lambda: (
            "^bb0:\n"
            + "\n".join(f"  %i{2 * slot}:{2 * slot + 1} = vm.const.i64 {slot}" for slot in range(1, 8192))
            + "\n"
            + "\n".join(f"  %i2:3 = vm.add.i64 %i2:3, %i{2 * slot}:{2 * slot + 1}" for slot in range(2, 8192))
            + "\n  %i0 = vm.trunc.i64.i32 %i2:3\n  vm.return %i0"
        ),
        0,
        8191 * 4096,
    ),
    "values that wait": (
        lambda: (
            "^bb0:\n"
            + "\n".join(f"  %i{slot} = vm.not.i32 %i0" for slot in range(1, 3_000))
            + "\n  %i0 = vm.not.i32 %i0\n"
            + "\n".join(f"  %i0 = vm.add.i32 %i0, %i{slot}" for slot in range(1, 3_000))
            + "\n  vm.return %i0"
        ),
        3,
        -12_000,
    ),
    "a rotation of 5,000": (
        lambda: (
            "^bb0:\n"
            + "\n".join(f"  %i{slot} = vm.const.i32 {slot}" for slot in range(1, 5001))
            + "\n  vm.br ^bb1("
            + ", ".join(f"%i{slot + 1}->%i{slot}" for slot in range(5000))
            + ")\n^bb1:\n"
            + "\n".join(f"  %i0 = vm.xor.i32 %i0, %i{slot}" for slot in range(1, 5000))
            + "\n  vm.return %i0"
        ),
        0,
        0,
    ),
}
_XOR = 0
for _slot in range(1, 5001):
    _XOR ^= _slot
LARGE["a rotation of 5,000"] = (LARGE["a rotation of 5,000"][0], 0, _XOR)


@pytest.mark.sample(3)
@pytest.mark.slow
@pytest.mark.parametrize("name", LARGE)
def test_large_functions(name: str) -> None:
    body, argument, expected = LARGE[name]
    limit = sys.getrecursionlimit()
    loaded = module(function(body()))
    assert run(loaded, argument) == expected
    assert sys.getrecursionlimit() == limit


@pytest.mark.slow
@pytest.mark.parametrize("leaf", [True, False])
def test_many_calls_in_a_block(leaf: bool) -> None:
    count = 3000
    callee = "^bb0:\n  vm.return %i0" if leaf else "^bb0:\n  vm.yield ^bb1()\n^bb1:\n  vm.return %i0"
    loaded = module(
        function(callee, name="inner")
        + function(
            "^bb0:\n"
            + "  %i0 = vm.call @inner(%i0)\n" * count
            + "  %i1 = vm.const.i32 3\n  %i0 = vm.add.i32 %i0, %i1\n  vm.return %i0"
        )
    )
    assert run(loaded, 4) == 7
    # A variant ends where the function gives way again: all of them together are no more than the function is long.
    translation = loaded.translation(loaded.exports["main"])
    assert len(translation.source_text(0).splitlines()) < (count + 20 if leaf else 20)
    assert leaf or len(translation.source_text(count // 2).splitlines()) < 20
