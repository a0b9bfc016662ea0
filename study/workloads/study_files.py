"""The files of points, read once: they are stored in results and sent to workers, and their copies are measured.

Copies have relative names in one folder: files in the study's folder keep theirs, others go to ``outside``, those of
the other side of a study to ``against``. Sources are compiled to ``compiled``; kernels that come with pumice are copied
there, too. So later changes of the files, their includes, the compiler or pumice do not change what is measured, and
only this machine needs the compiler.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath
from typing import Final

from ...base.files import reading_errors
from ...spirv.sources.language import language_of
from ...status import FailedPreconditionError, InvalidArgumentError, NotFoundError
from ..definition.kept_file import AGAINST, KeptFile, KeptFiles
from ..definition.point import Point
from ..definition.study import Study
from .kernel_settings import BUILTIN, kernel_code

_COMPILED_AWAY: Final = ("source", "defines", "language", "include_dirs")
_OF_KERNELS: Final = ("kernel", "pipeline")
_ROLES: Final = {"graph": "python"}
"""Roles of sources that are no modules, by kind of target."""
_OWN_FOLDERS: Final = (("outside",), ("compiled",), ("against",))
_MAX_MINOR: Final = 3  # that sources are compiled for, of Vulkan 1


class StudyFiles:
    """The files of a study's points, taken point by point.

    Args:
        study: the study of the points.
        sent: whether the files are for another machine; then files of any size are copied. Otherwise files that are too
            large to be kept stay in place, and inputs relative to the working folder are not taken.

    Attributes:
        contents: the copies by name, for ``unpack_files``.
    """

    def __init__(self, study: Study, *, sent: bool) -> None:
        self.contents: dict[str, bytes] = {}
        self._study = study
        self._sent = sent
        self._taken: dict[tuple[bool, str], tuple[str, KeptFile]] = {}  # with the name for the settings
        self._used: dict[int, tuple[KeptFile, ...]] = {}

    def used_by(self, point: int) -> tuple[KeptFile, ...]:
        """Returns the files of a point as stored in results; none before they were taken."""
        return self._used.get(point, ())

    def take(self, point: Point, minor: int) -> Point:
        """Takes the files of a point, sources compiled for Vulkan 1.minor; the returned point names the copies.

        Raises:
            PumiceError: a file cannot be read, sent or compiled.
            FailedPreconditionError: the earlier results kept only the file's hash, and the file has changed.
            NotFoundError: the earlier results did not keep the file.
        """
        kind, settings = self._study.kind_of(point), dict(point.settings)
        used: dict[str, KeptFile] = {}

        def taken(name: str, file: KeptFile) -> str:
            used[file.name] = file
            return name

        source = settings.get("source")
        compiled = {}
        if kind in _OF_KERNELS and isinstance(source, str) and _is_compiled(source, settings):
            compiled["source"] = taken(*self._compile(point, source, minor))
            for name in _COMPILED_AWAY:
                settings.pop(name, None)
        kept = self._kept(point)
        refuse = self._sent or (kept is not None and bool(kept.origin))
        mapped = map_files(
            kind, settings, lambda name, role: taken(*self._read(point, name, role)), working_folder=not refuse
        )
        self._used[point.index] = tuple(used.values())
        return replace(point, settings={**mapped, **compiled})

    def _kept(self, point: Point) -> KeptFiles | None:
        side = self._study.against if point.is_against else self._study
        return None if side is None else side.kept

    def _read(self, point: Point, name: str, role: str) -> tuple[str, KeptFile]:
        known = self._taken.get((point.is_against, name))
        if known is not None:
            return known
        path = self._study.folder_of(point) / name
        kept = self._kept(point)
        file = kept.files.get(name) if kept is not None else None
        if file is None and kept is not None and kept.origin:
            raise _not_kept(name, kept)
        if file is None or file.content is None:
            read = KeptFile.read(name, path, role)
            if file is not None and kept is not None and read.sha256 != file.sha256:
                raise FailedPreconditionError(
                    f"{kept.origin} keep only the SHA-256 of {name}, which has {file.size} bytes, and {path} is "
                    "another file now: put it back, or name the program that is to be measured"
                )
            file = read
        content = file.content
        if content is None and self._sent:
            with reading_errors(path):
                content = path.read_bytes()
        if content is None:
            copied = str(path.absolute())
        else:
            copied = self._place(point, name, role)
            self.contents[copied] = content
        return self._remember(point, name, copied, file)

    def _compile(self, point: Point, source: str, minor: int) -> tuple[str, KeptFile]:
        minor, settings = min(minor, _MAX_MINOR), point.settings
        key = _compiled_name(source, settings, minor)
        known = self._taken.get((point.is_against, key))
        if known is not None:
            return known
        kept = self._kept(point)
        if kept is not None and kept.origin:
            names = [_compiled_name(source, settings, older) for older in range(minor, -1, -1)]
            file = next((kept.files[name] for name in names if name in kept.files), None)
            if file is None or file.content is None:
                raise _not_kept(key, kept)
            content, stem = file.content, PurePath(source.removeprefix(BUILTIN)).stem
        else:
            content, stem = kernel_code(settings, self._study.folder_of(point), minor)
            file = KeptFile.of(key, content, "kernel")
        copied = f"{_prefix(point)}compiled/{len(self._taken)}/{stem}.spv"
        self.contents[copied] = content
        return self._remember(point, key, copied, file)

    def _remember(self, point: Point, name: str, copied: str, file: KeptFile) -> tuple[str, KeptFile]:
        if point.is_against:
            file = replace(file, name=AGAINST + file.name)
        self._taken[point.is_against, name] = (copied, file)
        return copied, file

    def _place(self, point: Point, name: str, role: str) -> str:
        path = PurePath(name)
        if role == "module":
            path = path.with_suffix(".vmfb")  # a program's, which was compiled
        inside = not path.is_absolute() and ".." not in path.parts and path.parts[:1] not in _OWN_FOLDERS
        copied = _prefix(point) + path.as_posix()
        if inside and copied not in self.contents:
            return copied
        return f"{_prefix(point)}outside/{len(self._taken)}/{path.name}"


def _prefix(point: Point) -> str:
    return "against/" if point.is_against else ""


def _not_kept(name: str, kept: KeptFiles) -> NotFoundError:
    known = ", ".join(kept.files) or "no file: they are of an earlier version of pumice, or nothing was measured"
    return NotFoundError(
        f"{kept.origin} do not keep {name}, so it cannot be measured again; they keep {known}. "
        "Name the program itself instead, or measure the results again"
    )


def _compiled_name(source: str, settings: Mapping[str, object], minor: int) -> str:
    """Names a source with all options that affect its SPIR-V, as on a command line."""
    if source.startswith(BUILTIN):
        return source
    words = [source]
    defines, folders = settings.get("defines"), settings.get("include_dirs")
    if isinstance(defines, Mapping):
        words += [f"-D{name}={value}" for name, value in defines.items()]
    if isinstance(folders, (list, tuple)):
        words += [f"-I{folder}" for folder in folders]
    for name in ("language", "entry_point"):
        if settings.get(name) is not None:
            words.append(f"--{name}={settings[name]}")
    return shlex.join([*words, f"--target-env=vulkan1.{minor}"])


def _is_compiled(name: str, settings: Mapping[str, object]) -> bool:
    """Whether the kernel is a source or one of pumice's, and no file of SPIR-V."""
    return name.startswith(BUILTIN) or settings.get("language") is not None or language_of(PurePath(name)) is not None


def map_files(
    kind: str, settings: Mapping[str, object], change: Callable[[str, str], str], *, working_folder: bool = False
) -> dict[str, object]:
    """Replaces all file names in a point's settings, by a function of the name and its role in ``KeptFile``.

    Inputs that continue reading a file (``+name``) or read all of one (``*name``) are relative to the working folder:
    they stay with ``working_folder``, and are an InvalidArgumentError without.
    """
    mapped = dict(settings)
    source = mapped.get("source")
    if isinstance(source, str) and not (kind in _OF_KERNELS and source.startswith(BUILTIN)):
        mapped["source"] = change(source, "kernel" if kind in _OF_KERNELS else _ROLES.get(kind, "module"))
    parameters = mapped.get("parameters")
    if isinstance(parameters, Mapping):
        mapped["parameters"] = {scope: change(str(name), "parameters") for scope, name in parameters.items()}
    for setting in ("bindings", "inputs"):
        buffers = mapped.get(setting)
        if isinstance(buffers, (list, tuple)):
            mapped[setting] = [_map_buffer(buffer, change, working_folder) for buffer in buffers]
    return mapped


def unpack_files(contents: Mapping[str, bytes], folder: Path) -> None:
    """Writes copies to a folder; InvalidArgumentError for a name outside it."""
    for name, data in contents.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts:
            raise InvalidArgumentError(f"expected a relative file name without .., got {name!r}")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def _map_buffer(buffer: object, change: Callable[[str, str], str], working_folder: bool) -> object:
    if not isinstance(buffer, Mapping):
        return _map_text(buffer, change, working_folder)
    return {**buffer, "init": _map_text(buffer["init"], change, working_folder)} if "init" in buffer else dict(buffer)


def _map_text(text: object, change: Callable[[str, str], str], working_folder: bool) -> object:
    if not isinstance(text, str):
        return text
    if text.lstrip().startswith(("+", "*")):
        if working_folder:
            return text
        raise InvalidArgumentError(
            f"expected @ and the name of a file in the study's folder, got {text!r}: files relative to the working "
            "folder are neither sent to other machines nor kept"
        )
    head, at, name = text.partition("@")
    return f"{head}@{change(name, 'input')}" if at else text
