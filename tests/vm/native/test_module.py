"""Native modules: both styles, overloads, mistakes of their authors, and the checks of results."""

from __future__ import annotations

import ctypes
import functools
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pumice.status import AlreadyExistsError, FailedPreconditionError, IncompatibleError, InvalidArgumentError
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.calling_convention import CallingConvention
from pumice.vm.execution.bytecode_module import BytecodeModule
from pumice.vm.execution.context import Context
from pumice.vm.native.calls import checked_native
from pumice.vm.native.module import NativeModule, export
from pumice.waits.wait_frame import Wait


class Counter:
    """State of one context."""

    def __init__(self, start: int = 0) -> None:
        self.count = start

    @export("next", "0v_i")
    def next(self) -> int:
        self.count += 1
        return self.count

    @export("add", "0i_i", "0I_I")
    @export("plus", "0i_i")
    def add(self, value: int) -> int:
        self.count += value
        return self.count


def call(context: Context, name: str, *arguments: object) -> object:
    return context.invoke(context.lookup(name), arguments)


def test_functions() -> None:
    module = NativeModule("mymath", version=2)

    @module.function("add", "0ii_i")
    def add(a: int, b: int) -> int:
        return a + b

    assert add(1, 2) == 3  # still the function that it was
    with Context([module]) as context:
        assert call(context, "mymath.add", 2, 3) == 5
    assert repr(module) == "<NativeModule mymath 2, 1 exports>"
    assert [one.convention.text for one in module.exports["add"]] == ["0ii_i"]
    assert module.find_export("subtract") == ()


def test_each_context_has_a_state_of_its_own() -> None:
    module = NativeModule("counter", state=Counter)
    with Context([module]) as one, Context([module]) as other:
        assert [call(one, "counter.next") for _ in range(3)] == [1, 2, 3]
        assert call(other, "counter.next") == 1
        assert call(one, "counter.plus", 10) == 13
        state = one.module_state("counter")
        assert isinstance(state, Counter) and state.count == 13


def test_a_state_may_take_arguments() -> None:
    with Context([NativeModule("counter", state=functools.partial(Counter, 100))]) as context:
        assert call(context, "counter.next") == 101


def test_stacked_exports_are_overloads_and_other_names() -> None:
    module = NativeModule("counter", state=Counter)
    assert {name: sorted(one.convention.text for one in ones) for name, ones in module.exports.items()} == {
        "next": ["0v_i"],
        "add": ["0I_I", "0i_i"],
        "plus": ["0i_i"],
    }


def test_an_overridden_method_stays_exported() -> None:
    class ByTwo(Counter):
        def next(self) -> int:
            self.count += 2
            return self.count

    with Context([NativeModule("counter", state=ByTwo)]) as context:
        assert [call(context, "counter.next") for _ in range(2)] == [2, 4]


def test_repeated_arguments_come_as_tuples() -> None:
    seen: list[object] = []
    module = NativeModule("host")
    module.function("scalars", "0iCiD_v")(lambda *arguments: seen.append(arguments))
    module.function("pairs", "0CrID_v")(lambda *arguments: seen.append(arguments))
    text = """
vm.module @user
vm.import @host.scalars cconv "0iCiD_v"
vm.import @host.pairs cconv "0CrID_v"
vm.export @main
vm.func @main(%i0: i32, %i2:3: i64, %r0: !vm.buffer) -> () {
  vm.call.variadic @host.scalars segments[65535, 3](%i0, %i0, %i0, %i0)
  vm.call.variadic @host.scalars segments[65535, 0](%i0)
  vm.call.variadic @host.pairs segments[2](%r0, %i2:3, %r0, %i2:3)
  vm.return
}
"""
    with Context([module, BytecodeModule(assemble(text))]) as context:
        call(context, "user.main", 7, 8, None)
    assert seen == [(7, (7, 7, 7)), (7, ()), (((None, 8), (None, 8)),)]


# -- what authors get wrong --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", None, 5, b"host"])
def test_names_are_texts(name: object) -> None:
    with pytest.raises(InvalidArgumentError, match="a module needs a name"):
        NativeModule(name)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="an export needs a name"):
        NativeModule("host").function(name, "0v_v")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="an export needs a name"):
        export(name, "0v_v")  # type: ignore[arg-type]


@pytest.mark.parametrize("convention", ["0x_v", "0i_CiD", "ii_i", "0ii-i"])
def test_conventions_are_read_when_written(convention: str) -> None:
    with pytest.raises(InvalidArgumentError, match="calling convention"):
        NativeModule("host").function("f", convention)
    with pytest.raises(InvalidArgumentError, match="calling convention"):
        export("f", convention)


def test_conventions_of_other_versions_and_kinds() -> None:
    with pytest.raises(IncompatibleError):
        export("f", "1v_v")
    with pytest.raises(InvalidArgumentError, match="needs a calling convention, such as '0ii_i'"):
        export("f")
    with pytest.raises(InvalidArgumentError, match="a calling convention is a str"):
        NativeModule("host").function("f", None)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="is a function, got int"):
        NativeModule("host").function("f", "0v_v")(5)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("function", "convention", "fits"),
    [
        (lambda: None, "0v_v", True),
        (lambda a: None, "0v_v", False),
        (lambda a, b: None, "0i_v", False),
        (lambda a: None, "0ii_v", False),
        (lambda a, b=2: None, "0i_v", True),
        (lambda *a: None, "0iii_v", True),
        (lambda a, *, key: None, "0i_v", False),
        (lambda a, pairs: None, "0iCiID_v", True),
        (max, "0ii_i", True),
        (operator.add, "0i_i", False),
        (ctypes.c_int32, "0i_i", True),
    ],
)
def test_functions_take_what_their_convention_passes(function: object, convention: str, fits: bool) -> None:
    module = NativeModule("host")
    if fits:
        module.function("f", convention)(function)  # type: ignore[type-var]
        return
    with pytest.raises(
        InvalidArgumentError, match=rf"export 'f' passes \d arguments? by its convention '{convention}'"
    ):
        module.function("f", convention)(function)  # type: ignore[type-var]
    assert module.find_export("f") == ()


def test_methods_take_what_their_convention_passes() -> None:
    class State:
        @export("f", "0i_v")
        def f(self) -> None: ...

    with pytest.raises(InvalidArgumentError, match="export 'f' passes 1 argument by its convention '0i_v'"):
        NativeModule("host", state=State)


@pytest.mark.parametrize("again", ["0i_v", "0i_"])
def test_an_overload_is_exported_once_however_it_is_written(again: str) -> None:
    module = NativeModule("host")
    module.function("f", "0i_v")(lambda a: None)
    module.function("f", "0I_v")(lambda a: None)
    with pytest.raises(AlreadyExistsError, match="module 'host' already exports f with"):
        module.function("f", again)(lambda a: None)


@pytest.mark.parametrize("state", [lambda: Counter(), 5, functools.partial(len, [1])])
def test_a_state_is_a_class(state: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"state must be a class, or functools\.partial of one"):
        NativeModule("host", state=state)  # type: ignore[arg-type]


# -- results -----------------------------------------------------------------------------------------


def returned(value: object, convention: str) -> object:
    return checked_native(lambda: value, "host.f", CallingConvention.parse(convention))()


@given(st.integers(-(1 << 31), (1 << 32) - 1))
def test_i32_results_become_the_signed_value_of_their_bits(value: int) -> None:
    assert returned(value, "0v_i") == int(np.array(value & 0xFFFFFFFF, np.uint32).view(np.int32))


@given(st.integers(-(1 << 63), (1 << 64) - 1))
def test_i64_results_become_the_signed_value_of_their_bits(value: int) -> None:
    assert returned(value, "0v_I") == int(np.array(value & (1 << 64) - 1, np.uint64).view(np.int64))


@given(st.floats(allow_nan=False, width=64))
def test_f32_results_are_rounded(value: float) -> None:
    with np.errstate(over="ignore", under="ignore"):
        assert returned(value, "0v_f") == float(np.float32(value))
    assert returned(value, "0v_F") == value


@pytest.mark.parametrize(
    ("value", "convention"),
    [
        (True, "0v_i"),
        (np.int8(-3), "0v_i"),
        (np.uint64(1 << 63), "0v_I"),
        (np.float32(0.5), "0v_f"),
        (3, "0v_F"),
        (np.array(2), "0v_i"),
    ],
)
def test_numpy_and_python_numbers_are_numbers(value: object, convention: str) -> None:
    result = returned(value, convention)
    assert type(result) in (int, float)
    assert result == value or result == int(value) - (1 << 64)  # type: ignore[call-overload]


def test_references_are_any_object() -> None:
    value = object()
    assert returned(value, "0v_r") is value
    assert returned(None, "0v_r") is None
    assert returned((value, 1), "0v_ri") == (value, 1)
    assert returned((), "0v_r") == ()


@pytest.mark.parametrize(
    ("value", "convention", "message"),
    [
        (1, "0v_v", "has no results by its convention '0v_v', but returned int"),
        (None, "0v_i", "returned NoneType where its convention 0v_i says i"),
        ("1", "0v_i", "returned str"),
        (1.0, "0v_i", "returned float where its convention 0v_i says i"),
        (np.float64(1), "0v_I", "returned float64"),
        (np.array([1, 2]), "0v_i", "returned ndarray"),
        (1 << 32, "0v_i", "4294967296, which does not fit i32"),
        (-(1 << 31) - 1, "0v_i", "does not fit i32"),
        (1 << 64, "0v_I", "does not fit i64"),
        (None, "0v_f", "returned NoneType where its convention 0v_f says f"),
        (1j, "0v_f", "returned complex"),
        (10**400, "0v_F", "returned int where its convention 0v_F says F"),
        (np.array([1.0, 2.0]), "0v_f", "returned ndarray"),
        (1, "0v_ii", "returns a tuple of 2 by its convention '0v_ii', got int"),
        ((1,), "0v_ii", "returns a tuple of 2 by its convention '0v_ii', got 1"),
        ([1, 2], "0v_ii", "got list"),
        ((1, "x"), "0v_ii", "returned str"),
        ((1,), "0v_i", "returned tuple"),
    ],
)
def test_results_that_break_the_convention(value: object, convention: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        returned(value, convention)


def test_trusted_modules_are_not_checked() -> None:
    module = NativeModule("host", trusted=True)
    module.function("f", "0i_i")(lambda: "text")  # which nobody calls with what it takes
    with Context([module]) as context, pytest.raises(TypeError):
        call(context, "host.f", 1)


WAITING = """
vm.module @program
vm.import @hal.ready cconv "0i_i"
vm.import @hal.tell cconv "0i_v"
vm.export @main
vm.func @main(%i0: i32) -> (i32) {
^bb0:
  %i0 = vm.call @hal.ready(%i0)
  vm.call @hal.tell(%i0)
  vm.return %i0
}
"""


def waiting(module: NativeModule, **options: bool) -> list[int]:
    """Makes a module's functions answer with waits; returns the list of values that resume them."""
    told: list[int] = []
    module.function("ready", "0i_i", **options)(lambda value: Wait(resume=lambda _: value + 1))
    module.function("tell", "0i_v", **options)(lambda value: Wait(resume=lambda _: told.append(value)))
    return told


@pytest.mark.parametrize("trusted", [False, True])
def test_a_users_module_may_be_called_hal_and_wait(trusted: bool) -> None:
    module = NativeModule("hal", trusted=trusted)
    told = waiting(module)
    with Context([module, BytecodeModule(assemble(WAITING))]) as context:
        assert context.invoke(context.lookup("program.main"), (1,), timeout=20) == 2
    assert told == [2]


def test_one_module_of_bytecode_with_providers_that_suspend_and_that_do_not() -> None:
    program = BytecodeModule(assemble(WAITING))
    waits, returns, told = NativeModule("hal"), NativeModule("hal", suspends=False), []
    waiting(waits)
    returns.function("ready", "0i_i")(lambda value: value + 2)
    returns.function("tell", "0i_v")(told.append)
    for _ in range(2):
        for native, result in ((waits, 2), (returns, 3)):
            with Context([native, program]) as context:
                assert call(context, "program.main", 1) == result
    assert told == [3, 3]
    ordinal = program.exports["main"]
    assert "is Wait" in program.translation(ordinal).source_text()
    assert "is Wait" not in program.translation(ordinal, frozenset((0, 1))).source_text()


def test_a_function_that_waits_though_it_is_declared_not_to() -> None:
    module = NativeModule("hal", suspends=True)
    waiting(module, suspends=False)
    with (
        Context([module, BytecodeModule(assemble(WAITING))]) as context,
        pytest.raises(FailedPreconditionError, match=r"hal\.ready returned a Wait, but is called where nothing can"),
    ):
        call(context, "program.main", 1)


def test_the_declaration_of_an_export_counts_before_that_of_its_module() -> None:
    class State:
        @export("one", "0v_i")
        @export("two", "0v_i", suspends=True)
        def one(self) -> int:
            return 1

    module = NativeModule("host", state=State, suspends=False)
    assert [module.exports[name][0].suspends for name in ("one", "two")] == [False, True]
