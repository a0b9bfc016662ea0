"""Modules that check the VM's operations themselves give the same as HAL code and in C, what fails included."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from support.codegen import c_programs, hal_code

from pumice.hal_reference.device import Device
from pumice.status import InvalidArgumentError, PumiceError, UnimplementedError
from pumice.vm import BytecodeModule, Context
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.reader import read_module
from pumice.vm.bytecode.writer import write_module

ASSEMBLY = Path(__file__).parents[1] / "vm" / "assembly"
FILES = ("buffers", "control_flow", "globals", "lists")
# What neither way has: functions of other modules, indirect globals, hashes.
REFUSED = re.compile(r"(?m)^vm\.export @(test_buffer_hash|fail_unresolved_import|test_global_indirect_\w+)\b.*$")
NOT_A_NUMBER = """
vm.module @not_a_number version 0
vm.type !vm.buffer
vm.export @keeps_its_bits
vm.func @keeps_its_bits() -> () {
^bb0:
  %i0:1 = vm.const.i64 8
  %i2 = vm.const.i32 16
  %r0 = vm.buffer.alloc %i0:1, %i2
  %i4:5 = vm.const.i64 0
  %i6 = vm.const.f32 -nan(0x1234)
  vm.buffer.store.f32 %i6, %r0, %i4:5
  %i7 = vm.buffer.load.i32 %r0, %i4:5
  %i8 = vm.const.i32 -4189644
  %i9 = vm.cmp.ne.i32 %i7, %i8
  vm.cond_br %i9, ^bb1(), ^bb2()
^bb1:
  vm.fail %i2, "f32"
^bb2:
  %i10:11 = vm.const.f64 -nan(0x1234)
  vm.buffer.store.f64 %i10:11, %r0, %i4:5
  %i12:13 = vm.buffer.load.i64 %r0, %i4:5
  %i14:15 = vm.const.i64 -2251799813680588
  %i9 = vm.cmp.ne.i64 %i12:13, %i14:15
  vm.cond_br %i9, ^bb3(), ^bb4()
^bb3:
  vm.fail %i2, "f64"
^bb4:
  vm.return
}
"""
WRONG = """
vm.module @wrong version 0
vm.type !vm.buffer
vm.rodata[0] = 0102030405060708
vm.export @store_to_constant
vm.func @store_to_constant() -> () {
^bb0:
  %r0 = vm.const.ref.rodata 0
  %i0:1 = vm.const.i64 0
  %i2 = vm.const.i32 1
  vm.buffer.store.i32 %i2, %r0, %i0:1
  vm.return
}
vm.export @fill_constant
vm.func @fill_constant() -> () {
^bb0:
  %r0 = vm.const.ref.rodata 0
  %i0:1 = vm.const.i64 0
  %i2 = vm.const.i32 1
  vm.buffer.fill.i32 %r0, %i0:1, %i0:1, %i2
  vm.return
}
vm.export @copy_too_little
vm.func @copy_too_little() -> () {
^bb0:
  %r0 = vm.const.ref.rodata 0
  %i0:1 = vm.const.i64 8
  %i2 = vm.const.i32 16
  %r1 = vm.buffer.alloc %i0:1, %i2
  %i4:5 = vm.const.i64 0
  %i6:7 = vm.const.i64 -1
  vm.buffer.copy %r0, %i4:5, %r1, %i4:5, %i6:7
  vm.return
}
vm.export @load_far
vm.func @load_far() -> (i32) {
^bb0:
  %r0 = vm.const.ref.rodata 0
  %i0:1 = vm.const.i64 4611686018427387904
  %i2 = vm.buffer.load.i32 %r0, %i0:1
  vm.return %i2
}
"""
WRITTEN = {"not_a_number": NOT_A_NUMBER, "wrong": WRONG}


def _outcomes(module: bytes) -> dict[str, str]:
    """Returns for each function ``done``, or the status that the VM fails with."""
    with ModuleArchive.from_bytes(module, "module.vmfb") as archive:
        definition = read_module(archive)
    context = Context([BytecodeModule(definition)])
    found = {}
    for export in definition.exports:
        try:
            context.invoke(context.lookup(f"{definition.name}.{export.name}"), ())
            found[export.name] = "done"
        except PumiceError as error:
            found[export.name] = error.code.name
    return found


@pytest.fixture(scope="module", params=[*FILES, *WRITTEN])
def module(request: pytest.FixtureRequest) -> bytes:
    name = request.param
    text = WRITTEN.get(name) or (ASSEMBLY / f"{name}.vmasm").read_text(encoding="utf-8")
    return write_module(assemble(c_programs.with_declarations(REFUSED.sub("", text))))


def test_hal_code_gives_the_same(module: bytes) -> None:
    found = {}
    with Device() as device, hal_code.hal_program(module, device) as program:
        for name in _outcomes(module):
            try:
                getattr(program, name)()
                found[name] = "done"
            except PumiceError as error:
                found[name] = error.code.name
    assert found == _outcomes(module)


@pytest.mark.sample(len(FILES) + len(WRITTEN))  # always: sanitizers see how C code treats lists and bytes
@pytest.mark.vulkan
@pytest.mark.skipif(bool(c_programs.CANNOT_BUILD), reason=c_programs.CANNOT_BUILD)
def test_c_gives_the_same(module: bytes, tmp_path: Path) -> None:
    program = c_programs.build(tmp_path, module, flags=("-O0", *c_programs.SANITIZED))
    for name, outcome in _outcomes(module).items():
        command = [str(program), "--function", name, "-o", str(tmp_path / "out.npy")]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
        assert (done.returncode == 0) == (outcome == "done"), f"{name}: {done.stderr}"
        assert done.returncode in (0, 1) and bool(done.stderr) == bool(done.returncode)


def test_what_hal_code_has_nothing_for_is_named() -> None:
    text = (ASSEMBLY / "buffers.vmasm").read_text(encoding="utf-8")
    with pytest.raises(UnimplementedError, match=r"hash .* operation buffer\.hash: HAL code has nothing"):
        hal_code.hal_code(write_module(assemble(text)))


def test_hal_code_checks_casts_of_references() -> None:
    module = write_module(assemble((ASSEMBLY / "references.vmasm").read_text(encoding="utf-8")))
    with Device() as device, hal_code.hal_program(module, device) as program:
        program.test_cast()
        with pytest.raises(InvalidArgumentError, match="expected a list, got memoryview"):
            program.fail_cast()
