"""Programs compiled in all ways of the compiler, and run on devices in all ways of pumice, have the same results.

By default a few programs a variant; ``PUMICE_SOAK=1`` runs every program of the corpus in every variant,
with every compiler at hand (``PUMICE_IREE_COMPILERS``), and takes some twenty minutes a compiler.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from conformance.program_corpus import Program, check_calls, load_corpus, run_program
from conformance.test_programs import NO_COMPILER
from support.iree_releases import CompileError, Compiler, available_compilers
from support.soak import SOAK

import pumice

pytestmark = [pytest.mark.peer, pytest.mark.vulkan]

CORPUS = {program.name: program for program in load_corpus() if program.name == program.source_name}
COMPILERS = available_compilers() if SOAK else available_compilers()[:1]
DIRECT = "--iree-hal-indirect-command-buffers=false"
UNMEMOIZED = "--iree-hal-memoization=false"
# Flags beside a program's own.
VARIANTS: Mapping[str, tuple[str, ...]] = {
    "addresses": ("--iree-vulkan-dispatch-abi=bda",),
    "both_abis": ("--iree-vulkan-dispatch-abi=all",),
    "direct": (DIRECT,),
    "unmemoized": (UNMEMOIZED,),
    "direct_unmemoized": (DIRECT, UNMEMOIZED),
    "forced_indirect": ("--iree-hal-force-indirect-command-buffers",),
    "async_external": ("--iree-execution-model=async-external",),
    "async_internal": ("--iree-execution-model=async-internal",),
    "traced": ("--iree-flow-trace-dispatch-tensors",),
    "o0": ("--iree-opt-level=O0",),
    "o3": ("--iree-opt-level=O3",),
    "flat": ("--iree-vm-emit-polyglot-zip=false",),
    "stripped": ("--iree-vm-bytecode-module-strip-source-map", "--iree-vm-bytecode-module-strip-debug-ops"),
    "least_memory": ("--iree-stream-partitioning-favor=min-peak-memory",),
    "most_concurrency": ("--iree-stream-partitioning-favor=max-concurrency",),
    "one_by_one": ("--iree-stream-partitioning-favor=debug",),
    "mappable": ("--iree-hal-external-resources-mappable",),
    "emulated_fills": ("--iree-stream-emulate-memset",),
    "unified_memory": ("--iree-stream-resource-memory-model=unified",),
    "aliased_bindings": ("--iree-stream-resource-alias-mutable-bindings",),
    "small_resources": ("--iree-stream-resource-max-range=4096", "--iree-stream-resource-max-allocation-size=4096"),
    "aligned": ("--iree-stream-resource-min-offset-alignment=256",),
    "narrow_index": ("--iree-vm-target-index-bits=32",),
    "tiled_data": ("--iree-opt-data-tiling",),
    "debug_information": ("--iree-hal-executable-debug-level=3",),
    "unlinked": ("--iree-hal-link-executables=false",),
    "small_stack": ("--iree-vm-target-optimize-for-stack-size",),
    "constants_at_run_time": ("--iree-opt-const-eval=false", "--iree-opt-const-expr-hoisting=false"),
    "split_reductions": ("--iree-dispatch-creation-enable-split-reduction",),
    "adreno": ("--iree-vulkan-target=adreno",),
    "ampere": ("--iree-vulkan-target=ampere",),
    "rdna3": ("--iree-vulkan-target=rdna3",),
    "turing": ("--iree-vulkan-target=turing",),
    "valhall": ("--iree-vulkan-target=valhall",),
}
TARGETS = {"adreno", "ampere", "rdna3", "turing", "valhall"}
# Constants, dynamic shapes, narrow types, loops that read back what the device computed; several functions; queues.
FEW = ("mlp", "collatz")
OTHERS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ("flat", "stripped", "debug_information", "unlinked", "small_stack", "aligned", "both_abis"), ("mlp",)
    ),
    **dict.fromkeys(("adreno", "rdna3", "turing", "unified_memory", "least_memory", "tiled_data"), ("mlp",)),
    "addresses": ("mlp", "collatz", "dynamic_shapes", "constants"),
    "direct": ("mlp", "collatz", "narrow_odd_sizes", "dynamic_shapes"),
    "unmemoized": ("mlp", "nested_loops", "globals_counter"),
    "async_external": ("mlp", "nested_loops", "multi_function"),
    "o3": ("mlp", "reduce_sum"),
    "ampere": ("mlp", "histogram"),
    "valhall": ("mlp", "layer_norm"),
}
# What the compiler (3.13 unless said) gets wrong or refuses by itself.
NARROW_STORES = "it has no stores of narrow types by address"
SCALARS = "it refuses asynchronous functions whose results are all scalars"
KNOWN: Mapping[tuple[str, str], str] = {
    **{
        (variant, name): NARROW_STORES
        for variant in ("addresses", "both_abis")
        for name in (
            *(
                "elementwise_bf16",
                "elementwise_i1",
                "elementwise_i8",
                "elementwise_i16",
                "narrow_odd_sizes",
                "conversions",
            ),
            *("conversions_bf16", "reduce_booleans", "concatenate"),
        )
    },
    **{("async_external", name): SCALARS for name in ("globals_counter", "many_results", "newton", "state_machine")},
    ("o3", "assertion"): "it strips assertions",
    ("narrow_index", "scalars"): "an index of the program does not fit",
    ("valhall", "matmul_f32"): "each of 16 invocations adds to the same sums: a race",
    ("ampere", "matmul_f16"): "it does not compile",
    ("turing", "matmul_f16"): "it does not compile",
    ("valhall", "elementwise_f64"): "it does not compile",
    ("valhall", "conversions_i64"): "it does not compile",
    ("adreno", "elementwise_f64"): "it does not compile",
    ("adreno", "matmul_i8"): "it does not compile",
}
# By release, where only some have it.
KNOWN_OF: Mapping[tuple[str, str, str], str] = {
    ("3.11.0", "async_external", "nested_loops"): "it signals the fence before the loop's work is done"
}
TWO_DEVICES = ("--iree-hal-target-device=first=vulkan[0]", "--iree-hal-target-device=second=vulkan[1]")
ON_TWO_DEVICES = """
func.func @there_and_back(%x: tensor<64xf32> {iree.abi.affinity = #hal.device.promise<@first>})
    -> (tensor<64xf32> {iree.abi.affinity = #hal.device.promise<@first>}) {
  %double = arith.addf %x, %x : tensor<64xf32>
  %there = flow.tensor.transfer %double : tensor<64xf32> to #hal.device.promise<@second>
  %square = arith.mulf %there, %there : tensor<64xf32>
  %back = flow.tensor.transfer %square : tensor<64xf32> to #hal.device.promise<@first>
  %result = arith.subf %back, %x : tensor<64xf32>
  return %result : tensor<64xf32>
}
func.func @there(%x: tensor<64xf32> {iree.abi.affinity = #hal.device.promise<@second>})
    -> (tensor<64xf32> {iree.abi.affinity = #hal.device.promise<@second>}) {
  %square = arith.mulf %x, %x : tensor<64xf32>
  return %square : tensor<64xf32>
}
"""
NEEDS_FLOAT16 = """
func.func @add(%a: tensor<8xf16>, %b: tensor<8xf16>) -> tensor<8xf16> {
  %sum = arith.addf %a, %b : tensor<8xf16>
  return %sum : tensor<8xf16>
}
"""


def programs_of(variant: str) -> Sequence[str]:
    return tuple(CORPUS) if SOAK else OTHERS.get(variant, FEW)


def flags_of(variant: str, program: Program) -> tuple[str, ...]:
    own = [flag for flag in program.flags if variant not in TARGETS or not flag.startswith("--iree-vulkan-target")]
    return (*own, *VARIANTS[variant])


def _cases() -> list[object]:
    if not COMPILERS:
        return [pytest.param(None, None, marks=pytest.mark.skip(reason=NO_COMPILER))]
    return [
        pytest.param(compiler, variant, id=f"{compiler.release}-{variant}" if SOAK else variant)
        for compiler in COMPILERS
        for variant in VARIANTS
    ]


def _known(compiler: Compiler, variant: str, name: str) -> bool:
    return (
        CORPUS[name].reason_not_compiled(compiler.release) is not None
        or (variant, name) in KNOWN
        or (compiler.release, variant, name) in KNOWN_OF
    )


@pytest.mark.sample(6)
@pytest.mark.parametrize(("compiler", "variant"), _cases())
def test_variants(compiler: Compiler, variant: str) -> None:
    names = [name for name in programs_of(variant) if not _known(compiler, variant, name)]

    def compiled(name: str) -> Path | CompileError:
        try:
            return compiler.compile(CORPUS[name].source, flags_of(variant, CORPUS[name]))
        except CompileError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        modules = dict(zip(names, pool.map(compiled, names), strict=True))
    wrong: dict[str, str] = {}
    with pumice.open_device() as device:
        for name, module in modules.items():
            if isinstance(module, CompileError):
                if "Unknown command line argument" in str(module):
                    pytest.skip(f"{compiler.release} has no {' '.join(VARIANTS[variant])}")
                wrong[name] = str(module)
                continue
            try:
                run_program(CORPUS[name], module, device)
            except pumice.UnimplementedError as error:
                # Better no results than wrong ones: nothing but what the device lacks is named.
                if variant not in TARGETS or not ("subgroups of" in str(error) or "SPIR-V" in str(error)):
                    wrong[name] = str(error)
            except (pumice.PumiceError, AssertionError) as error:
                wrong[name] = str(error)
    assert not wrong


@pytest.mark.sample(3)
@pytest.mark.skipif(not COMPILERS, reason=NO_COMPILER)
@pytest.mark.parametrize("variant", ["direct", "mappable", *(["addresses", "async_external"] if SOAK else [])])
@pytest.mark.parametrize("way", ["staging", "robust", "staging and robust", "default"])
def test_ways_to_open_a_device(way: str, variant: str) -> None:
    names = programs_of(variant) if SOAK else ("mlp", "collatz", "narrow_odd_sizes")
    names = [name for name in names if not _known(COMPILERS[0], variant, name)]
    with (
        pumice.open_device()
        if way == "default"
        else pumice.open_device(staging="staging" in way, robust="robust" in way) as device
    ):
        for name in names:
            run_program(
                CORPUS[name], COMPILERS[0].compile(CORPUS[name].source, flags_of(variant, CORPUS[name])), device
            )


@pytest.mark.skipif(not COMPILERS, reason=NO_COMPILER)
def test_a_session_opens_the_default_device() -> None:
    program = CORPUS["mlp"]
    with pumice.Session() as session:
        session.load(COMPILERS[0].compile(program.source, program.flags))
        check_calls(program, lambda function, *values: session.call(f"module.{function}", *values))


@pytest.mark.sample(2)
@pytest.mark.skipif(not COMPILERS, reason=NO_COMPILER)
@pytest.mark.parametrize(
    "flags", [(), (DIRECT,), (UNMEMOIZED,), ("--iree-execution-model=async-external",)], ids=" ".join
)
def test_two_devices(flags: tuple[str, ...]) -> None:
    module = COMPILERS[0].compile(ON_TWO_DEVICES, flags, device=TWO_DEVICES)
    x = np.arange(64, dtype=np.float32)
    for staging in (False, True):
        with pumice.open_device(staging=staging) as first, pumice.open_device() as second:
            for devices in ((first, second), (first, first)):
                with pumice.Session(devices) as session:
                    session.load(module)
                    for _ in range(3):
                        y = session.call("module.there_and_back", x, timeout=60)
                        np.testing.assert_array_equal(np.asarray(y), (2 * x) ** 2 - x)
                        assert y.device is devices[0]
                        z = session.call("module.there", x, timeout=60)
                        np.testing.assert_array_equal(np.asarray(z), x * x)
                        assert z.device is devices[1]
            with pumice.Session(first) as session, pytest.raises(pumice.IncompatibleError, match="second"):
                session.load(module)


@pytest.mark.skipif(not COMPILERS, reason=NO_COMPILER)
def test_traces_name_dispatches(capfd: pytest.CaptureFixture[str]) -> None:
    program = CORPUS["mlp"]
    with pumice.open_device() as device:
        run_program(program, COMPILERS[0].compile(program.source, flags_of("traced", program)), device)
    said = capfd.readouterr().err
    assert "forward_dispatch_0" in said and "inputs ===" in said and "outputs ===" in said


@pytest.mark.skipif(not COMPILERS, reason=NO_COMPILER)
def test_what_a_device_lacks_is_named() -> None:
    module = COMPILERS[0].compile(NEEDS_FLOAT16, ("--iree-vulkan-target=valhall",))
    with pumice.open_device() as device:
        # As on a device without the feature.
        plan = device.hal.plan
        device.hal.plan = dataclasses.replace(plan, features=plan.features - {"shaderFloat16"})
        with (
            pumice.Session(device) as session,
            pytest.raises(pumice.UnimplementedError, match="Float16 needs the feature shaderFloat16"),
        ):
            session.load(module)
