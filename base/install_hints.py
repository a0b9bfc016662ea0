"""Packages to install if a part of Vulkan or a tool of the tests is missing, by platform.

The error of a missing Vulkan library, the set-up program (``tools/setup/vulkan.py``) and messages about shader tools
take their text from here. This module loads and probes nothing.

Sources of the names: the package indexes of Debian 12, Fedora, Arch Linux, Homebrew and winget.
"""

from __future__ import annotations

import os
import platform as _host
import sys
from collections.abc import Iterable, Mapping
from typing import Final, Literal, TypeAlias, get_args

from ..status import InvalidArgumentError

Component: TypeAlias = Literal[
    "loader",
    "driver",
    "validation",
    "glslang",
    "hlsl",
    "slang",
    "wgsl",
    "spirv-tools",
    "c-compiler",
    "vulkan-headers",
    "cmake",
    "valgrind",
    "xvfb",
]

COMPONENTS: Final[tuple[Component, ...]] = get_args(Component)

DRIVER_VARIABLES: Final = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")
"""Variables that restrict the Vulkan loader to listed drivers."""

_TITLES: Final[Mapping[Component, str]] = {
    "loader": "the Vulkan loader",
    "driver": "a Vulkan driver",
    "validation": "the Vulkan validation layers",
    "glslang": "the GLSL compiler glslang",
    "hlsl": "a compiler of HLSL, dxc or slangc",
    "slang": "the Slang compiler",
    "wgsl": "a compiler of WGSL, naga or tint",
    "spirv-tools": "SPIRV-Tools (spirv-as, spirv-dis, spirv-val)",
    "c-compiler": "a C compiler",
    "vulkan-headers": "the headers of Vulkan, and its loader to link with",
    "cmake": "CMake",
    "valgrind": "Valgrind",
    "xvfb": "the X server without a screen, Xvfb",
}

_PLATFORM_TITLES: Final[Mapping[str, str]] = {
    "debian": "Debian, Ubuntu",
    "fedora": "Fedora",
    "arch": "Arch Linux",
    "macos": "macOS with Homebrew",
    "windows": "Windows",
}

PLATFORMS: Final[tuple[str, ...]] = (*_PLATFORM_TITLES, "linux")

_COMMANDS: Final[Mapping[str, str]] = {
    "debian": "apt-get install",
    "fedora": "dnf install",
    "arch": "pacman -S",
    "macos": "brew install",
    "windows": "winget install",
}

# Drivers are Mesa's, for AMD and Intel GPUs and with lavapipe for the CPU. On macOS the driver is MoltenVK; on Windows
# it comes with the GPU. Valgrind and Xvfb exist on neither. Spaces separate several packages of one component.
_PACKAGES: Final[Mapping[Component, Mapping[str, str]]] = {
    "loader": {
        "debian": "libvulkan1",
        "fedora": "vulkan-loader",
        "arch": "vulkan-icd-loader",
        "macos": "vulkan-loader",
        "windows": "KhronosGroup.VulkanRT",
    },
    "driver": {
        "debian": "mesa-vulkan-drivers",
        "fedora": "mesa-vulkan-drivers",
        "arch": "vulkan-swrast",
        "macos": "molten-vk",
    },
    "validation": {
        "debian": "vulkan-validationlayers",
        "fedora": "vulkan-validation-layers",
        "arch": "vulkan-validation-layers",
        "macos": "vulkan-validationlayers",
        "windows": "KhronosGroup.VulkanSDK",
    },
    "glslang": {
        "debian": "glslang-tools",
        "fedora": "glslang",
        "arch": "glslang",
        "macos": "glslang",
        "windows": "KhronosGroup.VulkanSDK",
    },
    "spirv-tools": {
        "debian": "spirv-tools",
        "fedora": "spirv-tools",
        "arch": "spirv-tools",
        "macos": "spirv-tools",
        "windows": "KhronosGroup.VulkanSDK",
    },
    "c-compiler": {
        "debian": "gcc libc6-dev",
        "fedora": "gcc",
        "arch": "gcc",
        "macos": "gcc",
        "windows": "Microsoft.VisualStudio.2022.BuildTools",
    },
    "vulkan-headers": {
        "debian": "libvulkan-dev",
        "fedora": "vulkan-loader-devel",
        "arch": "vulkan-headers vulkan-icd-loader",
        "macos": "vulkan-headers vulkan-loader",
        "windows": "KhronosGroup.VulkanSDK",
    },
    "cmake": {"debian": "cmake", "fedora": "cmake", "arch": "cmake", "macos": "cmake", "windows": "Kitware.CMake"},
    # Valgrind needs the symbols of the dynamic loader, which Debian strips.
    "valgrind": {"debian": "valgrind libc6-dbg", "fedora": "valgrind", "arch": "valgrind"},
    "xvfb": {"debian": "xvfb", "fedora": "xorg-x11-server-Xvfb", "arch": "xorg-server-xvfb"},
}

NAGA_WASM: Final = "npm install --global naga-wasm@30.1.0"
"""The command that installs naga-wasm. Without a version npm gives a Node.js older than 24.12 an empty package."""

# Components that some or all platforms have no package for.
_EVERYWHERE: Final[Mapping[Component, str]] = {
    "hlsl": "`pip install 'pumice[slang]'`, or DirectXShaderCompiler, which the Vulkan SDK has",
    "slang": "`pip install 'pumice[slang]'`, or the Vulkan SDK, which has slangc",
    "wgsl": f"`cargo install naga-cli`, or `{NAGA_WASM}` with Node.js 18 or later (`pip install 'pumice[wgsl]'`)",
}

_LINUX_DRIVER_NOTE: Final = (
    " A GPU needs its vendor's driver or Mesa's; Mesa's lavapipe runs on the CPU. A container needs access to the"
    " host's driver (for NVIDIA, NVIDIA_DRIVER_CAPABILITIES must include graphics)."
)
_DRIVER_NOTES: Final[Mapping[str, str]] = {
    "debian": _LINUX_DRIVER_NOTE,
    "fedora": _LINUX_DRIVER_NOTE,
    "arch": _LINUX_DRIVER_NOTE
    + " On Arch Linux lavapipe is vulkan-swrast; GPUs take vulkan-radeon, vulkan-intel or nvidia-utils.",
    "macos": " MoltenVK is the driver there; it translates Vulkan to Metal.",
    "windows": " It comes with the display driver of the GPU's vendor (AMD, Intel, NVIDIA): install or update that.",
    "linux": _LINUX_DRIVER_NOTE,
}


def detect_platform() -> str:
    """Returns the platform of this process: one of ``PLATFORMS``.

    ``"linux"`` means a distribution not derived from Debian, Fedora or Arch, by ``ID`` and ``ID_LIKE`` of
    os-release(5).
    """
    if sys.platform == "darwin":
        return "macos"
    if sys.platform == "win32":
        return "windows"
    try:
        release = _host.freedesktop_os_release()
    except OSError:
        return "linux"
    kin = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    for name, ids in (("debian", {"debian", "ubuntu"}), ("fedora", {"fedora", "rhel"}), ("arch", {"arch"})):
        if kin & ids:
            return name
    return "linux"


def packages(component: Component, platform: str | None = None) -> tuple[str, ...]:
    """Returns the packages that contain a component; an empty tuple if no package manager has it.

    Raises:
        InvalidArgumentError: an unknown component or platform.
    """
    if component not in COMPONENTS:
        raise InvalidArgumentError(f"expected a component of {', '.join(COMPONENTS)}; got {component!r}")
    name = _known(platform)
    return tuple(_PACKAGES.get(component, {}).get(name, "").split())


def install_command(components: Iterable[Component], platform: str | None = None) -> str | None:
    """Returns the command that installs the components, or None if there is none.

    It starts with ``sudo`` if the package manager needs root and this process does not run as root.

    Raises:
        InvalidArgumentError: an unknown component or platform.
    """
    name = _known(platform)
    wanted = list(dict.fromkeys(package for component in components for package in packages(component, name)))
    if not wanted:
        return None
    needs_root = name in ("debian", "fedora", "arch")
    sudo = "sudo " if needs_root and getattr(os, "geteuid", lambda: 0)() != 0 else ""
    return f"{sudo}{_COMMANDS[name]} {' '.join(wanted)}"


def install_hint(component: Component, platform: str | None = None) -> str:
    """Returns instructions for installing a missing component.

    For ``"linux"`` (an unknown distribution) they cover all known distributions.

    Raises:
        InvalidArgumentError: an unknown component or platform.
    """
    name = _known(platform)
    titles = ("debian", "fedora", "arch") if name == "linux" else (name,)
    commands = [
        (install_command([component], platform_name), _PLATFORM_TITLES[platform_name]) for platform_name in titles
    ]
    ways = ", ".join(f"`{command}` ({title})" for command, title in commands if command) or _EVERYWHERE.get(component)
    text = f"Install {_TITLES[component]}: {ways}." if ways else f"Install {_TITLES[component]}."
    if component == "loader" and name == "windows":
        return text + " Current display drivers contain it too."
    return text + (_DRIVER_NOTES[name] if component == "driver" else "")


def driver_hint() -> str:
    """Returns how to get a driver: by clearing the variables that hide installed drivers, or by installing one."""
    hiding = [name for name in DRIVER_VARIABLES if os.environ.get(name)]
    hidden = [f"{name}={os.environ[name]} hides all other drivers: unset it, or install one. " for name in hiding]
    return "".join(hidden) + install_hint("driver")


def _known(platform: str | None) -> str:
    name = detect_platform() if platform is None else platform
    if name not in PLATFORMS:
        raise InvalidArgumentError(f"expected a platform of {', '.join(PLATFORMS)}; got {name!r}")
    return name
