"""Builds the SPIR-V beside the GLSL sources, or checks that it is current: ``python -m pumice.shaders.build``.

``manifest.json`` records for each shader the SHA-256 of its inputs (options, source, included files) and of the
SPIR-V, and the compiler's version. A check compares both hashes, without a compiler. Where the recorded compiler is
installed, it also rebuilds and compares the bytes.

The source's hash ignores line endings, as version control may change them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

from ..base.lazy_dataclass import dataclass
from ..spirv.sources import glsl
from ..spirv.sources.includes import included_files
from ..status import PumiceError, UnavailableError
from . import names, path, source_path

#: The file with the hashes.
MANIFEST: Final = Path(__file__).parent / "manifest.json"
#: The lowest Vulkan version pumice runs on: SPIR-V 1.3.
TARGET_ENV: Final = "vulkan1.1"

_FORMAT: Final = 1
_OPTIONS: Final = f"stage=comp target_env={TARGET_ENV} optimize=0 debug=0"


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """The hashes of a shader's inputs and SPIR-V, and the compiler's name and version."""

    source_sha256: str
    spirv_sha256: str
    compiler: str


def source_hash(name: str) -> str:
    """Returns the SHA-256, in hexadecimal, of the options, the source and every file it includes."""
    file = source_path(name)
    digest = hashlib.sha256(_OPTIONS.encode())
    parts = {file: file.read_bytes(), **included_files(file)}
    for part, content in parts.items():
        text = content.replace(b"\r\n", b"\n")
        label = part.relative_to(MANIFEST.parent).as_posix()
        digest.update(f"\n{label} {len(text)}\n".encode() + text)
    return digest.hexdigest()


def read_manifest() -> dict[str, ManifestEntry]:
    """Returns the recorded entries by shader name; empty where the file is missing, or is not a manifest."""
    try:
        document = json.loads(MANIFEST.read_bytes())
        if document["format"] != _FORMAT:
            return {}
        return {str(name): ManifestEntry(**entry) for name, entry in document["shaders"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def stale() -> dict[str, str]:
    """Returns the reasons why shaders are stale, by name; empty if all are current."""
    manifest = read_manifest()
    try:
        compiler = glsl.find_compiler().version
    except UnavailableError:
        compiler = None
    reasons = dict.fromkeys(manifest.keys() - set(names()), "it is in manifest.json and has no source")
    for name in names():
        reason = _staleness(name, manifest.get(name), compiler)
        if reason:
            reasons[name] = reason
    return dict(sorted(reasons.items()))


def build(*, everything: bool = False) -> tuple[str, ...]:
    """Builds the shaders that are stale, or ``everything``, and records them; returns their names, sorted."""
    compiler = glsl.find_compiler().version
    wanted = names() if everything else tuple(name for name in stale() if name in names())
    manifest = {name: entry for name, entry in read_manifest().items() if name in names()}
    for name in wanted:
        code = _compile(name)
        path(name).write_bytes(code)
        manifest[name] = ManifestEntry(source_hash(name), hashlib.sha256(code).hexdigest(), compiler)
    document = {"format": _FORMAT, "shaders": {name: asdict(entry) for name, entry in sorted(manifest.items())}}
    MANIFEST.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8", newline="\n")
    return wanted


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status: 0, 1 where ``--check`` found stale shaders, 2 on an error."""
    parser = argparse.ArgumentParser(prog="python -m pumice.shaders.build", description="Build the SPIR-V files.")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--check", action="store_true", help="build nothing; say which shaders are stale")
    choice.add_argument("--all", action="store_true", help="build current shaders too")
    options = parser.parse_args(arguments)
    try:
        if options.check:
            reasons = stale()
            for name, reason in reasons.items():
                print(f"{name}: {reason}")
            print(f"{len(reasons)} stale of {len(names())} shaders")
            return 1 if reasons else 0
        for name in build(everything=options.all):
            print(f"built {name}")
        return 0
    except PumiceError as error:
        print(error, file=sys.stderr)
        return 2


def _compile(name: str) -> bytes:
    return glsl.compile_glsl(source_path(name), target_env=TARGET_ENV)


def _staleness(name: str, entry: ManifestEntry | None, compiler: str | None) -> str | None:
    if entry is None:
        return "it is not in manifest.json"
    if source_hash(name) != entry.source_sha256:
        return "its source, a file that it includes, or an option changed"
    try:
        code = path(name).read_bytes()
    except FileNotFoundError:
        return "its SPIR-V file is missing"
    if hashlib.sha256(code).hexdigest() != entry.spirv_sha256:
        return "its SPIR-V file is not the one that was recorded"
    if entry.compiler == compiler and _compile(name) != code:
        return f"{compiler} builds another SPIR-V module from it"
    return None


if __name__ == "__main__":
    sys.exit(main())
