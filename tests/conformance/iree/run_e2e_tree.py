"""Runs IREE's end-to-end tests on pumice: python tests/conformance/iree/run_e2e_tree.py [--only TEXT] [--device URI]

``PUMICE_IREE_TREE`` names the tree, a checkout or a git directory. Prints each failure with its cause, each known
failure with its reason and, at the end, how many functions passed in each folder. Functions with arguments are no
checks and do not count. The exit status is 1 when a function failed that is not known to.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from conformance.iree.e2e_harness import CompiledSource, compile_sources, failures_of, run_source
from conformance.iree.e2e_tree import LIT_TESTS, SLOW_ON_CPU, e2e_sources, expected_failure, named_tree, opened_tree
from support.iree_releases import available_compilers

from pumice.runtime.modules.check.report import Outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="sources whose name contains this")
    parser.add_argument("--device", default=None, metavar="URI", help="device to run on; the best one without")
    parser.add_argument("--release", default=None, help="compiler release; the newest at hand without")
    parser.add_argument("--slow", action="store_true", help="also what a CPU device takes minutes for")
    parser.add_argument("--workers", type=int, default=2, help="compilations at a time")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="copy the compiled modules there")
    options = parser.parse_args()
    tree = named_tree()
    if tree is None:
        parser.error("PUMICE_IREE_TREE names no tree of IREE")
    compilers = [one for one in available_compilers() if options.release in (None, one.release)]
    if not compilers:
        parser.error("no iree-compile at hand: install the peer extra, or set PUMICE_IREE_COMPILERS")
    passed: Counter[str] = Counter()
    total: Counter[str] = Counter()
    unexpected = 0
    with opened_tree(tree) as root:
        skipped = LIT_TESTS if options.slow else LIT_TESTS | SLOW_ON_CPU
        sources = [one for one in e2e_sources(root) if options.only in one.name and one.name not in skipped]
    for source in sources:
        if source.reason_not_compiled is not None:
            print(f"not compiled {source.name}: {source.reason_not_compiled}")
    for compiled in compile_sources(sources, compilers[0], workers=options.workers):
        if options.keep is not None:
            _copy(compiled, options.keep)
        name, folder = compiled.source.name, compiled.source.folder
        results = [result for result in run_source(compiled, options.device) if result.outcome is not Outcome.SKIPPED]
        total[folder] += len(results)
        passed[folder] += sum(result.outcome is Outcome.PASSED for result in results)
        for result in results:
            reason = expected_failure(name, result.name)
            if result.outcome is not Outcome.PASSED and reason is not None:
                print(f"known  {name} {result.name}: {result.summary}\n       {reason}")
        failures = failures_of(compiled, results)
        unexpected += len(failures)
        for line in failures:
            print(f"FAILED {name} {line}", flush=True)
    for folder in sorted(total):
        print(f"{folder:20} {passed[folder]:5} of {total[folder]:5}")
    print(f"{'total':20} {passed.total():5} of {total.total():5}, {unexpected} failed that should not")
    return 1 if unexpected else 0


def _copy(compiled: CompiledSource, folder: Path) -> None:
    for path, suffix in zip(compiled.paths, ("", "_calls"), strict=False):
        target = folder / f"{compiled.source.name.removesuffix('.mlir')}{suffix}.vmfb"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())


if __name__ == "__main__":
    sys.exit(main())
