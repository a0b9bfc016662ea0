"""Flags of iree-run-module that ``pumice run`` does not have, and what to do instead.

The flags are those that ``iree-run-module --help`` of release 3.13 lists.
"""

from __future__ import annotations

from typing import Final

_EXACT: Final = {
    "--list_drivers": "`pumice devices` lists what there is to run on",
    "--list_devices": "`pumice devices` lists them",
    "--dump_devices": "`pumice devices` and `pumice devices --json` describe them",
    "--trace_execution": "`pumice dump --disassemble` shows the program",
    "--parameter_mode": "parameter files are always mapped",
    "--device_lead_allocator": "the first --device is the one that arguments go to",
    "--vulkan_validation_layers": "--validation turns them on",
    "--vulkan_libvulkan_search_path": "the environment variable PUMICE_VULKAN_LIBRARY names the library",
    "--flagfile": "options are read from the command line only",
    "--agents_md": "see docs/cli.md",
    "--print_device_statistics": "--print_statistics reports device memory",
}
_PREFIXES: Final = {
    "--device_allocator": "memory is always allocated the same way",
    "--device_profiling_": "--time measures",
    "--device_replay_": "nothing can be captured or replayed",
    "--device_capture_": "start the program from the capturing tool instead",
    "--instrument_": "programs' instruments are not read",
    "--task_": "there are no worker threads to arrange",
    "--dump_task_": "there are no worker threads to arrange",
    "--vulkan_": "drivers have no settings here; see `pumice run --help`",
    "--amdgpu_": "every device is a Vulkan device",
    "--cuda_": "every device is a Vulkan device",
    "--hip_": "every device is a Vulkan device",
    "--metal_": "every device is a Vulkan device",
    "--local_": "every device is a Vulkan device",
    "--executable_": "every device is a Vulkan device",
}


def advice(option: str) -> str | None:
    """The message for a flag that only iree-run-module has; ``None`` for all other options."""
    name = option.partition("=")[0]
    hint = _EXACT.get(name) or next((text for prefix, text in _PREFIXES.items() if name.startswith(prefix)), None)
    return f"{name} is a flag of iree-run-module that pumice does not have: {hint}" if hint is not None else None
