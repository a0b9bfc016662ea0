"""The programs in ``docs/walkthrough.md``: each stage of ``examples/simple_mul`` as the compiler prints it.

    python tests/support/compiler/walkthrough.py

writes them again. A line such as ``<!-- stage hlo -->`` in the page names what the block after it shows; all else is
written by hand, the program of the loop too.
"""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

from pumice.compiler.kernels.scalars.target import Target
from pumice.compiler.pipeline import compile_data, compile_text
from pumice.compiler.stages import GraphFile, ModuleFile, Program

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "walkthrough.md"
GRAPH = ROOT / "examples" / "simple_mul" / "simple_mul.pbtxt"

_BLOCK = re.compile(r"(<!-- (stage [a-z_]+) -->\n\n```[a-z]*\n).*?(^```$)", re.DOTALL | re.MULTILINE)
_BOTH = Target(kinds=("vulkan", "reference"))


def stages() -> dict[str, str]:
    """The text of each stage; of the module, the two exported functions."""
    found: dict[str, str] = {}

    def reached(stage: str, program: Program | GraphFile | ModuleFile) -> None:
        found[stage] = program.text(with_locations=False)

    compile_data(GRAPH.read_bytes(), GRAPH.name, _BOTH, reached=reached)
    names = "simple_mul$async", "simple_mul"
    found["module"] = "\n".join(_function(found["module"], f"vm.func @{name}(", "}\n") for name in names)
    return found


def loop_program(page: str) -> str:
    """The program of a loop that the page shows."""
    (source,) = re.findall(r"<!-- source -->\n\n```mlir\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return str(source)


def sequence(program: str) -> str:
    """The low-level sequence of a program's function."""
    text = compile_text(program, "loop.mlir", _BOTH, "ll_seq").program.text(with_locations=False)
    return textwrap.dedent(_function(text, "  func.func @powers(", "  }\n"))


def _function(text: str, first: str, last: str) -> str:
    start = text.index(first)
    return text[start : text.index(f"\n{last}", start) + 1 + len(last)]


def written(page: str) -> str:
    """The page with each text in its place."""
    texts = {f"stage {stage}": text for stage, text in stages().items()}
    texts["stage sequence"] = sequence(loop_program(page))
    return _BLOCK.sub(lambda match: f"{match[1]}{texts[match[2]].strip()}\n{match[3]}", page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
