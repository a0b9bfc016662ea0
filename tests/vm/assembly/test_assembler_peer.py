"""The assembler against ``iree-as-module``: the same modules, the same texts accepted.

IREE's own programs are read from the tree that the environment variable ``PUMICE_IREE_TREE`` names: a checkout, or a
git directory, of which ``HEAD`` is read.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.peer import peer_tool

from pumice.status import InvalidArgumentError
from pumice.vm.assembly.assembler import assemble
from pumice.vm.assembly.disassembler import disassemble_module
from pumice.vm.bytecode.archive import ModuleArchive
from pumice.vm.bytecode.calling_convention import CallingConvention
from pumice.vm.bytecode.isa import REF_BIT
from pumice.vm.bytecode.module_def import ModuleDef
from pumice.vm.bytecode.reader import read_module
from pumice.vm.bytecode.verifier import argument_registers, verify_module
from pumice.vm.bytecode.writer import write_module

pytestmark = pytest.mark.peer

# extensions.vmasm is what the peer does not read.
PROGRAMS = sorted(path for path in Path(__file__).parent.glob("*.vmasm") if path.stem != "extensions")
FOLDER = "runtime/src/iree/vm"
# What two modules are compared by, besides their functions' descriptors.
FIELDS = (
    "name",
    "version",
    "requirements",
    "attributes",
    "types",
    "dependencies",
    "imports",
    "exports",
    "signatures",
    "rodata",
    "rwdata_sizes",
    "global_bytes",
    "global_refs",
    "bytecode_version",
    "bytecode",
)


def git(tree: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-C", str(tree), *arguments], check=True, capture_output=True, encoding="utf-8", timeout=60
    ).stdout


def peer_programs() -> list[str]:
    """Paths in IREE's tree, none without a tree."""
    tree = os.environ.get("PUMICE_IREE_TREE")
    if not tree:
        return []
    root = Path(tree)
    if (root / FOLDER).is_dir():
        return sorted(str(path.relative_to(root)) for path in (root / FOLDER).rglob("*.vmasm"))
    names = git(root, "ls-tree", "-r", "--name-only", "HEAD", FOLDER).splitlines()
    return sorted(name for name in names if name.endswith(".vmasm"))


def peer_text(name: str) -> str:
    root = Path(os.environ["PUMICE_IREE_TREE"])
    return (root / name).read_text(encoding="utf-8") if (root / FOLDER).is_dir() else git(root, "show", f"HEAD:{name}")


def peer_module(text: str, folder: Path) -> ModuleDef | None:
    """Returns the peer's module of a text; ``None`` if it refuses the text."""
    source, target = folder / "peer.vmasm", folder / "peer.vmfb"
    source.write_text(text, encoding="utf-8", newline="\n")
    target.unlink(missing_ok=True)
    result = subprocess.run(
        [peer_tool("iree-as-module"), f"--output={target}", source],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return read_module(ModuleArchive.from_bytes(target.read_bytes())) if result.returncode == 0 else None


def argument_counts(convention: str) -> tuple[int, int]:
    """The 32-bit and the reference registers that a function's arguments take."""
    parsed = CallingConvention.parse(convention)
    values = references = 0
    for register, letter in zip(argument_registers(parsed), parsed.arguments, strict=True):
        if register & REF_BIT:
            references += 1
        else:
            values = register + (2 if letter in ("I", "F") else 1)
    return values, references


def holds_the_same(module: ModuleDef, peer: ModuleDef) -> None:
    for name in FIELDS:
        assert getattr(module, name) == getattr(peer, name), name
    for ours, theirs, signature in zip(module.functions, peer.functions, module.signatures, strict=True):
        assert (ours.offset, ours.length) == (theirs.offset, theirs.length)
        assert (ours.requirements, ours.block_count) == (theirs.requirements, theirs.block_count)
        # The peer counts no register of an argument that the body does not name.
        values, references = argument_counts(signature.calling_convention)
        needed = max(theirs.i32_register_count, values)
        # Nor the upper half of a result that is named by its lower half alone.
        assert needed <= ours.i32_register_count <= needed + 1
        assert ours.ref_register_count == max(theirs.ref_register_count, references)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_own_programs(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    # Blocks of any name are an extension.
    for number, name in enumerate(("head", "body", "exit", "good", "bad", "same", "other")):
        text = text.replace(f"^{name}", f"^bb9{number}")
    peer = peer_module(text, tmp_path)
    assert peer is not None
    holds_the_same(assemble(text), peer)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_own_programs_run(path: Path, tmp_path: Path) -> None:
    runtime = pytest.importorskip("iree.runtime", reason="needs iree-base-runtime of the peer extra")
    instance = runtime.VmInstance()
    definition = assemble(path.read_text(encoding="utf-8"))
    module = runtime.VmModule.copy_buffer(instance, write_module(definition))
    context = runtime.VmContext(instance, modules=[module])
    for export in definition.exports:
        if export.name == "test_yield":
            continue  # The peer's synchronous invocation does not return from a yield.
        function = module.lookup_function(export.name)
        try:
            context.invoke(function, runtime.VmVariantList(0), runtime.VmVariantList(0))
            failure = None
        except (RuntimeError, ValueError, LookupError) as error:
            failure = str(error)
        assert (failure is None) == export.name.startswith("test_"), f"{export.name}: {failure}"


@pytest.mark.parametrize(
    "name",
    peer_programs()
    or [
        pytest.param("", marks=pytest.mark.skip(reason="set PUMICE_IREE_TREE to a checkout or a git directory of IREE"))
    ],
)
def test_peer_programs(name: str, tmp_path: Path) -> None:
    text = peer_text(name)
    module = assemble(text, file_name=name)
    peer = peer_module(text, tmp_path)
    assert peer is not None
    holds_the_same(module, peer)
    again = assemble(disassemble_module(verify_module(module)))
    assert again.bytecode == module.bytecode
    assert again.types == module.types


ACCEPTED = [
    "vm.module @m version 7",
    "vm.module @m version 0x10",
    "vm.type !vm.list<!vm.ref<?>>",
    "vm.type i32",
    'vm.import @a.b cconv "0iCiDI_r"',
    'vm.import optional @a.b$c cconv "0v_v"',
    "vm.rodata[0] =",
    "vm.rodata[0]=00ffAb",
    "vm.global.i32 @g",
    "vm.global.i64 private mutable @g = 0 : i64",
    "vm.global.f32 mutable @g",
    "vm.export @f",
    "vm.export @public = @f",
    "vm.export @a=@f",
]
REFUSED = [
    "vm.module @a-b",
    "vm.module m",
    "vm.module @m version",
    "vm.type",
    'vm.import required @a.b cconv "0v_v"',
    "vm.import @a.b",
    'vm.import @a.b cconv "0v_v" x',
    'vm.import @a.b cconv "0v_v"\nvm.import @a.b cconv "0v_v"',
    "vm.rodata[1] = 00",
    "vm.rodata[0] = 0",
    "vm.rodata[0] = xx",
    "vm.rodata[0 = 00",
    "vm.global.i32 @g\nvm.global.i32 @g",
    "vm.global.i32 @g = 1 : i32",
    "vm.global.i32 @g = 0 : i64",
    "vm.global.i32 g",
    "vm.global.i8 @g",
    "vm.export @g",
    "vm.export @f\nvm.export @f",
    "vm.nonsense",
    "vm.type i32\nvm.type i32",
    "}",
]
ACCEPTED_LINES = [
    "%i0 = vm.const.i32 -1",
    "%i0 = vm.const.i32 0xFFFFFFFF",
    "%i0 = const.i32 4294967295",
    "%i0:1 = vm.const.i64 -9223372036854775808",
    "%i0 = vm.const.f32 0x1.8p3",
    "%i0 = vm.const.f32 -inf",
    "%i0 = vm.const.f32 nan(0x123)",
    "%i0 = vm.const.f32 1.00000005960464477539062500000000000001",
    "%i0:1 = vm.const.f64 1e300",
    "%i2=vm.add.i32 %i0,%i1",
    "vm.return %i0, %i2:3, %R4, %r5",
    "vm.br ^bb0",
    "vm.br ^bb0(%i0->%i1, %r0->%r1, %R0 -> %r1)",
    "vm.cond_br %i0, ^bb0(%i0->%i1), ^bb0()",
    "vm.cond_break %i0, ^bb0",
    "vm.br_table %i0 { default: ^bb0() }",
    "vm.br_table %i0 {default: ^bb0, 0: ^bb0, 1: ^bb0(%i0->%i1)}",
    "vm.call @f()",
    "%i0, %r0 = vm.call @m.f(%i1)",
    "vm.call @m:0()",
    'vm.fail %i0, "a, b // # c"',
    'vm.fail %i0, "back\\slash"',
    'vm.trace "x", %i0, %r0',
    'vm.print "x"',
    "vm.fail %i0, \"x\" // comment",
    "vm.return # comment",
    "[00000010] vm.return",
    "%i0 = vm.switch.i32 %i0[] else %i1",
    "%i0:1 = vm.switch.i64 %i2[%i4:5, %i6] else %i8:9",
    "%i0 = vm.select.i32 %i1 ? %i2 : %i3",
    "%R0 = vm.select.ref %i0 ? %R0 : %r1 -> !vm.buffer",
    "%r0 = vm.list.alloc %i0 : !vm.list<i8>",
    "%r0 = vm.list.get.ref %r1, %i0 : vm.buffer",
    "%r0 = vm.cast.any.ref %R1 : !vm.ref<?> -> !vm.list<?>",
    "%r0 = vm.global.load.ref .refs[3] : !vm.buffer",
    "vm.global.store.i64 %i0:1, .rwdata[24]",
    "vm.global.store.indirect.i32 %i0, %i1",
    "vm.global.store.indirect.ref %i0 : !vm.buffer, %r1",
    "vm.discard.refs",
    "^bb7:",
]  # fmt: skip
REFUSED_LINES = [
    "vm.nonsense",
    "%i0 = vm.const.i32",
    "%i0 = vm.const.i32 x",
    "%i0 = vm.const.f32 1e39",
    "%i0 = vm.const.f32 1.5x",
    "%i0 = vm.add.i32 %i0",
    "%i0 = vm.add.i32 %i0, %i1, %i2",
    "vm.add.i32 %i0, %i1",
    "%i0 = vm.add.i32 %i0:1, %i1",
    "%i0 = vm.add.i32 %r0, %i1",
    "%i0:1 = vm.add.i64 %i0, %i2:3",
    "%i0 = vm.list.size %R0",
    "%i0 = vm.list.size %i0",
    "%i99999 = vm.const.i32 0",
    "vm.br",
    "vm.br bb0",
    "vm.br ^bb9()",
    "vm.br ^bb0(%i0)",
    "vm.br ^bb0(%i0->%i1",
    "vm.br_table %i0 { 0: ^bb0() }",
    "vm.br_table %i0 { default: ^bb0(), 1: ^bb0() }",
    "vm.br_table %i0 { default: ^bb0()",
    "vm.call @g()",
    "vm.call f()",
    "vm.call @f",
    "vm.call @x:0()",
    "vm.call.variadic @f(%i0)",
    "vm.call.variadic @f segments[x](%i0)",
    "vm.call.yieldable @f()",
    "vm.call.yieldable @f() -> ^bb0",
    "vm.fail %i0",
    "vm.fail %i0, x",
    'vm.fail %i0, "x" y',
    "%i0 = vm.select.i32 %i1, %i2, %i3",
    "%r0 = vm.select.ref %i0 ? %r0 : %r1",
    "%i0 = vm.switch.i32 %i0 else %i1",
    "%r0 = vm.list.alloc %i0 : !vm.buffer",
    "%r0 = vm.list.get.ref %r1, %i0",
    "%i0 = vm.global.load.i32 @g",
    "%i0 = vm.global.load.i32 .refs[0]",
    "^bb0:",
]  # fmt: skip


def with_header(header: str) -> str:
    module = "" if header.startswith("vm.module") else "vm.module @m\n"
    return f"{module}{header}\nvm.func @f() -> () {{\n^bb0:\n  vm.return\n}}\n"


def with_line(line: str) -> str:
    return f"vm.module @m\nvm.func @f() -> () {{\n^bb0:\n  {line}\n  vm.return\n}}\n"


@pytest.mark.parametrize("text", [*map(with_header, ACCEPTED), *map(with_line, ACCEPTED_LINES)])
def test_both_accept(text: str, tmp_path: Path) -> None:
    peer = peer_module(text, tmp_path)
    assert peer is not None
    holds_the_same(assemble(text), peer)


@pytest.mark.parametrize("text", [*map(with_header, REFUSED), *map(with_line, REFUSED_LINES)])
def test_both_refuse(text: str, tmp_path: Path) -> None:
    assert peer_module(text, tmp_path) is None
    with pytest.raises(InvalidArgumentError):
        assemble(text)
