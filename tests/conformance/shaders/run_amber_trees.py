"""Runs Khronos's compute tests in Amber.

    python tests/conformance/shaders/run_amber_trees.py [--only TEXT] [--device URI]

``PUMICE_CTS_TREE`` and ``PUMICE_AMBER_TREE`` name trees of VK-GL-CTS and of google/amber, checkouts or git
directories. Prints each failure with its cause, the reasons of skips, and how many scripts passed in each folder.
Scripts run in worker processes, so that a driver that crashes or hangs costs one script. The exit status is 1 when one
failed.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from conformance.shaders.amber_trees import (
    AMBER_FOLDER,
    AMBER_VARIABLE,
    CTS_FOLDER,
    CTS_VARIABLE,
    Script,
    compute_scripts,
    write_list,
)
from support.case_pool import run_cases
from support.source_trees import named_tree, opened_tree

_PLACE = re.compile(r"^\d+:\d+: ")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="scripts whose path contains this")
    parser.add_argument("--device", default=None, metavar="URI", help="device to run on; the best one without")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    options = parser.parse_args()
    trees = [(v, f) for v, f in ((CTS_VARIABLE, CTS_FOLDER), (AMBER_VARIABLE, AMBER_FOLDER)) if named_tree(v)]
    if not trees:
        parser.error(f"neither {CTS_VARIABLE} nor {AMBER_VARIABLE} names a tree")
    failed = 0
    for variable, folder in trees:
        named = named_tree(variable)
        assert named is not None
        with opened_tree(named, (folder,)) as root:
            scripts = [one for one in compute_scripts(root, folder) if options.only in str(one.path)]
            failed += run_tree(scripts, options.device, options.workers)
    return 1 if failed else 0


def run_tree(scripts: list[Script], device: str | None, workers: int) -> int:
    """Runs scripts and prints figures; returns how many failed."""
    with tempfile.TemporaryDirectory(prefix="amber-") as name:
        write_list(Path(name), scripts, device)
        tally = run_cases(
            "conformance.shaders.amber_trees:ScriptCases",
            len(scripts),
            folder=Path(name),
            processes=workers,
            hang_s=120.0,
        )
    counts: dict[str, Counter[str]] = {}
    skips: Counter[str] = Counter()
    failed = 0
    crashes = {index: detail for index, result, detail in tally.wrong}
    for index, script in enumerate(scripts):
        result = tally.results.get(index, "crash")
        detail = tally.details.get(index, crashes.get(index, ""))
        if result in ("skipped", "unsupported"):
            skips[_PLACE.sub("", detail.splitlines()[0].split(": ", 1)[-1])] += 1
        elif result != "passed":
            failed += 1
            print(f"FAILED {script.name}: {detail[:600]}", flush=True)
        counts.setdefault(script.folder, Counter())[result] += 1
    for reason, count in skips.most_common():
        print(f"skipped {count:4}: {reason[:200]}")
    total: Counter[str] = Counter()
    for folder, by_result in sorted(counts.items()):
        total += by_result
        print(f"{folder:34} {_figures(by_result)}")
    print(f"{'total':34} {_figures(total)}, in {tally.seconds:.0f} s")
    return failed


def _figures(counts: Counter[str]) -> str:
    parts = [f"{counts['passed']:4} of {counts.total():4} passed"]
    parts += [f"{count} {result}" for result, count in sorted(counts.items()) if result != "passed"]
    return ", ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
