"""Programs of tensor, shape, scf, cf and MHLO, as StableHLO defines them, against Python and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from support.compiler.evaluation import evaluated, program

import pumice
from pumice.compiler.ir.source import CompileError
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text
from pumice.hal_reference.program import Array

COLLATZ = """
func.func @main(%n: i32) -> (i32, i32) {
  %one = arith.constant 1 : i32
  %zero = arith.constant 0 : i32
  %r:2 = scf.while (%a = %n, %k = %zero) : (i32, i32) -> (i32, i32) {
    %more = arith.cmpi sgt, %a, %one : i32
    scf.condition(%more) %a, %k : i32, i32
  } do {
  ^bb0(%a: i32, %k: i32):
    %two = arith.constant 2 : i32
    %rest = arith.remsi %a, %two : i32
    %odd = arith.cmpi ne, %rest, %zero : i32
    %next = scf.if %odd -> (i32) {
      %three = arith.constant 3 : i32
      %m = arith.muli %a, %three : i32
      %p = arith.addi %m, %one : i32
      scf.yield %p : i32
    } else {
      %h = arith.divsi %a, %two : i32
      scf.yield %h : i32
    }
    %count = arith.addi %k, %one : i32
    scf.yield %next, %count : i32, i32
  }
  return %r#0, %r#1 : i32, i32
}
"""
COUNTED = """
func.func @main(%n: index, %x: tensor<4xf32>) -> (tensor<4xf32>, index) {
  %low = arith.constant 1 : index
  %step = arith.constant 2 : index
  %zero = arith.constant 0 : index
  %r:2 = scf.for %i = %low to %n step %step iter_args(%sum = %x, %total = %zero) -> (tensor<4xf32>, index) {
    %s = stablehlo.add %sum, %x : tensor<4xf32>
    %t = arith.addi %total, %i : index
    scf.yield %s, %t : tensor<4xf32>, index
  }
  return %r#0, %r#1 : tensor<4xf32>, index
}
"""
BLOCKS = """
func.func @main(%n: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  cf.br ^head(%c0, %c0 : i32, i32)
^head(%i: i32, %s: i32):
  %square = arith.muli %i, %i : i32
  %more = arith.cmpi slt, %i, %n : i32
  cf.cond_br %more, ^body, ^done
^body:
  %sum = arith.addi %s, %square : i32
  %big = arith.cmpi sgt, %sum, %n : i32
  %next = arith.addi %i, %c1 : i32
  cf.cond_br %big, ^done, ^head(%next, %sum : i32, i32)
^done:
  return %s, %square : i32, i32
^dead:
  cf.br ^head(%sum, %next : i32, i32)
}
"""
SWITCH = """
func.func @main(%n: i32, %x: f32) -> f32 {
  cf.switch %n : i32, [ default: ^last(%x : f32), 1: ^one, 7: ^seven(%x : f32) ]
^one:
  %1 = arith.negf %x : f32
  return %1 : f32
^seven(%y: f32):
  %2 = arith.mulf %y, %y : f32
  cf.br ^last(%2 : f32)
^last(%z: f32):
  %3 = arith.addf %z, %z : f32
  return %3 : f32
}
"""
INDEX_SWITCH = """
func.func @main(%n: index, %x: f32) -> f32 {
  %r = scf.index_switch %n -> f32
  case 2 {
    %0 = arith.negf %x : f32
    scf.yield %0 : f32
  }
  case 5 {
    %0 = arith.addf %x, %x : f32
    scf.yield %0 : f32
  }
  default {
    scf.yield %x : f32
  }
  return %r : f32
}
"""


def collatz(n: int) -> list[int]:
    count = 0
    while n > 1:
        n = 3 * n + 1 if n % 2 else n // 2
        count += 1
    return [n, count]


@pytest.mark.parametrize("n", [1, 6, 27])
def test_a_while_loop_with_a_branch(n: int) -> None:
    assert [value.item() for value in evaluated(COLLATZ, np.int32(n))] == collatz(n)


@pytest.mark.parametrize("n", [0, 1, 6, 7])
def test_a_counted_loop(n: int) -> None:
    x = np.arange(4, dtype=np.float32)
    numbers = range(1, n, 2)
    total, count = evaluated(COUNTED, np.int64(n), x)
    np.testing.assert_array_equal(total, x * (1 + len(numbers)))
    assert count == sum(numbers)


def squares(n: int) -> list[int]:
    i = s = 0
    while i < n:
        if s + i * i > n:
            break
        s, i = s + i * i, i + 1
    return [s, i * i]


@pytest.mark.parametrize("n", [0, 1, 5, 20])
def test_blocks_that_branch_back(n: int) -> None:
    assert [value.item() for value in evaluated(BLOCKS, np.int32(n))] == squares(n)


@pytest.mark.parametrize(("n", "found"), [(0, 6.0), (1, -3.0), (7, 18.0), (-7, 6.0)])
def test_a_switch_between_blocks(n: int, found: float) -> None:
    assert evaluated(SWITCH, np.int32(n), np.float32(3))[0] == found


@pytest.mark.parametrize(("n", "found"), [(2, -3.0), (5, 6.0), (0, 3.0)])
def test_a_switch_with_bodies(n: int, found: float) -> None:
    assert evaluated(INDEX_SWITCH, np.int64(n), np.float32(3))[0] == found


TENSORS = """
func.func @main(%t: tensor<2x3xf32>, %i: index, %v: f32)
    -> (f32, tensor<2x3xf32>, tensor<6xf32>, tensor<1x2xf32>, tensor<3xindex>, tensor<2x2xindex>, tensor<2x3xf32>,
        tensor<4x5xf32>, tensor<2x6xf32>, tensor<2x3xf32>) {
  %c1 = arith.constant 1 : index
  %e = tensor.extract %t[%i, %c1] : tensor<2x3xf32>
  %n = tensor.insert %v into %t[%i, %c1] : tensor<2x3xf32>
  %f = tensor.collapse_shape %t [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
  %s = tensor.extract_slice %t[%i, 0] [1, 2] [1, 2] : tensor<2x3xf32> to tensor<1x2xf32>
  %d = tensor.dim %t, %c1 : tensor<2x3xf32>
  %q = tensor.from_elements %d, %c1, %i : tensor<3xindex>
  %g = tensor.generate {
  ^bb0(%a: index, %b: index):
    %m = arith.muli %a, %b : index
    %k = arith.addi %m, %d : index
    tensor.yield %k : index
  } : tensor<2x2xindex>
  %w = tensor.insert_slice %s into %t[0, %i] [1, 2] [1, 1] : tensor<1x2xf32> into tensor<2x3xf32>
  %p = tensor.pad %t low[1, 0] high[1, 2] {
  ^bb0(%a: index, %b: index):
    tensor.yield %v : f32
  } : tensor<2x3xf32> to tensor<4x5xf32>
  %j = tensor.concat dim(1) %t, %t : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  %z = tensor.splat %v : tensor<2x3xf32>
  return %e, %n, %f, %s, %q, %g, %w, %p, %j, %z : f32, tensor<2x3xf32>, tensor<6xf32>, tensor<1x2xf32>, tensor<3xindex>,
    tensor<2x2xindex>, tensor<2x3xf32>, tensor<4x5xf32>, tensor<2x6xf32>, tensor<2x3xf32>
}
"""


def test_parts_of_tensors() -> None:
    t = np.arange(6, dtype=np.float32).reshape(2, 3)
    inserted, written = t.copy(), t.copy()
    inserted[1, 1] = 9
    written[0, 1:3] = t[1, ::2]
    wanted = [
        t[1, 1],
        inserted,
        t.reshape(6),
        t[1:, ::2],
        np.array([3, 1, 1]),
        np.array([[3, 3], [3, 4]]),
        written,
        np.pad(t, ((1, 1), (0, 2)), constant_values=9),
        np.concatenate([t, t], 1),
        np.full((2, 3), 9.0),
    ]
    for found, value in zip(evaluated(TENSORS, t, np.int64(1), np.float32(9)), wanted, strict=True):
        np.testing.assert_array_equal(found, value)


SHAPES = """
func.func @main(%a: tensor<2x1xf32>, %b: tensor<3xf32>) -> (tensor<2x3xf32>, index) {
  %0 = shape.shape_of %a : tensor<2x1xf32> -> tensor<2xindex>
  %1 = shape.shape_of %b : tensor<3xf32> -> tensor<1xindex>
  %w = "shape.cstr_broadcastable"(%0, %1) : (tensor<2xindex>, tensor<1xindex>) -> !shape.witness
  %r = "shape.assuming"(%w) ({
    %2 = shape.broadcast %0, %1 : tensor<2xindex>, tensor<1xindex> -> tensor<2xindex>
    %3 = stablehlo.dynamic_broadcast_in_dim %a, %2, dims = [0, 1]
      : (tensor<2x1xf32>, tensor<2xindex>) -> tensor<2x3xf32>
    %4 = stablehlo.dynamic_broadcast_in_dim %b, %2, dims = [1] : (tensor<3xf32>, tensor<2xindex>) -> tensor<2x3xf32>
    %5 = mhlo.add %3, %4 : tensor<2x3xf32>
    "shape.assuming_yield"(%5) : (tensor<2x3xf32>) -> ()
  }) : (!shape.witness) -> tensor<2x3xf32>
  %6 = shape.num_elements %0 : tensor<2xindex> -> index
  return %r, %6 : tensor<2x3xf32>, index
}
"""


def test_shapes_are_computed() -> None:
    a, b = np.array([[1], [2]], np.float32), np.arange(3, dtype=np.float32)
    total, count = evaluated(SHAPES, a, b)
    np.testing.assert_array_equal(total, a + b)
    assert count == 2


MHLO = """
func.func @main(%x: tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x3xi1>, tensor<2xf32>, tensor<2x1xf32>) {
  %0 = "mhlo.dot_general"(%x, %x) {dot_dimension_numbers = #mhlo.dot<lhs_contracting_dimensions = [1],
    rhs_contracting_dimensions = [1]>, precision_config = [#mhlo<precision DEFAULT>, #mhlo<precision DEFAULT>]}
    : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
  %1 = mhlo.copy %x : tensor<2x3xf32>
  %2 = mhlo.compare GT, %1, %x : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
  %c = mhlo.constant dense<0.0> : tensor<f32>
  %3 = mhlo.reduce(%x init: %c) applies mhlo.add across dimensions = [1]
    : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
  %4 = mhlo.erf %x : tensor<2x3xf32>
  %5:2 = mhlo.topk(%x, k = 1) : tensor<2x3xf32> -> (tensor<2x1xf32>, tensor<2x1xi32>)
  return %0, %2, %3, %5#0 : tensor<2x2xf32>, tensor<2x3xi1>, tensor<2xf32>, tensor<2x1xf32>
}
"""


def test_shardings_are_passed_on() -> None:
    """JAX writes these for random keys."""
    text = """module {
  sdy.mesh @empty_mesh = <[]> {stablehlo.mesh = {axes = []}}
  func.func @main(%a0: tensor<2xui32>) -> tensor<2xui32> {
    %0 = sdy.sharding_constraint %a0 <@empty_mesh, [{}]> : tensor<2xui32>
    %1 = stablehlo.add %0, %a0 : tensor<2xui32>
    %2 = sdy.sharding_constraint %1 <@empty_mesh, [{?}]> : tensor<2xui32>
    return %2 : tensor<2xui32>
  }
}"""
    assert evaluated(text, np.array([3, 5], np.uint32))[0].tolist() == [6, 10]


def test_mhlo_is_stablehlo() -> None:
    x = np.array([[1, 5, 2], [0, -1, 3]], np.float32)
    product, greater, total, top = evaluated(MHLO, x)
    np.testing.assert_array_equal(product, x @ x.T)
    assert not greater.any()
    np.testing.assert_array_equal(total, x.sum(1))
    np.testing.assert_array_equal(top, x.max(1, keepdims=True))


@pytest.mark.vulkan
@pytest.mark.parametrize(
    ("text", "arguments"),
    [(COUNTED, (np.int64(6), np.arange(4, dtype=np.float32))), (BLOCKS, (np.int32(20),))],
    ids=["scf", "cf"],
)
def test_a_device_gives_the_same(text: str, arguments: tuple[Array, ...]) -> None:
    with pumice.Session() as session:
        session.load(compile_text(text, "x.mlir", Target()).module)
        given = session.call("module.main", *arguments)
        for one, other in zip(given, evaluated(text, *arguments), strict=True):
            np.testing.assert_array_equal(one.numpy() if hasattr(one, "numpy") else one, other)


@pytest.mark.parametrize(
    ("line", "result", "arguments", "message"),
    [
        ('"arith.addi"(%a0) : (i32) -> i32', "i32", ["i32"], "2 operands"),
        ('"arith.addi"(%a0, %a1) : (i32, i64) -> i32', "i32", ["i32", "i64"], "one type"),
        ('"arith.cmpi"(%a0, %a0) {predicate = 17} : (i32, i32) -> i1', "i1", ["i32"], "a predicate"),
        ("arith.cmpi lt, %a0, %a0 : i32", "i1", ["i32"], "a predicate, one of eq"),
        ('"arith.foo"(%a0) : (i32) -> i32', "i32", ["i32"], "an operation of StableHLO, CHLO"),
        ('"linalg.fill"(%a0) : (i32) -> i32', "i32", ["i32"], "linalg.fill expects an operation"),
        ("tensor.dim %a0, %a1 : tensor<2xf32>", "index", ["tensor<2xf32>", "index"], "that are constants"),
        ("tensor.from_elements %a0 : tensor<2xf32>", "tensor<2xf32>", ["f32"], "2 elements"),
        ("tensor.extract %a0[] : tensor<2xf32>", "f32", ["tensor<2xf32>"], "an index for each of 1"),
        ("tensor.splat %a0 : tensor<?xf32>", "tensor<?xf32>", ["f32"], "a result of known shape"),
        ('"mhlo.fusion"(%a0) : (tensor<f32>) -> tensor<f32>', "tensor<f32>", ["tensor<f32>"], "StableHLO or CHLO has"),
        ('"scf.if"(%a0) : (i1) -> i32', "i32", ["i1"], "a region"),
    ],
)
def test_what_is_wrong_is_refused_at_its_place(line: str, result: str, arguments: list[str], message: str) -> None:
    with pytest.raises(CompileError, match=message) as error:
        evaluated(program(line, result, *arguments))
    assert "x.mlir:2:" in str(error.value)
