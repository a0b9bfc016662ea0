"""Compiled modules, called by a session and by the peer, with arrays as results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from support.peer import run_peer

import pumice
from pumice.hal_reference.program import Array

BOTH = ("vulkan", "reference")


def call_arrays(session: pumice.Session, function: str, *arguments: object) -> list[Array]:
    """Calls a function; returns its results as arrays."""
    results = session.call(function, *arguments, timeout=60)
    if results is None:
        return []
    return [np.asarray(value) for value in (results if isinstance(results, tuple | list) else [results])]


def load_main(session: pumice.Session, program: str | bytes) -> Callable[..., list[Array]]:
    """Loads a module, or compiles a program for both devices; returns its ``main``, which gives arrays."""
    module = pumice.compile(program, targets=BOTH) if isinstance(program, str) else program
    name = session.load(module).name
    return lambda *arguments: call_arrays(session, f"{name}.main", *arguments)


def peer_shows(folder: Path, module: bytes, inputs: Sequence[str], function: str = "main") -> str:
    """Calls a function in iree-run-module on Vulkan; returns what it prints."""
    path = folder / "module.vmfb"
    path.write_bytes(module)
    flags = ["--device=vulkan", f"--module={path}", f"--function={function}"]
    return run_peer("iree-run-module", *flags, *(f"--input={text}" for text in inputs)).stdout


def peer_results(
    folder: Path, module: bytes, arguments: Sequence[Array], results: int, function: str = "main"
) -> list[Array]:
    """Calls a function in iree-run-module on Vulkan; returns as many results."""
    path = folder / "module.vmfb"
    path.write_bytes(module)
    flags = ["--device=vulkan", f"--module={path}", f"--function={function}"]
    for index, value in enumerate(arguments):
        np.save(folder / f"{index}.npy", value)
        flags.append(f"--input=@{folder / f'{index}.npy'}")
    outputs = [folder / f"out{index}.npy" for index in range(results)]
    run_peer("iree-run-module", *flags, *(f"--output=@{output}" for output in outputs))
    return [np.load(output) for output in outputs]
