"""Writes Perfetto traces: slices on tracks, on the host's monotonic clock, with flows between them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

from ...status import UnavailableError

_MONOTONIC: Final = 3  # BUILTIN_CLOCK_MONOTONIC
_SEQUENCE: Final = 1
_FIELDS: Final[dict[type, str]] = {bool: "bool_value", int: "int_value", float: "double_value"}


def check_perfetto() -> None:
    """Raises UnavailableError unless the ``perfetto`` package is installed."""
    TraceWriter()


class TraceWriter:
    """Writes packets. UnavailableError if the ``perfetto`` package is not installed."""

    def __init__(self) -> None:
        try:
            from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent
            from perfetto.trace_builder.proto_builder import TraceProtoBuilder
        except ImportError as error:
            raise UnavailableError(
                "writing Perfetto traces needs the perfetto package: pip install 'pumice[study]'"
            ) from error
        self._builder: Any = TraceProtoBuilder()
        self._begin = TrackEvent.TYPE_SLICE_BEGIN
        self._end = TrackEvent.TYPE_SLICE_END
        self._tracks = 0
        self._flows = 0

    def serialize(self) -> bytes:
        """Returns the trace."""
        data: bytes = self._builder.serialize()
        return data

    def track(self, name: str, parent: int = 0) -> int:
        """Returns a new track, below another track; the first track is the process's."""
        self._tracks += 1
        packet = self._builder.add_packet()
        packet.track_descriptor.uuid = self._tracks
        packet.track_descriptor.name = name
        if parent:
            packet.track_descriptor.parent_uuid = parent
        else:
            packet.track_descriptor.process.pid = os.getpid()
            packet.track_descriptor.process.process_name = name
        return self._tracks

    def flow(self) -> int:
        """Returns a new flow, an arrow between two slices: the first lists it in ``flows``, the second in ``ended``."""
        self._flows += 1
        return self._flows

    def slice(
        self,
        track: int,
        name: str,
        begin: float,
        end: float,
        category: str,
        arguments: dict[str, object] | None = None,
        *,
        flows: Sequence[int] = (),
        ended: Sequence[int] = (),
    ) -> None:
        """Writes an interval of a track. Intervals of one track are nested or disjoint, and written in order."""
        for kind, when in ((self._begin, begin), (self._end, end)):
            packet = self._builder.add_packet()
            packet.timestamp = max(0, round(when))
            packet.timestamp_clock_id = _MONOTONIC
            packet.trusted_packet_sequence_id = _SEQUENCE
            event = packet.track_event
            event.type = kind
            event.track_uuid = track
            if kind == self._begin:
                event.name = name
                event.categories.append(category)
                event.flow_ids.extend(flows)
                event.terminating_flow_ids.extend(ended)
                for key, value in (arguments or {}).items():
                    annotation = event.debug_annotations.add()
                    annotation.name = key
                    field = _FIELDS.get(type(value))
                    setattr(annotation, field or "string_value", value if field else str(value))
