"""The commands of AmberScript that a run carries out: ``RUN``, ``EXPECT``, ``COPY``, ``REPEAT``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, get_args

from ..status import shown
from .script import (
    Buffer,
    BufferComparator,
    Command,
    Comparator,
    Copy,
    ExpectBuffer,
    ExpectTexels,
    ExpectValues,
    Pipeline,
    Repeat,
    Run,
    Tolerance,
)
from .source import Position, Source, Statement, as_number
from .values import parse_values

REPEATABLE: Final = ("RUN", "EXPECT", "COPY", "CLEAR", "CLEAR_COLOR", "CLEAR_DEPTH", "CLEAR_STENCIL")
_COMPARATORS: Final[tuple[Comparator, ...]] = get_args(Comparator)
_BUFFER_COMPARATORS: Final[tuple[BufferComparator, ...]] = get_args(BufferComparator)
_DRAWS: Final = ("DRAW_RECT", "DRAW_GRID", "DRAW_ARRAY", "RAYGEN")


class CommandParser:
    """Reads commands; ``buffers`` and ``pipelines`` are those declared before."""

    def __init__(self, source: Source, buffers: Mapping[str, Buffer], pipelines: Mapping[str, Pipeline]) -> None:
        self._source = source
        self._buffers = buffers
        self._pipelines = pipelines

    def command(self, line: Statement) -> Command:
        """Returns the command of a statement, and for ``REPEAT`` those of the lines up to its ``END``."""
        token = line.take("a command")
        if token.text == "REPEAT":
            return self._repeat(line)
        if token.text == "RUN":
            return self._run(line)
        if token.text == "EXPECT":
            return self._expect(line)
        if token.text == "COPY":
            return self._copy(line)
        raise self._source.error(f"{token.text} is for graphics pipelines, and this script has none", token.position)

    def _repeat(self, line: Statement) -> Repeat:
        count = line.integer("how often to repeat", 1)
        line.finish()
        commands: list[Command] = []
        for inner in self._source.block("REPEAT", line.first.position):
            if inner.first.text not in REPEATABLE:
                raise inner.unknown("a command that can be repeated", inner.first, REPEATABLE)
            commands.append(self.command(inner))
        return Repeat(count, tuple(commands), line.first.position)

    def _run(self, line: Statement) -> Run:
        timed = line.accept("TIMED_EXECUTION") is not None
        pipeline = line.choice("the name of a PIPELINE", self._pipelines)
        following = line.peek()
        if following is not None and following.text in _DRAWS:
            self._source.fail(
                f"{following.text} is for other pipelines; {pipeline.name} is compute", following.position
            )
        groups = tuple(line.integer(f"the number of workgroups in {axis}") for axis in "xyz")
        line.finish()
        return Run(pipeline.name, (groups[0], groups[1], groups[2]), timed, line.first.position)

    def _copy(self, line: Statement) -> Copy:
        source = self._buffer(line)
        line.expect("TO")
        target = self._buffer(line)
        line.finish()
        if source.name == target.name:
            self._source.fail(f"COPY: {source.name} cannot be copied to itself", line.first.position)
        if source.type != target.type or len(source.data) != len(target.data):
            self._source.fail(
                f"COPY takes buffers of one type and size; {source.name} is {source.type} of {len(source.data)} bytes, "
                f"{target.name} {target.type} of {len(target.data)}",
                line.first.position,
            )
        return Copy(source.name, target.name, line.first.position)

    def _buffer(self, line: Statement) -> Buffer:
        return line.choice("the name of a BUFFER", self._buffers)

    # -- expectations --------------------------------------------------------------------------------

    def _expect(self, line: Statement) -> Command:
        buffer = self._buffer(line)
        token = line.peek()
        if token is not None and token.text in _BUFFER_COMPARATORS:
            return self._expect_buffer(buffer, line)
        line.expect("IDX")
        index = line.position
        x = line.integer("the index")
        following = line.peek()
        if following is not None and following.text.isdigit():
            y = line.integer("the y coordinate")
            return self._expect_texels(buffer, x, y, line)
        return self._expect_values(buffer, x, index, line)

    def _expect_values(self, buffer: Buffer, offset: int, index: Position, line: Statement) -> ExpectValues:
        layout = buffer.layout
        tolerances = self._tolerances(line, 4)
        comparator = line.word("a comparator", _COMPARATORS)
        if tolerances and comparator != "EQ":
            self._source.fail(f"TOLERANCE is for EQ, not for {comparator}", line.first.position)
        values = parse_values(line, layout)
        elements = -(-len(values) // len(layout.segments))
        if offset % layout.size:
            self._source.fail(f"IDX is in bytes: expected a multiple of {layout.size}, an element's size", index)
        if offset + elements * layout.size > len(buffer.data):
            self._source.fail(
                f"{elements} element(s) from byte {offset} go past the end of {buffer.name} ({len(buffer.data)} bytes)",
                index,
            )
        return ExpectValues(buffer.name, offset, comparator, values, layout, line.first.position, tolerances)

    def _expect_texels(self, buffer: Buffer, x: int, y: int, line: Statement) -> ExpectTexels:
        line.expect("SIZE")
        width, height = line.integer("the width", 1), line.integer("the height", 1)
        channels = line.choice("a comparator of texels", {"EQ_RGB": 3, "EQ_RGBA": 4})
        color = tuple(line.integer("a channel's value", 0, 255) for _ in range(channels))
        tolerances = self._tolerances(line, channels)
        line.finish()
        extent = buffer.extent
        if extent is None:
            self._source.fail(
                f"{buffer.name} is no image, so it has no texels; compare by IDX alone", line.first.position
            )
        if x + width > extent.width or y + height > extent.height:
            self._source.fail(
                f"the rectangle goes past the edges of {buffer.name} ({extent.width} x {extent.height})",
                line.first.position,
            )
        return ExpectTexels(buffer.name, x, y, width, height, color, line.first.position, tolerances)

    def _expect_buffer(self, buffer: Buffer, line: Statement) -> ExpectBuffer:
        comparator = line.word("a comparator", _BUFFER_COMPARATORS)
        other = self._buffer(line)
        tolerance = 0.0
        if comparator != "EQ_BUFFER":
            line.expect("TOLERANCE")
            tolerance = line.number("the tolerance")
        line.finish()
        if buffer.type != other.type or buffer.standard != other.standard:
            self._source.fail(
                f"{comparator} compares buffers of one type; {buffer.name} is {buffer.type} {buffer.standard}, "
                f"{other.name} {other.type} {other.standard}",
                line.first.position,
            )
        if len(buffer.data) != len(other.data) or buffer.extent != other.extent:
            self._source.fail(
                f"{comparator} compares buffers of one size; {buffer.name} has {len(buffer.data)} bytes, {other.name} "
                f"{len(other.data)}",
                line.first.position,
            )
        if (
            comparator == "EQ_HISTOGRAM_EMD_BUFFER"
            and [(s.kind, s.bits) for s in buffer.layout.segments] != [("uint", 8)] * 4
        ):
            self._source.fail(
                f"{comparator} compares four channels of 8 bits; {buffer.name} is {buffer.type}", line.first.position
            )
        return ExpectBuffer(buffer.name, other.name, comparator, tolerance, line.first.position)

    def _tolerances(self, line: Statement, most: int) -> tuple[Tolerance, ...]:
        if not line.accept("TOLERANCE"):
            return ()
        return read_tolerances(line, most)


def read_tolerances(line: Statement, most: int) -> tuple[Tolerance, ...]:
    """Returns one to ``most`` tolerances, each a number or a percentage."""
    tolerances: list[Tolerance] = []
    while (token := line.peek()) is not None:
        text = token.text.removesuffix("%")
        value = as_number(text)
        if value is None:
            break
        line.take("a tolerance")
        if value < 0 or value != value:
            line.source.fail(f"a tolerance is 0 or more, got {shown(token.text)}", token.position)
        percent = text != token.text or line.accept("%") is not None
        tolerances.append(Tolerance(float(value), percent))
    if not tolerances:
        raise line.wrong("expected a tolerance")
    if len(tolerances) > most:
        line.source.fail(f"expected at most {most} tolerances, got {len(tolerances)}", line.first.position)
    return tuple(tolerances)
