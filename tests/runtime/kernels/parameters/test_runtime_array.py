"""Run-time sized arrays of bindings as parameters: how lists are taken apart, without a device that has them."""

from __future__ import annotations

import numpy as np
import pytest

from pumice.hal_vulkan import reflect
from pumice.hal_vulkan.instance.driver import Driver
from pumice.hal_vulkan.instance.profile import DeviceLimits
from pumice.runtime.kernels.parameters.arguments import declared
from pumice.runtime.kernels.parameters.names import Names
from pumice.runtime.kernels.parameters.parameters import RuntimeArrayParameter, parameters_of, take_apart
from pumice.spirv.sources.glsl import compile_glsl
from pumice.status import InvalidArgumentError

SOURCE = """#version 450
#extension GL_EXT_nonuniform_qualifier : require
layout(binding = 0) uniform sampler2D pictures[];
layout(binding = 1, std430) readonly buffer Table { float values[]; } tables[];
layout(binding = 2, std430) writeonly buffer Out { float read[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    read[i] = textureLod(pictures[nonuniformEXT(i)], vec2(0.5), 0).x + tables[nonuniformEXT(i)].values[0];
}"""


@pytest.fixture(scope="module")
def limits(driver: Driver) -> DeviceLimits:
    return driver.profiles[0].limits


@pytest.mark.vulkan
def test_lists_are_taken_apart(limits: DeviceLimits) -> None:
    parameters = parameters_of(reflect(compile_glsl(SOURCE)).entry_point(), limits)
    assert [type(one) is RuntimeArrayParameter for one in parameters] == [True, True, False]
    assert "binding 0 (pictures): a list, each a 2d image with a sampler, of floats" in declared(parameters)
    picture, table, out = np.zeros((2, 2), np.float32), np.zeros(3, np.float32), np.zeros(4, np.float32)
    sizes = {0: 4, 1: 2}
    flat, values = take_apart(parameters, ([picture, None, picture], (table,), out), sizes, "k")
    assert [one.index for one in flat] == [0, 0, 0, 1, 2]
    assert [value is None for value in values] == [False, True, False, False, False]
    assert values[4] is out and flat[4] is parameters[2] and flat[0] is flat[2]
    flat, values = take_apart(parameters, ([], [], out), sizes, "k")
    assert [one.index for one in flat] == [2]
    for given, message in (
        ((picture, [table], out), "binding 0 .pictures. takes a list, .* got one array of shape"),
        (([picture] * 5, [table], out), "up to 4 items here, got 5"),
        (([picture], {"a": table}, out), "got dict"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            take_apart(parameters, given, sizes, "k")


@pytest.mark.vulkan
def test_lists_go_by_name_and_by_position(limits: DeviceLimits) -> None:
    parameters = parameters_of(reflect(compile_glsl(SOURCE)).entry_point(), limits)
    names = Names(parameters, (), "k")
    pictures, tables, out = [np.zeros((2, 2))], [np.zeros(1)], np.zeros(1)
    placed, rest = names.place((pictures,), None, {"Out": out, "tables": tables})
    assert placed[0] is pictures and placed[1] is tables and placed[2] is out and not rest
