"""Runs a command under other Vulkan layers: ``python tests/support/layers.py newest make test``.

The layers are those that Debian's browser carries, years newer than Debian's own; its package is unpacked below
``build/layers`` unless it is installed. ``make test LAYERS=NAME`` runs the suite under them.

| name | layers |
| -- | -- |
| ``newest`` | the newest validation layer, with synchronization validation |
| ``newest-gpu`` | the same layer, which instruments shaders and checks their accesses; for parts of the suite |

Beside the layer lies Khronos's mock ICD, a driver that executes nothing; ``PUMICE_MOCK_ICD`` names it to the tests.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from typing import Final

from drivers import ROOT, browser_libraries

_BUILD: Final = ROOT / "build" / "layers"
_LAYER: Final = "libVkLayer_khronos_validation.so"
_MOCK: Final = "libVkICD_mock_icd.so"
# Layers ask for no more than the loader has; the true version is newer.
_VERSION: Final = "1.4.0"

SETTINGS: Final[Mapping[str, Mapping[str, str]]] = {
    "newest": {"VK_KHRONOS_VALIDATION_VALIDATE_SYNC": "1"},
    "newest-gpu": {"VK_KHRONOS_VALIDATION_GPUAV_ENABLE": "1"},
}


def environment(name: str) -> dict[str, str]:
    """Returns the variables that put these layers in the place of the machine's."""
    folder = browser_libraries(_BUILD, _LAYER, _MOCK)
    manifest = {
        "name": "VK_LAYER_KHRONOS_validation",
        "type": "GLOBAL",
        "library_path": str(folder / _LAYER),
        "api_version": _VERSION,
        "implementation_version": "1",
        "description": "Khronos Validation Layer",
        "instance_extensions": [
            {"name": name, "spec_version": "1"}
            for name in ("VK_EXT_debug_report", "VK_EXT_debug_utils", "VK_EXT_validation_features")
        ],
    }
    _BUILD.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"file_format_version": "1.2.0", "layer": manifest})
    (_BUILD / "VkLayer_khronos_validation.json").write_text(text, encoding="utf-8")
    return {"VK_LAYER_PATH": str(_BUILD), "PUMICE_MOCK_ICD": str(folder / _MOCK), **SETTINGS[name]}


def main(arguments: list[str]) -> None:
    """Replaces this process by the command, under the named layers."""
    if len(arguments) < 2 or arguments[0] not in SETTINGS:
        raise SystemExit(f"usage: layers.py {{{','.join(SETTINGS)}}} COMMAND…")
    name, *command = arguments
    os.execvpe(command[0], command, {**os.environ, **environment(name)})


if __name__ == "__main__":
    main(sys.argv[1:])
