"""Validates SPIR-V before drivers see it, as drivers may crash on invalid modules.

``spirv-val`` checks each module once, by the rules of the features that the device was opened with. That a module
passed is remembered in the process and, by hash, in the cache. Debug information does not matter: a module that is
valid only without it passes, and the driver gets it without. If the tool is not installed, or older than the features
of a module, the module goes to the driver unchecked, and the first such module gives a warning. With
``PUMICE_REQUIRE_SPIRV_VAL=1``, meant for modules from untrusted sources, it is refused instead.

A valid module may still run forever, or index something other than a buffer (shared memory, push constants, arrays of a
function) out of bounds, which no Vulkan feature prevents. A GPU's driver survives both; lavapipe runs shaders in this
process.
"""

from __future__ import annotations

import enum
import functools
import hashlib
import logging
import re
from pathlib import Path
from typing import Final

from ...base.cache import CachedFile
from ...base.files import stamp
from ...base.install_hints import install_hint
from ...base.switches import switch
from ...status import InvalidArgumentError, UnavailableError
from ..binary.words import read_binary
from ..repair.hints import without_debug_info
from . import tools as spirv_tools
from .vocabulary import newer_than_validator, without_new_languages

_REQUIRE: Final = "PUMICE_REQUIRE_SPIRV_VAL"
# Rules that devices with these features relax.
_OPTIONS: Final = {
    "scalarBlockLayout": "--scalar-block-layout",
    "uniformBufferStandardLayout": "--uniform-buffer-standard-layout",
    "workgroupMemoryExplicitLayoutScalarBlockLayout": "--workgroup-scalar-block-layout",
    "maintenance4": "--allow-localsizeid",
    "maintenance8": "--allow-offset-texture-operand",
    "maintenance9": "--allow-vulkan-32-bit-bitwise",
}
# The last SPIR-V version of each Vulkan environment (Vulkan specification, "Versions and Formats").
_LAST_VERSION: Final = {"vulkan1.0": (1, 0), "vulkan1.1": (1, 3), "vulkan1.2": (1, 5)}
_log = logging.getLogger("pumice.spirv")
_Key = tuple[bytes, str, str]
_passed: dict[_Key, Judgement] = {}
_unjudged: dict[_Key, str] = {}


class Judgement(enum.IntEnum):
    """A tool's judgement of a module that breaks no rule; false for none.

    ``WITHOUT_DEBUG_INFO`` says that the module passes without its debug information, which the tool refuses.
    """

    NONE = 0
    VALID = 1
    WITHOUT_DEBUG_INFO = 2


def ensure_valid(code: bytes, target_env: str, features: frozenset[str] = frozenset()) -> Judgement:
    """Returns the judgement of ``spirv-val``, which is ``NONE`` if it is missing or too old to judge the module.

    Args:
        code: the module.
        target_env: the module's environment, such as ``vulkan1.3``; an older tool checks by its newest rules.
        features: the enabled features of the device, by their names in Vulkan's structures.

    Raises:
        InvalidArgumentError: the module breaks a rule; the message is the tool's.
        UnavailableError: the tool is not installed or older than the module's vocabulary, and
            ``PUMICE_REQUIRE_SPIRV_VAL`` is set.
        DeadlineExceededError: the tool did not end in time.
    """
    switch(_REQUIRE)  # a wrong value is an error whether or not it is asked for
    options = " ".join(option for feature, option in _OPTIONS.items() if feature in features)
    key = (hashlib.sha256(code).digest(), target_env, options)
    if key in _passed:
        return _passed[key]
    try:
        tool = spirv_tools.find_tool("spirv-val")
    except UnavailableError as error:
        _unchecked(error.message)
        return Judgement.NONE
    if key in _unjudged:
        _unchecked(_unjudged[key])
        return Judgement.NONE
    verdict = CachedFile("spirv-val", (key, str(tool), stamp(tool.stat())))
    kept = verdict.load()
    if kept is not None:
        judgement = Judgement.WITHOUT_DEBUG_INFO if kept else Judgement.VALID
    else:
        judgement, newer = _judge(tool, code, target_env, options.split())
        if judgement is Judgement.NONE:
            _unjudged[key] = (
                f"{tool} ({spirv_tools.version()}) is older than what the shader uses ({newer}) and cannot judge it; "
                f"install a newer one. {install_hint('spirv-tools')}"
            )
            _unchecked(_unjudged[key])
            return judgement
        verdict.store(b"" if judgement is Judgement.VALID else b"without debug information")
    _passed[key] = judgement
    return judgement


def _judge(tool: Path, code: bytes, target_env: str, options: list[str]) -> tuple[Judgement, str]:
    """Returns the tool's judgement, and why there is none; raises if the module breaks a rule."""
    usage = spirv_tools.printed(tool, "--help")
    known = re.findall(r"\bvulkan1\.\d+\b(?!spv)", usage)
    if target_env not in known:
        target_env = max((environment for environment in known if environment < target_env), default=target_env)
        version = read_binary(code).version
        if version > _LAST_VERSION.get(target_env, version):
            return Judgement.NONE, f"SPIR-V {version[0]}.{version[1]}"
    # A tool that does not know an option checks by stricter rules.
    options = [option for option in options if option in usage]
    code = without_new_languages(code)
    try:
        spirv_tools.validate(code, target_env=target_env, options=options)
        return Judgement.VALID, ""
    except InvalidArgumentError as error:
        # Rules of debug information have changed between releases, and it has no effect on what a module does.
        plain = without_debug_info(code)
        if plain == code:
            return _unless_newer(code, error)
    try:
        spirv_tools.validate(plain, target_env=target_env, options=options)
    except InvalidArgumentError as error:
        return _unless_newer(plain, error)
    return Judgement.WITHOUT_DEBUG_INFO, ""


def _unless_newer(code: bytes, error: InvalidArgumentError) -> tuple[Judgement, str]:
    """Raises the error of a refused module, unless the tool is older than a word in it, which is returned."""
    newer = newer_than_validator(code, error.message)
    if not newer:
        raise error
    return Judgement.NONE, newer


def _unchecked(reason: str) -> None:
    if switch(_REQUIRE):
        raise UnavailableError(f"{_REQUIRE} asks for a verdict on every shader, but {reason}")
    _warn_once(reason)


@functools.cache
def _warn_once(reason: str) -> None:
    _log.warning("SPIR-V goes to the driver unchecked, and a damaged module may crash it: %s", reason)
