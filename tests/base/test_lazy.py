"""Lazy exports: every name that a package lists is there, and is the one that type checkers know."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest
from support.import_graph import ROOT, source_files

PACKAGES = [
    path.relative_to(ROOT).parent.as_posix()
    for path in source_files(ROOT)
    if path.name == "__init__.py" and "lazy_exports(" in path.read_text(encoding="utf-8")
]


def known_to_checkers(path: Path) -> dict[str, str]:
    """The home of each name that a package imports for type checkers."""
    return {
        alias.asname or alias.name: "." * node.level + (node.module or "")
        for statement in ast.parse((path / "__init__.py").read_text(encoding="utf-8")).body
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING"
        for node in statement.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("folder", PACKAGES)
def test_every_listed_name_is_there(folder: str) -> None:
    package = importlib.import_module(".".join(("pumice", *Path(folder).parts)))
    homes = known_to_checkers(ROOT / folder)
    assert set(package.__all__) <= set(dir(package))
    for export in package.__all__:
        value = getattr(package, export)
        if export in homes and not isinstance(value, ModuleType):  # pumice.jit is a module that is called
            home = importlib.import_module(homes[export], package.__name__)
            assert value is getattr(home, export), export


def test_an_unknown_name_is_refused() -> None:
    import pumice

    with pytest.raises(AttributeError, match="module 'pumice' has no attribute 'nothing'"):
        _ = pumice.nothing  # type: ignore[attr-defined]
