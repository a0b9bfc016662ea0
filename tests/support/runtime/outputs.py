"""Programs for tests of ``out=`` and ``donate=``, compiled here, by the peer, and in VM assembly."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
from support.runtime.sessions import function

import pumice

SOURCE = """
module @program {
  func.func @mul(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.multiply %a, %b : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @mlp(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>, %v: tensor<32x4xf32>)
      -> (tensor<8x4xf32>, tensor<8x32xf32>) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
    %1 = stablehlo.tanh %0 : tensor<8x32xf32>
    %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0]
      : (tensor<8x32xf32>, tensor<32x4xf32>) -> tensor<8x4xf32>
    return %2, %1 : tensor<8x4xf32>, tensor<8x32xf32>
  }
  func.func @newton(%a: tensor<8xf32>) -> tensor<8xf32> {
    %one = stablehlo.constant dense<1.0> : tensor<8xf32>
    %half = stablehlo.constant dense<0.5> : tensor<8xf32>
    %tiny = stablehlo.constant dense<1.0e-5> : tensor<f32>
    %big = stablehlo.constant dense<1.0e9> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0:2 = stablehlo.while(%x = %one, %e = %big) : tensor<8xf32>, tensor<f32>
    cond {
      %1 = stablehlo.compare GT, %e, %tiny : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.divide %a, %x : tensor<8xf32>
      %2 = stablehlo.add %x, %1 : tensor<8xf32>
      %3 = stablehlo.multiply %2, %half : tensor<8xf32>
      %4 = stablehlo.subtract %3, %x : tensor<8xf32>
      %5 = stablehlo.abs %4 : tensor<8xf32>
      %6 = stablehlo.reduce(%5 init: %zero) applies stablehlo.maximum across dimensions = [0]
        : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      stablehlo.return %3, %6 : tensor<8xf32>, tensor<f32>
    }
    return %0#0 : tensor<8xf32>
  }
  func.func @tanh(%x: tensor<?xf32>) -> tensor<?xf32> {
    %0 = stablehlo.tanh %x : tensor<?xf32>
    return %0 : tensor<?xf32>
  }
  func.func @blend(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %half = stablehlo.constant dense<0.5> : tensor<4xf32>
    %quarter = stablehlo.constant dense<0.25> : tensor<4xf32>
    %0 = stablehlo.multiply %a, %half : tensor<4xf32>
    %1 = stablehlo.multiply %b, %quarter : tensor<4xf32>
    %2 = stablehlo.add %0, %1 : tensor<4xf32>
    return %2 : tensor<4xf32>
  }
  func.func @bytes(%x: tensor<4xi8>) -> tensor<4xi8> {
    %0 = stablehlo.add %x, %x : tensor<4xi8>
    return %0 : tensor<4xi8>
  }
}
"""

# By the convention ``values`` the rate and the last two results are numbers.
STEP = """
module @program {
  func.func @step(%w: tensor<4xf32>, %rate: tensor<f32>) -> (tensor<4xf32>, tensor<f32>, tensor<i1>) {
    %0 = stablehlo.broadcast_in_dim %rate, dims = [] : (tensor<f32>) -> tensor<4xf32>
    %1 = stablehlo.multiply %w, %0 : tensor<4xf32>
    %c = stablehlo.constant dense<0.5> : tensor<f32>
    %2 = stablehlo.multiply %rate, %c : tensor<f32>
    %3 = stablehlo.compare GT, %2, %c : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %1, %2, %3 : tensor<4xf32>, tensor<f32>, tensor<i1>
  }
}
"""

PEER = """
module @peer {
  func.func @plain(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.mulf %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @buffer(%a: tensor<4xf32>, %s: !hal.buffer {iree.abi.output = 0 : index}) -> tensor<4xf32> {
    %0 = arith.mulf %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @tensor(%s: tensor<4xf32> {iree.abi.output = 0 : index}, %a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.mulf %a, %a : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @second(%a: tensor<4xf32>, %s: !hal.buffer {iree.abi.output = 1 : index})
      -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = arith.mulf %a, %a : tensor<4xf32>
    %1 = arith.addf %a, %a : tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
  func.func @dynamic(%a: tensor<?xf32>, %s: !hal.buffer {iree.abi.output = 0 : index}) -> tensor<?xf32> {
    %0 = arith.mulf %a, %a : tensor<?xf32>
    return %0 : tensor<?xf32>
  }
}
"""

SAME = """
module @same {
  func.func @same(%a: tensor<4xf32>) -> (tensor<4xf32>, i32) {
    %0 = arith.constant 7 : i32
    return %a, %0 : tensor<4xf32>, i32
  }
}
"""

# Functions whose results are what their arguments hold: they show whose memory a result is in.
_MOVE = "  vm.call @hal.fence.signal(%{signal})\n  vm.return"


def _writer(name: str, arguments: str, count: int) -> str:
    registers = ", ".join(f"%r{number}: !hal.buffer_view" for number in range(count))
    return function(
        f"{name}$async",
        f"async func @{name}$async({arguments}) -> ()",
        _MOVE.format(signal=f"r{count + 1}"),
        f"{registers}, %r{count}: !hal.fence, %r{count + 1}: !hal.fence",
        "",
    )


MOVES = (
    'vm.import @hal.fence.signal cconv "0r_v"\n'
    + _writer("one", "%x: tensor<4xf32>, %y: tensor<4xf32> {iree.abi.output = 0 : index, pumice.abi.reuses = [0]}", 2)
    + function("one", "sync func @one(%x: tensor<4xf32>) -> (%y: tensor<4xf32>)")
    # The first result may be in either argument, the second in the first only, the third is of another size.
    + _writer(
        "several",
        "%a: tensor<4xf32>, %b: tensor<4xf32>, "
        "%x: tensor<4xf32> {iree.abi.output = 0 : index, pumice.abi.reuses = [0, 1]}, "
        "%y: tensor<2x2xi32> {iree.abi.output = 1 : index, pumice.abi.reuses = [0]}, "
        "%z: tensor<8xf32> {iree.abi.output = 2 : index, pumice.abi.reuses = [0, 1]}",
        5,
    )
    + function(
        "several",
        "sync func @several(%a: tensor<4xf32>, %b: tensor<4xf32>) -> "
        "(%x: tensor<4xf32>, %y: tensor<2x2xi32>, %z: tensor<8xf32>)",
        "  vm.return %r0, %r1, %r1",
        "%r0: !hal.buffer_view, %r1: !hal.buffer_view",
        "!hal.buffer_view, !hal.buffer_view, !hal.buffer_view",
    )
    + function(
        "elsewhere",
        "sync func @elsewhere(%x: tensor<4xf32>, %y: tensor<4xf32> {iree.abi.output = 0 : index}) -> "
        "(%z: tensor<4xf32>)",
        arguments="%r0: !hal.buffer_view, %r1: !hal.buffer_view",
    )
    + function(
        "fails",
        "sync func @fails(%x: tensor<4xf32>, %y: tensor<4xf32> {iree.abi.output = 0 : index}) -> ()",
        '  %i0 = vm.const.i32 9\n  vm.fail %i0, "not today"',
        "%r0: !hal.buffer_view, %r1: !hal.buffer_view",
        "",
    )
)


@cache
def compiled() -> bytes:
    """``SOURCE``, for both devices."""
    return pumice.compile(SOURCE, targets=("vulkan", "reference"))


@contextmanager
def counted(device: pumice.Device, *, allocations: int, copies: int) -> Iterator[None]:
    """Asserts how many buffers are made, and copies recorded."""
    hal = device.hal
    before = hal.allocation_count, hal.copy_count
    yield
    assert (hal.allocation_count - before[0], hal.copy_count - before[1]) == (allocations, copies)


def arrays(*shapes: tuple[int, ...], seed: int = 1) -> list[np.ndarray]:
    """Positive random numbers."""
    random = np.random.default_rng(seed)
    return [random.uniform(0.5, 2, shape).astype(np.float32) for shape in shapes]
