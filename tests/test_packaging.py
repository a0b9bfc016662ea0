"""The wheel and the sdist hold what they should and nothing else, and the metadata agrees with the package."""

from __future__ import annotations

import configparser
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path, PurePosixPath

import pytest

import pumice

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
# The first setuptools that reads a licence as an SPDX expression.
SETUPTOOLS = 77
NOT_SOURCE = shutil.ignore_patterns(
    ".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", ".hypothesis"
)


# Files of examples/ that `pumice demo`, and what `pumice` alone prints, take.
SHIPPED_EXAMPLES = {
    "classify_digits.py",
    "digits/digits.vmfb",
    "digits/seven.npy",
    "digits/three.npy",
    "view/waves.frag",
}


def build(kind: str, source: Path, folder: Path) -> Path:
    """A "wheel" or "sdist" built by the setuptools at hand."""
    script = f"import sys; from setuptools import build_meta; print(build_meta.build_{kind}(sys.argv[1]))"
    built = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        cwd=source,
        env={name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder / built.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout: building leaves files beside the sources."""
    try:
        found = importlib.metadata.version("setuptools")
    except importlib.metadata.PackageNotFoundError:
        found = "none"
    if found == "none" or int(found.split(".")[0]) < SETUPTOOLS:
        pytest.skip(f"building a wheel needs setuptools {SETUPTOOLS} or later (the `dev` extra has it); found {found}")
    source = tmp_path_factory.mktemp("copy") / "source"
    shutil.copytree(ROOT, source, ignore=NOT_SOURCE)
    return source


@pytest.fixture(scope="module")
def wheel(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build("wheel", copy, tmp_path_factory.mktemp("wheel")))


@pytest.fixture(scope="module")
def names(wheel: zipfile.ZipFile) -> set[str]:
    return set(wheel.namelist())


def _info(wheel: zipfile.ZipFile, name: str) -> str:
    (path,) = (each for each in wheel.namelist() if each.endswith(f".dist-info/{name}"))
    return wheel.read(path).decode()


@pytest.mark.slow
def test_the_wheel_holds_one_package_and_its_metadata(names: set[str]) -> None:
    tops = {name.split("/")[0] for name in names}
    version = PYPROJECT["project"]["version"]
    assert tops == {"pumice", f"pumice-{version}.dist-info"}


def test_the_wheel_holds_every_module_of_the_package_and_no_other(names: set[str]) -> None:
    folders = [path.parent for path in ROOT.glob("*/__init__.py")]
    sources = {*ROOT.glob("*.py"), *(path for folder in folders for path in folder.rglob("*.py"))}
    expected = {f"pumice/{path.relative_to(ROOT).as_posix()}" for path in sources}
    examples = {f"pumice/examples/{name}" for name in SHIPPED_EXAMPLES}
    assert {name for name in names - examples if name.endswith(".py")} == expected
    outside = ("tests", "benchmarks", "examples", "docs")
    assert {name for name in names if PurePosixPath(name).parts[1] in outside} == examples


def test_every_folder_with_an_init_is_listed_as_a_package() -> None:
    folders = {
        path.parent.relative_to(ROOT)
        for depth in ("*", "*/*", "*/*/*", "*/*/*/*")
        for path in ROOT.glob(f"{depth}/__init__.py")
    }
    ours = {
        folder
        for folder in folders
        if not folder.parts[0].startswith(".") and folder.parts[0] not in ("build", "tests")
    }
    packages = {"pumice", *(".".join(("pumice", *folder.parts)) for folder in ours)}
    assert set(PYPROJECT["tool"]["setuptools"]["packages"]) == packages


def test_the_wheel_holds_the_data_of_its_packages(names: set[str]) -> None:
    folders = [path.parent for path in ROOT.glob("*/__init__.py")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".py"]
    data = {path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}
    kinds = {PurePosixPath(name).suffix for name in data}
    assert kinds >= {".comp", ".spv", ".json", ".toml", ".c", ".h"}
    assert {f"pumice/{name}" for name in data if not name.endswith((".md", ".pyc"))} <= names


def test_the_wheel_is_typed_and_licensed(wheel: zipfile.ZipFile, names: set[str]) -> None:
    assert "pumice/py.typed" in names
    (licence,) = (name for name in names if name.endswith("/licenses/LICENSE"))
    assert wheel.read(licence) == (ROOT / "LICENSE").read_bytes()
    assert Parser().parsestr(_info(wheel, "METADATA"))["License-Expression"] == "Apache-2.0"


def test_the_wheel_installs_the_command_and_the_plugin(wheel: zipfile.ZipFile) -> None:
    entries = configparser.ConfigParser()
    entries.read_string(_info(wheel, "entry_points.txt"))
    assert dict(entries["console_scripts"]) == PYPROJECT["project"]["scripts"]
    assert dict(entries["pytest11"]) == PYPROJECT["project"]["entry-points"]["pytest11"]


def test_the_console_script_names_a_function() -> None:
    (entry,) = importlib.metadata.entry_points(group="console_scripts", name="pumice")
    assert callable(entry.load())


def test_the_versions_agree(wheel: zipfile.ZipFile) -> None:
    version = PYPROJECT["project"]["version"]
    assert pumice.__version__ == version
    assert importlib.metadata.version("pumice") == version
    assert Parser().parsestr(_info(wheel, "METADATA"))["Version"] == version


def test_the_changelog_and_its_fragments_are_in_order() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert all(re.fullmatch(r"## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", heading) for heading in headings)
    assert headings[0].startswith(f"## [{PYPROJECT['project']['version']}]")
    kinds = "|".join(kind["directory"] for kind in PYPROJECT["tool"]["towncrier"]["type"])
    fragments = [path.name for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]
    assert all(re.fullmatch(rf"(\d+|\+[\w-]+)\.({kinds})\.md", name) for name in fragments), fragments


@pytest.mark.slow
def test_installing_the_wheel_gives_a_package_that_imports(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    # The editable install finds pumice through a hook, which comes after the path: this one is found first.
    script = "import sys; sys.path.insert(0, sys.argv[1]); import pumice, pumice.vm; print(pumice.__file__)"
    child = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert child.returncode == 0, child.stderr
    assert Path(child.stdout.strip()) == tmp_path / "pumice" / "__init__.py"


@pytest.mark.vulkan
@pytest.mark.usefixtures("driver")
def test_the_demo_runs_from_the_wheel(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    script = "import sys; sys.path.insert(0, sys.argv.pop()); from pumice.tools.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "demo", str(tmp_path)], cwd="/", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"$ cd {tmp_path / 'pumice'}\n")
    assert "seven: a 7, with probability" in done.stdout


@pytest.mark.slow
def test_the_sdist_holds_the_checkout_and_gives_the_same_wheel(
    copy: Path, wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    files = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    sdist = build("sdist", copy, tmp_path)
    subprocess.run(["tar", "-xzf", sdist.name], cwd=tmp_path, check=True)
    (source,) = (path for path in tmp_path.iterdir() if path.is_dir())
    held = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    # Other files beside pyproject.toml are somebody's, or made by building the wheel.
    own = {name for name in files if "/" in name or name.endswith((".md", ".toml", ".yml", ".py")) or "." not in name}
    assert not {name for name in own - held if not name.startswith(("build/", "pumice.egg-info/"))}
    again = zipfile.ZipFile(build("wheel", source, tmp_path))
    assert {name: again.read(name) for name in again.namelist()} == {
        name: wheel.read(name) for name in wheel.namelist()
    }
