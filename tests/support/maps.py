"""Maps of the house that are read from its code: the folders, their arrows, and the order in which to read files.

    python tests/support/maps.py [--write]

prints what has gone stale, or writes it anew: the tree in CONTRIBUTING.md from the first sentence of each folder's
docstring, the arrows in docs/design/house.md from ``arrows.py``, and each folder's "Read:" list from its imports.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from support.arrows import ALLOWED, GROUND
from support.import_graph import ROOT, Module, file_graph, modules_of

MARKED = re.compile(r"(<!-- generated: (\w+) -->\n\n<!-- not run: .*? -->\n\n```text\n)(.*?)(```\n)", re.DOTALL)
PATH = re.compile(r"`([\w./-]+/[\w./-]*?(?:\.py|/))`")
READ = re.compile(r"^Read: (.*?)\.(?=\s|$)", re.DOTALL | re.MULTILINE)


def tree(modules: Mapping[str, Module]) -> str:
    """Returns a line for each folder, with the first sentence of its docstring."""
    folders = sorted(name for name, module in modules.items() if name and module.is_package)
    lines = []
    for name in folders:
        text = ast.get_docstring(modules[name].tree) or ""
        sentence = re.split(r"\.(?:\s|$)", text, maxsplit=1)[0]
        label = "  " * name.count(".") + name.rpartition(".")[2] + "/"
        lines.append(f"{label:20}{' '.join(sentence.split())}")
    return "\n".join(lines) + "\n"


def arrows() -> str:
    """Returns a line for each top-level folder, with those that it may import beside the ground."""
    lines = []
    for name, targets in ALLOWED.items():
        if name and name not in GROUND and "." not in name:
            lines.append(f"{name:15}-> {' '.join(sorted(targets - GROUND - {name})) or 'the ground alone'}")
    return "\n".join(lines) + "\n"


def files_of(folder: Module, modules: Mapping[str, Module]) -> dict[str, set[str]]:
    """Returns the files and subfolders of a folder, each with those of the same folder that it imports."""
    prefix = folder.name + "." if folder.name else ""
    graph = file_graph(modules, typing=True)
    parts: dict[str, set[str]] = {}
    for name in modules:
        if name and name != folder.name and name.startswith(prefix):
            part = name.removeprefix(prefix).split(".")[0]
            imported = {
                target.removeprefix(prefix).split(".")[0] for target in graph[name] if target.startswith(prefix)
            }
            parts.setdefault(part, set()).update(imported - {part})
    return {part: imported & set(parts) for part, imported in parts.items()}


def reading_order(parts: Mapping[str, set[str]]) -> list[str]:
    """Returns the files in an order in which each follows what it imports."""
    order: list[str] = []
    while len(order) < len(parts):
        order.append(min(part for part in parts if part not in order and parts[part] <= {*order}))
    return order


def reading_list_error(folder: Module, modules: Mapping[str, Module]) -> str | None:
    """Returns what is wrong with a folder's "Read:" list, or None."""
    parts = files_of(folder, modules)
    match = READ.search(ast.get_docstring(folder.tree) or "")
    if match is None:
        return f"{folder.path}: the docstring has no list 'Read: …' of its files" if parts else None
    listed = [name.removesuffix(".py") for name in re.findall(r"[\w.]+", match[1].replace("`", ""))]
    if sorted(listed) != sorted(parts):
        return f"{folder.path}: 'Read:' differs from the files in {', '.join(sorted({*listed} ^ {*parts}))}"
    for index, part in enumerate(listed):
        late = parts[part] & set(listed[index:])
        if late:
            return f"{folder.path}: 'Read:' has {part} before {min(late)}, which it imports"
    return None


def missing_paths(page: Path) -> list[str]:
    """Returns the paths of the checkout that a page names and that do not exist."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
    named = PATH.findall(page.read_text(encoding="utf-8"))
    return [
        f"{page}: {path} does not exist"
        for path in sorted({*named})
        if path.split("/")[0] in folders and not (ROOT / path).exists()
    ]


def stale(modules: Mapping[str, Module], *, write: bool = False) -> list[str]:
    """Returns the maps that differ from the code, and with ``write`` writes them anew."""
    texts = {"tree": tree(modules), "arrows": arrows()}
    found = []
    for page in (ROOT / "CONTRIBUTING.md", ROOT / "docs" / "design" / "house.md"):
        old = page.read_text(encoding="utf-8")
        assert MARKED.search(old), f"{page} has no generated map"
        new = MARKED.sub(lambda match: match[1] + texts[match[2]] + match[4], old)
        if new != old:
            found.append(f"{page}: a map is stale; run python tests/support/maps.py --write")
            if write:
                page.write_text(new, encoding="utf-8")
    for module in modules.values():
        if module.is_package and module.name and (error := reading_list_error(module, modules)):
            found.append(error)
            if write:
                _write_list(module.path, reading_order(files_of(module, modules)))
    for page in (ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))):
        found.extend(missing_paths(page))
    return found


def _write_list(path: Path, order: list[str]) -> None:
    text = path.read_text(encoding="utf-8")
    line = textwrap.fill(f"Read: {', '.join(order)}.", width=120, break_long_words=False)
    docstring = ast.parse(text).body[0]
    assert isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant)
    old = str(docstring.value.value)
    new = READ.sub(lambda _: line, old) if READ.search(old) else f"{old.rstrip()}\n\n{line}\n"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def main() -> None:
    """Prints or mends stale maps."""
    parser = argparse.ArgumentParser(description="Maps of the house.")
    parser.add_argument("--write", action="store_true", help="write stale maps anew")
    for line in stale(modules_of(ROOT), write=parser.parse_args().write):
        print(line)


if __name__ == "__main__":
    main()
