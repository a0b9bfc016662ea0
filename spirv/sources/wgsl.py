"""WGSL's compilers: naga's command line, tint's, and naga as WebAssembly in Node.js (the npm package naga-wasm)."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

from ...base.lazy_dataclass import dataclass
from .source_compiler import Compiler, Diagnostic, Job, framed_errors, version_of

_PACKAGE: Final = "naga-wasm"
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


class Naga(Compiler):
    """``naga``, of ``cargo install naga-cli``."""

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        # Without the option, only a debug build of naga writes names.
        return ["--generate-debug-symbols", source, str(output)]

    def diagnostics(self, said: str) -> Iterator[Diagnostic]:
        return framed_errors(said)


class Tint(Compiler):
    """``tint``, of Dawn."""

    error: ClassVar[re.Pattern[str]] = re.compile(
        r"^(?P<file>.+?):(?P<line>\d+):(?P<column>\d+) error: (?P<message>.*)$", re.MULTILINE
    )

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        return ["--format", "spirv", "-o", str(output), source]


@dataclass(frozen=True, slots=True)
class NagaWasm(Compiler):
    """Attributes:
    package: the folder of the npm package; ``path`` is that of Node.js.
    """

    package: Path

    def command(self, job: Job, source: str, output: Path) -> list[str]:
        library = (self.package / "dist" / "node.js").as_uri()
        return ["--input-type=module", "--eval", _TRANSLATE, library, source, str(output)]

    def diagnostics(self, said: str) -> Iterator[Diagnostic]:
        for diagnostic in framed_errors(said):
            yield replace(diagnostic, file="") if diagnostic.file == _UNNAMED else diagnostic


def from_executable(path: Path) -> Naga | Tint:
    if path.stem.lower().startswith("tint"):
        return Tint(path, f"tint {version_of(path)}")
    return Naga(path, f"naga {version_of(path)}")


def from_node(package: Path | None = None) -> NagaWasm | None:
    """Returns naga-wasm in a folder, or where ``npm install --global`` puts it."""
    node = shutil.which("node")
    if node is None:
        return None
    program = Path(node).absolute()
    if package is None:
        prefixes = dict.fromkeys([program.parent.parent, program.resolve().parent.parent])
        folders = [*(prefix / "lib" / "node_modules" for prefix in prefixes), program.parent / "node_modules"]
        package = next((folder / _PACKAGE for folder in folders if (folder / _PACKAGE).is_dir()), None)
    try:
        described = json.loads((package / "package.json").read_text("utf-8")) if package is not None else {}
    except (OSError, ValueError):
        return None
    if package is None or not isinstance(described, dict) or described.get("name") != _PACKAGE:
        return None
    return NagaWasm(program, f"{_PACKAGE} {described.get('version')}", package.absolute())
