"""Where measurements go: a store, or a log that is replayed into one somewhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

from ..definition.sample import Sample

__all__ = ["Sink", "SinkLog", "WatchedSink"]


class Sink(Protocol):
    """Takes what is measured; ``Store`` is one, and says what the arguments are."""

    def add_samples(
        self, point: int, block: int, phase: str, samples: Sequence[Sample], flags: Sequence[int] | None = None
    ) -> None:
        """Samples of a point, of one block."""
        ...

    def set_status(self, point: int, status: str, reason: str = "") -> None:
        """How far a point has come."""
        ...

    def add_clock(
        self,
        device: str,
        *,
        host_ns: int,
        device_ticks: int | None = None,
        deviation_ns: float | None = None,
        ns_per_tick: float | None = None,
        calibrated: bool | None = None,
        frequency_mhz: float | None = None,
        memory_mhz: float | None = None,
        cpu_mhz: float | None = None,
        temperature_c: float | None = None,
        power_w: float | None = None,
        throttle: str | None = None,
    ) -> None:
        """A reading of clocks."""
        ...

    def add_reference(self, device: str, *, started_ns: int, duration_ns: float) -> None:
        """A run of the reference kernel."""
        ...

    def add_note(self, text: str, *, point: int | None = None, kind: str = "warning") -> None:
        """What a reader of the results has to know."""
        ...

    def add_peaks(self, device: str, peaks: Mapping[str, float], details: Mapping[str, object] | None = None) -> None:
        """Measured peaks of a device."""
        ...

    def add_device(self, device: str, *, name: str, driver: str, facts: Mapping[str, object]) -> None:
        """A device of this run."""
        ...


class SinkLog:
    """Keeps all calls, in order; it can be pickled, and replayed into another sink."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def add_samples(
        self, point: int, block: int, phase: str, samples: Sequence[Sample], flags: Sequence[int] | None = None
    ) -> None:
        """See ``Sink``."""
        self._calls.append(("add_samples", (point, block, phase, tuple(samples), flags), {}))

    def set_status(self, point: int, status: str, reason: str = "") -> None:
        """See ``Sink``."""
        self._calls.append(("set_status", (point, str(status), reason), {}))

    def add_clock(self, device: str, *, host_ns: int, **reading: Any) -> None:
        """See ``Sink``."""
        self._calls.append(("add_clock", (device,), {"host_ns": host_ns, **reading}))

    def add_reference(self, device: str, *, started_ns: int, duration_ns: float) -> None:
        """See ``Sink``."""
        self._calls.append(("add_reference", (device,), {"started_ns": started_ns, "duration_ns": duration_ns}))

    def add_note(self, text: str, *, point: int | None = None, kind: str = "warning") -> None:
        """See ``Sink``."""
        self._calls.append(("add_note", (text,), {"point": point, "kind": kind}))

    def add_peaks(self, device: str, peaks: Mapping[str, float], details: Mapping[str, object] | None = None) -> None:
        """See ``Sink``."""
        self._calls.append(("add_peaks", (device, dict(peaks), details), {}))

    def add_device(self, device: str, *, name: str, driver: str, facts: Mapping[str, object]) -> None:
        """See ``Sink``."""
        self._calls.append(("add_device", (device,), {"name": name, "driver": driver, "facts": dict(facts)}))

    def replay(self, sink: Sink) -> None:
        """Makes all calls again, on another sink."""
        for name, arguments, named in self._calls:
            getattr(sink, name)(*arguments, **named)


class WatchedSink:
    """Hands everything on to a sink, and keeps the error if one comes: what a sink cannot take is no fault of the point being measured.

    Attributes:
        failure: the first error of the sink, or ``None``.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.failure: BaseException | None = None

    def __getattr__(self, name: str) -> object:
        method = getattr(self._sink, name)

        def call(*arguments: Any, **named: Any) -> object:
            try:
                return method(*arguments, **named)
            except BaseException as error:
                self.failure = self.failure or error
                raise

        return call

    @classmethod
    def around(cls, sink: Sink) -> tuple[Sink, WatchedSink]:
        """The watched sink, as a sink and as what it is."""
        watched = cls(sink)
        return cast(Sink, watched), watched
