"""The lint rules of the project's English, with counts that may only fall.

    python tests/support/prose.py [--list RULE]

Counts what each rule finds in the package's docstrings, comments and names, and in the pages of docs/. A count above
its limit fails, and so does one below it, until the limit in this file is lowered. ``--list`` prints the places.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from import_graph import ROOT, source_files

# The most places of each rule. These numbers only ever become smaller.
LIMITS = {"first words": 0, "phrases": 1, "names": 3}
FIRST_WORDS = re.compile(r"(What|How|Where|Whose|Of|By|Holds that)\b")
PHRASES = re.compile(
    r"\b(as many|so often|of whole (bytes|words)|by which ties go|which ties|(is|are|was|were) told|lets go of|"
    r"gives way|goes on|(is|are|was|were) to be|that is none|what is none|has the say|one and the same|holds that)\b",
    re.IGNORECASE,
)
NAMES = frozenset(("one", "found", "each", "place", "given", "what", "such"))


class Place(NamedTuple):
    """A line of a file, and the text there that a rule complains of."""

    path: Path
    line: int
    text: str


def first_words(path: Path, tree: ast.Module) -> Iterator[Place]:
    """Yields docstrings of functions that start with no verb."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text and FIRST_WORDS.match(text):
                yield Place(path, node.lineno, text.partition("\n")[0])


def names(path: Path, tree: ast.Module) -> Iterator[Place]:
    """Yields variables and parameters whose name says nothing."""
    for node in ast.walk(tree):
        name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else getattr(node, "arg", "")
        if name in NAMES and not isinstance(node, ast.keyword):
            yield Place(path, node.lineno, name)


def phrases(path: Path, source: str) -> Iterator[Place]:
    """Yields lines of docstrings, comments and pages with a phrase that has a plainer form."""
    for line, text in prose_of(path, source):
        if PHRASES.search(text):
            yield Place(path, line, text.strip())


def prose_of(path: Path, source: str) -> Iterator[tuple[int, str]]:
    """Yields the numbered lines of a page, or of a module's docstrings and comments."""
    if path.suffix == ".md":
        yield from enumerate(source.splitlines(), 1)
        return
    for node in ast.walk(ast.parse(source)):
        value = getattr(node, "value", None)
        if isinstance(node, ast.Expr) and isinstance(value, ast.Constant) and isinstance(value.value, str):
            yield from enumerate(value.value.splitlines(), node.lineno)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def places() -> dict[str, list[Place]]:
    """Returns for each rule what it finds."""
    found: dict[str, list[Place]] = {rule: [] for rule in LIMITS}
    for path in source_files(ROOT):
        source = path.read_text(encoding="utf-8")
        tree = ast.parse(source)
        found["first words"].extend(first_words(path, tree))
        found["names"].extend(names(path, tree))
        found["phrases"].extend(phrases(path, source))
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        found["phrases"].extend(phrases(path, path.read_text(encoding="utf-8")))
    return found


def main() -> int:
    """Prints the counts, and returns 1 where one differs from its limit."""
    parser = argparse.ArgumentParser(description="The lint rules of the project's English.")
    parser.add_argument("--list", choices=LIMITS, help="print the places of one rule")
    rule = parser.parse_args().list
    found = places()
    if rule:
        for place in found[rule]:
            print(f"{place.path.relative_to(ROOT)}:{place.line}: {place.text}")
    wrong = 0
    for name, limit in LIMITS.items():
        count = len(found[name])
        verdict = "" if count == limit else f": lower the limit in {Path(__file__).name}"
        if count > limit:
            verdict = f": {count - limit} more than the limit; see --list '{name}'"
        wrong += count != limit
        print(f"prose, {name}: {count} of at most {limit}{verdict}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
