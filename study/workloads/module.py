"""Calls of a compiled module's function: through a session, with the VM's own values, or asynchronously."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic_ns
from typing import Any, Final

import numpy as np

from ...hal_vulkan import PlanOptions
from ...runtime.arrays.array import DeviceArray
from ...runtime.profiling.profile import Profile
from ...runtime.sessions.session import Session
from ...runtime.sessions.session_function import SessionFunction
from ...runtime.sessions.session_options import SessionOptions
from ...runtime.values.parse import parse_values
from ...status import InvalidArgumentError
from ..definition.inputs import make_array, with_folder
from .clock import RawSample
from .workload import Load, Usage, Workload, WorkloadContext

# The reference's number of workgroups, as the number in a program's dispatches is unknown.
_GROUPS: Final = 64


class ModuleWorkload(Workload):
    """``in_flight`` calls of a function: ``call`` is the time until all are done, ``read`` the time to copy the results
    to the host.
    """

    def __init__(self, settings: Mapping[str, Any], context: WorkloadContext) -> None:
        super().__init__(context, PlanOptions(sanitize=settings["sanitize"] or None))
        self._settings = settings
        self._depth: int = settings["in_flight"]
        if self._depth > 1 and settings["path"] != "async":
            raise InvalidArgumentError(f'in_flight is {self._depth}: calls overlap with path "async" alone')
        parameters = {scope: str(context.folder / name) for scope, name in settings["parameters"].items()}
        options = SessionOptions(parameters=parameters, concurrent=self._depth > 1)
        self._session = Session(self.device, options=options)
        self._function: SessionFunction | None = None
        self._arguments: list[object] = []
        try:
            folder, texts = context.folder, list(settings["inputs"])
            for index, text in enumerate(texts):
                if isinstance(text, str):
                    values: list[Any] = parse_values([with_folder(text, folder)])
                else:
                    values = [make_array(text, "f32", folder, (context.seed, index), f"inputs[{index}]")]
                self._arguments += [self.device.asarray(v) if isinstance(v, np.ndarray) else v for v in values]
        except BaseException:
            self.close()
            raise

    def first(self) -> RawSample:
        """Loads the module, which creates its pipelines and runs its initializers, and calls the function once."""
        before = self._context.usage()
        begin = monotonic_ns()
        self._load()
        return self._run(begin, before, created=monotonic_ns())

    @property
    def load(self) -> Load:
        """The load of a call: dispatches of programs mostly have more workgroups than a processor has cores."""
        nbytes = sum(argument.nbytes for argument in self._arguments if isinstance(argument, DeviceArray))
        return Load(_GROUPS, 64, nbytes)

    def _load(self) -> None:
        self._session.load(self._context.folder / str(self._settings["source"]), timeout=self._context.timeout)
        functions = self._session.functions()
        names = [function.name for function in functions if "$" not in function.name]
        wanted = self._settings["function"]
        if wanted is not None:
            meant = [
                function.name for function in functions if wanted in (function.name, function.name.partition(".")[2])
            ]
            self._function = self._session.lookup(meant[0] if meant else str(wanted))
        elif len(names) == 1:
            self._function = self._session.lookup(names[0])
        else:
            raise InvalidArgumentError(f"say which function: the module has {', '.join(names) or 'none'}")

    def sample(self) -> RawSample:
        return self._run(-1, self._context.usage())

    def _run(self, begin: int, before: Usage, *, created: int = -1) -> RawSample:
        function, arguments = self._function, self._arguments
        assert function is not None
        timeout = self._context.timeout
        path = self._settings["path"]
        results: list[Any]
        called = monotonic_ns()
        if path == "async":
            calls = [function.submit(*arguments, timeout=timeout) for _ in range(self._depth)]
            results = [call.result() for call in calls]
        elif path == "direct":
            results = [function.call_bound(function.bind(*arguments), timeout=timeout)]
        else:
            results = [function(*arguments)]
        answered = monotonic_ns()
        done = -1
        if self._settings["read"]:
            for result in results:
                for output in result if isinstance(result, tuple) else (result,):
                    if isinstance(output, DeviceArray):
                        output.numpy()
            done = monotonic_ns()
        preemptions, cpu = self._context.usage_since(before)
        return RawSample(
            called if begin < 0 else begin,
            created=created,
            answered=answered,
            done=done,
            dispatches=self._depth,
            preemptions=preemptions,
            cpu=cpu,
        )

    def profile(self, count: int) -> Profile:
        """Takes further samples with every dispatch timed. The timing lengthens them: use the profile for shares of the
        time.
        """
        with self._session.profile(most_slowdown=None) as profile:
            for _ in range(count):
                self.sample()
        return profile

    def close(self) -> None:
        self._arguments = []
        self._session.close()
