"""Packs what pumice needs on an offline Linux machine with Python 3.12 and a GPU's driver: ``make gpu-bundle``.

The archive has the wheels of pumice and its dependencies, tests and benchmarks with what they need, the Vulkan loader,
glslang, SPIRV-Tools and the validation layer from Debian's packages, and the benchmarks' programs as the peer compiles
them, with its runtime. ``run.py`` in it needs nothing else; docs/hardware.md says how to use it.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent
PYTHON = "3.12"
MOST_BYTES = 60_000_000
NAME = "pumice-gpu"
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "any")
TESTS = (
    "pytest>=8",
    "pytest-timeout>=2.3",
    "hypothesis>=6.100",
    "psutil>=5.9",
    "safetensors>=0.8",
    "iree-base-runtime>=3.13,<3.14",
)
# Only taken where the machine lacks them: a loader of its own, and the libraries of X that NVIDIA's driver loads, may
# be newer.
PACKAGES = {
    "loader": ("libvulkan1",),
    "x11": ("libx11-6", "libxext6", "libxcb1", "libxau6", "libxdmcp6", "libbsd0", "libmd0"),
    "tools": ("glslang-tools", "spirv-tools", "vulkan-validationlayers"),
}
UNWANTED = ("usr/share/man", "usr/share/lintian", "usr/share/bug")
FOLDERS = ("benchmarks", "docs", "examples", "shaders", "tests")
FILES = ("Makefile", "README.md", "CONTRIBUTING.md", "LICENSE", "pyproject.toml")


def run(command: Sequence[str | Path], folder: Path | None = None) -> str:
    """Runs a command and returns what it prints; where it fails, that is the error."""
    done = subprocess.run([*map(str, command)], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise click.ClickException(f"{' '.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def pack_wheels(folder: Path) -> None:
    """Puts the wheels of pumice, its dependencies, and what the tests need into a folder."""
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    bindings = [text for text in dependencies if text.startswith("vulkan")]  # only their source is published
    others = [text for text in dependencies if text not in bindings]
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    run([*pip, "wheel", "--no-deps", "-w", folder, *bindings, ROOT])
    command = [*pip, "download", "-d", folder, "--only-binary=:all:", "--python-version", PYTHON, *platforms]
    run([*command, *others, "cffi", *TESTS])


def pack_debian(folder: Path) -> None:
    """Unpacks Debian's packages, each group into a folder of its own."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise click.ClickException("the loader, the layer and the tools come from Debian's packages: pack on Debian 12")
    with tempfile.TemporaryDirectory() as temporary:
        for group, names in PACKAGES.items():
            run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *names], Path(temporary))
            for archive in Path(temporary).glob("*.deb"):
                run(["dpkg-deb", "-x", archive, folder / group])
                archive.unlink()
            for name in UNWANTED:
                shutil.rmtree(folder / group / name, ignore_errors=True)


def pack_checkout(folder: Path) -> None:
    """Copies what the tests and benchmarks need of the last commit: their files, not the package."""
    archive = folder.with_suffix(".tar")
    run(["git", "archive", "-o", archive, "HEAD", *FOLDERS, *FILES], ROOT)
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    archive.unlink()


def pack_built(folder: Path, *, seconds: int) -> None:
    """Compiles the benchmarks' C programs and the peer's modules, and puts them where the benchmarks keep them.

    What cannot be compiled here, or not in time, is left out: its benchmark says so.
    """
    program = (
        "import sys; sys.path.insert(0, 'benchmarks')\n"
        "import generated_kernels, peer_programs, kernel_programs, c_program\n"
        "generated_kernels._MODULES.mkdir(parents=True, exist_ok=True)\n"
        "c_program.build(); c_program.compile_c([c_program._SOURCE], c_program._LIBRARY, ('-shared', '-fPIC'))\n"
        "for each in peer_programs.PROGRAMS.values(): peer_programs.compiled(each)\n"
        "for name, case in kernel_programs.CASES.items():\n"
        "    try: generated_kernels.build_peer(name, case)\n"
        "    except Exception as error: print(name, error, file=sys.stderr)\n"
    )
    try:
        subprocess.run([sys.executable, "-c", program], cwd=ROOT, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        click.echo(f"gpu-bundle: the peer's modules were not all compiled within {seconds} s", err=True)
    kept = folder / "benchmarks" / "build"
    shutil.copytree(ROOT / "benchmarks" / "build", kept, dirs_exist_ok=True)
    version = ""
    if importlib.util.find_spec("iree.compiler") is not None:
        version = run([Path(sys.executable).parent / "iree-compile", "--version"])
    (folder / "iree-compile-version").write_text(version)


@click.command()
@click.option("--output", type=click.Path(path_type=Path), default=ROOT / "build" / f"{NAME}.tar.xz", show_default=True)
@click.option("--peer-time", default=600, show_default=True, help="Seconds for compiling the peer's modules.")
def main(output: Path, peer_time: int) -> None:
    """Writes the archive."""
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="pumice-bundle-") as temporary:
        folder = Path(temporary) / NAME
        steps = {
            "wheels": pack_wheels,
            "vulkan": pack_debian,
            "checkout": pack_checkout,
        }
        for name, step in steps.items():
            click.echo(f"gpu-bundle: {name}", err=True)
            (folder / name).mkdir(parents=True)
            step(folder / name)
        click.echo("gpu-bundle: programs of the benchmarks", err=True)
        pack_built(folder / "checkout", seconds=peer_time)
        for name in ("run.py", "prebuilt.py"):
            shutil.copy(HERE / name, folder)
        with tarfile.open(output, "w:xz", preset=3) as archive:
            archive.add(folder, NAME)
    size = output.stat().st_size
    click.echo(f"{output}: {size / 1e6:.1f} MB")
    if size > MOST_BYTES:
        raise click.ClickException(f"expected at most {MOST_BYTES / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
