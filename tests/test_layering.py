"""The arrows of the house: who may import whom, and that each public name has one home.

Everything is read from the syntax trees, imports under ``TYPE_CHECKING`` and inside functions too: an arrow is an
arrow wherever it is written. The rules are functions from the modules of a source tree to a list of complaints, and
each rule is itself tested on a tree that breaks it.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import pytest
from support.arrows import ALLOWED, FORMATS, ROOMS
from support.import_graph import ROOT, Module, cycles, file_graph, imports_of, modules_of, nested_graphs, room_graph
from support.maps import stale

# Folders without an import cycle between files, imports for type checking included.
ACYCLIC = (
    *("codegen", "compiler", "formats", "hal", "hal_reference", "hal_vulkan"),
    *("jit", "runtime", "spirv", "study", "testing", "tools", "viewer", "vm"),
)
MOST_FILES = 20
Modules: TypeAlias = Mapping[str, Module]
NATIVE = "hal_vulkan.vulkan.functions"
BINDINGS = {"vulkan", "cffi", "_cffi_backend"}
# Extras that the product itself may use; the others are for tests and benchmarks.
PRODUCT_EXTRAS = (
    "view", "video", "study", "pandas", "cluster", "compiler", "graphdef", "images", "jax", "jit", "pytest",
    "vendor", "wgsl",
)  # fmt: skip


# -- the rules ---------------------------------------------------------------------------------------


def wrong_arrows(modules: Modules) -> list[str]:
    """Imports between units that no arrow allows."""
    complaints = []
    for module in modules.values():
        if module.unit not in ALLOWED:
            complaints.append(f"{module.path}: {module.unit!r} is no unit of the house; give it a place in ALLOWED")
            continue
        allowed = ALLOWED.get(module.name, ALLOWED[module.unit])
        for found in imports_of(module, modules):
            unit = found.module.split(".")[0]
            if found.own and not {unit, ".".join(found.module.split(".")[:2])} & allowed:
                complaints.append(f"{module.at(found.line)}: {module.unit or 'the root'} imports {unit or 'the root'}")
    return complaints


def unused_arrows(modules: Modules) -> list[str]:
    """Arrows between units and between rooms that no import needs; what all may import is left out."""
    used: dict[str, set[str]] = {}
    for module in modules.values():
        names = used.setdefault(module.name if module.name in ALLOWED else module.unit, set())
        for found in imports_of(module, modules):
            if found.own:
                names |= {found.module.split(".")[0], ".".join(found.module.split(".")[:2])}
    complaints = [
        f"{unit or 'the root'} may import {target or 'the root'}, and does not"
        for unit, targets in ALLOWED.items()
        for target in sorted(targets - used.get(unit, set()) - {unit, *FORMATS})
    ]
    rooms = room_graph(modules)
    for room, allowed in ROOMS.items():
        complaints.extend(f"{room} may import {target}, and does not" for target in sorted(allowed - {*rooms[room]}))
    return complaints


def wrong_rooms(modules: Modules) -> list[str]:
    """Imports between rooms of one folder that no arrow allows."""
    return [
        f"{room} imports {target}: {', '.join(sorted(set(found)))}"
        for room, targets in room_graph(modules).items()
        for target, found in targets.items()
        if target.split(".")[0] == room.split(".")[0] and target not in ROOMS.get(room, set())
    ]


def folder_cycles(modules: Modules) -> list[str]:
    """Cycles of imports between folders, alone and each with everything below it."""
    rooms = room_graph(modules)
    graphs = {"": {room: {*targets} for room, targets in rooms.items()}, **nested_graphs(modules)}
    return [
        f"{folder or 'the package'}: {' '.join(cycle)} import each other"
        for folder, graph in graphs.items()
        for cycle in cycles(graph)
    ]


def crowded_folders(modules: Modules) -> list[str]:
    """Folders of more files than a reader can hold in mind."""
    sizes = Counter(module.room for module in modules.values())
    return [f"{room}: {size} files, at most {MOST_FILES}" for room, size in sizes.items() if size > MOST_FILES]


def import_cycles(modules: Modules) -> list[str]:
    """Cycles of imports inside the folders that have none, and any at run time."""
    whole = file_graph(modules, typing=True)
    complaints = []
    for folder in ACYCLIC:
        inside = {name for name, module in modules.items() if module.unit == folder}
        found = cycles({name: whole[name] & inside for name in inside})
        complaints.extend(f"{folder}: {' '.join(cycle)} import each other" for cycle in found)
    return complaints


def absolute_imports(modules: Modules) -> list[str]:
    """Imports of the package by its name; inside the package they are relative."""
    return [
        f"{module.at(found.line)}: write a relative import"
        for module in modules.values()
        for found in imports_of(module, modules)
        if found.own and not found.relative
    ]


def wrong_bindings(modules: Modules) -> list[str]:
    """Uses of the Vulkan bindings outside the one file that may, and of IREE anywhere."""
    complaints = []
    for module in modules.values():
        for found in imports_of(module, modules):
            top = found.module.split(".")[0]
            if found.own or (top in BINDINGS and module.name == NATIVE):
                continue
            if top in BINDINGS or top == "iree":
                complaints.append(f"{module.at(found.line)}: imports {found.module}")
    return complaints


def undeclared_imports(modules: Modules, declared: Iterable[str]) -> list[str]:
    """Imports of what is neither the standard library's nor a declared dependency."""
    known = {*declared, *sys.stdlib_module_names}
    return [
        f"{module.at(found.line)}: {found.module} is not declared in pyproject.toml"
        for module in modules.values()
        for found in imports_of(module, modules)
        if not found.own and found.module.split(".")[0] not in known
    ]


def slow_imports(modules: Modules) -> list[str]:
    """Imports of ``scipy.stats``, which takes longer to load than all of pumice; SciPy loads it when it is used."""
    return [
        f"{module.at(node.lineno)}: write import scipy, and scipy.stats.name where it is used"
        for module in modules.values()
        for node, _ in module.import_nodes
        if isinstance(node, ast.Import | ast.ImportFrom) and re.search(r"scipy(\.| import )stats\b", ast.unparse(node))
    ]


def compiler_reaches_native(modules: Modules) -> list[str]:
    """Chains of imports from the compiler to the Vulkan library: it takes formats of the HAL, never a device."""
    complaints = []
    for start in (name for name, module in modules.items() if module.unit == "compiler"):
        seen = {start}
        chains = [[start]]
        while chains:
            chain = chains.pop()
            for found in imports_of(modules[chain[-1]], modules):
                if not found.own or found.module in seen or found.module not in modules:
                    continue
                seen.add(found.module)
                if found.module == NATIVE:
                    complaints.append(" -> ".join([*chain, NATIVE]))
                chains.append([*chain, found.module])
    return complaints


def wrong_exports(modules: Modules) -> list[str]:
    """``__all__`` lists that are no plain lists or name what is not there, and classes with two homes in a folder."""
    complaints = []
    homes: dict[tuple[str, str], str] = {}
    for module in modules.values():
        exported = _exported(module)
        if isinstance(exported, str):
            complaints.append(exported)
            continue
        defined, imported = _bound(module.tree.body)
        lazy = module.is_package and "__getattr__" in defined
        for name in sorted({name for name in exported if exported.count(name) > 1}):
            complaints.append(f"{module.path}: __all__ names {name} twice")
        for name in exported:
            if name not in defined and name not in imported and not lazy:
                complaints.append(f"{module.path}: __all__ names {name}, which is not there")
            elif name not in defined and not module.is_package:
                complaints.append(f"{module.path}: {name} is exported here and defined elsewhere")
        classes = {node.name for node in module.tree.body if isinstance(node, ast.ClassDef)}
        for name in sorted(name for name in classes if not name.startswith("_")):
            home = homes.setdefault((module.unit, name), module.name)
            if home != module.name:
                complaints.append(f"{module.path}: {name} is defined by {home} too")
    return complaints


def root_definitions(modules: Modules) -> list[str]:
    """What ``__init__.py`` of the root does beyond re-exporting: its version and lazy loading are the exceptions."""
    module = modules[""]
    complaints = []
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef):
            complaints.append(f"{module.at(node.lineno)}: defines class {node.name}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name not in ("__getattr__", "__dir__"):
            complaints.append(f"{module.at(node.lineno)}: defines {node.name}()")
    names = [
        alias.asname or alias.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.level
        for alias in node.names
    ]
    complaints.extend(f"{module.path}: imports {name} twice" for name in set(names) if names.count(name) > 1)
    return complaints


# Units whose functions run in any thread, and what they may do with a table of their module without holding a lock.
SHARING = ("base", "codegen", "compiler", "formats", "jit", "spirv", "tuning", "vm")
ATOMIC = {"add", "append", "discard", "get", "setdefault", "copy"}
CHANGING = {"clear", "extend", "insert", "pop", "popitem", "remove", "update", "popleft", "appendleft"}


def shared_tables(modules: Modules) -> list[str]:
    """Changes of tables of modules in functions, other than single ones that cannot be interrupted, and loops over such
    tables, without a lock.
    """
    complaints = []
    for module in modules.values():
        if module.unit not in SHARING:
            continue
        tables = _bound(module.tree.body)[0]
        uses = [item for node in module.tree.body for item in _table_uses(node, tables, False)]
        changed = {name for name, _, line in uses if line > 0}
        for name, use, line in uses:
            if name in changed and use not in ATOMIC:
                complaints.append(f"{module.at(abs(line))}: {use} of {name} without a lock")
    return complaints


def _table_uses(node: ast.AST, tables: set[str], is_inside: bool) -> Iterator[tuple[str, str, int]]:
    """Yields names, uses and lines, which are negative where nothing changes, in functions outside of ``with lock``."""
    if isinstance(node, ast.With) and any("lock" in ast.unparse(item).lower() for item in node.items):
        return
    is_inside |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    if is_inside:
        if isinstance(node, ast.Global):
            yield from ((name, "a new value", node.lineno) for name in node.names)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _name(node.value) in tables:
            yield _name(node.value), "setdefault", node.lineno
        if isinstance(node, ast.Delete):
            items = [target.value for target in node.targets if isinstance(target, ast.Subscript)]
            yield from ((_name(item), "del", node.lineno) for item in items if _name(item) in tables)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _name(node.func.value) in tables:
            is_change = node.func.attr in CHANGING | ATOMIC - {"get", "copy"}
            may_find_nothing = node.func.attr == "pop" and len(node.args) == 2
            if is_change:
                yield _name(node.func.value), "discard" if may_find_nothing else node.func.attr, node.lineno
        if isinstance(node, ast.For | ast.comprehension):
            of = node.iter.func.value if isinstance(getattr(node.iter, "func", None), ast.Attribute) else node.iter
            if _name(of) in tables:
                yield _name(of), "a loop", -node.iter.lineno
    for child in ast.iter_child_nodes(node):
        yield from _table_uses(child, tables, is_inside)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _exported(module: Module) -> list[str] | str:
    """The names in ``__all__``, none where there is none, or a complaint."""
    statements = []
    for node in module.tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            statements.append(node)
    if not statements:
        return []
    value = getattr(statements[0], "value", None)
    plain = isinstance(value, ast.List | ast.Tuple) and all(
        isinstance(item, ast.Constant) and isinstance(item.value, str) for item in value.elts
    )
    if len(statements) > 1 or not plain:
        return f"{module.at(statements[-1].lineno)}: __all__ has to be one literal list"
    return [str(name) for name in ast.literal_eval(value)]


def _bound(body: Iterable[ast.stmt]) -> tuple[set[str], set[str]]:
    """The names that statements at module level define, and those that they import; branches count."""
    defined: set[str] = set()
    imported: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imported.update(alias.asname or alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined.update(item.id for target in targets for item in ast.walk(target) if isinstance(item, ast.Name))
        elif isinstance(node, ast.If | ast.Try | ast.With | ast.For | ast.While):
            handlers = [stmt for handler in getattr(node, "handlers", []) for stmt in handler.body]
            inner = [*node.body, *handlers, *getattr(node, "orelse", []), *getattr(node, "finalbody", [])]
            more_defined, more_imported = _bound(inner)
            defined |= more_defined
            imported |= more_imported
    return defined, imported


# -- the package keeps the rules ---------------------------------------------------------------------


def declared_dependencies() -> set[str]:
    """Import names of the core dependencies and of the extras that the product uses."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(line for extra in PRODUCT_EXTRAS for line in project["optional-dependencies"].get(extra, [])),
    ]
    names = {re.split(r"[^A-Za-z0-9_.-]", line, maxsplit=1)[0].replace("-", "_").lower() for line in wanted}
    # cffi comes with vulkan, which is built on it; nvidia-ml-py is imported as pynvml, protobuf as google.protobuf,
    # pillow as PIL, pyelftools as elftools.
    return {*names, "cffi", "_cffi_backend", "pynvml", "google", "tensorboardX", "PIL", "elftools"}


RULES: Mapping[str, Callable[[Modules], list[str]]] = {
    "wrong_arrows": wrong_arrows,
    "wrong_rooms": wrong_rooms,
    "import_cycles": import_cycles,
    "folder_cycles": folder_cycles,
    "crowded_folders": crowded_folders,
    "absolute_imports": absolute_imports,
    "wrong_bindings": wrong_bindings,
    "undeclared_imports": lambda modules: undeclared_imports(modules, declared_dependencies()),
    "slow_imports": slow_imports,
    "compiler_reaches_native": compiler_reaches_native,
    "wrong_exports": wrong_exports,
    "root_definitions": root_definitions,
    "shared_tables": shared_tables,
}


@pytest.fixture(scope="module")
def package() -> Modules:
    """Every file of the package, parsed once."""
    return modules_of(ROOT)


@pytest.mark.parametrize("rule", RULES)
def test_the_package_keeps_the_rule(rule: str, package: Modules) -> None:
    assert RULES[rule](package) == []


def test_only_the_viewer_presents(package: Modules) -> None:
    room = "hal_vulkan.presentation"
    users = {
        module.unit
        for module in package.values()
        for found in imports_of(module, package)
        if found.own and found.module.startswith(room) and not module.name.startswith(room)
    }
    assert users == {"viewer"}


def test_no_folder_of_tests_is_crowded() -> None:
    sizes = Counter(path.parent for path in (ROOT / "tests").rglob("*.py"))
    assert {str(folder): size for folder, size in sizes.items() if size > MOST_FILES} == {}


def test_every_arrow_is_used(package: Modules) -> None:
    assert unused_arrows(package) == []


def test_the_maps_are_those_of_the_code(package: Modules) -> None:
    assert stale(package) == []


def test_every_folder_of_the_package_is_read(package: Modules) -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"]
    read = {".".join(["pumice", *([name] if name else [])]) for name, m in package.items() if m.is_package}
    assert read == set(listed)


# -- the rules catch those who break them ------------------------------------------------------------

GOOD: Mapping[str, str] = {
    "__init__.py": "from .status import Oops\n__all__ = ['Oops']\n",
    "status.py": "class Oops(Exception): ...\n",
    "formats/__init__.py": "",
    "formats/flatbuffer.py": "from ..status import Oops\n",
    "vm/__init__.py": "from .execution.frame import Frame\n__all__ = ['Frame']\n",
    "vm/types/__init__.py": "",
    "vm/execution/__init__.py": "",
    "vm/execution/frame.py": "from ...status import Oops\nclass Frame: ...\n",
    "hal_vulkan/__init__.py": "",
    "hal_vulkan/vulkan/functions.py": "import importlib.util\nspec = importlib.util.find_spec('vulkan')\n",
    "hal_vulkan/vulkan/__init__.py": "",
    "spirv/__init__.py": "",
    "spirv/format.py": "from ..formats import flatbuffer\n",
    "spirv/words.py": "from . import format\n",
    "compiler/__init__.py": "from ..spirv.format import flatbuffer\n",
    "runtime/__init__.py": "from ..vm.execution import frame\nfrom ..hal_vulkan.vulkan import functions\n",
    "shaders/build.py": "from ..spirv import format\n",
    "tools/__init__.py": "",
    "tools/cli.py": "from ..vm.execution import frame\ndef main(): ...\n",
    "tools/inspect/dump.py": "import numpy.typing as npt\ndef main(): ...\n",
    "tests/test_x.py": "import pumice, iree.runtime\n",
}


def _write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_good_tree_has_no_complaints(tmp_path: Path) -> None:
    modules = modules_of(_write(tmp_path, GOOD))
    assert {rule: complaints for rule, check in RULES.items() if (complaints := check(modules))} == {}


def test_an_unused_arrow_is_found(tmp_path: Path) -> None:
    complaints = unused_arrows(modules_of(_write(tmp_path, GOOD)))
    assert {"jit may import runtime, and does not", "vm.invocation may import vm.types, and does not"} <= {*complaints}
    assert not any(one.startswith("runtime may import vm,") for one in complaints)


@pytest.mark.parametrize(
    ("rule", "path", "text", "complaint"),
    [
        (
            "wrong_arrows",
            "vm/execution/frame.py",
            "from ...hal_vulkan.vulkan import functions",
            "vm imports hal_vulkan",
        ),
        ("wrong_arrows", "vm/execution/frame.py", "from ... import hal_vulkan", "vm imports hal_vulkan"),
        ("wrong_arrows", "vm/sub/deep.py", "from ...runtime import x", "vm imports runtime"),
        ("wrong_arrows", "hal_vulkan/x.py", "def f():\n    from ..vm.frame import Frame", "hal_vulkan imports vm"),
        ("wrong_arrows", "hal_vulkan/x.py", "if TYPE_CHECKING:\n    from ..runtime import y", "imports runtime"),
        ("wrong_arrows", "hal_vulkan/x.py", "import pumice.vm.execution.frame", "hal_vulkan imports vm"),
        ("wrong_arrows", "hal_vulkan/x.py", "import_module('pumice.vm')", "hal_vulkan imports vm"),
        ("wrong_arrows", "runtime/x.py", "from ..compiler import y", "runtime imports compiler"),
        ("wrong_arrows", "runtime/x.py", "from .. import __version__", "runtime imports the root"),
        ("wrong_arrows", "shaders/__init__.py", "from ..hal_vulkan import glsl", "shaders imports hal_vulkan"),
        ("wrong_arrows", "status.py", "from .formats import flatbuffer", "status imports formats"),
        ("wrong_arrows", "formats/flatbuffer.py", "from ..vm.execution import frame", "formats imports vm"),
        ("wrong_arrows", "__init__.py", "from .tools.cli import main", "the root imports tools"),
        ("wrong_arrows", "utils.py", "", "'utils' is no unit"),
        ("wrong_arrows", "spirv/x.py", "from ..hal_vulkan import x", "spirv imports hal_vulkan"),
        ("wrong_arrows", "compiler/x.py", "from ..vm.execution import frame", "compiler imports vm"),
        ("wrong_rooms", "vm/types/x.py", "from ..execution.frame import Frame", "vm.types imports vm.execution"),
        ("wrong_rooms", "vm/types/x.py", "if TYPE_CHECKING:\n    from ..execution import frame", "vm.types imports"),
        ("import_cycles", "spirv/format.py", "def f():\n    from . import words", "spirv.format spirv.words"),
        ("absolute_imports", "vm/execution/frame.py", "from pumice.status import Oops", "write a relative import"),
        ("absolute_imports", "vm/execution/frame.py", "import pumice", "write a relative import"),
        ("wrong_bindings", "runtime/x.py", "import vulkan as vk", "imports vulkan"),
        ("wrong_bindings", "hal_vulkan/x.py", "from cffi import FFI", "imports cffi"),
        ("wrong_bindings", "hal_vulkan/x.py", "importlib.import_module('vulkan')", "imports vulkan"),
        ("wrong_bindings", "tools/cli.py", "import iree.compiler", "imports iree.compiler"),
        ("wrong_bindings", "hal_vulkan/vulkan/functions.py", "import iree", "imports iree"),
        ("undeclared_imports", "vm/execution/frame.py", "import torch.nn", "torch.nn is not declared"),
        ("slow_imports", "vm/x.py", "from scipy import stats", "write import scipy"),
        ("slow_imports", "vm/x.py", "def f():\n    from scipy.stats import sem", "write import scipy"),
        ("slow_imports", "vm/x.py", "import scipy.stats", "write import scipy"),
        (
            "compiler_reaches_native",
            "spirv/format.py",
            "from ..hal_vulkan.vulkan import functions",
            "spirv.format -> hal_vulkan.vulkan.functions",
        ),
        (
            "compiler_reaches_native",
            "compiler/x.py",
            "from ..hal_vulkan.vulkan.functions import ffi",
            "compiler.x -> hal_vulkan",
        ),
        ("wrong_exports", "vm/x.py", "__all__ = ['gone']", "names gone, which is not there"),
        ("wrong_exports", "vm/x.py", "a = 1\n__all__ = ['a', 'a']", "names a twice"),
        ("wrong_exports", "vm/x.py", "__all__ = [n for n in dir()]", "one literal list"),
        ("wrong_exports", "vm/x.py", "__all__ = []\n__all__ += ['x']", "one literal list"),
        (
            "wrong_exports",
            "vm/x.py",
            "from .execution.frame import Frame\na = 1\n__all__ = ['Frame']",
            "defined elsewhere",
        ),
        ("wrong_exports", "vm/x.py", "class Frame: ...", "defined by vm.execution.frame too"),
        ("wrong_exports", "vm/__init__.py", "__all__ = ['Frame']", "names Frame, which is not there"),
        ("shared_tables", "vm/x.py", "t = {}\ndef f():\n    t.pop(1)", "pop of t without a lock"),
        ("shared_tables", "vm/x.py", "t = {}\ndef f():\n    del t[1]", "del of t without a lock"),
        ("shared_tables", "vm/x.py", "t = None\ndef f():\n    global t\n    t = 1", "a new value of t without a lock"),
        (
            "shared_tables",
            "vm/x.py",
            "t = set()\ndef f():\n    t.add(1)\n    [*map(str, (i for i in t))]",
            "a loop of t",
        ),
        (
            "shared_tables",
            "vm/x.py",
            "t = {}\ndef f():\n    t[1] = 2\n    with _lock:\n        t.clear()\n    for k, v in t.items(): ...",
            "a loop of t",
        ),
        ("root_definitions", "__init__.py", "def helper(): ...", "defines helper()"),
        ("root_definitions", "__init__.py", "class Thing: ...", "defines class Thing"),
        ("root_definitions", "__init__.py", "from .vm import a\nfrom .runtime import a", "imports a twice"),
    ],
)
def test_a_broken_rule_is_found(tmp_path: Path, rule: str, path: str, text: str, complaint: str) -> None:
    root = _write(tmp_path, {**GOOD, path: text + "\n"})
    complaints = RULES[rule](modules_of(root))
    assert len(complaints) == 1 and complaint in complaints[0]
