"""Targets of modules, and the choice among a module's executables."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from support.compiler.regions import shader_declarations

import pumice
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_text
from pumice.compiler.targets.vulkan import kernel_of
from pumice.status import InvalidArgumentError, UnavailableError

SUM = """
func.func @main(%x: tensor<5x{0}>, %y: tensor<5x{0}>) -> tensor<5x{0}> {{
  %0 = stablehlo.add %x, %y : tensor<5x{0}>
  return %0 : tensor<5x{0}>
}}
"""


def without(device: pumice.Device, *features: str) -> None:
    """Removes features from a device's plan, which modules query and shaders are checked against."""
    hal = device.vulkan
    hal.plan = dataclasses.replace(hal.plan, features=hal.plan.features - set(features))


def called(device: pumice.Device, module: bytes, dtype: str) -> None:
    """Loads the sum of a type, and checks it."""
    big = 2**61 if dtype.endswith("64") and not dtype.startswith("f") else 100
    x, y = np.arange(5).astype(dtype) + np.array(big, dtype), np.arange(5).astype(dtype)
    with pumice.Session(device=device) as session:
        session.load(module)
        np.testing.assert_array_equal(session.call("module.main", x, y).numpy(), x + y)


def kernels(text: str, *kinds: str) -> list[set[str]]:
    """Capabilities of the shaders in a module, in order."""
    program = compile_text(text, "x", Target(kinds=kinds), until="targets").program
    variants = [each for executable in program.executables for each in executable.regions[0].block.operations]
    return [shader_declarations(kernel_of(each).code)[0] for each in variants if each.attributes["target"] == "SPIRV"]


def test_the_baseline_declares_no_feature_but_of_doubles() -> None:
    for type in ("i1", "i4", "i8", "ui16", "i32", "i64", "f8E4M3FN", "bf16", "f16", "f32", "complex<f32>"):
        assert kernels(SUM.format(type), "vulkan") == [{"Shader"}]
    assert kernels(SUM.format("f64"), "vulkan") == [{"Shader", "Float64"}]
    assert kernels(SUM.format("i64"), "vulkan:shaderInt64", "vulkan") == [{"Shader", "Int64"}, {"Shader"}]


@pytest.mark.vulkan
def test_a_device_is_as_good_as_its_profile(gpu: pumice.Device) -> None:
    assert pumice.compile(SUM.format("f32"), device=gpu) == pumice.compile(SUM.format("f32"), device=gpu.profile)
    with pytest.raises(pumice.InvalidArgumentError, match="expected a Vulkan device or its profile, got 'lavapipe'"):
        pumice.compile(SUM.format("f32"), device="lavapipe")  # type: ignore[arg-type]


@pytest.mark.vulkan
def test_a_device_gets_the_executables_that_it_has_the_features_for(gpu: pumice.Device) -> None:
    module = pumice.compile(SUM.format("i64"), targets=("vulkan", "vulkan:shaderInt64"))
    called(gpu, module, "int64")
    without(gpu, "shaderInt64")
    # The other executables would be refused for the features that they declare.
    called(gpu, module, "int64")


@pytest.mark.vulkan
@pytest.mark.features("shaderInt64")
def test_a_module_for_a_feature_is_refused_without_it(gpu: pumice.Device) -> None:
    module = pumice.compile(SUM.format("i64"), targets=("vulkan:shaderInt64",))
    called(gpu, module, "int64")
    without(gpu, "shaderInt64")
    with pytest.raises(UnavailableError, match=r"vulkan-spirv-fb with shaderInt64, which no device here runs"):
        called(gpu, module, "int64")


@pytest.mark.vulkan
@pytest.mark.features("shaderFloat64")
def test_doubles_are_refused_without_the_feature_rather_than_narrowed(gpu: pumice.Device) -> None:
    module = pumice.compile(SUM.format("f64"))
    called(gpu, module, "float64")
    without(gpu, "shaderFloat64")
    with pytest.raises(UnavailableError, match="with shaderFloat64.*compute in f32 rather than f64"):
        called(gpu, module, "float64")


@pytest.mark.vulkan
def test_doubles_go_to_the_reference_device_where_there_is_one(gpu: pumice.Device) -> None:
    module = pumice.compile(SUM.format("f64"), targets=("vulkan", "reference"))
    without(gpu, "shaderFloat64")
    x = np.arange(5.0)
    with pumice.open_device("reference") as other, pumice.Session(device=[gpu, other]) as session:
        session.load(module)
        np.testing.assert_array_equal(session.call("module.main", x, x).numpy(), x + x)


def test_the_last_stage_as_text_makes_the_same_module() -> None:
    target = Target(kinds=("vulkan:shaderInt64", "vulkan", "reference"))
    text = compile_text(SUM.format("i64"), "x", target, until="targets").program.text()
    assert 'features = ["shaderInt64"]' in text
    assert compile_text(text, "x", target).module == compile_text(SUM.format("i64"), "x", target).module


@pytest.mark.parametrize("kind", ["", "cuda", "vulkan:", "vulkan:shaderInt65", "reference:shaderInt64"])
def test_other_targets_are_refused(kind: str) -> None:
    with pytest.raises(InvalidArgumentError, match="expected (targets|features) among"):
        Target(kinds=(kind,))
