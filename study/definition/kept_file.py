"""The files that a study measures, as stored in its results: a hash, and the content up to a limit."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from ...base.files import reading_errors
from ...base.lazy_dataclass import dataclass
from ...status import DataLossError

MAX_KEPT_BYTES: Final = 16 << 20
"""The size of the largest file whose content is stored in results."""

AGAINST: Final = "against: "
"""The prefix for names of files of the study's other side."""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that a study measures.

    Attributes:
        name: the file's name in the study's settings; of a source, with the options that it was compiled with.
        sha256: the SHA-256 of the content, in hexadecimal; of a source, that of its SPIR-V.
        size: the size in bytes.
        content: the content; ``None`` where it is only on disk.
        role: ``"kernel"``, ``"module"``, ``"python"``, ``"parameters"`` or ``"input"``.
    """

    name: str
    sha256: str
    size: int
    content: bytes | None
    role: str

    @classmethod
    def of(cls, name: str, content: bytes, role: str) -> KeptFile:
        """Makes the file from its content."""
        return cls(name, hashlib.sha256(content).hexdigest(), len(content), content, role)

    @classmethod
    def read(cls, name: str, path: Path, role: str) -> KeptFile:
        """Reads a file from disk; a file of more than ``MAX_KEPT_BYTES`` is only hashed.

        Errors as ``files.reading_errors``.
        """
        with reading_errors(path), path.open("rb") as file:
            content = file.read(MAX_KEPT_BYTES + 1)
            if len(content) <= MAX_KEPT_BYTES:
                return cls.of(name, content, role)
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return cls(name, digest, file.tell(), None, role)

    @property
    def packed(self) -> bytes | None:
        """The content as stored in results: compressed if that is shorter; None if it is too large."""
        if self.content is None or self.size > MAX_KEPT_BYTES:
            return None
        short = zlib.compress(self.content)
        return short if len(short) < self.size else self.content


def unpacked(name: str, sha256: str, size: int, stored: bytes | None) -> bytes | None:
    """Restores the content that ``KeptFile.packed`` stored. DataLossError: it is damaged."""
    if stored is None:
        return None
    try:
        content = stored if len(stored) == size else zlib.decompressobj().decompress(stored, size + 1)
    except zlib.error:
        content = b""
    if hashlib.sha256(content).hexdigest() != sha256:
        raise DataLossError(f"the results' copy of {name} is damaged: its SHA-256 is not {sha256}")
    return content


@dataclass(frozen=True, slots=True)
class KeptFiles:
    """Files, by name, that are measured instead of the files on disk.

    Attributes:
        files: the files by ``KeptFile.name``.
        origin: the name, for messages, of the results that the files come from; any other file is then an error. If
            empty, other files are read from disk.
        revision: the recorded commit of the files; see ``Revision.facts``.
    """

    files: Mapping[str, KeptFile]
    origin: str = ""
    revision: object = None
