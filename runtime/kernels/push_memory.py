"""The pipeline of a kernel that reads its push constants from memory, made when a recording first needs it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeAlias

from ...base.closeable import Closeable
from ...hal_vulkan import ComputePipeline, Executable
from ...hal_vulkan.pipelines.specialization import PackedConstants
from ...spirv.binary.push_memory import with_push_constants_in_memory
from ...spirv.repair.specialize import specialize
from ...status import PumiceError

Made: TypeAlias = Callable[[bytes], tuple[Executable, ComputePipeline]]
"""Makes the executable of a module, and its pipeline."""

_log = logging.getLogger("pumice")


class PushMemory(Closeable):
    """Makes a kernel's second pipeline, whose last resource is a buffer with the block of push constants.

    Attributes:
        subgroup_size: the subgroup size that the kernel asks the driver for; 0 for none.

    Thread rule: any thread.
    """

    def __init__(
        self,
        code: bytes,
        pipeline: ComputePipeline,
        constants: PackedConstants,
        subgroup_size: int | None,
        make: Made,
    ) -> None:
        """Takes what the kernel's pipeline was made of; ``make`` makes the same of another module."""
        self._code = code
        self._constants = constants
        self.subgroup_size: int = subgroup_size or 0
        self._first = pipeline
        self._make = make
        self._lock = threading.Lock()
        self._executable: Executable | None = None
        self._pipeline: ComputePipeline | None = None
        self._is_known = False

    def pipeline(self) -> ComputePipeline | None:
        """Returns the pipeline; ``None`` where the module cannot be changed, or its shader reports."""
        with self._lock:
            if not self._is_known:
                self._is_known = True
                first = self._first
                if first.report is None and not first.interface.pushes_addresses:
                    try:
                        self._create()
                    except PumiceError as error:  # more resources than the device binds, say
                        _log.info("%s: its push constants stay in commands: %s", first.name, error)
            return self._pipeline

    def _create(self) -> None:
        moved = with_push_constants_in_memory(self._code)
        if moved is not None:
            self._executable, pipeline = self._make(moved)
            self._executable.close_modules()
            if pipeline.descriptor_count == self._first.descriptor_count + 1:
                self._pipeline = pipeline

    def specialized(self) -> bytes:
        """Returns the kernel's module with its specialization constants as defaults. For tools that save it."""
        return specialize(self._code, dict(self._constants))

    def close(self) -> None:
        with self._lock:
            self._is_known = True
            self._pipeline = None
            if self._executable is not None:
                self._executable.close()
