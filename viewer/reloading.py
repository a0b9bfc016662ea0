"""A shader that is recompiled when its file, or an included file, is saved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from ..base.closeable import Closeable
from ..base.files import stamp
from ..spirv.sources.includes import included_files
from ..spirv.sources.language import Language, language_of
from ..status import PumiceError
from .picture import Picture

_EVERY: Final = 0.2


class Reloader(Closeable):
    """Watches the files of a shader, and makes the picture anew in a separate thread.

    Files are polled: editors replace files, network folders send no events, and checking a few files takes
    microseconds.

    Calling sequence: ``poll`` each frame → ``close``.

    Attributes:
        failure: the reason why the file as it is now yields no picture, or ``None``.
    """

    def __init__(self, path: Path, make: Callable[[], Picture], include_dirs: Sequence[Path] = ()) -> None:
        """Watches a shader's files.

        ``make`` makes the picture of the file as it is; a PumiceError describes its errors.
        """
        self._path, self._make, self._include_dirs = path, make, include_dirs
        self.failure: PumiceError | None = None
        self._thread = ThreadPoolExecutor(1, "pumice reload")
        self._pending: Future[Picture] | None = None
        self._files = self._watched()
        self._seen = self._stamps()
        self._next = 0.0

    def poll(self, now: float) -> Picture | None:
        """Returns a new picture, if one is ready; ``now`` is the host's clock in seconds."""
        made = None
        if self._pending is not None and self._pending.done():
            try:
                made = self._pending.result()
                self.failure = None
            except PumiceError as error:
                self.failure = error
            self._pending = None
        if self._pending is None and now >= self._next:
            self._next = now + _EVERY
            stamps = self._stamps()
            # A file that is missing is being replaced.
            if stamps != self._seen and None not in stamps:
                self._files = self._watched()
                self._seen = self._stamps()
                self._pending = self._thread.submit(self._make)
        return made

    def _watched(self) -> list[Path]:
        try:
            language = language_of(self._path) or Language.GLSL
            return [self._path, *included_files(self._path, self._include_dirs, language=language)]
        except PumiceError:  # the compiler says it better
            return self._files if hasattr(self, "_files") else [self._path]

    def _stamps(self) -> list[tuple[int, ...] | None]:
        return [_stamp(path) for path in self._files]

    def close(self) -> None:
        """Waits for a current compilation."""
        self._thread.shutdown(cancel_futures=True)
        if self._pending is not None and not self._pending.cancelled() and self._pending.exception() is None:
            self._pending.result().close()


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        return stamp(path.stat())
    except OSError:
        return None
