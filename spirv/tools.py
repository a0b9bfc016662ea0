"""The SPIRV-Tools executables: validate, disassemble, assemble and optimize SPIR-V modules.

The only file that starts ``spirv-val``, ``spirv-dis``, ``spirv-as`` and ``spirv-opt``
(https://github.com/KhronosGroup/SPIRV-Tools).

Modules are passed over standard input and output; nothing is written to disk. The only state is each executable's
version, which is cached. All functions are safe to call from any thread.

``PUMICE_SPIRV_TOOLS`` names the folder that holds the executables; without it ``PATH`` is searched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ..install_hints import install_hint
from ..status import DeadlineExceededError, InvalidArgumentError, UnavailableError, UnknownError, shorten, shown

#: The executables this file knows.
SPIRV_TOOLS: Final = ("spirv-val", "spirv-dis", "spirv-as", "spirv-opt")

_ENVIRONMENT_VARIABLE: Final = "PUMICE_SPIRV_TOOLS"
_TIMEOUT_SECONDS: Final = 60.0
# Checking a module takes milliseconds, and a program waits for it.
_CHECK_SECONDS: Final = 10.0
_MAX_MESSAGE: Final = 1000

_versions: dict[tuple[str, int], str] = {}


def find_tool(name: str) -> Path:
    """The executable of one of the SPIRV-Tools.

    Args:
        name: one of `SPIRV_TOOLS`, without a suffix such as ``.exe``.

    Raises:
        InvalidArgumentError: ``name`` is none of them.
        UnavailableError: it is not installed; the message says how to get it.
    """
    if name not in SPIRV_TOOLS:
        raise InvalidArgumentError(f"expected one of {', '.join(SPIRV_TOOLS)}, got {shown(name)}")
    folder = os.environ.get(_ENVIRONMENT_VARIABLE)
    found = shutil.which(name, path=folder or None)
    if found is None:
        where = f"in the folder {shown(folder)} of {_ENVIRONMENT_VARIABLE}" if folder else "on PATH"
        raise UnavailableError(
            f"{name} was not found {where}. {install_hint('spirv-tools')} "
            f"Or set {_ENVIRONMENT_VARIABLE} to the folder that holds it."
        )
    return Path(found).absolute()


def run_tool(
    executable: Path,
    arguments: Sequence[str],
    *,
    stdin: bytes = b"",
    cwd: Path | None = None,
    timeout: float = _TIMEOUT_SECONDS,
) -> subprocess.CompletedProcess[bytes]:
    """Run one executable to its end, without a shell.

    Args:
        executable: what to run.
        arguments: its arguments, passed on as they are.
        stdin: the whole of its standard input.
        cwd: its working directory; ``None`` keeps this process's own.
        timeout: seconds after which it is killed.

    Returns:
        The exit status and both output streams. An exit status above zero is not an error here.

    Raises:
        DeadlineExceededError: it did not end in time.
        InvalidArgumentError: an argument cannot be passed to a process (it holds a NUL character).
        UnavailableError: the operating system could not start it.
        UnknownError: it crashed.
    """
    command = [str(executable), *arguments]
    try:
        result = subprocess.run(command, input=stdin, capture_output=True, timeout=timeout, cwd=cwd, check=False)
    except subprocess.TimeoutExpired:
        raise DeadlineExceededError(
            f"{executable.name} did not end within {timeout:g} s on {len(stdin)} bytes of input and was stopped; "
            "the input may be damaged, or too large for it"
        ) from None
    except OSError as error:
        raise UnavailableError(f"{executable} could not be started: {error}; check that it is executable") from error
    except ValueError as error:
        raise InvalidArgumentError(
            f"the arguments of {executable.name} cannot be passed: {shorten(str(error))}"
        ) from error
    if result.returncode < 0:
        raise UnknownError(
            f"{executable.name} was ended by signal {-result.returncode}: {tool_message(result)}; "
            "another version of the tool may accept this input"
        )
    return result


def tool_message(result: subprocess.CompletedProcess[bytes]) -> str:
    """A tool's output as one text of bounded length, whatever its encoding."""
    parts = [stream.decode("utf-8", "replace").strip() for stream in (result.stderr, result.stdout)]
    text = "\n".join(part for part in parts if part) or f"no message, exit status {result.returncode}"
    return shorten(text, _MAX_MESSAGE)


def executable_version(executable: Path, arguments: Sequence[str] = ("--version",)) -> str:
    """All that an executable prints about its version, cached until the file changes."""
    try:
        key = (str(executable), executable.stat().st_mtime_ns)
    except OSError as error:
        raise UnavailableError(f"{executable} cannot be read: {error}; check that it is still installed") from error
    known = _versions.get(key)
    if known is None:
        result = run_tool(executable, arguments, timeout=_CHECK_SECONDS)
        known = _versions[key] = (result.stdout or result.stderr).decode("utf-8", "replace").strip()
    return known


def validate(code: bytes, *, target_env: str = "vulkan1.2") -> None:
    """Check a SPIR-V module against the rules of the specification and of one client API.

    Args:
        code: the module's bytes, of either byte order.
        target_env: an environment of ``spirv-val --target-env``, such as ``vulkan1.1`` or ``spv1.5``.

    Raises:
        InvalidArgumentError: the module breaks a rule (the message is the tool's own), or the installed
            tool does not know ``target_env``.
        UnavailableError: ``spirv-val`` is not installed.
        DeadlineExceededError: it did not end in time, so the module may be invalid.
    """
    arguments = ["--target-env", _environment(target_env), "-"]
    _filter("spirv-val", arguments, _module(code), timeout=_CHECK_SECONDS)


def disassemble(code: bytes) -> str:
    """The assembly text of a SPIR-V module, with friendly names where the module has them.

    Raises:
        InvalidArgumentError: ``code`` cannot be decoded as SPIR-V.
        UnavailableError: ``spirv-dis`` is not installed.
    """
    return _filter("spirv-dis", ["--no-color", "-"], _module(code)).decode("utf-8", "replace")


def assemble(text: str, *, target_env: str = "vulkan1.2") -> bytes:
    """The SPIR-V module of an assembly text, not validated; see `validate`.

    Args:
        text: assembly as ``spirv-as`` reads it.
        target_env: fixes the SPIR-V version of the result (``vulkan1.1``: 1.3, ``vulkan1.2``: 1.5).

    Raises:
        InvalidArgumentError: a syntax error (line and column are in the message).
        UnavailableError: ``spirv-as`` is not installed.
    """
    try:
        source = text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(f"expected assembly text that UTF-8 can hold: {error}") from error
    return _filter("spirv-as", ["--target-env", _environment(target_env), "-o", "-", "-"], source)


def optimize(code: bytes, flags: Sequence[str] = ("-O",)) -> bytes:
    """Run passes of ``spirv-opt`` over a SPIR-V module.

    Args:
        code: the module's bytes; it should be valid, the passes assume so.
        flags: the tool's pass flags in order, such as ``-O``, ``-Os`` or ``--strip-debug``.

    Raises:
        InvalidArgumentError: a flag is not one, or the tool refuses the module or a flag.
        UnavailableError: ``spirv-opt`` is not installed.
    """
    for flag in flags:
        if not flag.startswith("-") or flag in ("-", "-o"):
            raise InvalidArgumentError(f"expected a spirv-opt pass flag such as '-O', got {shown(flag)}")
    return _filter("spirv-opt", [*flags, "-o", "-", "-"], _module(code))


def version() -> str:
    """The installed SPIRV-Tools' version line, such as ``SPIRV-Tools v2023.1 ...``.

    Raises:
        UnavailableError: ``spirv-val`` is not installed.
    """
    return (executable_version(find_tool("spirv-val")).splitlines() or ["unknown"])[0]


def _module(code: bytes) -> bytes:
    if len(code) < 20 or len(code) % 4:
        raise InvalidArgumentError(
            f"expected a SPIR-V module: a header of 20 bytes and then whole 32-bit words, got {len(code)} bytes"
        )
    return bytes(code)


def _environment(target_env: str) -> str:
    if not target_env or target_env.startswith("-"):
        raise InvalidArgumentError(f"expected a target environment such as 'vulkan1.2', got {shown(target_env)}")
    return target_env


def _filter(name: str, arguments: Sequence[str], stdin: bytes, *, timeout: float = _TIMEOUT_SECONDS) -> bytes:
    result = run_tool(find_tool(name), arguments, stdin=stdin, timeout=timeout)
    if result.returncode != 0:
        raise InvalidArgumentError(f"{name}: {tool_message(result)}")
    return result.stdout
