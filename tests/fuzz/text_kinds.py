"""Texts that pumice reads: values, expressions, axes, studies, declarations, device names, assembly, GLSL."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

from judging import ODD_NUMBERS, GeneratedCases, SeededCases, damaged_text, judged, text_cases
from support.case_pool import Cases, Outcome
from support.profiles import recorded_profiles

from pumice import shaders
from pumice.formats.element_type import ElementType
from pumice.hal_vulkan.instance.uri import parse_device_uri, select_device
from pumice.runtime.values.files import ValueFiles
from pumice.runtime.values.format import format_value
from pumice.runtime.values.image_text import is_image_text, parse_image_spec
from pumice.runtime.values.parse import parse_buffer_spec, parse_scalar, parse_value, parse_values
from pumice.runtime.values.sampler_text import parse_sampler
from pumice.spirv.sources.glsl import compile_glsl
from pumice.spirv.sources.includes import included_files
from pumice.study.definition.axis import parse_axis
from pumice.study.definition.expansion import expand
from pumice.study.definition.expression import Expression
from pumice.study.definition.study_file import parse_study
from pumice.vm.assembly.assembler import assemble
from pumice.vm.bytecode.calling_convention import CallingConvention
from pumice.vm.bytecode.declaration import parse_declaration
from pumice.vm.bytecode.writer import write_module

ROOT: Final = Path(__file__).resolve().parents[2]
TYPES: Final = (
    "f32", "f64", "f16", "bf16", "i1", "i8", "ui8", "si16", "i32", "i64", "f8E5M2", "f8E4M3FN", "complex<f32>",
    "index", "x",
)  # fmt: skip


# -- values ------------------------------------------------------------------------------------------


def _value_text(rng: random.Random) -> str:
    shape = "".join(
        f"{rng.choice(('0', '1', '2', '3', '4', '?', *ODD_NUMBERS[:16]))}x"
        for _ in range(rng.choice((0, 1, 1, 2, 3, 9, 70)))
    )
    elements = rng.choice((",", " ", "][", ";")).join(
        rng.choice((*ODD_NUMBERS, "1", "2")) for _ in range(rng.choice((0, 1, 2, 4, 40)))
    )
    brackets = rng.choice(("", "", "[", "[[", "[" * 2000))
    mark = rng.choice(("=", "=", "=", "", "==", "=@", "=@/dev/null", "=@/dev/zero", "=@."))
    return (
        rng.choice(("", "", "&", "@", "+", "-"))
        + shape
        + rng.choice(TYPES)
        + mark
        + brackets
        + elements
        + rng.choice(("", "]", "]]"))
    )


def _use_value(text: str) -> None:
    kind = len(text) % 4
    if kind == 0:
        parse_buffer_spec(text)
    elif kind == 1:
        parse_scalar(text, list(ElementType)[len(text) % len(ElementType)])
    elif kind == 2:
        parse_values([text, "i32=1"])
    else:
        value = parse_value(text)
        if hasattr(value, "dtype"):
            format_value(value, max_elements=100)


def open_value(folder: Path) -> Cases:
    good = (
        "4xf32=1,2,3,4", "2x2xi8=[1 2][3 4]", "-5", "0.1", "f64=1e300", "&4xf32", "(null)", "2xi1=true,false",
        "2xf16=nan,-inf", "3xbf16=1",
    )  # fmt: skip
    return text_cases(good, TYPES, _use_value, forge=_value_text)


# -- images ----------------------------------------------------------------------------------------

_FORMATS: Final = (
    "rgba8unorm", "r32float", "rg11b10float", "rgb10a2uint", "bc1rgbunorm", "d24unorms8uint", "r8", "f32",
)  # fmt: skip
_SCALARS: Final = ("float", "int", "uint")


def _image_text(rng: random.Random) -> str:
    shape = "".join(f"{rng.choice(('0', '1', '2', '3', '-1', *ODD_NUMBERS[:6]))}x" for _ in range(rng.randrange(4)))
    mips = rng.choice(("", "", ":mips", ":mips0", ":mips3", ":mips99", ":"))
    data = rng.choice(
        ("", "=1", "=1,2", "=@", "=@/dev/null", "=@.png", "=@picture.png", "=@picture.npy", "=@/dev/zero")
    )
    return shape + rng.choice(_FORMATS) + mips + data


def open_image_text(folder: Path) -> Cases:
    """Texts of images, as far as a device is not needed, and of samplers."""

    def use(text: str) -> None:
        if not is_image_text(text):
            parse_sampler(text)
            return
        with ValueFiles() as files:
            spec = parse_image_spec(text, files)
        spec.resolved("rgba8" if len(text) % 2 else "", _SCALARS[len(text) % 3], "fuzz")

    good = ("256x256xrgba8unorm", "2x2xr32float=1,2,3,4", "6x1x1xrg8unorm:mips2=7", "filter=nearest,address=repeat")
    return text_cases(good, (*_FORMATS, "filter", "max_lod"), use, forge=_image_text)


# -- studies -----------------------------------------------------------------------------------------

_VALUES: Final = {"n": 7, "m": 10**300, "x": 0.5, "name": "matmul", "flag": True, "local_size": 64}
_OPERATORS: Final = (
    "+", "-", "*", "/", "//", "%", "**", "<<", ">>", "==", "<", ">=", "!=", " and ", " or ", "&", "|", "^", " in ",
    "@",
)  # fmt: skip


def _expression(rng: random.Random, depth: int = 0) -> str:
    choice = rng.randrange(9) if depth < 4 else rng.randrange(3)
    if choice == 0:
        return rng.choice(tuple(_VALUES))
    if choice == 1:
        return rng.choice(
            ("0", "1", "2", "64", "-1", "1.5", "10**300", "7**1000", "-999999999", "10**7", "0.0", *ODD_NUMBERS[:16])
        )
    if choice == 2:
        return rng.choice(("'a'", "'%s'", "'%.999999f'", "'%99999d'", "'a' * 999", "True", "None", "''", "'é'"))
    if choice in (3, 4, 5):
        return f"({_expression(rng, depth + 1)}{rng.choice(_OPERATORS)}{_expression(rng, depth + 1)})"
    if choice == 6:
        name = rng.choice(
            ("abs", "cdiv", "ceil", "floor", "int", "log2", "max", "min", "round", "sqrt", "str", "open", "__import__")
        )
        return f"{name}({', '.join(_expression(rng, depth + 1) for _ in range(rng.choice((0, 1, 1, 2, 2, 3))))})"
    if choice == 7:
        return f"({_expression(rng, depth + 1)} if {_expression(rng, depth + 1)} else {_expression(rng, depth + 1)})"
    return rng.choice(("-", "+", "~", "not ", "(" * 300)) + _expression(rng, depth + 1)


def open_expression(folder: Path) -> Cases:
    good = ("n // local_size", "cdiv(n, 64)", "2 ** n if flag else round(x, 2)", "max(n, 1) * 4", "'%s-%d' % (name, n)")
    return text_cases(good, _OPERATORS, lambda text: Expression(text).evaluate(_VALUES), forge=_expression, forged=0.7)


def open_axis(folder: Path) -> Cases:
    good = (
        "n=1,2,4", "n=1:64:9", "n=pow2:1:256", "n=log:1:1000:4", "wait=host,poll", "n=1:10", "x=0.5,1.5",
        "flag=true,false",
    )  # fmt: skip
    return text_cases(good, ("pow2:", "log:", ":", ",", "=", "1e9"), parse_axis)


def open_study(folder: Path) -> Cases:
    files = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "tools" / "studies").glob("*.toml"))]
    words = (
        "[axes]\n", "[[targets]]\n", "[sampling]\n", "[settings]\n", "name = ", "source = ", "bindings = ",
        "push = ", "groups = ", "$n",
        "{ shape = [1], init = 'zeros' }", "= true\n", "= 1e400\n", "= [[]]\n", "= 9999999999\n", "\n[",
        "]]\n", "'''", "figures", "= 1979-05-27\n",
    )  # fmt: skip
    lines = [line for text in files for line in text.splitlines(keepends=True) if line.strip()]

    def make(rng: random.Random) -> str:
        text = damaged_text(rng, files, words)
        for _ in range(rng.choice((0, 0, 1, 3))):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice(lines) + text[at:]
        return text

    return GeneratedCases(make, lambda text: expand(parse_study(text, folder), ("lavapipe",)))


# -- names and declarations --------------------------------------------------------------------------


def open_device_uri(folder: Path) -> Cases:
    # As many as a machine may have: messages list them all.
    profiles = [profile for profile in recorded_profiles().values() if not profile.problems()][:16]
    good = (
        "vulkan",
        "vulkan://0",
        "vulkan://GPU-00000000-0000-0000-0000-000000000000",
        "vulkan://llvmpipe",
        "lavapipe",
        "vulkan://NVIDIA",
    )

    def use(text: str) -> None:
        select_device(parse_device_uri(text or None, {"PUMICE_DEVICE": text}), profiles)

    return text_cases(good, ("vulkan://", "GPU-", "?", "#", "%00"), use)


def open_declaration(folder: Path) -> Cases:
    good = (
        "sync func @mul(%input0: tensor<4xf32>, %input1: tensor<4xf32>) -> (%output0: tensor<4xf32>)",
        "async func @f(%a: tensor<?x3xf64> {iree.abi.name = \"x\"}, %b: i32, %w: !hal.fence, %s: !hal.fence)"
        " -> (%r: !vm.list<?>)",
        "0rriI_r", "0CiIDrC_D_f", "v", "0_",
    )  # fmt: skip

    def use(text: str) -> None:
        if len(text) % 3 == 0:
            CallingConvention.parse(text)
        else:
            parse_declaration(text)

    return text_cases(good, ("tensor<", "x?x", "->", "%", "!hal.buffer_view", "C", "D", "_", "{", "}"), use)


def open_assembly(folder: Path) -> Cases:
    folder_of_programs = ROOT / "tests" / "vm" / "assembly"
    names = ("buffers", "control_flow", "extensions", "globals", "lists", "references")
    files = [(folder_of_programs / f"{name}.vmasm").read_text(encoding="utf-8") for name in names]
    words = (
        " = ", "%i0", "%r0", "%R0", "^bb0:", "^bb1()", "vm.return", "vm.br", "vm.call @", "(i32)", "->", "\n}\n",
        "vm.func @x() -> () {\n",
    )  # fmt: skip
    return text_cases(files, words, lambda text: write_module(assemble(text)))


# -- GLSL --------------------------------------------------------------------------------------------


class GlslCases(SeededCases[str]):
    """Damaged shader sources, beside files that include each other, themselves, and what is not there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "glsl"
        self.folder.mkdir()
        self.sources = [shaders.path(name).with_suffix(".comp").read_text(encoding="utf-8") for name in shaders.names()]
        loop = '#include "b.glsl"\n'
        for name, text in {
            "a.glsl": loop,
            "b.glsl": '#include "a.glsl"\n',
            "self.glsl": '#include "self.glsl"\n',
            "guarded.glsl": '#ifndef G\n#define G\n#include "guarded.glsl"\n#endif\n',
            "deep.glsl": "".join(f'#include "level0{end}.glsl"\n' for end in ("", "")),
            "binary.glsl": "\0\x01",
            "empty.glsl": "",
        }.items():
            (self.folder / name).write_text(text, encoding="utf-8")
        # A chain, and a tree: the compiler reads a file as often as it is included.
        for level in range(40):
            text = f'#include "level{level + 1}.glsl"\n' * (2 if level > 32 else 1) if level < 39 else "int x;\n"
            (self.folder / f"level{level}.glsl").write_text(text)
        (self.folder / "folder.glsl").mkdir()
        (self.folder / "link.glsl").symlink_to(self.folder / "link.glsl")

    def input(self, seed: int, index: int) -> str:
        rng = random.Random(f"{seed}/{index}")
        names = [path.name for path in sorted(self.folder.iterdir())]
        words = [
            f'\n#include "{name}"\n'
            for name in (*names, "missing.glsl", "../../../../etc/passwd", "/dev/zero", "x" * 300, "")
        ]
        words += [
            "#version 450\n",
            "#extension GL_GOOGLE_include_directive : require\n",
            "#define A A\n",
            "layout(local_size_x = 99999999) in;\n",
        ]
        text = damaged_text(rng, self.sources, words)
        if rng.random() < 0.6:
            lines = text.split("\n")
            lines[1:1] = ["#extension GL_GOOGLE_include_directive : require", rng.choice(words).strip()]
            text = "\n".join(lines)
        return text

    def run(self, seed: int, index: int) -> Outcome:
        text = self.input(seed, index)
        if index % 3 == 0:
            return judged(lambda: included_files(text, [self.folder]))
        return judged(lambda: compile_glsl(text, include_dirs=[self.folder]))
