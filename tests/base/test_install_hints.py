"""What to install (``install_hints.py``) and the set-up program that acts on it (``tools/setup/vulkan.py``)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pumice.base import install_hints
from pumice.base.install_hints import COMPONENTS, PLATFORMS, Component, install_command, install_hint, packages
from pumice.status import InvalidArgumentError, UnavailableError
from pumice.tools.setup import vulkan as setup_vulkan
from pumice.tools.setup.vulkan import Findings

READY = Findings(devices=("a device (Vulkan 1.3)",), layers=("VK_LAYER_KHRONOS_validation",))
BARE = Findings(loader_error="no loader")


# -- texts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("what", COMPONENTS)
def test_every_hint_names_its_packages_in_whole_sentences(what: Component, platform: str) -> None:
    text = install_hint(what, platform)
    assert text.startswith("Install ") and text.endswith(".")
    sources = ("debian", "fedora", "arch") if platform == "linux" else (platform,)
    for source in sources:
        assert all(package in text for package in packages(what, source))
    # Without a package: Windows' driver, Valgrind and Xvfb where they do not run, and a distribution that is not known.
    without = {
        ("driver", "windows"),
        *((tool, system) for tool in ("valgrind", "xvfb") for system in ("windows", "macos")),
    }
    everywhere = {"hlsl": "pip install 'pumice[slang]'", "slang": "pip install 'pumice[slang]'", "wgsl": "naga-cli"}
    assert bool(packages(what, platform)) != ((what, platform) in without or platform == "linux" or what in everywhere)
    assert everywhere.get(what, "") in text


def test_no_platform_means_this_one() -> None:
    here = install_hints.detect_platform()
    assert here in PLATFORMS
    assert install_hint("loader") == install_hint("loader", here)
    assert packages("loader") == packages("loader", here)


def test_a_command_names_each_package_once_and_asks_for_root_where_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert install_command(["validation", "glslang", "spirv-tools"], "windows") == (
        "winget install KhronosGroup.VulkanSDK"
    )
    debian = install_command(COMPONENTS, "debian")
    assert debian is not None and debian.startswith("sudo apt-get install ")
    assert sorted(debian.split()[3:]) == sorted(name for what in COMPONENTS for name in packages(what, "debian"))
    assert str(install_command(["loader"], "macos")).startswith("brew ")
    assert install_command(["driver"], "windows") is None
    assert install_command(COMPONENTS, "linux") is None
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert install_command(COMPONENTS, "debian") == debian.removeprefix("sudo ")


@pytest.mark.parametrize(("what", "platform"), [("gpu", "debian"), ("loader", "beos"), ("loader", "")])
def test_unknown_names_are_refused_with_those_that_exist(what: str, platform: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"expected a (component|platform) of .*; got '"):
        install_hint(what, platform)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("system", "release", "expected"),
    [
        ("linux", {"ID": "debian"}, "debian"),
        ("linux", {"ID": "linuxmint", "ID_LIKE": "ubuntu debian"}, "debian"),
        ("linux", {"ID": "fedora"}, "fedora"),
        ("linux", {"ID": "rocky", "ID_LIKE": "rhel centos fedora"}, "fedora"),
        ("linux", {"ID": "manjaro", "ID_LIKE": "arch"}, "arch"),
        ("linux", {"ID": "alpine"}, "linux"),
        ("linux", None, "linux"),
        ("darwin", None, "macos"),
        ("win32", None, "windows"),
    ],
)
def test_platform_is_detected_from_the_system_and_os_release(
    monkeypatch: pytest.MonkeyPatch, system: str, release: dict[str, str] | None, expected: str
) -> None:
    def read() -> dict[str, str]:
        if release is None:
            raise OSError("no os-release")
        return release

    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(install_hints._host, "freedesktop_os_release", read)
    assert install_hints.detect_platform() == expected


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("loader", "lib/*-linux-*/libvulkan.so.1"),
        ("driver", "share/vulkan/icd.d/lvp_icd*.json"),
        ("validation", "share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json"),
        ("glslang", "bin/glslangValidator"),
        ("spirv-tools", "bin/spirv-val"),
        ("c-compiler", "bin/gcc"),
        ("vulkan-headers", "include/vulkan/vulkan.h"),
        ("cmake", "bin/cmake"),
        ("valgrind", "bin/valgrind"),
    ],
)
def test_debian_packages_own_the_files_they_are_named_for(what: Component, pattern: str) -> None:
    query = shutil.which("dpkg-query")
    found = sorted(Path("/usr").glob(pattern))
    if query is None or not found:
        pytest.skip(f"needs dpkg-query and an installed /usr/{pattern}")
    owner = subprocess.run([query, "--search", str(found[0])], capture_output=True, text=True, check=False)
    if owner.returncode != 0:
        pytest.skip(f"{found[0]} is of no Debian package")
    assert owner.stdout.split(":")[0] in packages(what, "debian")


# -- what is missing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("findings", "tools", "validation", "expected"),
    [
        (READY, (), True, ()),
        (READY, ("glslang",), False, ("glslang",)),
        (Findings(devices=("a GPU",)), (), False, ()),
        (Findings(devices=("a GPU",)), (), True, ("validation",)),
        (Findings(driver_error="none"), (), False, ("driver",)),
        (Findings(driver_error="none", drivers=("/usr/share/vulkan/icd.d/x.json",)), (), False, ("driver",)),
        (BARE, ("glslang", "spirv-tools"), True, ("loader", "driver", "validation", "glslang", "spirv-tools")),
        # A driver may be waiting for its loader: only the next look can tell.
        (Findings(loader_error="none", drivers=("/etc/vulkan/icd.d/nvidia_icd.json",)), (), False, ("loader",)),
        (Findings(loader_error="none", drivers=("/x.json",), layer_manifest=True), (), True, ("loader",)),
    ],
)
def test_missing_components(
    findings: Findings, tools: tuple[Component, ...], validation: bool, expected: tuple[Component, ...]
) -> None:
    assert setup_vulkan.missing(findings, tools, validation=validation) == expected


class Machine:
    """Stands in for the machine: a list of looks, one for each round, and the installs asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, looks: Sequence[Findings], *, may_install: bool = True) -> None:
        self.installed: list[tuple[Component, ...]] = []
        self._looks: Iterator[Findings] = iter(looks)
        monkeypatch.setattr(setup_vulkan, "look", lambda: next(self._looks))
        monkeypatch.setattr(setup_vulkan, "missing_tools", lambda: ())
        monkeypatch.setattr(setup_vulkan, "installer", lambda: ("apt-get",) if may_install else None)
        monkeypatch.setattr(setup_vulkan, "install", lambda wanted, apt_get: self.installed.append(tuple(wanted)))


def test_a_working_driver_installs_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine(monkeypatch, [READY])
    assert setup_vulkan.main(["--validation"]) == 0
    assert machine.installed == []
    assert "a device (Vulkan 1.3)" in capsys.readouterr().out


def test_a_bare_machine_takes_one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, [BARE, READY])
    assert setup_vulkan.ensure(validation=True) == READY
    assert machine.installed == [("loader", "driver", "validation")]


def test_a_gpu_driver_that_lacked_only_the_loader_gets_no_mesa(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, [Findings(loader_error="none", drivers=("/nvidia_icd.json",)), READY])
    setup_vulkan.ensure()
    assert machine.installed == [("loader",)]


def test_a_driver_manifest_that_proves_useless_takes_a_second_round(monkeypatch: pytest.MonkeyPatch) -> None:
    manifest = ("/nvidia_icd.json",)
    looks = [Findings(loader_error="none", drivers=manifest), Findings(driver_error="none", drivers=manifest), READY]
    machine = Machine(monkeypatch, looks)
    setup_vulkan.ensure()
    assert machine.installed == [("loader",), ("driver",)]


def test_packages_that_do_not_help_are_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    useless = Findings(driver_error="creating an instance failed", drivers=("/lvp_icd.json",))
    machine = Machine(monkeypatch, [useless] * 3)
    monkeypatch.setenv("VK_DRIVER_FILES", "/lvp_icd.json")
    assert setup_vulkan.main([]) == 1
    assert machine.installed == [("driver",)] * 2
    text = capsys.readouterr().err
    for part in (
        "not enough",
        "creating an instance failed",
        "/lvp_icd.json",
        "VK_DRIVER_FILES",
        install_hint("driver"),
    ):
        assert part in text


@pytest.mark.parametrize("arguments", [["--check"], []])
def test_where_nothing_may_be_installed_the_packages_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    machine = Machine(monkeypatch, [BARE], may_install="--check" in arguments)
    assert setup_vulkan.main(arguments) == 1
    assert machine.installed == []
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "missing: loader, driver" in captured.err
    command = install_command(["loader", "driver"])
    assert command is None or command in captured.err


def test_tools_of_tests_are_installed_where_they_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, [READY])
    looks = iter([("c-compiler", "valgrind"), ()])
    monkeypatch.setattr(setup_vulkan, "missing_test_tools", lambda: next(looks))
    assert setup_vulkan.main(["--test-tools"]) == 0
    assert machine.installed == [("c-compiler", "valgrind")]


def test_tools_of_tests_that_cannot_be_installed_are_named_and_no_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = Machine(monkeypatch, [READY], may_install=False)
    monkeypatch.setattr(setup_vulkan, "missing_test_tools", lambda: ("cmake", "valgrind"))
    assert setup_vulkan.main(["--test-tools"]) == 0
    assert machine.installed == []
    said = capsys.readouterr().err
    assert "tests of C programs or windows will skip" in said and "missing: cmake, valgrind" in said


def test_an_unknown_distribution_gets_every_known_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Machine(monkeypatch, [BARE], may_install=False)
    for module in (install_hints, setup_vulkan):
        monkeypatch.setattr(module, "detect_platform", lambda: "linux")
    assert setup_vulkan.main([]) == 1
    text = capsys.readouterr().err
    assert all(str(install_command(["loader", "driver"], name)) in text for name in ("debian", "fedora", "arch"))


# -- apt-get -----------------------------------------------------------------------------------------


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """A PATH with no programs but those that the test writes; each notes its command line."""
    log = tmp_path / "log"
    folder = tmp_path / "bin"
    folder.mkdir()

    def write(name: str, body: str = "exit 0") -> None:
        path = folder / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >> {log}\n{body}\n')
        path.chmod(0o755)

    monkeypatch.setenv("PATH", str(folder))
    return types.SimpleNamespace(
        write=write, calls=lambda: log.read_text().splitlines() if log.exists() else [], folder=folder
    )


needs_posix = pytest.mark.skipif(os.name != "posix", reason="apt-get and sudo are programs of POSIX systems")


@needs_posix
@pytest.mark.parametrize(
    ("there", "user", "expected"),
    [
        ((), 0, None),
        (("apt-get",), 0, ("env",)),
        (("apt-get",), 1000, None),
        (("apt-get", "sudo"), 1000, ("sudo", "-n", "env")),
        (("sudo",), 1000, None),
    ],
)
def test_apt_get_is_used_only_where_it_may_be(
    programs: types.SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    there: tuple[str, ...],
    user: int,
    expected: tuple[str, ...] | None,
) -> None:
    for name in there:
        programs.write(name)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    command = setup_vulkan.installer()
    assert (command and command[: len(expected or ())]) == expected
    assert command is None or "DEBIAN_FRONTEND=noninteractive" in command


@needs_posix
def test_a_sudo_that_asks_for_a_password_is_not_used(
    programs: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs.write("apt-get")
    programs.write("sudo", "exit 1")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert setup_vulkan.installer() is None
    assert programs.calls() == ["sudo -n true"]


@needs_posix
def test_install_asks_apt_get_for_exactly_the_packages(programs: types.SimpleNamespace) -> None:
    programs.write("apt-get", '[ "$1" = install ]')  # the update fails, which must not stop it
    setup_vulkan.install(COMPONENTS, [str(programs.folder / "apt-get")])
    wanted = [package for what in COMPONENTS for package in packages(what, "debian")]
    assert programs.calls() == ["apt-get update", f"apt-get install -y --no-install-recommends {' '.join(wanted)}"]


@needs_posix
def test_a_failed_install_carries_the_words_of_apt_get(programs: types.SimpleNamespace) -> None:
    programs.write("apt-get", "echo 'E: Unable to locate package' >&2; exit 100")
    with pytest.raises(UnavailableError, match=r"libvulkan1 \(exit status 100\):\nE: Unable to locate"):
        setup_vulkan.install(["loader"], [str(programs.folder / "apt-get")])


@needs_posix
def test_shader_tools_are_looked_for_where_the_shader_build_does(
    programs: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("PUMICE_GLSLC", "PUMICE_SPIRV_TOOLS"):
        monkeypatch.delenv(variable, raising=False)
    assert setup_vulkan.missing_tools() == ("glslang", "spirv-tools")
    programs.write("glslangValidator", "echo 'Glslang Version: 11:12.0.0'; echo 'glslang version 12.0.0'")
    assert setup_vulkan.missing_tools() == ("spirv-tools",)


@needs_posix
def test_tools_of_tests_are_looked_for_by_compiling(programs: types.SimpleNamespace) -> None:
    assert setup_vulkan.missing_test_tools() == ("c-compiler", "vulkan-headers", "cmake", "valgrind", "xvfb")
    programs.write("gcc", "exit 1")  # knows no header
    programs.write("cmake")
    assert setup_vulkan.missing_test_tools() == ("vulkan-headers", "valgrind", "xvfb")
    programs.write("gcc")
    programs.write("valgrind")
    programs.write("Xvfb")
    assert setup_vulkan.missing_test_tools() == ()
    assert "gcc -fsyntax-only -x c -" in programs.calls()


# -- the look ----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_library_that_cannot_be_opened_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PUMICE_VULKAN_LIBRARY", str(tmp_path / "libnone.so"))
    findings = setup_vulkan.look()
    assert findings.devices == () and findings.driver_error is None
    assert findings.loader_error is not None and "libnone.so" in findings.loader_error


@pytest.mark.slow
def test_driver_manifests_named_by_the_environment_replace_all_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    manifest = tmp_path / "some_icd.json"
    manifest.write_text("{}")
    monkeypatch.setenv("PUMICE_VULKAN_LIBRARY", str(tmp_path / "libnone.so"))
    monkeypatch.delenv("VK_ICD_FILENAMES", raising=False)
    monkeypatch.setenv("VK_DRIVER_FILES", os.pathsep.join([str(manifest), str(tmp_path / "absent.json")]))
    assert setup_vulkan.look().drivers == (str(manifest),)


@pytest.mark.slow
def test_driver_manifests_are_found_in_the_data_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    manifest = tmp_path / "vulkan" / "icd.d" / "some_icd.json"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("{}")
    monkeypatch.setenv("PUMICE_VULKAN_LIBRARY", str(tmp_path / "libnone.so"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.delenv(variable, raising=False)
    assert str(manifest) in setup_vulkan.look().drivers


def test_layer_manifests_are_found_where_the_loader_is_told_to_look(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def made(folder: str) -> Path:
        path = tmp_path / folder / "some.json"
        path.parent.mkdir(parents=True)
        path.write_text("{}")
        return path

    usual, added, only = made("data/vulkan/explicit_layer.d"), made("added"), made("only")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.delenv("VK_LAYER_PATH", raising=False)
    monkeypatch.setenv("VK_ADD_LAYER_PATH", str(added.parent))
    found = setup_vulkan.manifests("explicit_layer.d")
    assert found[0] == added and usual in found
    monkeypatch.setenv("VK_LAYER_PATH", str(only))  # a file, or a folder
    assert setup_vulkan.manifests("explicit_layer.d") == [added, only]


def _child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, body: str) -> None:
    """Puts a program in the place of the interpreter that runs the child."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setattr(setup_vulkan.sys, "executable", str(program))


@needs_posix
def test_a_driver_that_crashes_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _child(monkeypatch, tmp_path, "kill -SEGV $$")
    assert setup_vulkan.look().driver_error == "a driver crashed (SIGSEGV)"


@needs_posix
def test_a_child_that_cannot_run_is_an_error_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _child(monkeypatch, tmp_path, "echo 'ModuleNotFoundError: No module named cffi' >&2; exit 1")
    with pytest.raises(UnavailableError, match="No module named cffi"):
        setup_vulkan.look()


@pytest.mark.slow
def test_importing_pumice_loads_no_vulkan_library() -> None:
    script = (
        "import sys, pathlib, pumice, pumice.hal_vulkan, pumice.tools.setup.vulkan\n"
        "maps = pathlib.Path('/proc/self/maps')\n"
        "sys.exit(maps.exists() and 'libvulkan' in maps.read_text())"
    )
    environment = os.environ | {"PUMICE_VULKAN_LIBRARY": "/nonexistent/libvulkan.so"}
    child = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert (child.returncode, child.stderr) == (0, "")


@pytest.mark.vulkan
def test_the_look_lists_this_machines_devices() -> None:
    findings = setup_vulkan.look()
    assert findings.loader_error is None and findings.driver_error is None
    assert findings.devices and all("Vulkan 1." in device for device in findings.devices)


@pytest.mark.vulkan
def test_a_loader_without_drivers_is_a_driver_error_and_still_lists_layers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    layers = setup_vulkan.look().layers
    for variable in ("VK_DRIVER_FILES", "VK_ICD_FILENAMES"):
        monkeypatch.setenv(variable, str(tmp_path / "absent.json"))
    findings = setup_vulkan.look()
    assert findings.loader_error is None and findings.devices == ()
    assert findings.driver_error is not None
    assert findings.layers == layers
