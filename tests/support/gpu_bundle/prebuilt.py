"""Answers for ``cc`` and ``iree-compile`` where there is neither: what they are asked to write is built already.

Benchmarks compile their programs when they run. In the bundle the programs are there, and this stands for the
compilers: it succeeds where the output exists, and says what is missing where it does not.
"""

from __future__ import annotations

import sys
from pathlib import Path


def main(arguments: list[str], version: Path) -> int:
    """Returns the exit status."""
    if "--version" in arguments:
        print(version.read_text(), end="")
        return 0
    output = Path(arguments[arguments.index("-o") + 1]) if "-o" in arguments[:-1] else None
    if output is not None and output.exists():
        return 0
    print(f"the bundle has no compiler, and {output or 'the output'} is not in it", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).parent / "checkout" / "iree-compile-version"))
