"""What pumice does on the only device that there is, as JSON: its profile, its plan, and calls of kernels and programs.

The driver may execute nothing, so results have no values, only shapes; every native call happens all the same.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

import pumice
from pumice import shaders
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.vulkan.results import take_validation_errors

PROGRAM = """
func.func @main(%a: tensor<96x64xf32>, %b: tensor<64x80xf32>, %n: tensor<4096xi32>)
    -> (tensor<96x80xf32>, tensor<96xf32>, tensor<4096xi32>, tensor<64x96xf32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<96x64xf32>, tensor<64x80xf32>) -> tensor<96x80xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [1]
    : (tensor<96x80xf32>, tensor<f32>) -> tensor<96xf32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %2 = "stablehlo.reduce_window"(%n, %none) <{
    window_dimensions = array<i64: 4096>, padding = dense<[[4095, 0]]> : tensor<1x2xi64>}> ({
    ^bb0(%x: tensor<i32>, %y: tensor<i32>):
      %sum = stablehlo.add %x, %y : tensor<i32>
      stablehlo.return %sum : tensor<i32>
    }) : (tensor<4096xi32>, tensor<i32>) -> tensor<4096xi32>
  %3 = stablehlo.transpose %a, dims = [1, 0] : (tensor<96x64xf32>) -> tensor<64x96xf32>
  return %0, %1, %2, %3 : tensor<96x80xf32>, tensor<96xf32>, tensor<4096xi32>, tensor<64x96xf32>
}
"""


def use(device: pumice.Device) -> dict[str, Any]:
    """Copies, calls a kernel and a compiled program, and returns what can be seen of them."""
    large = device.asarray(np.arange(1 << 20, dtype=np.float32))
    shapes = [large.numpy().shape]
    with device.load_kernel(shaders.spirv("mul")) as kernel:
        a, b = (device.asarray(np.ones(1000, np.float32)) for _ in range(2))
        shapes.append(np.asarray(kernel(a, b, pumice.empty(1000, np.float32))).shape)
    module = pumice.compile(PROGRAM, device=device.profile)
    arguments = np.ones((96, 64), np.float32), np.ones((64, 80), np.float32), np.ones(4096, np.int32)
    with pumice.Session(device) as session:
        session.load(module)
        shapes += [np.asarray(result).shape for result in session.call("module.main", *arguments)]
    return {"shapes": shapes, "plan": list(device.vulkan.plan.why)}


def main() -> None:
    report: dict[str, Any] = {"validation": []}
    with Driver() as driver:
        report["profiles"] = [profile.to_json() for profile in driver.profiles]
    try:
        with pumice.open_device("vulkan") as device:
            report |= use(device)
    except pumice.PumiceError as error:
        report["error"] = f"{type(error).__name__}: {error.message}"
    report["validation"] += [error.message for error in take_validation_errors()]
    report["alive"] = {kind: count for kind, count in pumice.live_objects().items() if kind != "instance" and count}
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
