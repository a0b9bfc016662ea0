"""The peer's tools for tests; where one is missing the test skips and says what to install."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.iree_releases import VULKAN, CompileError, Compiler, installed_compiler, installed_tool

__all__ = ["CompileError", "compile_module", "peer_compiler", "peer_tool", "run_peer"]

LIMIT_S = 120


def peer_tool(name: str) -> Path:
    """The path of a tool of the peer extra."""
    path = installed_tool(name)
    if path is None:
        pytest.skip(f"needs {name} of the peer extra")
    return path


def peer_compiler() -> Compiler:
    """The installed compiler."""
    compiler = installed_compiler()
    if compiler is None:
        pytest.skip("needs iree-compile of the peer extra")
    return compiler


def compile_module(source: str, *flags: str, device: Sequence[str] = VULKAN, name: str | None = None) -> Path:
    """A program's module file, compiled once and kept: see `Compiler.compile`."""
    return peer_compiler().compile(source, flags, device=device, name=name)


def run_peer(name: str, *arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs a tool of the peer extra; ``check``: it has to succeed."""
    done = subprocess.run([peer_tool(name), *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert not check or done.returncode == 0, done.stderr[:4000]
    return done
