"""Calling conventions of programs: attributes of entry points, wrong conventions, files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.compiler.conventions import CONTEXT, KERNEL, function_type, memrefs, replaced

import pumice
from pumice.compiler.abi.calling_convention import (
    NAMED,
    CallingConvention,
    default_convention,
    named_convention,
    results_to_outs_convention,
)
from pumice.compiler.abi.function_abi import Abi
from pumice.compiler.abi.type_converter import TypeConverter, parse_type
from pumice.compiler.ir.source import CompileError
from pumice.compiler.ir.types import FunctionType, Type
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text
from pumice.status import InvalidArgumentError

# -- in a program ------------------------------------------------------------------------------------------

PROGRAM = """
func.func @step(%x: !my.array<4>, %rate: tensor<f32>) -> (tensor<4xf32>, !my.array<4>) {
  %t = builtin.unrealized_conversion_cast %x : !my.array<4> to tensor<4xf32>
  %b = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %s = stablehlo.multiply %t, %b : tensor<4xf32>
  %r = builtin.unrealized_conversion_cast %s : tensor<4xf32> to !my.array<4>
  return %s, %r : tensor<4xf32>, !my.array<4>
}
"""


def hlo(text: str, convention: CallingConvention | None) -> str:
    return compile_text(text, "x.mlir", Target(), "hlo", convention=convention).program.text(with_locations=False)


def test_casts_say_what_values_of_a_users_type_hold() -> None:
    types = TypeConverter().register("!my.array", argument=Abi.VIEW, result=Abi.BUFFER)
    text = hlo(PROGRAM, default_convention(types).then(named_convention("values")))
    assert text.startswith(
        "func.func @step(%arg0: tensor<4xf32>, %arg1: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)"
    )
    assert "unrealized_conversion_cast" not in text
    assert 'convention = "default,values"' in text
    assert "before = (!my.array<4>, tensor<f32>) -> (tensor<4xf32>, !my.array<4>)" in text
    assert f"after = ({CONTEXT}, !my.array<4>, f32) -> (memref<4xf32>, !my.array<4>)" in text
    assert 'arguments = ["view", "value"], results = ["view", "buffer"]' in text


def test_a_function_of_the_default_convention_carries_no_attribute() -> None:
    text = "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"
    for convention in (None, named_convention("default")):
        assert "pumice.abi" not in hlo(text, convention)


# -- wrong conventions -------------------------------------------------------------------------------------

SCALED = """func.func @f(%x: tensor<4xf32>, %y: !my.array) -> tensor<4xf32> {
  %t = builtin.unrealized_conversion_cast %y : !my.array to tensor<4xf32>
  %s = stablehlo.add %x, %t : tensor<4xf32>
  return %s : tensor<4xf32>
}
func.func @g(%x: tensor<f32>) -> (tensor<f32>, !my.array) {
  %s = stablehlo.add %x, %x : tensor<f32>
  %r = builtin.unrealized_conversion_cast %s : tensor<f32> to !my.array
  return %s, %r : tensor<f32>, !my.array
}
"""


def registered(**abis: Abi) -> TypeConverter:
    return TypeConverter().register("!my.array", **abis)


def raises(type: Type) -> Type:
    raise KeyError(str(type))


def text_for(type: Any) -> Any:
    return "memref<4xf32>" if "tensor" in str(type) else None


def function(change: Callable[[list[Type], list[Type]], object]) -> CallingConvention:
    """A convention that changes the lists of inputs, which start with the context, and of results."""

    def made(type: FunctionType) -> FunctionType:
        inputs, results = [parse_type(CONTEXT), *type.inputs], list(type.results)
        change(inputs, results)
        return FunctionType(inputs, results)

    both = TypeConverter().register("!my.array", argument=Abi.VIEW, result=Abi.VIEW)
    return CallingConvention(made, "mine", both)


BOTH = {"argument": Abi.VIEW, "result": Abi.VIEW}


def swapped(before: str, after: str) -> CallingConvention:
    """The default convention with one type in place of another."""
    return default_convention(registered(**BOTH).add(replaced(before, after)))


OF_ARRAY = "@f: argument 1, !my.array, has no ABI as an argument by the convention default"

WRONG: dict[str, tuple[CallingConvention | None, str]] = {
    "a user's type without any ABI": (None, f"x.mlir:1:33: {OF_ARRAY}: convert it to a type with one, or register one"),
    "a result ABI as an argument": (default_convention(registered(result=Abi.VIEW)), f"{OF_ARRAY}, only as a result"),
    "an argument ABI as a result": (
        default_convention(registered(argument=Abi.VIEW)),
        "x.mlir:6:48: @g: result 1, !my.array, has no ABI as a result by the convention default, only as an argument",
    ),
    "a result ABI as an out-parameter": (
        default_convention(registered(result=Abi.VIEW)).then(CallingConvention(lambda type: None, "none")),
        "x.mlir:1:1: @f: the convention default,none gives nothing for",
    ),
    "an out-parameter by value": (
        results_to_outs_convention(registered(**BOTH).add(replaced("tensor<f32>", "f32"))),
        "x.mlir:6:35: @g: the out-parameter of result 0, f32, is passed by value, and an out-parameter is memory",
    ),
    "an out-parameter of a user's type by value": (
        results_to_outs_convention(registered(argument=Abi.VALUE)),
        "@f: argument 1, tensor<4xf32>, cannot be !my.array: a register holds one number, and tensor<4xf32> has 1 dim",
    ),
    "by value with a dimension": (
        swapped("tensor<4xf32>", "f32"),
        "x.mlir:1:14: @f: argument 0, tensor<4xf32>, cannot be f32: a register holds one number, and",
    ),
    "by value of another type": (
        swapped("tensor<f32>", "i32"),
        "x.mlir:6:14: @g: argument 0, tensor<f32>, cannot be i32: shapes and elements have to be the same",
    ),
    "another shape": (
        swapped("tensor<4xf32>", "memref<8xf32>"),
        "argument 0, tensor<4xf32>, cannot be memref<8xf32>: shapes and elements have to be the same",
    ),
    "a type that nobody knows": (
        swapped("tensor<4xf32>", "!their.array"),
        "argument 0, !their.array, has no ABI as an argument",
    ),
    "a vector": (swapped("tensor<4xf32>", "vector<4xf32>"), "argument 0, vector<4xf32>, has no ABI as an argument"),
    "the context in the place of an argument": (
        swapped("tensor<4xf32>", CONTEXT),
        f"argument 0, {CONTEXT}, has no ABI as an argument",
    ),
    "a conversion that gives text": (
        default_convention(registered(**BOTH).add(text_for)),
        "the conversion gives 'memref<4xf32>' for tensor<4xf32>; expected a type, which parse_type makes of its text",
    ),
    "a conversion that raises": (
        default_convention(registered(**BOTH).add(raises)),
        "the conversion raises KeyError for tensor<4xf32>: 'tensor<4xf32>'",
    ),
    "a function that raises": (
        CallingConvention(raises, "mine"),
        "the convention mine raises KeyError for (tensor<4xf32>",
    ),
    "a function that gives a type": (
        CallingConvention(lambda type: type.inputs[0], "mine"),  # type: ignore[arg-type,return-value]
        "the convention mine gives tensor<4xf32>; expected the type of a function, or None",
    ),
    "a function that gives nothing": (
        CallingConvention(lambda type: None, "mine"),
        "the convention mine gives nothing for (tensor<4xf32>, !my.array) -> tensor<4xf32>",
    ),
    "a function without the context": (
        CallingConvention(lambda type: type, "mine", registered(**BOTH)),
        f"gives (tensor<4xf32>, !my.array) -> tensor<4xf32>, which does not begin with {CONTEXT}; compose it with",
    ),
    "the context twice": (
        function(lambda inputs, results: inputs.insert(1, inputs[0])),
        f"the convention mine gives ({CONTEXT}, {CONTEXT}, tensor<4xf32>, !my.array) -> tensor<4xf32>; expected",
    ),
    "the context at the end": (
        function(lambda inputs, results: inputs.append(inputs.pop(0))),
        f"expected {CONTEXT} as the first argument, and once",
    ),
    "the context as a result": (
        function(lambda inputs, results: results.append(inputs[0])),
        f"expected {CONTEXT} as the first argument, and once",
    ),
    "a composition that loses an argument": (
        default_convention(registered(**BOTH)).then(
            CallingConvention(lambda type: FunctionType(type.inputs[:-1], type.results), "mine")
        ),
        "for (!rt.kernel_context, tensor<4xf32>, !my.array) -> tensor<4xf32>; expected 2 for the arguments and 1",
    ),
    "a composition that loses the context": (
        default_convention(registered(**BOTH)).then(
            CallingConvention(lambda type: FunctionType(type.inputs[1:], type.results), "mine")
        ),
        f", and loses {CONTEXT}",
    ),
    "a result that is lost": (
        function(lambda inputs, results: results.pop()),
        "expected 2 for the arguments and 1 for the results, which either stay or all follow the arguments",
    ),
    "one out-parameter of two": (
        function(lambda inputs, results: len(results) > 1 and inputs.append(results.pop())),
        "x.mlir:6:1: @g: the convention mine gives (!rt.kernel_context, tensor<f32>, !my.array) -> tensor<f32> for",
    ),
    "a bare buffer of an open shape": (
        default_convention(TypeConverter().add(lambda type: parse_type("!hal.buffer"))),
        "x.mlir:1:14: @f: argument 0, tensor<?xf32>, cannot be !hal.buffer: a bare buffer does not tell the lengths",
    ),
    "by value of a complex number": (
        default_convention(TypeConverter().add(lambda type: parse_type("complex<f32>"))),
        "argument 0, complex<f32>, has no ABI as an argument",
    ),
}
PROGRAMS = {
    "a bare buffer of an open shape": "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {return %x : tensor<?xf32>}",
    "by value of a complex number": (
        "func.func @f(%x: tensor<complex<f32>>) -> tensor<complex<f32>> {\n return %x : tensor<complex<f32>>\n}"
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_conventions_are_refused_at_their_place(name: str) -> None:
    convention, says = WRONG[name]
    text = PROGRAMS.get(name, SCALED)
    with pytest.raises(CompileError) as raised:
        pumice.compile(text, file_name="x.mlir", calling_convention=convention)
    message, line, caret = raised.value.message.split("\n")
    assert says in message and message.startswith("x.mlir:")
    assert line.strip() in text and caret.strip() == "^"
    # A refused convention leaves nothing behind.
    assert "pumice.abi" not in hlo(
        "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n return %x : tensor<4xf32>\n}", None
    )


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda: named_convention("fast"),
            "expected one of the calling conventions default, outs, values, buffers, got",
        ),
        (lambda: named_convention("outs,,values"), "got ''"),
        (lambda: named_convention(""), "got ''"),
        (lambda: CallingConvention(3), "expected a function from a function's type to another, got 3"),  # type: ignore
        (lambda: CallingConvention(lambda type: type, "a name"), "expected a name of letters, digits"),
        (lambda: default_convention(name="values,outs"), "expected a name of letters, digits"),
        (lambda: default_convention(memrefs)(function_type(KERNEL)), "expected a TypeConverter, got <function"),  # type: ignore
        (lambda: default_convention()("tensor"), "expected the type of a function, got 'tensor'"),  # type: ignore
        (lambda: TypeConverter().add("memref"), "expected a function from a type to a type, got 'memref'"),  # type: ignore
        (lambda: TypeConverter().add(raises, ["input"]), "expected roles among argument, result, out"),  # type: ignore
        (lambda: registered(**BOTH).register("!my.array", result=Abi.VIEW), "!my.array is registered already"),
        (lambda: TypeConverter().register("!my.array"), "expected an argument ABI, a result ABI or both, got none"),
        (lambda: TypeConverter().register("tensor<f32>", argument=Abi.VIEW), "a type of your own, such as !my.array"),
        (lambda: TypeConverter().register("!hal.buffer", argument=Abi.VIEW), "a type of your own, such as !my.array"),
        (lambda: TypeConverter().register("!a.b", argument="view"), "expected Abi.VIEW, Abi.BUFFER or"),  # type: ignore
        (
            lambda: default_convention(registered(**BOTH)).then(default_convention(registered(argument=Abi.BUFFER))),
            "default and default register !my.array with different ABIs",
        ),
        (lambda: parse_type("tensor<4xf32> and"), "expected the end of the type"),
        (lambda: pumice.compile("", calling_convention=7), "expected the name of a calling convention or one, got 7"),  # type: ignore
    ],
)
def test_what_makes_no_convention_is_refused(make: Callable[[], object], says: str) -> None:
    with pytest.raises(InvalidArgumentError) as raised:
        make()
    assert says in raised.value.message


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (PROGRAM.replace("to tensor<4xf32>", "to tensor<8xf32>", 1), "multiply"),
        (
            PROGRAM.replace("%t = builtin.unrealized_conversion_cast %x : !my.array<4> to tensor<4xf32>", "%t = x.y"),
            "none",
        ),
        (
            PROGRAM.replace(
                "  %b =", "  %u = builtin.unrealized_conversion_cast %x : !my.array<4> to tensor<i32>\n  %b ="
            ),
            "argument 0, !my.array<4>: expected casts to the tensor that it holds, got tensor<4xf32>, tensor<i32>",
        ),
    ],
)
def test_wrong_casts_are_refused(text: str, says: str) -> None:
    types = TypeConverter().register("!my.array", argument=Abi.VIEW, result=Abi.VIEW)
    with pytest.raises(CompileError, match=r"x\.mlir:\d+:\d+") as raised:
        hlo(text.replace("= x.y", "= stablehlo.constant dense<1.0> : tensor<4xf32>"), default_convention(types))
    assert says in raised.value.message


# -- files -------------------------------------------------------------------------------------------------

SIMPLE = "func.func @f(%x: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n"


def test_a_program_past_hlo_keeps_its_convention_and_takes_no_other() -> None:
    text = hlo(SIMPLE, named_convention("outs,values"))
    assert hlo(text, None) == text == hlo(text, named_convention("outs,values"))
    with pytest.raises(CompileError, match=r"x\.mlir:1:1: .* the calling convention outs,values, .* got values"):
        hlo(text, named_convention("values"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"view", "value"', '"view", "number"'),
        ('"view", "value"', '"value", "value"'),
        ('"view", "value"', '"view"'),
        (', results = ["view"], outs', ', results = ["value"], outs'),
        ("outs}", "inside}"),
        ('convention = "outs,values"', "convention = 4 : i64"),
        ("before = (tensor<4xf32>, tensor<f32>)", "before = (tensor<4xf32>)"),
    ],
)
def test_a_file_with_a_wrong_abi_is_refused(before: str, after: str) -> None:
    text = hlo(SIMPLE, named_convention("outs,values"))
    assert before in text
    with pytest.raises(CompileError, match=r"x\.mlir:1:1: func\.func expects .*pumice\.abi"):
        hlo(text.replace(before, after), None)


def test_the_cache_has_a_module_for_each_named_convention(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "f.mlir"
    path.write_text(SIMPLE)

    def kept() -> int:
        return len(list((tmp_path / "cache").rglob("*.entry")))

    for count, convention in enumerate([None, "default", "outs", "values", "outs,values"], 1):
        pumice.compile(path, calling_convention=convention)
        assert kept() == count
        pumice.compile(path, calling_convention=convention)
        assert kept() == count
    pumice.compile(path, calling_convention=default_convention())
    assert kept() == count
    assert len(NAMED) == 4
