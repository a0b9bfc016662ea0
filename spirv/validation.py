"""Validates SPIR-V before drivers see it, as drivers may crash on invalid modules.

``spirv-val`` checks each module once: that a module passed is remembered in the process and, by hash, in the cache
directory. Where the tool is not installed, modules go to the driver unchecked and a warning says so once; with
``PUMICE_REQUIRE_SPIRV_VAL=1``, meant for modules from untrusted sources, they are refused instead.

A valid module may still run forever, or index something other than a buffer (shared memory, push constants, arrays of a
function) out of bounds, which no Vulkan feature prevents. A GPU's driver contains both; lavapipe runs shaders in this
process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import os

from ..files import cache_directory
from ..status import UnavailableError
from . import tools as spirv_tools

_REQUIRE = "PUMICE_REQUIRE_SPIRV_VAL"
_log = logging.getLogger("pumice.spirv")
_passed: set[tuple[bytes, str]] = set()


def ensure_valid(code: bytes, target_env: str) -> None:
    """Returns if ``spirv-val`` passes the module for a target such as ``vulkan1.3``.

    Raises:
        InvalidArgumentError: the module breaks a rule; the message is the tool's.
        UnavailableError: the tool is not installed, and ``PUMICE_REQUIRE_SPIRV_VAL`` is set.
        DeadlineExceededError: the tool did not end in time.
    """
    key = (hashlib.sha256(code).digest(), target_env)
    if key in _passed:
        return
    try:
        tool = spirv_tools.find_tool("spirv-val")
    except UnavailableError as error:
        if os.environ.get(_REQUIRE, "") not in ("", "0"):
            raise
        _warn_once(error.message)
        return
    stamp = None
    if (directory := cache_directory()) is not None:
        version = hashlib.sha256(f"{tool}:{tool.stat().st_mtime_ns}".encode()).hexdigest()[:16]
        stamp = directory / "spirv-val" / f"{key[0].hex()}-{target_env}-{version}"
    if stamp is None or not stamp.exists():
        spirv_tools.validate(code, target_env=target_env)
        if stamp is not None:
            with contextlib.suppress(OSError):
                stamp.parent.mkdir(parents=True, exist_ok=True)
                stamp.touch()
    _passed.add(key)


@functools.cache
def _warn_once(reason: str) -> None:
    _log.warning("SPIR-V goes to the driver unchecked, and a damaged module may crash it: %s", reason)
