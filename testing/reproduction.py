"""The calls before a failure as ``pumice run`` lines, with modules and inputs in files.

The lines run in the folder that they name. So do the lines of its ``reproduce.sh``, wherever the folder is moved.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ..base.lazy_dataclass import dataclass
from ..formats.element_type import ElementType, format_shape_and_type
from ..runtime import ArraySpec, DeviceArray, DeviceImage, Kernel
from ..status import InvalidArgumentError, PumiceError
from ..vm.execution.bytecode_module import BytecodeModule
from .closeness import NotCloseError
from .recording import Call, Input, KeptImage, host_copy

_SCRIPT: Final = "reproduce.sh"
_MAX_NAME: Final = 120


@dataclass(frozen=True, slots=True)
class Reproduction:
    """The files that were saved for a failure.

    Attributes:
        folder: the folder of the files.
        lines: the commands to run in it, the last call first.
        notes: the calls or arguments that could not be saved, with the reasons.
        pictures: the files that show the difference of arrays.
    """

    folder: Path
    lines: tuple[str, ...]
    notes: tuple[str, ...]
    pictures: tuple[str, ...]

    def text(self) -> str:
        """Returns the section of the test's report."""
        parts = []
        if self.lines:
            parts.append("to run the kernels and programs of this test again, the last one first:")
            parts += [f"  (cd {shlex.quote(str(self.folder))} && {line})" for line in self.lines]
        parts += [f"not saved: {note}" for note in self.notes]
        if self.pictures:
            parts.append(f"arrays and pictures of the difference: {', '.join(self.pictures)} in {self.folder}")
        return "\n".join(parts)


def folder_name(node: str) -> str:
    """Returns a name for a test's folder: ``tests-test_blur.py-test_edges-64``."""
    name = re.sub(r"[^A-Za-z0-9_.]+", "-", node).strip("-.")
    if len(name) > _MAX_NAME:
        import hashlib

        name = f"{name[: _MAX_NAME - 9]}-{hashlib.sha256(node.encode()).hexdigest()[:8]}"
    return name


def save(folder: Path, calls: Iterable[Call], error: BaseException | None, options: Sequence[str]) -> Reproduction:
    """Writes modules, inputs, and the arrays of a `NotCloseError`, to a folder that is emptied first.

    Args:
        folder: the folder of this test only.
        calls: the calls, in the order in which they were made.
        error: the test's error.
        options: the options of ``pumice run`` for all lines, such as ``--device lavapipe``.
    """
    if (folder / _SCRIPT).exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    notes: list[str] = []
    pictures: list[str] = []
    if isinstance(error, NotCloseError):
        pictures = error.save(folder)
    saved = list(calls)
    compared = None if not isinstance(error, NotCloseError) else _origin(error.got, saved)
    lines: list[str] = []
    for number, call in enumerate(saved):
        writer = _Writer(folder, f"{number}-" if len(saved) > 1 else "", call)
        wanted = error if compared is not None and compared[0] is call and isinstance(error, NotCloseError) else None
        try:
            words = writer.words(None if wanted is None or compared is None else compared[1], wanted)
        except (PumiceError, _NotKeptError) as why:
            notes.append(f"the call of {call.target.name}: {why}")
            continue
        lines.insert(0, shlex.join([*words, *options]))
    script = "".join(f"{line}\n" for line in lines)
    (folder / _SCRIPT).write_text(f'#!/bin/sh\ncd "$(dirname "$0")" || exit\n{script}', encoding="utf-8")
    return Reproduction(folder, tuple(lines), tuple(notes), tuple(pictures))


class _NotKeptError(Exception):
    """An argument that cannot be written down."""


class _Writer:
    """Writes the files of one call, whose names begin with ``prefix``, and makes its command line."""

    def __init__(self, folder: Path, prefix: str, call: Call) -> None:
        self._folder, self._prefix, self._call = folder, prefix, call

    def words(self, compared: int | None, wanted: NotCloseError | None) -> list[str]:
        """Returns the command, which expects the value of ``wanted`` as result number ``compared``."""
        target = self._call.target
        if isinstance(target, Kernel):
            return self._kernel(target, compared, wanted)
        return self._program(compared, wanted)

    def _kernel(self, kernel: Kernel, compared: int | None, wanted: NotCloseError | None) -> list[str]:
        made = kernel.made_from
        words = ["pumice", "run", self._file("kernel.spv", made.code)]
        if made.entry_point is not None:
            words += ["--entry", made.entry_point]
        for key, value in made.specialization.items():
            words += ["--spec", f"{key}={value}"]
        if made.subgroup_size is not None:
            words += ["--subgroup-size", str(made.subgroup_size)]
        for argument in self._call.inputs:
            if argument.value is not None or argument.why:
                words += [
                    "--binding",
                    f"{argument.key}={self._buffer(argument.read(), f'binding {argument.key}', _name(argument))}",
                ]
            if argument.sampler:
                words += ["--sampler", f"{argument.key}={argument.sampler}"]
        if self._call.push:
            words += ["--push", f"@{self._file('push.bin', self._call.push)}"]
        if self._call.groups is not None:
            groups = self._call.groups
            words += ["--groups", ",".join(map(str, groups)) if isinstance(groups, Sequence) else str(groups)]
        if wanted is not None and compared is not None:
            result = [item for item in self._call.inputs if item.written][compared]
            head = f"{result.value.head}=" if isinstance(result.value, KeptImage) else ""
            file = self._array("expected", _like(wanted, result.value))
            words += ["--expect", f"{result.key}={head}@{file}", *_tolerances(wanted)]
        return words

    def _program(self, compared: int | None, wanted: NotCloseError | None) -> list[str]:
        function = self._call.target
        assert not isinstance(function, Kernel)
        modules = [item for item in function.function.context.modules if isinstance(item, BytecodeModule)]
        own = next(item for item in modules if item.name == function.name.partition(".")[0])
        words = ["pumice", "run"]
        for module in [*(item for item in modules if item is not own), own]:
            if module.archive is None:
                raise _NotKeptError(f"the module {module.name} was made in memory")
            words += ["--module", self._file(f"{module.name}.vmfb", bytes(module.archive.data))]
        words += ["--function", function.name]
        for number, argument in enumerate(self._call.inputs):
            kept = argument.read()
            if isinstance(kept.value, (int, float)):
                words += ["--input", repr(kept.value)]
                continue
            words += ["--input", self._buffer(kept, f"argument {number}", f"input{number}")]
        if wanted is not None:
            for number in range(len(self._call.results)):
                expected = f"@{self._array('expected', _like(wanted, None))}" if number == compared else "(ignored)"
                words += ["--expected_output", expected]
            words += _tolerances(wanted)
        return words

    def _buffer(self, argument: Input, label: str, name: str) -> str:
        value = argument.value
        if isinstance(value, ArraySpec):
            try:
                return format_shape_and_type(value.shape, ElementType.from_dtype(value.dtype))
            except InvalidArgumentError:  # a structure, whose members are in the shader
                return f"{value.nbytes}xui8"
        if isinstance(value, KeptImage):
            return value.head + self._texels(value, name)
        if not isinstance(value, np.ndarray):
            raise _NotKeptError(f"{label}: {argument.why or f'{type(value).__name__} is not saved'}")
        if value.dtype.names is None:
            return f"@{self._array(name, value)}" if value.dtype.isbuiltin == 1 else self._raw(name, value)
        return f"{value.nbytes}xui8=@{self._file(f'{name}.bin', value.tobytes())}"

    def _texels(self, image: KeptImage, name: str) -> str:
        if image.array is not None:
            return f"=@{self._array(name, image.array)}"
        if image.texels is not None:
            return f"=@{self._file(f'{name}.bin', host_copy(image.texels).tobytes())}"
        return ""

    def _raw(self, name: str, value: np.ndarray) -> str:
        """Writes an array of a dtype that ``.npy`` files do not support, such as bfloat16."""
        spec = format_shape_and_type(value.shape, ElementType.from_dtype(value.dtype))
        return f"{spec}=@{self._file(f'{name}.bin', value.tobytes())}"

    def _array(self, name: str, value: np.ndarray) -> str:
        path = f"{self._prefix}{name}.npy"
        np.save(self._folder / path, value)
        return path

    def _file(self, name: str, data: bytes) -> str:
        (self._folder / f"{self._prefix}{name}").write_bytes(data)
        return f"{self._prefix}{name}"


def _name(argument: Input) -> str:
    """Returns the file name for a kernel's argument."""
    return "binding" + argument.key.replace("[", "-").rstrip("]")


def _tolerances(wanted: NotCloseError) -> list[str]:
    return ["--rtol", f"{wanted.rtol:g}", "--atol", f"{wanted.atol:g}"]


def _like(wanted: NotCloseError, argument: object) -> np.ndarray:
    """Returns the expected array in the dtype of the result and the shape of its argument."""
    expected = np.broadcast_to(wanted.expected, wanted.got.shape).astype(wanted.got.dtype)
    if isinstance(argument, (np.ndarray, ArraySpec, DeviceArray)) and argument.dtype == expected.dtype:
        expected = expected.reshape(argument.shape)
    return np.ascontiguousarray(expected)


def _origin(got: np.ndarray, calls: Sequence[Call]) -> tuple[Call, int] | None:
    """Returns the last call with this result, and the result's number. Contents are compared, as it may be a copy."""
    for call in reversed(calls):
        for number, result in enumerate(call.results):
            contents = _contents(result)
            if contents is None or contents.dtype != got.dtype or contents.size != got.size:
                continue
            if np.array_equal(contents.reshape(-1), got.reshape(-1), equal_nan=got.dtype.kind in "fc"):
                return call, number
    return None


def _contents(result: object) -> np.ndarray | None:
    if isinstance(result, np.ndarray):
        return result
    if isinstance(result, (DeviceArray, DeviceImage)) and not result.is_closed:
        try:
            return host_copy(result) if isinstance(result, DeviceArray) else result.numpy()
        except PumiceError:
            return None
    return None
