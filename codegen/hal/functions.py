"""Arithmetic functions that a program needs, copied into its module as source, so that it imports no VM."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable
from functools import cache

from ...base.syntax_tree import syntax_tree
from ...vm.types import float_numerics, numerics


@cache
def _definitions() -> dict[str, tuple[str, frozenset[str]]]:
    """Returns the source of each definition and the names that it uses, by name, in the order of the files."""
    definitions: dict[str, tuple[str, frozenset[str]]] = {}
    for module in (numerics, float_numerics):
        source = inspect.getsource(module)
        for node in syntax_tree(source).body:
            names = _defined(node)
            text = ast.get_source_segment(source, node)
            if not names or text is None:
                continue
            used = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
            for name in names:
                definitions[name] = (text, frozenset(used - {name}))
    return definitions


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def function_names() -> frozenset[str]:
    """Returns the names of all functions and of their dependencies."""
    return frozenset(_definitions())


def source_of(names: Iterable[str]) -> tuple[list[str], set[str]]:
    """Returns the definitions of functions and of their dependencies, and the names that they import."""
    definitions = _definitions()
    pending = [name for name in names if name in definitions]
    wanted: set[str] = set()
    imported: set[str] = set()
    while pending:
        name = pending.pop()
        if name in wanted:
            continue
        wanted.add(name)
        for used in definitions[name][1]:
            if used in definitions:
                pending.append(used)
            else:
                imported.add(used)
    return [definitions[name][0] for name in definitions if name in wanted], imported
