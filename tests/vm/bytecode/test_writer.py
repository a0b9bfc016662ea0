"""Writing module files: both forms, where constants go, and what cannot be written."""

from __future__ import annotations

import io
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.status import InvalidArgumentError
from pumice.vm.bytecode import writer
from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.debug_database import (
    CallSite,
    DebugDatabase,
    FileLineCol,
    FunctionSourceMap,
    FusedLocation,
    NamedLocation,
)
from pumice.vm.bytecode.module_def import DependencyDef, ExportDef, FunctionDescriptor, ImportDef, ModuleDef, Signature
from pumice.vm.bytecode.reader import read_module
from pumice.vm.bytecode.writer import write_module

_TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
_NAME = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
_I32 = st.integers(-(1 << 31), (1 << 31) - 1)
_SIZE = st.integers(0, (1 << 31) - 1)
_U32 = st.integers(0, (1 << 32) - 1)
_SIGNATURES = st.builds(
    Signature, st.sampled_from(["", "0v_v", "0riCiID_r"]), st.dictionaries(_TEXT, _TEXT, max_size=3)
)
_LOCATIONS = st.one_of(
    st.none(),
    st.builds(FileLineCol, _TEXT, _I32, _I32),
    st.builds(CallSite, _I32, _I32),
    st.builds(FusedLocation, st.none() | _TEXT, st.lists(_I32, max_size=4).map(tuple)),
    st.builds(NamedLocation, _TEXT, _I32),
)
_MAPS = st.builds(FunctionSourceMap.of, _TEXT, st.lists(st.tuples(_I32, _I32), max_size=4))


@st.composite
def _modules(draw: st.DrawFn) -> ModuleDef:
    bytecode = bytes(range(64))
    count = draw(st.integers(0, 3))
    descriptor = st.builds(
        FunctionDescriptor,
        st.sampled_from([0, 8, 56]),
        st.integers(1, 8),
        st.integers(0, 15),
        st.just(1),
        st.integers(0, 0x7FFF),
        st.integers(0, 0x4000),
    )
    exports = st.lists(st.builds(ExportDef, _NAME, st.integers(0, count - 1)), max_size=3) if count else st.just([])
    return ModuleDef(
        name=draw(_NAME),
        version=draw(_U32),
        requirements=draw(st.integers(0, 15)),
        attributes=draw(st.dictionaries(_TEXT, _TEXT, max_size=3)),
        types=tuple(draw(st.lists(_NAME, max_size=3))),
        dependencies=tuple(draw(st.lists(st.builds(DependencyDef, _NAME, _U32, st.booleans()), max_size=2))),
        imports=tuple(draw(st.lists(st.builds(ImportDef, _NAME, _SIGNATURES, st.booleans()), max_size=3))),
        exports=tuple(draw(exports)),
        signatures=tuple(draw(st.lists(_SIGNATURES, min_size=count, max_size=count))),
        rodata=tuple(memoryview(data) for data in draw(st.lists(st.binary(max_size=80), max_size=4))),
        rwdata_sizes=tuple(draw(st.lists(_SIZE, max_size=2))),
        global_bytes=draw(_SIZE),
        global_refs=draw(_SIZE),
        functions=tuple(draw(st.lists(descriptor, min_size=count, max_size=count))),
        bytecode_version=draw(_U32),
        bytecode=memoryview(bytecode if count else b""),
        debug=draw(
            st.none()
            | st.builds(DebugDatabase, st.lists(_MAPS, max_size=3), st.just(count), st.lists(_LOCATIONS, max_size=5))
        ),
    )


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(_modules(), st.booleans(), st.sampled_from([0, 10, 4096]))
def test_reading_gives_what_was_written(module: ModuleDef, polyglot: bool, limit: int) -> None:
    data = write_module(module, polyglot=polyglot, embedded_limit=limit)
    read = read_module(ModuleArchive.from_bytes(data))
    assert read == module
    assert write_module(read, polyglot=polyglot, embedded_limit=limit) == data


@pytest.mark.parametrize(("polyglot", "zip64_limit"), [(False, 1 << 30), (True, 1 << 30), (True, 4096)])
def test_where_constants_go(polyglot: bool, zip64_limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_ZIP64_LIMIT", zip64_limit)
    parts = [bytes([i + 1]) * size for i, size in enumerate((4095, 4096, 0, 10_000))]
    module = ModuleDef("m", rodata=tuple(map(memoryview, parts)))
    with ModuleArchive.from_bytes(write_module(module, polyglot=polyglot)) as archive:
        offsets = [bytes(archive.data).index(part) for part in parts if part]
        inside = bytes(archive.flatbuffer)
        assert [part in inside for part in parts] == [True, False, True, False]
        assert offsets[0] % 16 == 0
        assert all(offset % 64 == 0 and offset >= archive.rodata_base for offset in offsets[1:])


def test_the_polyglot_form_is_a_zip_file() -> None:
    parts = (b"a" * 5000, b"", b"b" * 4096, b"c")
    data = write_module(ModuleDef("m", rodata=tuple(map(memoryview, parts))), polyglot=True)
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        assert file.testzip() is None
        assert file.namelist() == ["module.fb", "rodata_0.bin", "rodata_2.bin"]
        assert file.read("rodata_0.bin") == parts[0]
        assert file.read("rodata_2.bin") == parts[2]
        inner = file.read("module.fb")
    # The first part has a size in front: it is the start of a flat module.
    with ModuleArchive.from_bytes(data) as outer, ModuleArchive.from_bytes(inner) as flat:
        assert flat.flatbuffer == outer.flatbuffer


@pytest.mark.parametrize(
    "module",
    [
        ModuleDef("m", version=-1),
        ModuleDef("m", version=1 << 32),
        ModuleDef("m", global_bytes=1 << 31),
        ModuleDef("m", exports=(ExportDef("f", 1 << 40),)),
        ModuleDef("m", functions=(FunctionDescriptor(0, 8, 0, 1 << 15, 0, 0),)),
        ModuleDef("\udc80"),
        ModuleDef("m", debug=DebugDatabase([], 0, [FusedLocation(None, (1 << 31,))])),
    ],
)
def test_what_does_not_fit_is_refused(module: ModuleDef) -> None:
    with pytest.raises(InvalidArgumentError, match="values that the format can hold"):
        write_module(module)
