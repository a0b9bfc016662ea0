"""The programs of the benchmarks that compare with IREE's runtime, compiled on first use. Not a benchmark."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np

__all__ = ["PROGRAMS", "WHOLE_PROGRAMS", "Program", "compiled", "tool"]

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "benchmarks" / "build"


@dataclass(frozen=True)
class Program:
    """A program: its source, the function that is called, the shapes and dtypes of its arguments, and their elements:
    all one value, or ``None`` for small normal numbers."""

    source: str
    function: str
    arguments: tuple[tuple[tuple[int, ...], str], ...]
    value: float | None = 1

    def arrays(self) -> list[np.ndarray]:
        """The arguments."""
        if self.value is None:
            draw = np.random.default_rng(0)
            return [draw.normal(0, 0.3, shape).astype(dtype) for shape, dtype in self.arguments]
        return [np.full(shape, self.value, dtype) for shape, dtype in self.arguments]

    def flags(self) -> list[str]:
        """The arguments as IREE's tools take them."""
        assert self.value is not None
        names = {"float32": "f32", "int32": "i32"}
        return [
            f"--input={''.join(f'{n}x' for n in shape)}{names[dtype]}={self.value:g}" for shape, dtype in self.arguments
        ]


def _whole(name: str, *shapes: tuple[int, ...]) -> Program:
    return Program(f"benchmarks/programs/{name}.mlir", "main", tuple((shape, "float32") for shape in shapes), None)


WHOLE_PROGRAMS = {
    "cnn": _whole("cnn", (1, 1, 28, 28), (8, 1, 3, 3), (16, 8, 3, 3), (784, 10)),
    "matmul_256": _whole("matmul_256", (256, 256), (256, 256)),
    "transformer_block": _whole("transformer_block", (32, 64), *[(64, 64)] * 4, (64, 256), (256, 64)),
    "lstm": _whole("lstm", (16, 4, 16), (16, 128), (32, 128), (128,)),
    "attention": _whole("attention", *[(1, 32, 4, 16)] * 3),
    "mlp": _whole("mlp", (16, 64), (64, 128), (128,), (128, 10), (10,)),
    "softmax": _whole("softmax", (64, 128)),
    "layer_norm": _whole("layer_norm", (64, 128)),
}
"""Of a size that a call and its kernels both show in."""
PROGRAMS = {
    **WHOLE_PROGRAMS,
    "simple_mul": Program("tests/conformance/programs/simple_mul.mlir", "simple_mul", (((4,), "float32"),) * 2),
    "collatz": Program("tests/conformance/programs/collatz.mlir", "steps", (((), "int32"),), value=27),
    "four_rounds": Program("benchmarks/programs/four_rounds.mlir", "main", (((), "int32"),), value=16),
    "mnist_like": Program("examples/digits/digits.mlir", "classify", (((1, 28, 28, 1), "float32"),)),
    "lstm_like": Program(
        "tests/conformance/programs/lstm_cell.mlir",
        "cell",
        tuple((shape, "float32") for shape in ((2, 4), (2, 8), (2, 8), (4, 32), (8, 32), (32,))),
    ),
}


def tool(name: str) -> str:
    """The path of one of IREE's tools."""
    found = shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)
    if found is None:
        raise click.ClickException(f"this needs {name}: pip install -e '.[peer]'")
    return found


def compiled(program: Program) -> Path:
    """The module of a program; compiled again when its source is newer."""
    source = ROOT / program.source
    module = BUILD / f"{source.stem}.vmfb"
    if not module.exists() or module.stat().st_mtime < source.stat().st_mtime:
        BUILD.mkdir(exist_ok=True)
        subprocess.run([tool("iree-compile"), "--iree-hal-target-device=vulkan", source, "-o", module], check=True)
    return module
