"""Programs that pumice reads and runs: executables, modules, shaders, pipeline caches."""

from __future__ import annotations

import ast
import dataclasses
import os
from pathlib import Path

import numpy as np
from judging import FileCases, SeededCases
from mutant_runner import assembled_bases
from mutations import mutate, plain_base
from support.case_pool import Cases, Outcome
from support.compiler.tensor_programs import POWERS, SIMPLE_MUL
from support.runtime.hal_module import executable_blob

import pumice
from pumice import shaders
from pumice.codegen.c import write_c
from pumice.codegen.hal.module_writer import write_hal
from pumice.formats.vke1_reader import parse_executable
from pumice.formats.vke1_writer import build_executable
from pumice.hal_vulkan.device import Device
from pumice.hal_vulkan.instance.driver import shared_driver
from pumice.hal_vulkan.pipelines.pipeline_context import PipelineCache
from pumice.spirv.binary.subgroups import least_subgroup_size
from pumice.spirv.checks.tools import validate
from pumice.spirv.reflection.grid import part_of_grid
from pumice.spirv.reflection.reflect import reflect
from pumice.spirv.repair.repair import repair
from pumice.spirv.repair.specialize import specialize
from pumice.status import DeadlineExceededError
from pumice.vm.assembly.disassembler import disassemble_module
from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.reader import read_module
from pumice.vm.bytecode.verifier import verify_module


def open_vke1(folder: Path) -> Cases:
    files = [executable_blob("mul"), executable_blob("mul", "examples/saxpy"), executable_blob("examples/matmul")]

    def use(path: Path) -> None:
        build_executable(parse_executable(path.read_bytes()))

    return FileCases(folder, files, "e.vke1", use)


def open_module(folder: Path) -> Cases:
    """Modules that are read, verified and disassembled; ``make mutants`` runs them."""

    class Modules(FileCases):
        def input(self, seed: int, index: int) -> bytes:
            return mutate(bases, seed, index).data

    bases = assembled_bases()

    def use(path: Path) -> None:
        with ModuleArchive.open(path) as archive:
            disassemble_module(verify_module(read_module(archive)), offsets=True)

    return Modules(folder, [base.data for base in bases], "m.vmfb", use)


def open_codegen(folder: Path) -> Cases:
    """Compiled programs that are written as C and as Python."""
    modules = [pumice.compile(text) for text in (SIMPLE_MUL, POWERS)]
    bases = [plain_base(f"{number}", module, "file") for number, module in enumerate(modules)]

    class Programs(SeededCases[bytes]):
        def input(self, seed: int, index: int) -> bytes:
            return mutate(bases, seed, index, "file").data

        def use(self, made: bytes) -> None:
            with ModuleArchive.from_bytes(made, "m.vmfb") as archive:
                definition = read_module(archive)
                ast.parse(write_hal(definition, "m.vmfb").source)
                write_c(definition, "m", "m.vmfb", main=True)

    return Programs()


class PipelineCacheCases(SeededCases[bytes]):
    """Pipeline-cache files: damaged, and damaged with the right checksum, so that the driver sees them."""

    def __init__(self, folder: Path) -> None:
        os.environ["PUMICE_CACHE_DIR"] = str(folder / "cache")
        driver = shared_driver()
        self.device = Device(driver, driver.select("vulkan"), persistent_cache=False)
        cache = PipelineCache(self.device)
        assert cache.file is not None
        self.file = cache.file
        # A driver without a cache of its own never has anything to save.
        data = cache._data()
        self.device.destroy("pipeline cache", cache.handle)
        assert self.file.store(data)
        (self.path,) = (folder / "cache").glob("*/pipelines/*/[!.]*")
        self.base = plain_base("cache", data)

    def input(self, seed: int, index: int) -> bytes:
        return mutate([self.base], seed, index, "file").data

    def use(self, made: bytes) -> None:
        # As the entry's content, which the driver sees, and as the file.
        if len(made) % 2:
            self.file.store(made)
        else:
            self.path.write_bytes(made)
        self.device.destroy("pipeline cache", PipelineCache(self.device).handle)

    def close(self) -> None:
        self.device.close()


def open_spirv(folder: Path) -> Cases:
    """What is read of a shader, and what is written anew."""

    def use(path: Path) -> None:
        code = path.read_bytes()
        reflection = reflect(code)
        reflection.to_json()
        repair(code)
        least_subgroup_size(code, 64)
        specialize(code, {constant.constant_id: b"\1\0\0\0" for constant in reflection.specialization_constants})
        # What follows takes valid modules; whether one is, takes a process to tell.
        if len(code) % 64 == 0:
            validate(code)
            for entry in reflection.entry_points:
                part_of_grid(code, (0, 0, 0), (1, 1, 1), entry.local_size)

    return FileCases(folder, [shaders.spirv(name) for name in shaders.names()], "s.spv", use, part="spirv")


class ShaderRuns(SeededCases[bytes]):
    """Shaders with exchanged operands on a device, through everything that checks them before."""

    def __init__(self, folder: Path) -> None:
        self.device = pumice.open_device("vulkan")
        self.bases = [plain_base(name, shaders.spirv(name), "spirv") for name in shaders.names()]

    def input(self, seed: int, index: int) -> bytes:
        return mutate(self.bases, seed, index, "spirv").data

    def run(self, seed: int, index: int) -> Outcome:
        outcome = super().run(seed, index)
        try:
            self.device.hal.wait_idle(1.0)
        except DeadlineExceededError:
            return dataclasses.replace(outcome, busy=True)
        return outcome

    def use(self, made: bytes) -> None:
        with pumice.Kernel(self.device, made, name="damaged") as kernel:
            kernel(*(np.ones(64, np.float32) for _ in kernel.parameters), groups=(1, 1, 1))

    def close(self) -> None:
        self.device.close()
