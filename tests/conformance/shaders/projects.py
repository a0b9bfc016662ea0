"""Compute shaders of public projects, read in place: how each project's own build makes its variants.

A project's tree is a checkout or a git directory. Where the project generates variants, its own generator runs with a
recorder in place of the GLSL compiler (ggml, ExecuTorch, MNN); uVkCompute's and ncnn's variants are read from their
build files.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from support.source_trees import unpack

_MINUTES: Final = 10 * 60


@dataclass(frozen=True)
class Shader:
    """One variant of a shader.

    Attributes:
        name: unique in its project.
        source: GLSL text, a GLSL file, or a ``.spv`` file.
        defines: macros.
        include_dirs: folders for ``#include``.
        target_env: the environment that the project compiles for.
    """

    name: str
    source: str | Path
    defines: Mapping[str, str] = field(default_factory=dict)
    include_dirs: tuple[Path, ...] = ()
    target_env: str = "vulkan1.2"


@dataclass(frozen=True)
class Project:
    """A public project.

    Attributes:
        repository: ``owner/name`` on GitHub.
        folders: the parts of the tree that are read.
        shaders: from the tree and an empty folder to work in.
    """

    repository: str
    folders: tuple[str, ...]
    shaders: Callable[[Path, Path], Iterator[Shader]]


# -- generators with a recorder for a compiler -------------------------------------------------------


def _recorder(work: Path) -> tuple[Path, Path]:
    """A program that notes its command line and a copy of its input, and writes an output; and the folder of notes."""
    notes = work / "notes"
    notes.mkdir(parents=True)
    program = work / "recorder"
    program.write_text(
        f"#!{sys.executable} -SE\n"
        "import os, shutil, sys\n"
        "words = sys.argv[1:]\n"
        "output = words[words.index('-o') + 1]\n"
        f"base = os.path.join({str(notes)!r}, str(os.getpid()) + '-' + os.path.basename(output))\n"
        "open(output, 'wb').write(b'    ')\n"
        "source = next(w for w in words if w.endswith(('.comp', '.glsl')))\n"
        "shutil.copyfile(source, base + '.source')\n"
        "open(base + '.words', 'w').write('\\0'.join([os.path.abspath(source), *words]))\n"
    )
    program.chmod(0o755)
    return program, notes


def _recorded(notes: Path, include: Callable[[Path], tuple[Path, ...]]) -> Iterator[Shader]:
    seen: set[str] = set()
    for note in sorted(notes.glob("*.words")):
        source, *words = note.read_text().split("\0")
        name = Path(words[words.index("-o") + 1]).stem
        if name in ("tempspv", "tempspv.spv"):
            name = Path(source).stem
        name = next(n for n in itertools.chain([name], (f"{name}-{i}" for i in itertools.count(2))) if n not in seen)
        seen.add(name)
        defines = dict((word[2:] + "=").split("=", 2)[:2] for word in words if word.startswith("-D"))
        target = next((w.split("=")[1] for w in words if w.startswith("--target-env=")), "vulkan1.1")
        text = note.with_suffix(".source").read_text()
        yield Shader(name, text, defines, (Path(source).parent, *include(Path(source))), target)


def _ggml(root: Path, work: Path) -> Iterator[Shader]:
    folder = root / "src/ggml-vulkan/vulkan-shaders"
    generator = work / "generator"
    command = ["g++", "-std=c++17", "-pthread", "-o", str(generator), str(folder / "vulkan-shaders-gen.cpp")]
    # Variants that compilers may lack: the generator has them behind macros.
    extensions = ("COOPMAT", "COOPMAT2", "INTEGER_DOT", "BFLOAT16", "MIXED_FLOAT_DOT", "COOPMAT2_DECODE_VECTOR")
    defines = [f"-DGGML_VULKAN_{name}_GLSLC_SUPPORT" for name in extensions]
    subprocess.run([*command, *defines], check=True, timeout=_MINUTES)
    recorder, notes = _recorder(work)
    for source in sorted(folder.glob("*.comp")):
        arguments = [
            "--glslc", recorder, "--source", source, "--output-dir", work / "out", "--target-cpp", work / "cpp",
        ]  # fmt: skip
        subprocess.run([generator, *arguments], check=True, timeout=_MINUTES, stdout=subprocess.DEVNULL)
    yield from _recorded(notes, lambda source: ())


def _executorch(root: Path, work: Path) -> Iterator[Shader]:
    recorder, notes = _recorder(work)
    generator = root / "backends/vulkan/runtime/gen_vulkan_spv.py"
    out = work / "out"
    paths = [root / "backends/vulkan/runtime/graph/ops/glsl"]
    subprocess.run(
        [sys.executable, generator, "-i", *paths, "-c", recorder, "-t", work / "tmp", "-o", out, "--nthreads", "1"],
        check=True,
        timeout=_MINUTES,
        stdout=subprocess.DEVNULL,
    )
    yield from _recorded(notes, lambda source: (out,))


def _mnn(root: Path, work: Path) -> Iterator[Shader]:
    for kind in ("buffer", "image"):
        part = work / kind
        recorder, notes = _recorder(part)
        tools = part / "tools"
        tools.mkdir()
        (tools / "glslangValidator").symlink_to(recorder)
        (tools / "xxd").symlink_to("/bin/true")
        folder = root / "source/backend/vulkan" / kind
        shadow = part / kind  # the generator writes beside its inputs
        subprocess.run(["cp", "-r", folder, shadow], check=True)
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "MNN_VULKAN_DISABLE_SPIRV_OPT": "1"}
        (shadow / "shaders").mkdir(exist_ok=True)
        subprocess.run(
            [sys.executable, "makeshader.py", "-f"],
            cwd=shadow / "compiler",
            env=environment,
            check=True,
            timeout=_MINUTES,
            stdout=subprocess.DEVNULL,
        )
        for shader in _recorded(notes, lambda source, at=shadow: (at / "execution/glsl",)):  # type: ignore[misc]
            yield Shader(f"{kind}-{shader.name}", shader.source, shader.defines, shader.include_dirs, "vulkan1.1")


# -- build files that name variants ------------------------------------------------------------------


def _uvkcompute(root: Path, work: Path) -> Iterator[Shader]:
    for build in sorted(root.glob("benchmarks/*/CMakeLists.txt")):
        text = re.sub(r"#.*", "", build.read_text())
        for kind, body in re.findall(r"uvkc_glsl_shader_(permutation|instance)\((.*?)\)", text, re.S):
            words = re.findall(r'"[^"]*"|\S+', body)
            lists: dict[str, list[str]] = {}
            current: list[str] = []
            for word in words:
                if re.fullmatch(r"[A-Z_]+", word):
                    current = lists.setdefault(word, [])
                else:
                    current.append(word.strip('"'))
            name, source = lists["NAME"][0], build.parent / lists["SRC"][0]
            target = next((w.split("=")[1] for w in lists.get("GLSLC_ARGS", ()) if "target-env" in w), "vulkan1.0")
            # "KEY=[1|2]", or "{KEY,OTHER}=[{1,2}|{3,4}]" for values that go together
            choices = [
                [tuple(zip(_words(keys), _words(value), strict=True)) for value in values.strip("[]").split("|")]
                for keys, _, values in (
                    one.partition("=") for one in lists.get("PERMUTATION", lists.get("DEFINES", []))
                )
            ]
            for number, chosen in enumerate(itertools.product(*choices)):
                defines = dict(itertools.chain.from_iterable(chosen))
                yield Shader(f"{name}-{number}" if kind == "permutation" else name, source, defines, (), target)


def _words(text: str) -> list[str]:
    return text.strip("{}").split(",")


def _ncnn(root: Path, work: Path) -> Iterator[Shader]:
    """Each shader in four of the option sets that ``compile_spirv_module`` knows."""
    lines = (root / "src/gpu.cpp").read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.strip() == "if (opt.use_bf16_storage)")
    last = next(i for i, line in enumerate(lines) if i > first and "device_defines.append" in line)
    sets = {
        "fp32": (),
        "fp16p": ("use_fp16_packed",),
        "fp16sa": ("use_fp16_storage", "use_fp16_arithmetic", "use_fp16_packed"),
        "int8": ("use_int8_storage", "use_int8_packed", "use_fp16_packed"),
    }
    for label, options in sets.items():
        macros = _cpp_appends(lines[first:last], frozenset(options))
        header = "".join(f"#define {name} {value}\n" for name, value in macros.items())
        header += "#define ncnn_subgroup_basic 0\n#define ncnn_shaderInt16 0\n"
        extensions = "".join(
            f"#extension GL_EXT_shader_{name} : require\n"
            for name in ("explicit_arithmetic_types", "16bit_storage", "8bit_storage")
        )
        for source in sorted((root / "src/layer/vulkan/shader").glob("*.comp")):
            text = re.sub(r"(#version.*\n)", lambda m: m[1] + extensions + header, source.read_text(), count=1)
            yield Shader(f"{source.stem}-{label}", text, {}, (source.parent,), "vulkan1.1")


def _cpp_appends(lines: Sequence[str], options: frozenset[str]) -> dict[str, str]:
    """The macros that a run of C++ ``if``s appends for a set of options."""
    macros: dict[str, str] = {}
    # Of each open block: whether it runs, and whether a branch of its chain has run.
    blocks: list[tuple[bool, bool]] = []
    condition: tuple[bool, bool] | None = None
    ended = (False, False)
    for line in (one.strip() for one in lines):
        if found := re.fullmatch(r"(else )?if \((.*)\)", line):
            names = re.sub(r"opt\.(\w+)", lambda m: str(m[1] in options), found[2])
            names = re.sub(r"\bsupport_\w+|info\.[\w.()]+", "True", names)
            value = bool(eval(names.replace("&&", " and ").replace("||", " or ").replace("!", " not ")))
            before = bool(found[1]) and ended[1]
            condition = (value and not before, value or before)
        elif line == "else":
            condition = (not ended[1], True)
        elif line == "{":
            blocks.append(condition or (True, True))
            condition = None
        elif line == "}":
            ended = blocks.pop() if blocks else (False, False)
        elif all(run for run, _ in blocks) and (found := re.match(r'custom_defines\.append\("(.*?)", (.*)\);', line)):
            value_text = found[2].split(" ? ")[-1].split(" : ")[0] if " ? " in found[2] else found[2]
            macros[found[1]] = value_text.strip('"')
    return macros


# -- files as they are -------------------------------------------------------------------------------


def _files(
    *patterns: str, include: Sequence[str] = (), target_env: str = "vulkan1.2"
) -> Callable[..., Iterator[Shader]]:
    def shaders(root: Path, work: Path) -> Iterator[Shader]:
        found = sorted({path for pattern in patterns for path in root.glob(pattern) if path.is_file()})
        for path in found:
            name = str(path.relative_to(root)).replace("/", "-")
            folders = (path.parent, *(root / folder for folder in include))
            if path.suffix == ".spv":
                yield Shader(f"{name.removesuffix('.spv')}-built", path)
            elif ".asm." in path.name or path.name.startswith("."):
                continue  # assembly: for spirv-as
            else:
                yield Shader(name, path, {}, folders, target_env)

    return shaders


PROJECTS: Final[dict[str, Project]] = {
    "ggml": Project("ggml-org/ggml", ("src/ggml-vulkan/vulkan-shaders",), _ggml),
    "ncnn": Project("Tencent/ncnn", ("src/layer/vulkan/shader", "src/gpu.cpp"), _ncnn),
    "mnn": Project("alibaba/MNN", ("source/backend/vulkan",), _mnn),
    "executorch": Project("pytorch/executorch", ("backends/vulkan",), _executorch),
    "uvkcompute": Project("google/uVkCompute", ("benchmarks", "uvkc"), _uvkcompute),
    "granite": Project(
        "Themaister/Granite",
        ("assets", "tests"),
        _files(
            "assets/**/*.comp", "assets/**/*.spv", "tests/**/*.comp", include=("assets/shaders", "assets/shaders/inc")
        ),
    ),
    "vulkan-samples": Project(
        "KhronosGroup/Vulkan-Samples",
        ("shaders",),
        _files("shaders/**/*.comp", "shaders/**/*.comp.spv", include=("shaders",)),
    ),
    "willems": Project("SaschaWillems/Vulkan", ("shaders",), _files("shaders/glsl/**/*.comp", "shaders/**/*.comp.spv")),
    "kompute": Project("KomputeProject/kompute", ("src", "test", "examples"), _files("**/*.comp")),
    "niagara": Project("zeux/niagara", ("src",), _files("src/shaders/*.comp.glsl", target_env="vulkan1.3")),
    "spirv-cross": Project(
        "KhronosGroup/SPIRV-Cross",
        ("shaders", "shaders-no-opt", "shaders-msl", "shaders-msl-no-opt", "shaders-hlsl", "shaders-reflection"),
        _files("shaders*/**/*.comp", target_env="vulkan1.1"),
    ),
    "glslang": Project("KhronosGroup/glslang", ("Test",), _files("Test/*.comp", target_env="vulkan1.3")),
    "spirv-reflect": Project("KhronosGroup/SPIRV-Reflect", ("tests",), _files("tests/**/*.spv")),
}


def shaders_of(name: str, tree: Path, work: Path) -> Iterator[Shader]:
    """Every compute shader of a project, in every variant that its build makes.

    Args:
        name: of ``PROJECTS``.
        tree: a checkout or a git directory.
        work: an empty folder, which has to stay until the shaders are compiled.
    """
    project = PROJECTS[name]
    root = tree
    if (tree / "objects").is_dir():
        root = work / "tree"
        unpack(tree, project.folders, root)
    yield from project.shaders(root, work)


def trees_in(folder: Path) -> dict[str, Path]:
    """The trees of projects under a folder: ``owner+name/repo`` git directories, or checkouts named like projects."""
    found: dict[str, Path] = {}
    for name, project in PROJECTS.items():
        mirrored = folder / project.repository.replace("/", "+") / "repo"
        for tree in (mirrored, folder / name, folder / project.repository.split("/")[1]):
            if tree.is_dir():
                found[name] = tree
                break
    return found
