"""Targets of devices: recorded profiles, the device at hand, and modules that are made for them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from support.compiler.regions import region_of
from support.profiles import PROFILE_NAMES, recorded_profile

import pumice
from pumice.compiler.dialects.syntax.text import parse
from pumice.compiler.kernels.scalars.device_target import FAMILY_NAMES, target_of
from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.strategies.choice import compile_region
from pumice.hal_vulkan.instance.profile import CooperativeMatrix
from pumice.spirv.binary.grammar import ExecutionMode, Op
from pumice.spirv.binary.words import read_binary
from pumice.spirv.checks.validation import ensure_valid

PROGRAM = """
func.func @main(%a: tensor<3xi64>) -> tensor<3xi64> {
  %0 = stablehlo.multiply %a, %a : tensor<3xi64>
  return %0 : tensor<3xi64>
}
"""

_FAMILIES = {
    **dict.fromkeys(("lavapipe", "swiftshader"), "cpu"),
    **dict.fromkeys(("broadcom", "powervr", "required"), "default"),
}
"""Families of devices that are not named by them."""


@pytest.mark.parametrize("name", PROFILE_NAMES)
def test_a_recorded_device_has_at_least_what_every_device_has(name: str) -> None:
    target, least = target_of(recorded_profile(name)), Target()
    vendor = name.partition("_")[0]
    family = _FAMILIES.get(vendor, vendor)
    assert target.family == family and family in FAMILY_NAMES
    for fact in ("shared_memory", "max_workgroup_invocations", "subgroup_size"):
        assert getattr(target, fact) >= getattr(least, fact)
    assert target.compute_units >= 1 and "basic" in target.subgroup_operations
    assert target.float64 == ("shaderFloat64" in recorded_profile(name).features)
    hash(target)


def test_a_device_of_no_known_vendor() -> None:
    profile = replace(recorded_profile("nvidia_rtx_4060"), vendor_id=0xABCD, compute_units=3)
    assert (target_of(profile).family, target_of(profile).compute_units) == ("default", 3)


def test_matrices_that_a_subgroup_multiplies_exactly() -> None:
    listed = CooperativeMatrix(16, 8, 16, "f16", "f16", "f32", "f32")
    others = replace(listed, saturating=True), replace(listed, scope="workgroup")
    profile = replace(recorded_profile("nvidia_rtx_4060"), cooperative_matrices=(listed, *others))
    assert target_of(profile).cooperative_matrices == ((16, 8, 16, "f16", "f16", "f32", "f32"),)
    assert type(profile).from_json(profile.to_json()) == profile


def test_halves_are_converted_by_devices_that_promise_to_do_so_exactly() -> None:
    modes = {f"shader{mode}Float{width}" for mode in ("RoundingModeRTE", "DenormPreserve") for width in (16, 32, 64)}
    promised = replace(recorded_profile("nvidia_rtx_4060"), properties=frozenset(modes))
    declared = {(mode, n) for mode in (ExecutionMode.RoundingModeRTE, ExecutionMode.DenormPreserve) for n in (16, 32)}
    (function,) = parse(PROGRAM.replace("i64", "f16"))
    for lacking, expected in (((), declared), *(((mode,), set()) for mode in modes)):
        target = target_of(replace(promised, properties=promised.properties.difference(lacking)))
        assert target.float16 == target.float_controls == bool(expected)
        code = compile_region(region_of(function, target)).code
        ensure_valid(code, "vulkan1.1")
        binary = read_binary(code)
        actual = {tuple(binary.words[at + 2 : at + 4]) for opcode, at, _ in binary if opcode == Op.ExecutionMode}
        assert {value for value in actual if value[0] != ExecutionMode.LocalSize} == expected
        assert any(opcode == Op.FConvert for opcode, _, _ in binary) == bool(expected)


def test_a_module_is_made_for_a_device() -> None:
    with_int64, without = map(recorded_profile, ("nvidia_rtx_4060", "intel_xe_tgl"))
    assert pumice.compile(PROGRAM, device=without) == pumice.compile(PROGRAM)
    assert pumice.compile(PROGRAM, device=with_int64) != pumice.compile(PROGRAM)


@pytest.mark.vulkan
def test_the_device_at_hand_runs_what_is_made_for_it() -> None:
    values = np.array([3, -5, 1 << 40], np.int64)
    with pumice.open_device() as device, pumice.Session(device) as session:
        assert device.profile.compute_units > 0
        session.load(pumice.compile(PROGRAM, device=device.profile))
        np.testing.assert_array_equal(session.call("module.main", values), values * values)
