"""Gives damaged, forged and random inputs of every kind to pumice: files, texts, shaders, command lines, signals.

``make fuzz ARGS='--seed 2 --cases 1000'`` runs cases of all kinds in worker processes and prints, for each kind, how
many were refused with a clear error, how many were accepted, and how many ended badly: a crash, a hang, a traceback, an
"internal error", a warning, something half-written. The exit status is 1 if any did, and each is named with the command
that runs it again. A case is the same for the same seed and number; damaged results, which hold what was measured, are
kept in build/fuzz.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from support.case_pool import Tally

__all__ = ["CORPUS", "KINDS", "Kind", "bad_ends", "run_kind"]

TESTS: Final = Path(__file__).resolve().parents[1]
CORPUS: Final = Path(__file__).parent / "corpus"
PATHS: Final = tuple(map(str, (TESTS / "fuzz", TESTS)))


@dataclass(frozen=True)
class Kind:
    """A kind of input.

    Attributes:
        opener: ``module:function`` that makes its cases, see case_pool.py.
        share: of 100,000 cases.
        quick: cases that the suite runs.
    """

    opener: str
    share: int
    quick: int


KINDS: Final[Mapping[str, Kind]] = {
    "npy": Kind("file_kinds:open_npy", 6_000, 100),
    "npy-parameters": Kind("file_kinds:open_npy_parameters", 5_000, 60),
    "npz": Kind("file_kinds:open_npz", 5_000, 40),
    "safetensors": Kind("file_kinds:open_safetensors", 6_500, 80),
    "gguf": Kind("file_kinds:open_gguf", 7_000, 100),
    "irpa": Kind("file_kinds:open_irpa", 7_000, 100),
    "vke1": Kind("program_kinds:open_vke1", 6_000, 40),
    "module": Kind("program_kinds:open_module", 1_500, 10),
    "mutants": Kind("mutant_runner:open_mutants", 1_500, 10),
    "spirv": Kind("program_kinds:open_spirv", 6_000, 40),
    "spirv-run": Kind("program_kinds:ShaderRuns", 1_500, 20),
    "glsl": Kind("text_kinds:GlslCases", 1_000, 6),
    "codegen": Kind("program_kinds:open_codegen", 500, 6),
    "value": Kind("text_kinds:open_value", 5_500, 150),
    "expression": Kind("text_kinds:open_expression", 5_000, 150),
    "axis": Kind("text_kinds:open_axis", 4_000, 80),
    "image-text": Kind("text_kinds:open_image_text", 2_000, 100),
    "picture": Kind("file_kinds:open_picture", 1_500, 60),
    "study": Kind("text_kinds:open_study", 3_500, 20),
    "device-uri": Kind("text_kinds:open_device_uri", 3_000, 60),
    "declaration": Kind("text_kinds:open_declaration", 3_000, 80),
    "assembly": Kind("text_kinds:open_assembly", 1_500, 12),
    "tensor-program": Kind("compiler_kinds:open_tensor_program", 6_000, 40),
    "stage-file": Kind("compiler_kinds:open_stage_file", 2_000, 15),
    "graph": Kind("compiler_kinds:open_graph", 2_000, 30),
    "binary-graph": Kind("compiler_kinds:open_binary_graph", 2_000, 30),
    "results": Kind("file_kinds:ResultsCases", 1_000, 12),
    "pipeline-cache": Kind("program_kinds:PipelineCacheCases", 1_000, 20),
    "command-line": Kind("command_kinds:CommandCases", 1_800, 15),
    "environment": Kind("command_kinds:EnvironmentCases", 350, 6),
    "output": Kind("process_kinds:OutputCases", 150, 1),
    "input": Kind("process_kinds:StandardInputCases", 100, 1),
    "signals": Kind("process_kinds:SignalCases", 100, 2),
}
MEMORY: Final = 3 << 30
HANG_S: Final = 120.0  # a busy machine takes a minute for what takes a second


def run_kind(name: str, count: int, *, seed: int = 1, processes: int = 2) -> Tally:
    """Runs the first cases of a kind in worker processes."""
    from support.case_pool import run_cases

    return run_cases(KINDS[name].opener, count, seed=seed, processes=processes, hang_s=HANG_S, memory=MEMORY)


def bad_ends(name: str, tally: Tally, seed: int) -> list[str]:
    """What ended badly, each with the command that runs it again."""
    return [
        f"{name} {index}: {result}: {detail.strip()}\n"
        f"  again: make fuzz ARGS='--kind {name} --seed {seed} --only {index}'"
        for index, result, detail in tally.wrong
    ]


def _one(name: str, seed: int, index: int, write: Path | None) -> int:
    from support.case_pool import open_cases

    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        cases = open_cases(KINDS[name].opener, Path(folder))
        if write is not None:
            made = cases.input(seed, index)  # type: ignore[attr-defined]
            write.write_bytes(made if isinstance(made, bytes) else str(made).encode("utf-8", "surrogatepass"))
            return 0
        print(cases.describe(seed, index)[:20_000])  # type: ignore[attr-defined]
        outcome = cases.run(seed, index)
        print(f"{outcome.stage}: {outcome.result} {outcome.detail}")
        if outcome.busy:
            os._exit(0)
        cases.close()
        return int(outcome.result == "bug")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        description="Gives pumice inputs of every kind that are damaged, forged or random."
    )
    parser.add_argument("--cases", type=int, default=100_000, help="of all kinds together (100000)")
    parser.add_argument("--seed", type=int, default=1, help="makes other cases (1)")
    parser.add_argument("--kind", action="append", choices=list(KINDS), help="only this kind; may be repeated")
    parser.add_argument("--processes", type=int, default=min(os.cpu_count() or 1, 2))
    parser.add_argument("--only", type=int, metavar="NUMBER", help="run this one case of --kind in this process")
    parser.add_argument("--write", type=Path, help="with --only: write the input to this file, and do not run it")
    options = parser.parse_args()
    names = options.kind or list(KINDS)
    os.environ.setdefault("PUMICE_FUZZ_KEEP", str(TESTS.parent / "build" / "fuzz"))
    if options.only is not None:
        return _one(names[0], options.seed, options.only, options.write)
    total = sum(KINDS[name].share for name in names)
    print(f"{'kind':16} {'cases':>7} {'refused':>8} {'accepted':>9} {'bad':>5} {'s':>6} {'MiB':>6}")
    sums = [0, 0, 0, 0]
    for name in names:
        count = max(1, round(options.cases * KINDS[name].share / total))
        tally = run_kind(name, count, seed=options.seed, processes=options.processes)
        wrong = len(tally.wrong)
        accepted = sum(number for (_, result), number in tally.outcomes.items() if result == "ran")
        row = (tally.count, tally.count - accepted - wrong, accepted, wrong)
        sums = [one + other for one, other in zip(sums, row, strict=True)]
        print(
            f"{name:16} {row[0]:7} {row[1]:8} {row[2]:9} {row[3]:5} {tally.seconds:6.0f} {tally.peak >> 20:6}",
            flush=True,
        )
        for one in bad_ends(name, tally, options.seed):
            print(one, flush=True)
    print(f"{'all':16} {sums[0]:7} {sums[1]:8} {sums[2]:9} {sums[3]:5}")
    return int(sums[3] > 0)


if __name__ == "__main__":
    sys.path[:0] = PATHS
    sys.exit(main())
