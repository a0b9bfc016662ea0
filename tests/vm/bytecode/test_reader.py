"""Reading module files: what is checked, and what damage of any kind leads to."""

from __future__ import annotations

import dataclasses
import random
import struct
import time
import tracemalloc

import flatbuffers
import pytest
from support.soak import rounds

from pumice.status import DataLossError, IncompatibleError, InvalidArgumentError, PumiceError
from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.debug_database import (
    CallSite,
    DebugDatabase,
    FileLineCol,
    FunctionSourceMap,
    FusedLocation,
    NamedLocation,
)
from pumice.vm.bytecode.declaration import declaration_of
from pumice.vm.bytecode.module_def import DependencyDef, ExportDef, FunctionDescriptor, ImportDef, ModuleDef, Signature
from pumice.vm.bytecode.reader import read_module
from pumice.vm.bytecode.writer import write_module

SAMPLE = ModuleDef(
    name="sample",
    version=3,
    requirements=12,
    attributes={"author": "é"},
    types=("i32", "!hal.buffer_view", "!vm.list<?>"),
    dependencies=(DependencyDef("hal", 6), DependencyDef("check", 0, required=False)),
    imports=(
        ImportDef("hal.fence.await", Signature("0iICrD_i")),
        ImportDef("check.x", Signature("0r_v"), required=False),
    ),
    exports=(ExportDef("f", 0), ExportDef("__init", 1)),
    signatures=(
        Signature("0rI_r", {"iree.abi.declaration": "sync func @f(%a: tensor<?xf32>, %b: i64) -> (%c: tensor<?xf32>)"}),
        Signature("0v_v"),
    ),
    rodata=(memoryview(b"text"), memoryview(b""), memoryview(bytes(range(256)) * 16)),
    rwdata_sizes=(16,),
    global_bytes=24,
    global_refs=2,
    functions=(FunctionDescriptor(0, 40, 4, 2, 7, 3), FunctionDescriptor(40, 24, 8, 1, 0, 0)),
    bytecode_version=17 << 16,
    bytecode=memoryview(bytes(64)),
    debug=DebugDatabase(
        [FunctionSourceMap.of("f", [(0, 1), (9, 3)]), FunctionSourceMap.of("g", [])],
        2,
        [None, FileLineCol("a.mlir", 3, 5), CallSite(1, 4), FusedLocation(None, (1, 2)), NamedLocation("n", 1)],
    ),
)


def _read(module: ModuleDef, **options: bool) -> ModuleDef:
    return read_module(ModuleArchive.from_bytes(write_module(module, **options), "sample.vmfb"))


def test_what_was_written_is_read() -> None:
    module = _read(SAMPLE)
    assert module == SAMPLE
    assert module != dataclasses.replace(SAMPLE, bytecode=memoryview(bytes(63) + b"\1"))
    assert module.function_name(1) == "__init"
    assert module.function_name(2) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": ""}, "module.name.*an empty one"),
        ({"types": ("i32", "")}, r"types\[1\].full_name.*an empty one"),
        ({"dependencies": (DependencyDef(""),)}, r"dependencies\[0\].name.*an empty one"),
        ({"imports": (ImportDef("", Signature("0v_v")),)}, r"imported_functions\[0\].full_name.*an empty one"),
        ({"exports": (ExportDef("", 0),)}, r"exported_functions\[0\].local_name.*an empty one"),
        ({"exports": (ExportDef("f", 2),)}, "internal_ordinal.*one of 2 functions, got 2"),
        ({"exports": (ExportDef("f", -1),)}, "internal_ordinal.*one of 2 functions, got -1"),
        ({"signatures": SAMPLE.signatures[:1]}, "one for each of 2 functions, got 1"),
        ({"signatures": (Signature("0q"), Signature("0"))}, r"function_signatures\[0\].*character 1"),
        ({"imports": (ImportDef("a.b", Signature("x")),)}, r"imported_functions\[0\].signature.*character 0"),
        ({"rwdata_sizes": (-1,)}, "byte_size.*0 or more, got -1"),
        ({"global_bytes": -1}, "global_bytes_capacity.*got -1"),
        ({"global_refs": -1}, "global_ref_count.*got -1"),
    ],
)
def test_wrong_values_are_named(change: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        _read(dataclasses.replace(SAMPLE, **change))  # type: ignore[arg-type]
    assert caught.value.location == "sample.vmfb"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offset": 4}, "multiple of 8, got 4"),
        ({"offset": -8}, "multiple of 8, got -8"),
        ({"offset": 64}, "1 to 0 bytes of bytecode at 64"),
        ({"length": 0}, "1 to 64 bytes of bytecode at 0, got 0"),
        ({"length": -1}, "1 to 64 bytes of bytecode at 0, got -1"),
        ({"length": 65}, "1 to 64 bytes of bytecode at 0, got 65"),
        ({"length": 2**31 - 1}, "1 to 64 bytes"),
        ({"block_count": 0}, "1 to 40 blocks, got 0"),
        ({"block_count": 41}, "1 to 40 blocks, got 41"),
        ({"i32_register_count": -1}, "got -1 and 3"),
        ({"ref_register_count": 0x4001}, "got 7 and 16385"),
    ],
)
def test_wrong_descriptors_are_named(change: dict[str, int], message: str) -> None:
    functions = (dataclasses.replace(SAMPLE.functions[0], **change), SAMPLE.functions[1])
    with pytest.raises(InvalidArgumentError, match=rf"function_descriptors\[0\].*{message}"):
        _read(dataclasses.replace(SAMPLE, functions=functions))


def test_unknown_features_and_conventions_are_incompatible() -> None:
    with pytest.raises(IncompatibleError, match="unknown 0x10"):
        _read(dataclasses.replace(SAMPLE, requirements=0x1C))
    functions = (dataclasses.replace(SAMPLE.functions[0], requirements=1 << 31), SAMPLE.functions[1])
    with pytest.raises(IncompatibleError, match="function 0"):
        _read(dataclasses.replace(SAMPLE, functions=functions))
    with pytest.raises(IncompatibleError, match="version 0, got 1"):
        _read(dataclasses.replace(SAMPLE, signatures=(Signature("1v_v"), Signature("0v_v"))))


def _root(write: dict[int, object]) -> bytes:
    """A FlatBuffer written without this package's writer: strings and u8 vectors by slot."""
    builder = flatbuffers.Builder(64)
    made = {
        slot: builder.CreateString(value) if isinstance(value, str) else builder.CreateByteVector(value)
        for slot, value in write.items()
        if isinstance(value, (str, bytes))
    }
    builder.StartObject(16)
    for slot, offset in made.items():
        builder.PrependUOffsetTRelativeSlot(slot, offset, 0)
    for slot, value in write.items():
        if isinstance(value, int):
            builder.PrependUint32Slot(slot, value, 0)
    builder.FinishSizePrefixed(builder.EndObject(), b"IREE")
    return bytes(builder.Output())


def test_absent_fields_have_defaults() -> None:
    module = read_module(ModuleArchive.from_bytes(_root({0: "bare"})))
    assert module == ModuleDef("bare")
    assert read_module(ModuleArchive.from_bytes(_root({0: "bare", 13: 5, 14: b"abc"}))) == ModuleDef(
        "bare", bytecode_version=5, bytecode=memoryview(b"abc")
    )


def test_the_name_is_required() -> None:
    with pytest.raises(InvalidArgumentError, match="module.name.*absent"):
        read_module(ModuleArchive.from_bytes(_root({1: 7})))


def test_compressed_constants_are_incompatible() -> None:
    builder = flatbuffers.Builder(64)
    name = builder.CreateString("m")
    builder.StartObject(5)
    builder.PrependUint8Slot(0, 2, 0)
    segment = builder.EndObject()
    builder.StartVector(4, 1, 4)
    builder.PrependUOffsetTRelative(segment)
    segments = builder.EndVector()
    builder.StartObject(16)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependUOffsetTRelativeSlot(9, segments, 0)
    builder.FinishSizePrefixed(builder.EndObject(), b"IREE")
    with pytest.raises(IncompatibleError, match=r"rodata_segments\[0\]: expected constants without compression"):
        read_module(ModuleArchive.from_bytes(bytes(builder.Output())))


def test_damaged_debug_information_does_not_keep_a_module_from_loading() -> None:
    data = write_module(SAMPLE)
    at = data.index(b"a.mlir\0")
    # The string's length is in front of it.
    module = read_module(ModuleArchive.from_bytes(data[: at - 4] + struct.pack("<I", 1 << 30) + data[at:]))
    assert module.functions == SAMPLE.functions
    assert module.debug is not None
    assert module.debug.location_of("f", 0) is None
    assert module.debug.describe(1) is None
    with pytest.raises(InvalidArgumentError, match=r"location_table\[1\].filename"):
        _ = module.debug.locations


def _use(data: bytes) -> ModuleDef:
    """Reads all that can be read."""
    module = read_module(ModuleArchive.from_bytes(data))
    for segment in module.rodata:
        bytes(segment[-8:])
    for signature in module.signatures:
        declaration_of(signature)
    if module.debug is not None:
        for ordinal in range(len(module.functions)):
            for pc in (-1, 0, 9, 1 << 31):
                module.debug.location_of(ordinal, pc)
                module.debug.location_of("f", pc)
        for location in range(-1, 8):
            module.debug.describe(location)
        try:
            _ = module.debug.locations
        except InvalidArgumentError:
            pass
    return module


_EXPECTED = (InvalidArgumentError, IncompatibleError, DataLossError)


@pytest.mark.slow
@pytest.mark.parametrize("polyglot", [False, True])
def test_mutants_are_read_or_refused(polyglot: bool) -> None:
    original = write_module(SAMPLE, polyglot=polyglot)
    metadata = len(original) - 4096
    generator = random.Random(20261)
    refused = 0
    mutants = rounds(1000, 25_000)
    tracemalloc.start()
    try:
        for _ in range(mutants):
            data = bytearray(original)
            kind = generator.randrange(4)
            if kind == 0:
                for _ in range(generator.randint(1, 4)):
                    data[generator.randrange(metadata)] ^= 1 << generator.randrange(8)
            elif kind == 1:
                at = generator.randrange(0, metadata - 4) & ~3
                value = generator.choice([0, 1, 4, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, generator.randrange(1 << 12)])
                data[at : at + 4] = struct.pack("<I", value)
            elif kind == 2:
                start, target = generator.randrange(metadata), generator.randrange(metadata)
                size = generator.randint(1, 64)
                data[target : target + size] = data[start : start + size]
            else:
                start = generator.randrange(metadata)
                del data[start : start + generator.randint(1, 16)]
            try:
                _use(bytes(data))
            except _EXPECTED:
                refused += 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert mutants / 5 < refused < mutants
    assert peak < 64 * len(original) + (1 << 20)


@pytest.mark.slow
def test_every_bit_of_the_tables_may_flip() -> None:
    original = write_module(dataclasses.replace(SAMPLE, rodata=SAMPLE.rodata[:2]))
    for position in range(len(original)):
        data = bytearray(original)
        data[position] ^= 1 << (position % 8)
        try:
            _use(bytes(data))
        except _EXPECTED:
            pass


def test_tables_that_share_targets_do_not_multiply() -> None:
    # One attribute vector of a thousand entries, in a thousand signatures: a million entries in a file of 20 kB.
    count = 1000
    builder = flatbuffers.Builder(64)
    name = builder.CreateString("m")
    text = builder.CreateString("x" * 200)
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(0, text, 0)
    builder.PrependUOffsetTRelativeSlot(1, text, 0)
    attribute = builder.EndObject()
    builder.StartVector(4, count, 4)
    for _ in range(count):
        builder.PrependUOffsetTRelative(attribute)
    attributes = builder.EndVector()
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(1, attributes, 0)
    signature = builder.EndObject()
    builder.StartVector(4, count, 4)
    for _ in range(count):
        builder.PrependUOffsetTRelative(signature)
    signatures = builder.EndVector()
    builder.StartObject(16)
    builder.PrependUOffsetTRelativeSlot(0, name, 0)
    builder.PrependUOffsetTRelativeSlot(8, signatures, 0)
    builder.FinishSizePrefixed(builder.EndObject(), b"IREE")
    started = time.process_time()
    with pytest.raises(PumiceError, match="expected each byte to be used a few times"):
        read_module(ModuleArchive.from_bytes(bytes(builder.Output())))
    assert time.process_time() - started < 1


@pytest.mark.slow
def test_ten_thousand_functions_are_read_quickly() -> None:
    count = 10_000
    module = ModuleDef(
        "large",
        exports=tuple(ExportDef(f"f{i}", i) for i in range(0, count, 10)),
        signatures=tuple(
            Signature("0rrii_r", {"iree.abi.declaration": f"f{i}"} if i % 10 == 0 else {}) for i in range(count)
        ),
        functions=tuple(FunctionDescriptor(i * 8, 8, 8, 1, 2, 2) for i in range(count)),
        bytecode=memoryview(bytes(8 * count)),
        # One long file name for all: it is stored once, and read once.
        debug=DebugDatabase(
            [FunctionSourceMap.of(f"f{i}", [(0, i)]) for i in range(count)],
            count,
            [FileLineCol("directory/" * 40, i, 1) for i in range(count)],
        ),
    )
    archive = ModuleArchive.from_bytes(write_module(module))
    started = time.process_time()
    read = read_module(archive)
    # About 50 ms; the bound is for a slow machine under load, and for anything that is not linear.
    assert time.process_time() - started < 2
    assert read == module
    assert read.debug is not None and str(read.debug.location_of(9999, 4)).endswith("directory/:9999:1")
