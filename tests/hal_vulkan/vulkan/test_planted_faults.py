"""Native calls that fail with each code that Vulkan allows, under what users do; see docs/design/faults.md."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from support.devices.fault_runs import all_cases, count_calls, run_cases
from support.devices.fault_workloads import WORKLOADS
from support.devices.planted_faults import CODES, LEFT_OUT
from support.devices.shader_tools import needs_compiler
from support.soak import SEED, SOAK

REGISTRY = Path("/usr/share/vulkan/registry/vk.xml")
NEEDED = {"images": [needs_compiler]}
CASES = 20


def test_the_codes_are_those_of_the_registry() -> None:
    if not REGISTRY.exists():
        pytest.skip("Vulkan's registry is not installed (Debian: libvulkan-dev)")
    commands = {}
    for command in ET.parse(REGISTRY).getroot().iter("command"):
        if (name := command.findtext("proto/name")) is not None:
            codes = f"{command.get('successcodes', '')},{command.get('errorcodes', '')}".replace("VK_", "").split(",")
            commands[name] = {code.removesuffix("_KHR").removesuffix("_EXT") for code in codes}
    for name, codes in CODES.items():
        assert set(codes) <= commands[name], name
        assert commands[name] - set(codes) <= {"SUCCESS", *LEFT_OUT}, name


@pytest.mark.vulkan
@pytest.mark.sample(3)
@pytest.mark.parametrize("workload", [pytest.param(name, marks=NEEDED.get(name, [])) for name in WORKLOADS])
def test_failing_calls(workload: str) -> None:
    if workload == "jit":
        pytest.importorskip("jax")
    cases = all_cases(count_calls([workload]))
    if not SOAK:
        cases = random.Random(SEED).sample(cases, min(CASES, len(cases)))
    ends = list(run_cases(cases))
    assert [(case.fault, end.bad) for case, end in ends if end.bad] == []
    assert sum(end.fired > 0 for _, end in ends) > len(ends) // 2
