"""The SPIRV-Tools executables (https://github.com/KhronosGroup/SPIRV-Tools): validate, disassemble, optimize.

Modules are passed over standard input and output; nothing is written to disk. All functions are safe to call from any
thread.

``PUMICE_SPIRV_TOOLS`` names the folder that holds the executables; without it ``PATH`` is searched.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...base.cache import CachedFile
from ...base.files import stamp
from ...base.install_hints import install_hint
from ...status import DeadlineExceededError, InvalidArgumentError, UnavailableError, UnknownError, shorten, shown

#: The executables that this module knows.
SPIRV_TOOLS: Final = ("spirv-val", "spirv-dis", "spirv-as", "spirv-opt")

_ENVIRONMENT_VARIABLE: Final = "PUMICE_SPIRV_TOOLS"
_TIMEOUT_SECONDS: Final = 60.0
# Checking a module takes milliseconds, and a program waits for it.
_CHECK_SECONDS: Final = 10.0
_MAX_MESSAGE: Final = 1000
# In either byte order; spirv-opt writes the module that it refuses.
_MAGIC: Final = (b"\x03\x02\x23\x07", b"\x07\x23\x02\x03")


def find_tool(name: str) -> Path:
    """Returns the executable of one of `SPIRV_TOOLS`.

    Raises:
        UnavailableError: the tool is not installed; the message says how to get it.
    """
    folder = os.environ.get(_ENVIRONMENT_VARIABLE)
    executable = shutil.which(name, path=folder or None)
    if executable is None:
        where = f"in the folder {shown(folder)} of {_ENVIRONMENT_VARIABLE}" if folder else "on PATH"
        raise UnavailableError(
            f"{name} was not found {where}. {install_hint('spirv-tools')} "
            f"Or set {_ENVIRONMENT_VARIABLE} to the folder that holds it."
        )
    return Path(executable).absolute()


def run_tool(
    executable: Path,
    arguments: Sequence[str],
    *,
    stdin: bytes = b"",
    cwd: Path | None = None,
    timeout: float = _TIMEOUT_SECONDS,
) -> subprocess.CompletedProcess[bytes]:
    """Runs one executable to its end, without a shell; an exit status above zero raises no error.

    Raises:
        DeadlineExceededError: the tool did not end in time.
        InvalidArgumentError: an argument cannot be passed to a process (it holds a NUL character).
        UnavailableError: the operating system could not start the tool.
        UnknownError: the tool crashed.
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
    """Returns a tool's output as one text of bounded length, whatever its encoding, without a module in it."""
    parts = [
        stream.decode("utf-8", "replace").strip()
        for stream in (result.stderr, result.stdout)
        if stream[:4] not in _MAGIC
    ]
    text = "\n".join(part for part in parts if part) or f"no message, exit status {result.returncode}"
    return shorten(text, _MAX_MESSAGE)


def printed(executable: Path, option: str = "--version") -> str:
    """Returns the output of an executable for a single option, cached on disk until the file changes."""
    try:
        changed = stamp(executable.stat())
    except OSError as error:
        raise UnavailableError(f"{executable} cannot be read: {error}; check that it is still installed") from error
    return _printed(executable, option, changed)


@functools.cache
def _printed(executable: Path, option: str, changed: tuple[int, ...]) -> str:
    kept = CachedFile("tools", (str(executable), option, changed))
    text = kept.load()
    if text is None:
        result = run_tool(executable, [option], timeout=_CHECK_SECONDS)
        text = result.stdout or result.stderr
        if result.returncode == 0:
            kept.store(text)
    return text.decode("utf-8", "replace").strip()


def validate(code: bytes, *, target_env: str = "vulkan1.2", options: Sequence[str] = ()) -> None:
    """Checks a module against the rules of the specification and of one environment of ``spirv-val --target-env``.

    ``options`` are further options of the tool, such as ``--scalar-block-layout``.

    Raises:
        InvalidArgumentError: the module breaks a rule (the message is the tool's own), or the installed
            tool does not know ``target_env``.
        UnavailableError: ``spirv-val`` is not installed.
        DeadlineExceededError: the tool did not end in time, so the module may be invalid.
    """
    _filter("spirv-val", ["--target-env", target_env, *options, "-"], code, timeout=_CHECK_SECONDS)


def disassemble(code: bytes) -> str:
    """Returns the assembly text of a SPIR-V module, with friendly names where the module has them.

    Raises:
        InvalidArgumentError: ``code`` cannot be decoded as SPIR-V.
        UnavailableError: ``spirv-dis`` is not installed.
    """
    return _filter("spirv-dis", ["--no-color", "-"], code).decode("utf-8", "replace")


def assemble(text: str, target_env: str) -> bytes:
    """Returns the module of an assembly text; numeric ids keep their numbers.

    Args:
        target_env: the value for ``spirv-as --target-env``, such as ``vulkan1.2`` or ``spv1.3``; it fixes the SPIR-V
            version.

    Raises:
        InvalidArgumentError: the text is wrong (the message is the tool's, with line and column), or the tool does not
            know ``target_env``.
        UnavailableError: ``spirv-as`` is not installed.
    """
    arguments = ["--preserve-numeric-ids", "--target-env", target_env, "-o", "-", "-"]
    result = run_tool(find_tool("spirv-as"), arguments, stdin=text.encode("utf-8", "surrogateescape"))
    if result.returncode != 0:
        raise InvalidArgumentError(f"spirv-as: {tool_message(result)}")
    return result.stdout


def optimize(code: bytes, target_env: str, passes: Sequence[str] = ("-O",)) -> bytes:
    """Returns a valid module after passes of ``spirv-opt``, by default those of ``-O``.

    Raises:
        InvalidArgumentError: the tool refuses the module.
        UnavailableError: ``spirv-opt`` is not installed.
    """
    return _filter("spirv-opt", [*passes, f"--target-env={target_env}", "-o", "-", "-"], code)


def version() -> str:
    """Returns the installed SPIRV-Tools' version line, such as ``SPIRV-Tools v2023.1 ...``.

    Raises:
        UnavailableError: ``spirv-val`` is not installed.
    """
    return (printed(find_tool("spirv-val")).splitlines() or ["unknown"])[0]


def _filter(name: str, arguments: Sequence[str], code: bytes, *, timeout: float = _TIMEOUT_SECONDS) -> bytes:
    if len(code) < 20 or len(code) % 4:
        raise InvalidArgumentError(
            f"expected a SPIR-V module: a header of 20 bytes and then whole 32-bit words, got {len(code)} bytes"
        )
    result = run_tool(find_tool(name), arguments, stdin=code, timeout=timeout)
    if result.returncode != 0:
        raise InvalidArgumentError(f"{name}: {tool_message(result)}")
    return result.stdout
