"""Programs that StableHLO's project holds to be wrong, and right ones beside them: what is refused, and what is not.

Its tests of verification have a program after each line of dashes, with ``expected-error`` where it is wrong. ``pytest
-s`` prints the counts.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from support.source_trees import named_tree, opened_tree

from pumice.compiler.dialects.syntax.text import parse
from pumice.compiler.ir.source import CompileError, SourceText
from pumice.compiler.passes.verification.verify import verify

TREE: Final = named_tree("PUMICE_STABLEHLO_TREE")
FOLDER: Final = "stablehlo/tests"
PATTERNS: Final = ("ops_chlo*", "ops_dot*", "ops_sparse*", "ops_stablehlo*", "verify_*")

CAUSES: Final = {
    "quantized": r"!quant|expected '->', got \{",
    "several devices": r"operation that pumice compiles|a program of one process|as numbers of processes",
    "a custom call's target": r"a call that is a check",
    "unranked": r"unranked tensors",
    "shifts of floats, which have no meaning": r"broadcast_shift_left expects elements of one of these kinds",
    "initial values of several elements": r"initial values without dimensions",
}
"""What is refused, right or wrong, by what the error says."""

BOUNDED: Final = r"bounded dimension|Bounds length|type_extensions|is_compatible_dynamism_bounds"
"""Wrong programs that are not refused: bounds of lengths that are not known are passed over."""


@pytest.fixture(scope="module")
def tree() -> Iterator[Path]:
    if TREE is None:
        pytest.skip("set PUMICE_STABLEHLO_TREE to a checkout of openxla/stablehlo, or to its git directory")
    with opened_tree(TREE, [FOLDER]) as opened:
        yield opened / FOLDER


def refusal(text: str, name: str) -> str:
    """Returns why a program is refused, or nothing."""
    source = SourceText(text, name)
    try:
        operations = parse(text, name)
        while [operation.name for operation in operations] == ["builtin.module"]:
            operations = operations[0].regions[0].block.operations
        verify({str(each.attributes["sym_name"]): each for each in operations if each.name == "func.func"}, source)
    except CompileError as error:
        assert error.line >= 1 and error.column >= 1 and error.message.endswith("^"), error.message
        return error.message
    return ""


def test_wrong_programs_are_refused_and_right_ones_are_not(tree: Path) -> None:
    counts: collections.Counter[str] = collections.Counter()
    misses = []
    for path in sorted(file for pattern in PATTERNS for file in tree.glob(pattern)):
        for number, text in enumerate(path.read_text().split("// -----")):
            is_wrong = "expected-error" in text
            said = refusal(text, path.name)
            kind = "wrong" if is_wrong else "right"
            counts[f"{kind} programs"] += 1
            cause = next((name for name, each in CAUSES.items() if re.search(each, said)), "")
            if said and (is_wrong or cause):
                counts[f"{kind}, refused{f' as not supported: {cause}' if cause else ''}"] += 1
            elif not said and not is_wrong:
                counts["right, accepted"] += 1
            elif is_wrong and re.search(BOUNDED, text):
                counts["wrong, accepted: bounds of lengths"] += 1
            else:
                misses.append(f"{path.name}:{number}: {kind}: {said or text[:300]}")
    print()
    for name, count in sorted(counts.items()):
        print(f"{count:6}  {name}")
    assert counts["wrong programs"] > 700
    assert not misses, f"{len(misses)} misses:\n" + "\n".join(misses)
