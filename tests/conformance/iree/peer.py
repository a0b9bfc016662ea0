"""The peer: IREE's own ``iree-run-module`` calling a compiled module, to check what these tests expect of pumice.

One process runs one call, so a program whose calls share state can be compared in its first call only.
"""

from __future__ import annotations

import json
import struct
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from conformance.program_corpus import DTYPES, Call, Value
from support.iree_releases import installed_tool

__all__ = ["PeerError", "run_call"]

_LIMIT_S = 120
# The tool counts both halves of a complex number's bits.
_NAMES: Mapping[np.dtype, str] = {dtype: name for name, dtype in DTYPES.items()} | {np.dtype(np.complex64): "cf64"}


class PeerError(Exception):
    """``iree-run-module`` failed; the text is what it said last."""


def write_safetensors(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes 32-bit floats as a safetensors file: u64 header length, JSON header, raw data."""
    header: dict[str, object] = {}
    end = 0
    for key, array in arrays.items():
        header[key] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in arrays.values()))


def run_call(
    module: Path,
    call: Call,
    like: Sequence[Value],
    *,
    device: str = "vulkan",
    parameters: Mapping[str, Mapping[str, np.ndarray]] | None = None,
) -> tuple[Value, ...]:
    """Calls a function and returns its results.

    Args:
        module: compiled module.
        call: function and arguments.
        like: values of the results' types: the tool writes bytes, whose type only the caller knows.
        device: ``vulkan``, ``local-task``, …
        parameters: arrays by scope and key, 32-bit floats.

    Raises:
        PeerError: the tool failed, or a result is not of the size that ``like`` says.
    """
    tool = installed_tool("iree-run-module")
    if tool is None:
        raise PeerError("iree-run-module was not found: install the peer extra")
    with TemporaryDirectory(prefix="peer-") as name:
        folder = Path(name)
        arguments = [str(tool), f"--device={device}", f"--module={module}", f"--function={call.function}"]
        for scope, arrays in (parameters or {}).items():
            write_safetensors(folder / f"{scope}.safetensors", arrays)
            arguments.append(f"--parameters={scope}={folder / scope}.safetensors")
        for index, value in enumerate(call.arguments):
            arguments.append(f"--input={_written(folder / f'in{index}.bin', value)}")
        outputs = [folder / f"out{index}.bin" for index in range(len(like))]
        arguments += [f"--output=@{path}" for path in outputs]
        done = subprocess.run(arguments, check=False, capture_output=True, text=True, timeout=_LIMIT_S)
        if done.returncode != 0:
            raise PeerError((done.stderr or done.stdout).strip()[:1000])
        return tuple(_read(path, value) for path, value in zip(outputs, like, strict=True))


def _written(path: Path, value: Value) -> str:
    if not isinstance(value, np.ndarray):
        return str(int(value)) if isinstance(value, bool) else str(value)
    path.write_bytes(np.ascontiguousarray(value).tobytes())
    extents = "".join(f"{extent}x" for extent in value.shape)
    return f"{extents}{_NAMES[value.dtype]}=@{path}"


def _read(path: Path, like: Value) -> Value:
    data = path.read_bytes()
    if isinstance(like, np.ndarray):
        if len(data) != like.nbytes:
            raise PeerError(f"expected {like.nbytes} bytes for {like.dtype}{list(like.shape)}, got {len(data)}")
        return np.frombuffer(data, like.dtype).reshape(like.shape)
    kind = "f" if isinstance(like, float) else "i"
    value = np.frombuffer(data, f"{kind}{len(data)}")[0]
    return float(value) if kind == "f" else int(value)
