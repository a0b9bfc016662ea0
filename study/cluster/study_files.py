"""The files that points name, sent with the points to the workers.

Sent files have relative names in one folder: those in the study's folder keep them, others go to ``outside``. GLSL is
sent as compiled SPIR-V, in ``compiled``, so that only this machine needs the compiler and the included files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Final

from ...files import reading_errors
from ...runtime.kernels.shader_source import load_shader
from ...spirv.sources.language import language_of
from ...spirv.sources.options import SourceOptions
from ...status import InvalidArgumentError
from ..definition.point import Point
from ..workloads.kernel_settings import source_options

_BUILTIN: Final = "builtin:"
_COMPILED_AWAY: Final = ("defines", "language", "include_dirs")


class StudyFiles:
    """The files of points in a folder, read point by point: ``contents`` by the name that each is sent under."""

    def __init__(self, folder: Path) -> None:
        self.contents: dict[str, bytes] = {}
        self._folder = folder
        self._names: dict[str, str] = {}  # names sent, by the study's names
        self._compiled: dict[tuple[str, str, int], str] = {}

    def take(self, kind: str, point: Point, minor: int) -> Point:
        """Reads the files of a point of a target of this kind, and compiles GLSL for Vulkan 1.minor; the returned point
        has the names that they are sent under. Raises if a file cannot be read, sent or compiled.
        """
        settings = dict(point.settings)
        source = settings.get("source")
        compiled = {}
        if kind in ("kernel", "pipeline") and isinstance(source, str) and _is_source(source, settings):
            compiled["source"] = self._compile(source, source_options(settings, self._folder), minor)
            for name in ("source", *_COMPILED_AWAY):
                settings.pop(name, None)
        return replace(point, settings={**map_files(kind, settings, self._read), **compiled})

    def _read(self, name: str) -> str:
        shipped = self._names.get(name)
        if shipped is None:
            shipped = self._place(name)
            file = self._folder / name
            with reading_errors(file):
                self.contents[shipped] = file.read_bytes()
            self._names[name] = shipped
        return shipped

    def _place(self, name: str) -> str:
        path = PurePath(name)
        inside = (
            not path.is_absolute() and ".." not in path.parts and path.parts[:1] not in (("outside",), ("compiled",))
        )
        return path.as_posix() if inside else f"outside/{len(self._names)}/{path.name}"

    def _compile(self, name: str, options: SourceOptions, minor: int) -> str:
        key = (name, repr(options), minor)
        shipped = self._compiled.get(key)
        if shipped is None:
            code, stem = load_shader(self._folder / name, options, minor=minor)
            shipped = self._compiled[key] = f"compiled/{len(self._compiled)}/{stem}.spv"
            self.contents[shipped] = code
        return shipped


def _is_source(name: str, settings: Mapping[str, object]) -> bool:
    told = settings.get("language") is not None and not name.startswith(_BUILTIN)
    return told or language_of(PurePath(name)) is not None


def map_files(kind: str, settings: Mapping[str, object], change: Callable[[str], str]) -> dict[str, object]:
    """A point's settings with all file names changed. InvalidArgumentError for an input that continues reading a file
    (``+name``) or reads all of one (``*name``): these are relative to the working folder.
    """
    mapped = dict(settings)
    source = mapped.get("source")
    if isinstance(source, str) and not (kind in ("kernel", "pipeline") and source.startswith(_BUILTIN)):
        mapped["source"] = change(source)
    parameters = mapped.get("parameters")
    if isinstance(parameters, Mapping):
        mapped["parameters"] = {scope: change(str(name)) for scope, name in parameters.items()}
    for setting in ("bindings", "inputs"):
        buffers = mapped.get(setting)
        if isinstance(buffers, (list, tuple)):
            mapped[setting] = [_map_buffer(buffer, change) for buffer in buffers]
    return mapped


def unpack_files(contents: Mapping[str, bytes], folder: Path) -> None:
    """Writes sent files to a folder; InvalidArgumentError for a name outside it."""
    for name, data in contents.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise InvalidArgumentError(f"expected a relative file name without .., got {name!r}")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _map_buffer(buffer: object, change: Callable[[str], str]) -> object:
    if isinstance(buffer, Mapping):
        return {**buffer, "init": _map_text(buffer["init"], change)} if "init" in buffer else dict(buffer)
    return _map_text(buffer, change)


def _map_text(text: object, change: Callable[[str], str]) -> object:
    if not isinstance(text, str):
        return text
    if text.lstrip().startswith(("+", "*")):
        raise InvalidArgumentError(
            f"expected @ and the name of a file in the study's folder, got {text!r}: files relative to the working "
            "folder are not sent to other machines"
        )
    head, at, name = text.partition("@")
    return f"{head}@{change(name)}" if at else text
