"""Loads the compute shaders of public projects: python tests/conformance/shaders/run_corpus.py TREES [--only NAME]

``TREES`` is a folder that holds the projects' trees: checkouts, or git directories as ``owner+name/repo``. Every
variant that a project's build makes is compiled to SPIR-V with the GLSL compiler at hand (``PUMICE_GLSLC``),
reflected, compared with SPIRV-Cross where that is installed, made a pipeline on the device, and run there with
``sanitize``, one workgroup with zeros for everything that it takes. Prints for each project how many modules load,
and the causes of the others; ``--causes`` prints a line for each. The exit status is 1 after a crash, a hang, or an
outcome that must not be.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from conformance.shaders.checks import CUT, LOADED, WRONG_ACCESS
from conformance.shaders.projects import PROJECTS, Shader, shaders_of, trees_in
from support.case_pool import WRONG, run_cases

from pumice.spirv.sources.glsl import compile_glsl
from pumice.status import PumiceError


def compile_project(name: str, tree: Path, into: Path, workers: int) -> tuple[int, dict[str, str]]:
    """Compiles a project's shaders to ``into/*.spv``; how many there are, and the errors of those that do not compile.

    A source whose front end refuses it is the compiler's business: pumice's errors are what is looked at here.
    """
    errors: dict[str, str] = {}

    def compiled(shader: Shader) -> None:
        output = into / f"{shader.name}.spv"
        if isinstance(shader.source, Path) and shader.source.suffix == ".spv":
            shutil.copyfile(shader.source, output)
            return
        try:
            code = compile_glsl(
                shader.source, defines=shader.defines, include_dirs=shader.include_dirs, target_env=shader.target_env
            )
        except PumiceError as error:
            errors[shader.name] = str(error)
            return
        output.write_bytes(code)

    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="shaders-") as work, ThreadPoolExecutor(workers) as pool:
        shaders = list(shaders_of(name, tree, Path(work)))
        list(pool.map(compiled, shaders))
    return len(shaders), errors


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path, metavar="TREES", help="the folder of the projects' trees")
    parser.add_argument("--only", nargs="+", choices=sorted(PROJECTS), metavar="NAME", help="these projects")
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="the compiled modules, by project; used again if there"
    )
    parser.add_argument("--device", default="vulkan", metavar="URI")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sample", type=int, metavar="N", help="so many modules of each project, evenly spaced")
    parser.add_argument("--no-sanitize", action="store_true", help="load each module as it is only")
    parser.add_argument("--causes", action="store_true", help="a line for each module that does not load")
    options = parser.parse_args()
    trees = trees_in(options.trees)
    chosen = [name for name in PROJECTS if name in trees and name in (options.only or PROJECTS)]
    if not chosen:
        parser.error(f"no tree of {', '.join(options.only or PROJECTS)} in {options.trees}")
    with tempfile.TemporaryDirectory(prefix="corpus-") as scratch:
        keep = options.keep or Path(scratch) / "modules"
        cases: list[tuple[str, str]] = []
        for name in chosen:
            if not (keep / name).is_dir():
                count, errors = compile_project(name, trees[name], keep / name, options.workers)
                print(f"{name}: {count} shaders, {count - len(errors)} compile", flush=True)
                (keep / f"{name}.errors").write_text("\n\n".join(f"{one}: {why}" for one, why in errors.items()))
            paths = sorted((keep / name).glob("*.spv"))
            step = 1 if options.sample is None else max(1, len(paths) // options.sample)
            cases += [(name, str(path)) for path in paths[::step]]
        folder = Path(scratch)
        (folder / "index.json").write_text(json.dumps(cases))
        settings = {"device": options.device, "cross": shutil.which("spirv-cross"), "sanitize": not options.no_sanitize}
        (folder / "options.json").write_text(json.dumps(settings))
        tally = run_cases(
            "conformance.shaders.checks:open_shaders",
            len(cases),
            folder=folder,
            processes=options.workers,
            hang_s=240.0,
        )
    causes: dict[str, Counter[str]] = {name: Counter() for name in chosen}
    for index, (name, path) in enumerate(cases):
        result = tally.results.get(index, "crash")
        causes[name][result] += 1
        if options.causes and result != LOADED:
            print(f"{name} {Path(path).stem}: {result}")
    for name, counts in causes.items():
        print(f"{name}: {counts[LOADED]} of {counts.total()} load")
        for cause, count in counts.most_common():
            if cause != LOADED:
                print(f"    {count:5} {cause}")
    for index, result, detail in tally.wrong:
        print(f"{result.upper()} {' '.join(cases[index])}\n{detail}")
    for stage in (WRONG_ACCESS, CUT):
        print(f"{stage} reported of a run with zeros: {tally.outcomes[stage, LOADED]}")
    total = Counter[str]()
    for counts in causes.values():
        total.update(counts)
    print(f"all: {total[LOADED]} of {total.total()} load, {sum(total[kind] for kind in WRONG)} wrong")
    return 1 if any(total[kind] for kind in WRONG) else 0


if __name__ == "__main__":
    sys.exit(main())
