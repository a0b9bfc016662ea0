"""Runs kernels of public projects against NumPy: python tests/conformance/shaders/run_kernels.py TREES --keep DIR

``TREES`` and ``--keep`` are those of ``run_corpus.py``, which compiles the modules; they are compiled here where
they are not there yet. Prints each kernel whose results are not NumPy's. ``--sanitize`` runs them instrumented.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from conformance.shaders.kernel_cases import CASES
from conformance.shaders.projects import trees_in
from conformance.shaders.run_corpus import compile_project

import pumice


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path, metavar="TREES", help="the folder of the projects' trees")
    parser.add_argument("--keep", type=Path, required=True, metavar="DIR", help="the compiled modules, by project")
    parser.add_argument("--only", default="", metavar="TEXT", help="kernels whose name contains this")
    parser.add_argument("--device", default="vulkan", metavar="URI")
    parser.add_argument("--sanitize", action="store_true")
    options = parser.parse_args()
    for module in ("ggml_kernels", "image_kernels", "other_kernels"):
        importlib.import_module(f"conformance.shaders.{module}")
    chosen = [case for case in CASES if options.only in case.name]
    trees = trees_in(options.trees)
    for project in {case.project for case in chosen}:
        if not (options.keep / project).is_dir():
            compile_project(project, trees[project], options.keep / project, 2)
    failed = 0
    with pumice.open_device(options.device, **({"sanitize": True} if options.sanitize else {})) as device:
        for case in chosen:
            try:
                case.run(device, options.keep)
            except Exception:
                failed += 1
                print(f"FAILED {case.name}\n{traceback.format_exc(limit=-2)}", flush=True)
    images = sum(case.images for case in chosen)
    print(f"{len(chosen) - failed} of {len(chosen)} kernels give NumPy's results ({images} of them bind images)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
