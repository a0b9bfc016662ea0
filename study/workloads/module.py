"""A function of a compiled module, called: through a session, with the virtual machine's own values, or in a session's thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...runtime.arrays.array import DeviceArray
from ...runtime.device import Device
from ...runtime.modules.hal.fence import HalFence
from ...runtime.profiling.profile import Profile
from ...runtime.sessions.session import Session
from ...runtime.sessions.session_function import SessionFunction
from ...runtime.sessions.session_options import SessionOptions
from ...runtime.values.parse import parse_values
from ...status import InvalidArgumentError
from ...vm.execution.deadlines import await_source
from ..definition.inputs import make_array, with_folder
from .clock import RawSample
from .workload import Surroundings

__all__ = ["ModuleWorkload"]


class ModuleWorkload:
    """One function; ``settings`` are those of kind ``module`` in ``target_settings``.

    A sample is ``in_flight`` calls; ``submit`` is the time until all of them are done, ``read`` that of copying the results out.
    """

    def __init__(self, settings: Mapping[str, Any], around: Surroundings) -> None:
        self._settings = settings
        self._around = around
        self.device: Device = around.pool.open(around.uri)
        self._clock = around.clock
        self._depth: int = settings["in_flight"]
        if self._depth > 1 and settings["path"] != "async":
            raise InvalidArgumentError(f'in_flight is {self._depth}: calls overlap with path "async" alone')
        parameters = {scope: str(around.folder / name) for scope, name in settings["parameters"].items()}
        options = SessionOptions(parameters=parameters, concurrent=self._depth > 1)
        self._session = Session(self.device, options=options)
        self._function: SessionFunction | None = None
        self._arguments: list[object] = []
        try:
            folder, texts = around.folder, list(settings["inputs"])
            for index, one in enumerate(texts):
                if isinstance(one, str):
                    values: list[Any] = parse_values([with_folder(one, folder)])
                else:
                    values = [make_array(one, "f32", folder, (around.seed, index), f"inputs[{index}]")]
                self._arguments += [self.device.asarray(v) if isinstance(v, np.ndarray) else v for v in values]
        except BaseException:
            self.close()
            raise

    def first(self) -> RawSample:
        """Loads the module, which makes its pipelines and runs its initializers, and calls once."""
        before = self._around.count_preemptions()
        begin = self._clock()
        self._load()
        return self._run(begin, before, created=self._clock())

    def _load(self) -> None:
        self._session.load(self._around.folder / str(self._settings["source"]), timeout=self._around.timeout)
        functions = self._session.functions()
        wanted = self._settings["function"]
        if wanted is not None:
            names = [one.name for one in functions if wanted in (one.name, one.name.partition(".")[2])]
            self._function = self._session.lookup(names[0] if names else str(wanted))
        elif len(functions) == 1:
            self._function = functions[0]
        else:
            names = [one.name for one in functions]
            raise InvalidArgumentError(f"say which function: the module has {', '.join(names) or 'none'}")

    def sample(self) -> RawSample:
        """``in_flight`` calls."""
        return self._run(-1, self._around.count_preemptions())

    def _run(self, begin: int, before: int, *, created: int = -1) -> RawSample:
        function, arguments, clock = self._function, self._arguments, self._clock
        assert function is not None
        timeout = self._around.timeout
        path = self._settings["path"]
        results: list[Any]
        called = clock()
        if path == "async":
            calls = [function.submit(*arguments, timeout=timeout) for _ in range(self._depth)]
            results = [call.result() for call in calls]
        elif path == "direct":
            results = [self._call_direct(function)]
        else:
            results = [function(*arguments)]
        returned = clock()
        done = -1
        if self._settings["read"]:
            for result in results:
                for one in result if isinstance(result, tuple) else (result,):
                    if isinstance(one, DeviceArray):
                        one.numpy()
            done = clock()
        preemptions = -1 if before < 0 else self._around.count_preemptions() - before
        return RawSample(
            called if begin < 0 else begin,
            created=created,
            called=called,
            returned=returned,
            done=done,
            dispatches=self._depth,
            preemptions=preemptions,
        )

    def _call_direct(self, function: SessionFunction) -> object:
        values, timeout = function.bind(*self._arguments), self._around.timeout
        if not function.signature.is_async:
            return function.call_direct(values, timeout=timeout)
        done = HalFence(self.device.hal)
        results = function.call_direct((*values, None, done), timeout=timeout)
        await_source(done, None)
        return results

    def profile(self, count: int) -> Profile:
        """Samples of its own with every dispatch timed, which disturbs them: for where the time goes, not for how much it is."""
        with self._session.profile(most_slowdown=None) as profile:
            for _ in range(count):
                self.sample()
        return profile

    def close(self) -> None:
        """Closes the session; idempotent."""
        self._arguments = []
        self._session.close()
