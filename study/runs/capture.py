"""A capture of one sample by RenderDoc, through its in-application API.

RenderDoc sees only what begins after it: create ``RenderDoc()`` before Vulkan is loaded, then call ``capture_sample``.
Its layer lengthens calls, so captured samples are not timed. Source: renderdoc_app.h, version 1.1.2 of the API.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ...status import InvalidArgumentError, UnavailableError
from ..definition.expansion import expand
from ..definition.study import Study
from ..workloads.openers import open_workload
from ..workloads.workload import DevicePool, WorkloadContext
from .runner import minor_version
from .taken_files import TakenFiles

_LIBRARY: Final = {"win32": "renderdoc.dll"}.get(sys.platform, "librenderdoc.so")
_VERSION: Final = 10102
# Indices of functions in the API's structure, which consists of pointers.
_SET_PATH, _COUNT, _GET, _START, _END, _FUNCTIONS = 11, 13, 14, 19, 21, 23
_ENABLES_LAYER: Final = "ENABLE_VULKAN_RENDERDOC_CAPTURE"


class RenderDoc:
    """RenderDoc, loaded into this process. UnavailableError: it is not installed, or too old."""

    def __init__(self) -> None:
        os.environ[_ENABLES_LAYER] = "1"
        try:
            library = ctypes.CDLL(_LIBRARY)
            get_api = library.RENDERDOC_GetAPI
        except (OSError, AttributeError) as error:
            raise UnavailableError(
                f"RenderDoc cannot be loaded: {error}. Install it, or name its folder in LD_LIBRARY_PATH, or leave "
                "--capture out"
            ) from error
        table = ctypes.c_void_p()
        if not get_api(_VERSION, ctypes.byref(table)) or not table.value:
            raise UnavailableError("this RenderDoc lacks version 1.1.2 of its API: install 1.0 or newer")
        self._table = (ctypes.c_void_p * _FUNCTIONS).from_address(table.value)

    def start(self, template: Path) -> None:
        """Begins a capture, to files whose names begin with ``template``."""
        self._call(_SET_PATH, None, [ctypes.c_char_p], os.fsencode(template))
        self._call(_START, None, [ctypes.c_void_p, ctypes.c_void_p], None, None)

    def end(self) -> Path:
        """Ends the capture; returns its file. UnavailableError: nothing was captured."""
        ended = self._call(_END, ctypes.c_uint32, [ctypes.c_void_p, ctypes.c_void_p], None, None)
        count = self._call(_COUNT, ctypes.c_uint32, [])
        if not ended or not count:
            raise UnavailableError(
                "RenderDoc captured nothing: its Vulkan layer is not active. Register it: `renderdoccmd vulkanlayer "
                "--register --user`"
            )
        length = ctypes.c_uint32()
        kinds = [ctypes.c_uint32, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint32), ctypes.c_void_p]
        self._call(_GET, ctypes.c_uint32, kinds, count - 1, None, ctypes.byref(length), None)
        name = ctypes.create_string_buffer(length.value + 1)
        self._call(_GET, ctypes.c_uint32, kinds, count - 1, name, ctypes.byref(length), None)
        return Path(os.fsdecode(name.value))

    def _call(self, index: int, result: type | None, kinds: Sequence[Any], *values: object) -> int:
        function = ctypes.CFUNCTYPE(result, *kinds)(self._table[index] or 0)
        return int(function(*values) or 0)


def capture_sample(
    study: Study, renderdoc: RenderDoc, path: Path, uri: str = "", *, validation: bool | None = None
) -> None:
    """Captures one sample of a study's only point, apart from its twin without timestamps, to a file.

    Raises:
        InvalidArgumentError: the study has several points.
        UnavailableError: nothing was captured.
    """
    points = [point for point in expand(study, [uri]) if point.target == study.targets[0].name]
    points = [point for point in points if not (point.is_baseline or point.is_against)]
    if len(points) != 1:
        raise InvalidArgumentError(f"a capture is of one point, and these are {len(points)}; leave axes out")
    with (
        tempfile.TemporaryDirectory(prefix="pumice-capture-") as folder,
        TakenFiles(study) as taken,
        DevicePool(validation=validation) as pool,
    ):
        point = taken.files.take(points[0], minor_version(validation, points[0]))
        taken.unpack()
        context = WorkloadContext(pool, point.device, taken.study.folder_of(point), study.sampling.seed)
        workload = open_workload(taken.study.kind_of(point), point, context, study.sampling)
        try:
            workload.first()
            renderdoc.start(Path(folder) / "sample")
            try:
                workload.sample()
            except BaseException:
                with contextlib.suppress(UnavailableError):
                    renderdoc.end()
                raise
            captured = renderdoc.end()
        finally:
            workload.close()
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(captured, path)
