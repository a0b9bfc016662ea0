"""Modules and executables that are well formed and mean harm, one kind each; what mutants found stays found."""

from __future__ import annotations

import gc
import struct
import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.waiting import until

from pumice import shaders
from pumice.formats.vke1 import (
    STAGE_COMPUTE,
    DescriptorBindingDef,
    DescriptorSetLayoutDef,
    DescriptorType,
    ExecutableDef,
    PipelineDef,
    PipelineLayoutDef,
    PushConstantRange,
)
from pumice.formats.vke1_writer import build_executable
from pumice.hal_vulkan.device import Device
from pumice.spirv.checks import validation as spirv_validation
from pumice.spirv.reflection.reflect import reflect
from pumice.status import InvalidArgumentError, PumiceError, UnavailableError, UnimplementedError
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.module_def import ExportDef, ModuleDef
from pumice.vm.bytecode.writer import write_module
from pumice.vm.execution.bytecode_module import BytecodeModule
from pumice.vm.execution.context import Context

# ---- modules -------------------------------------------------------------------------------------------------------

PROGRAM = """
vm.module @program
vm.export @one
vm.export @first
vm.func @one() -> (i32) {
  %i0 = vm.const.i32 1
  vm.return %i0
}
vm.func @first(%r0: !vm.buffer) -> () {
  %i0 = vm.const.i32 0
  vm.return
}
"""


def program() -> ModuleDef:
    return assemble(PROGRAM)


def test_an_initializer_that_takes_arguments_is_refused() -> None:
    module = replace(program(), exports=(ExportDef("__init", 1),))
    with pytest.raises(InvalidArgumentError, match="__init"):
        Context([BytecodeModule.from_bytes(write_module(module))])


def test_a_deinitializer_that_never_ends_is_ended() -> None:
    text = """
vm.module @program
vm.export @__deinit
vm.func @__deinit() -> () {
  vm.br ^bb1()
^bb1:
  vm.br ^bb1()
}
"""
    context = Context([BytecodeModule(assemble(text))])
    began = time.process_time()
    context.close(timeout=0.1)
    assert time.process_time() - began < 5
    assert context.is_closed


@pytest.mark.parametrize("name", ["a\0b", "{}%s\n", "x" * 70_000, "\U0010ffff"])
def test_any_name_can_be_called(name: str) -> None:
    module = replace(program(), name=name, exports=(ExportDef(name, 0),))
    with Context([BytecodeModule.from_bytes(write_module(module))]) as context:
        (function,) = context.functions(name)
        assert context.invoke(function, ()) == 1


def test_a_module_that_is_dropped_goes_with_its_translations() -> None:
    module = BytecodeModule.from_bytes(write_module(program()))
    with Context([module]) as context:
        assert context.invoke(context.lookup("program.one"), ()) == 1
    gone = weakref.ref(module.translation(0))
    del module, context
    # A collection that another thread is in the midst of makes this one return at once.
    until(lambda: gc.collect() >= 0 and gone() is None)


def test_equal_functions_of_two_modules_are_told_apart_in_errors() -> None:
    text = """
vm.module @NAME
vm.export @fails
vm.func @fails() -> () {
  %i0 = vm.const.i32 3
  vm.fail %i0, "no"
}
"""
    places = []
    with Context([BytecodeModule(assemble(text.replace("NAME", name))) for name in ("left", "right")]) as context:
        for name in ("left", "right", "left"):
            with pytest.raises(PumiceError) as caught:
                context.invoke(context.lookup(f"{name}.fails"), ())
            places.append(str(caught.value.location).split(".")[0])
    assert places == ["left", "right", "left"]


# ---- executables ---------------------------------------------------------------------------------------------------


def executable(
    bindings: tuple[DescriptorBindingDef, ...] = tuple(DescriptorBindingDef(i) for i in range(3)),
    *,
    shader: str = "mul",
    code: bytes | None = None,
    sets: tuple[int, ...] = (0,),
    push_bytes: int = 0,
) -> bytes:
    """A VKE1 blob of a shader with one descriptor set layout."""
    ranges = (PushConstantRange(STAGE_COMPUTE, 0, push_bytes),) if push_bytes else ()
    return build_executable(
        ExecutableDef(
            pipelines=(PipelineDef(0, "main", 0),),
            descriptor_set_layouts=(DescriptorSetLayoutDef(bindings), DescriptorSetLayoutDef(())),
            pipeline_layouts=(PipelineLayoutDef(sets, ranges),),
            shader_modules=(memoryview(shaders.spirv(shader) if code is None else code),),
        )
    )


@pytest.mark.vulkan
def test_the_undamaged_executable_is_taken(device: Device) -> None:
    device.create_executable(executable()).close()
    more = (*(DescriptorBindingDef(i) for i in range(3)), DescriptorBindingDef(7))
    device.create_executable(executable(more, push_bytes=4)).close()


_STORAGE = DescriptorBindingDef(0), DescriptorBindingDef(1)


@pytest.mark.vulkan
@pytest.mark.parametrize(
    ("blob", "error", "match"),
    [
        (lambda: executable(_STORAGE), InvalidArgumentError, "binding 2"),
        (lambda: executable(sets=()), InvalidArgumentError, "set 0 binding 0"),
        (lambda: executable(sets=(1, 0)), InvalidArgumentError, "set 0 binding 0"),
        (
            lambda: executable((*_STORAGE, DescriptorBindingDef(2, DescriptorType.UNIFORM_BUFFER))),
            InvalidArgumentError,
            "binding 2",
        ),
        (
            lambda: executable((*_STORAGE, DescriptorBindingDef(2), DescriptorBindingDef(3, DescriptorType.SAMPLER))),
            UnimplementedError,
            "binding 3",
        ),
        (
            lambda: executable((*_STORAGE, DescriptorBindingDef(2), DescriptorBindingDef(0xFFFFFFFF))),
            InvalidArgumentError,
            "binding number 4294967295",
        ),
        (
            lambda: executable(
                (*_STORAGE, DescriptorBindingDef(2), DescriptorBindingDef(3, DescriptorType.UNIFORM_BUFFER, 0xFFFF))
            ),
            InvalidArgumentError,
            "uniform buffers",
        ),
        (lambda: executable(_STORAGE, shader="examples/saxpy"), InvalidArgumentError, "push constants"),
    ],
    ids=["binding", "no set", "another set", "type", "sampler", "number", "count", "push constants"],
)
def test_a_shader_that_its_layout_does_not_fit_is_refused(
    device: Device, blob: Callable[[], bytes], error: type[PumiceError], match: str
) -> None:
    with pytest.raises(error, match=match):
        device.create_executable(blob())


# ---- shaders -------------------------------------------------------------------------------------------------------

_OP_DECORATE, _BUILT_IN = 71, 11


def _changed(change: Callable[[list[int], int], None]) -> bytes:
    """The multiplication shader with its first BuiltIn decoration changed."""
    words = list(struct.unpack(f"<{len(shaders.spirv('mul')) // 4}I", shaders.spirv("mul")))
    at = 5
    while not (words[at] & 0xFFFF == _OP_DECORATE and words[at + 2] == _BUILT_IN):
        at += words[at] >> 16
    change(words, at)
    return struct.pack(f"<{len(words)}I", *words)


def test_a_decoration_with_two_values_is_refused() -> None:
    def twice(words: list[int], at: int) -> None:
        words[at + 4 : at + 4] = [*words[at : at + 3], words[at + 3] + 1]

    def again(words: list[int], at: int) -> None:
        words[at + 4 : at + 4] = words[at : at + 4]

    assert reflect(_changed(again)) == reflect(shaders.spirv("mul"))
    with pytest.raises(InvalidArgumentError, match="BuiltIn"):
        reflect(_changed(twice))


def test_an_input_that_is_no_built_in_is_refused() -> None:
    def removed(words: list[int], at: int) -> None:
        del words[at : at + 4]

    with pytest.raises(InvalidArgumentError, match="not a built-in"):
        reflect(_changed(removed))


def test_a_set_number_past_every_device_is_refused() -> None:
    from pumice.hal_vulkan.pipelines.pipeline_interface import PipelineInterface

    entry = reflect(shaders.spirv("mul")).entry_points[0]
    forged = replace(entry, bindings=(replace(entry.bindings[0], set=0xFFFFFFFF),))
    with pytest.raises(InvalidArgumentError, match="set 4294967295"):
        PipelineInterface.from_reflection(forged)


def test_unchecked_shaders_can_be_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PUMICE_SPIRV_TOOLS", str(tmp_path))
    code = _changed(lambda words, at: words.append(1 << 16))  # OpNop: of this content it is the first
    monkeypatch.setenv("PUMICE_REQUIRE_SPIRV_VAL", "1")
    with pytest.raises(UnavailableError, match="spirv-val"):
        spirv_validation.ensure_valid(code, "vulkan1.1")
    monkeypatch.setenv("PUMICE_REQUIRE_SPIRV_VAL", "0")
    spirv_validation.ensure_valid(code, "vulkan1.1")
