"""The package's import graph, read from its syntax trees: which file and which room imports which, and the cycles.

    python tests/support/import_graph.py [--rooms]

prints the import cycles between files and between folders, and counts the arrows; ``--rooms`` prints each folder's
number of files and the folders that it imports.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_IMPORTERS = ("import_module", "find_spec", "__import__")


@dataclass(frozen=True)
class Import:
    """One imported module: dotted and relative to the package where it is the package's own, absolute otherwise."""

    module: str
    own: bool
    relative: bool
    typing_only: bool
    line: int


@dataclass(frozen=True)
class Module:
    """One file of the package; ``name`` is dotted and relative to the package, ``""`` for the root."""

    name: str
    path: Path
    tree: ast.Module
    is_package: bool
    may_import_by_name: bool

    @property
    def unit(self) -> str:
        """The first part of its name: a folder or a file of the root."""
        return self.name.split(".")[0]

    @property
    def room(self) -> str:
        """Its folder."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @cached_property
    def import_nodes(self) -> list[tuple[ast.AST, bool]]:
        """The statements and calls that import, each with whether it stands under ``TYPE_CHECKING``."""
        found: list[tuple[ast.AST, bool]] = []
        pending: list[tuple[ast.AST, bool]] = [(self.tree, False)]
        while pending:
            node, typing_only = pending.pop()
            inner = typing_only or _is_for_typing(node)
            children = ast.iter_child_nodes(node) if self.may_import_by_name else _statements_in(node)
            pending.extend((child, inner) for child in children)
            # Importing by a name in a string is importing.
            if isinstance(node, ast.Import | ast.ImportFrom) or (isinstance(node, ast.Call) and _imports(node)):
                found.append((node, typing_only))
        return found

    def at(self, line: int) -> str:
        """The file and the line, as an editor takes them."""
        return f"{self.path}:{line}"


def source_files(root: Path) -> list[Path]:
    """The files of the package: the root's, and all below folders with an ``__init__.py``."""
    folders = [path.parent for path in sorted(root.glob("*/__init__.py"))]
    return [*sorted(root.glob("*.py")), *(path for folder in folders for path in sorted(folder.rglob("*.py")))]


def modules_of(root: Path) -> dict[str, Module]:
    """Every module of the package."""
    modules = {}
    for path in source_files(root):
        parts = path.relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        text = path.read_text(encoding="utf-8")
        by_name = any(function in text for function in _IMPORTERS)
        modules[name] = Module(name, path, ast.parse(text, str(path)), is_package, by_name)
    return modules


def imports_of(module: Module, modules: Mapping[str, Module]) -> Iterator[Import]:
    """The imports of a module, of which ``from . import x`` counts as one of the module ``x`` where it is one."""
    parts = module.name.split(".") if module.name else []
    package = parts if module.is_package else parts[:-1]
    for node, typing_only in module.import_nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield _absolute(alias.name, typing_only, node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield _absolute(node.module or "", typing_only, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            up = node.level - 1
            assert up <= len(package), f"{module.at(node.lineno)} imports from above the package"
            base = [*package[: len(package) - up], *(node.module.split(".") if node.module else [])]
            for alias in node.names:
                target = ".".join([*base, alias.name])
                name = target if target in modules else ".".join(base)
                yield Import(name, True, True, typing_only, node.lineno)
        elif isinstance(node, ast.Call):
            yield _absolute(ast.literal_eval(node.args[0]), typing_only, node.lineno)


def _statements_in(node: ast.AST) -> Iterator[ast.AST]:
    """The statements directly below a statement, without the expressions, which are most of a tree."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        yield from getattr(node, field, ())


def _is_for_typing(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _absolute(name: str, typing_only: bool, line: int) -> Import:
    top, _, rest = name.partition(".")
    own = top == "pumice"
    return Import(rest if own else name, own, False, typing_only, line)


def _imports(node: ast.Call) -> bool:
    """Whether a call imports a module by a literal name."""
    function = node.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    argument = node.args[0] if node.args else None
    return name in _IMPORTERS and isinstance(argument, ast.Constant) and isinstance(argument.value, str)


def file_graph(modules: Mapping[str, Module], *, typing: bool) -> dict[str, set[str]]:
    """For each module those of the package that it imports, ``typing``: with imports for type checking."""
    return {
        name: {
            found.module
            for found in imports_of(module, modules)
            if found.own and found.module in modules and found.module != name and (typing or not found.typing_only)
        }
        for name, module in modules.items()
    }


def room_graph(modules: Mapping[str, Module]) -> dict[str, dict[str, list[str]]]:
    """For each folder the folders that its files import, with the imports; ``__init__`` files are left out."""
    rooms: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for module in modules.values():
        if module.is_package:
            continue
        for found in imports_of(module, modules):
            target = modules.get(found.module) if found.own else None
            if target is not None and not target.is_package and target.room != module.room:
                rooms[module.room][target.room].append(f"{module.name} -> {target.name}")
    return rooms


def nested_graphs(modules: Mapping[str, Module]) -> dict[str, dict[str, set[str]]]:
    """For each folder the arrows between its subfolders, each taken with everything below it."""
    graphs: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for room, targets in room_graph(modules).items():
        for target in targets:
            left, right = room.split("."), target.split(".")
            shared = next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), None)
            if shared is not None:
                graphs[".".join(left[:shared])][left[shared]].add(right[shared])
    return graphs


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one node, each sorted (Tarjan, without recursion)."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        pending = list(graph[start])
        while pending:
            node = pending.pop()
            if node not in seen:
                seen.add(node)
                pending.extend(graph.get(node, ()))
        reach[start] = seen
    components = {frozenset(other for other in reach[node] if node in reach.get(other, ())) for node in graph}
    return sorted(sorted(component) for component in components if len(component) > 1)


def main() -> None:
    """Prints what the module's docstring says."""
    parser = argparse.ArgumentParser(description="Import cycles, arrows and files per folder of the package.")
    parser.add_argument("--rooms", action="store_true", help="print each folder's number of files and its arrows")
    arguments = parser.parse_args()
    modules = modules_of(ROOT)
    for typing in (False, True):
        found = cycles(file_graph(modules, typing=typing))
        print(f"files, {'with' if typing else 'without'} imports for type checking: {len(found)} cycles")
        for cycle in found:
            print(f"  {len(cycle)} files: {' '.join(cycle)}")
    rooms = room_graph(modules)
    found = cycles({room: set(targets) for room, targets in rooms.items()})
    print(f"folders: {len(found)} cycles, {sum(map(len, rooms.values()))} arrows")
    for cycle in found:
        for room in cycle:
            for target in sorted({*cycle} & {*rooms[room]}):
                print(f"    {room} -> {target}: {', '.join(sorted(set(rooms[room][target])))}")
    for folder, graph in sorted(nested_graphs(modules).items()):
        found = cycles(graph)
        arrows = sum(map(len, graph.values()))
        print(f"subfolders of {folder or 'the root'}: {len(found)} cycles, {arrows} arrows")
        for cycle in found:
            print(f"  {' '.join(cycle)}")
    if arguments.rooms:
        sizes = Counter(module.room for module in modules.values())
        for room, size in sorted(sizes.items()):
            print(f"{room or 'the root'}: {size} files -> {' '.join(sorted(rooms.get(room, ())))}")


if __name__ == "__main__":
    main()
