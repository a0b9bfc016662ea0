"""Kernels that combine each element with all previous elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ...status import InvalidArgumentError
from ..arrays.array import DeviceArray
from ..kernels.kernel import Kernel
from .accumulator import Accumulator
from .arguments import Argument, Arguments, Result, Value
from .geometry import Axes, common_shape, geometry_of
from .kernels import Generated, constant_of, expression_of, text_of
from .loads import Loads
from .program import LANES, Program, indexed, quoted, run
from .types import ELEMENTS

if TYPE_CHECKING:
    from ..device import Device

_ITEMS: Final = 8
# Elements that one workgroup scans.
_CHUNK: Final = LANES * _ITEMS
# The output of a step: results of rows of one chunk, the combination of each chunk, or results including earlier
# chunks.
_WHOLE: Final = "whole"
_TOTALS: Final = "totals"
_CARRIED: Final = "carried"


class ScanKernel(Generated):
    """Running combinations of arrays' elements, by expressions in GLSL.

    >>> cumsum = pumice.ScanKernel("T[] x", "T[] y", "a + b", neutral="0")
    >>> cumsum(x, axis=1)

    ``input_expr`` maps each element; ``scan_expr`` combines ``a`` with ``b``, which follows ``a``; ``output_statement``
    computes results from ``item``, the combination up to the element, and ``prev_item``, the combination of all
    previous elements. Parameters are those of `ElementwiseKernel`. ``i`` is the index of the element along the axis,
    and ``n`` the length of the axis.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        scan_expr: str = "a + b",
        *,
        input_expr: str | None = None,
        neutral: str | int | float | None = None,
        output_statement: str | None = None,
        exclusive: bool = False,
        name: str = "scan",
        scan_type: str | None = None,
        preamble: str = "",
    ) -> None:
        """Args:
            in_params, out_params: the parameters and the results; see `ElementwiseKernel`.
            scan_expr: the combination of ``a`` and ``b``: associative.
            input_expr: the value of an element; by default the first parameter.
            neutral: ``prev_item`` of the first element.
            output_statement: statements that assign results; with ``None`` the only result is ``item``, or
                ``prev_item`` with ``exclusive``.
            exclusive: whether to leave each element out of its own result.
            name: for messages and profiles.
            scan_type: the type of ``a`` and ``b``; by default that of the first result.
            preamble: functions, types and macros in GLSL that the expressions use.

        Raises:
            InvalidArgumentError: a text is wrong; the message shows the place.
        """
        super().__init__(name, preamble)
        self._declare(in_params, out_params, "scan")
        if not self._inputs:
            raise InvalidArgumentError("in_params is empty: nothing is scanned")
        if input_expr is None and self._inputs[0].is_raw:
            raise InvalidArgumentError(f"input_expr is missing, and {self._inputs[0].name} is raw: there is no element")
        self._input = expression_of("input_expr", self._inputs[0].name if input_expr is None else input_expr)
        self._scan = expression_of("scan_expr", scan_expr)
        if output_statement is None:
            output_statement = f"{self._outputs[0].name} = {'prev_item' if exclusive else 'item'}"
        elif exclusive:
            raise InvalidArgumentError("exclusive is for scans without an output_statement, which says it by prev_item")
        self._output = text_of("output_statement", output_statement)
        self._neutral = None if neutral is None else constant_of("neutral", neutral)
        self._uses_previous = "prev_item" in self._output
        if self._neutral is None and self._uses_previous:
            raise InvalidArgumentError("neutral is missing: prev_item of the first element is the neutral value")
        self._scan_type = None if scan_type is None else text_of("scan_type", scan_type)

    def __call__(
        self,
        *args: Argument,
        out: Result | tuple[Result, ...] | list[Result] | None = None,
        axis: int | None = None,
        device: Device | None = None,
        **named: Argument,
    ) -> Result | tuple[Result, ...] | None:
        """Scans along ``axis``; ``None`` scans all elements in C order, as one axis.

        Other arguments, results and errors are those of `ElementwiseKernel`.
        """
        arguments = Arguments(self.name, self._inputs, self._outputs, args, named, out, device)
        if axis is not None and (isinstance(axis, bool) or not isinstance(axis, int)):
            raise InvalidArgumentError(f"{self.name}: axis is an int or None, got {axis!r}")
        axes = Axes(self.name, common_shape(self.name, arguments.inputs), axis)
        shape = (axes.count,) if axis is None else axes.shape
        outputs = arguments.complete(self._outputs, shape)
        if axes.rows and axes.count:
            self._run(arguments, axes, outputs)
        return arguments.results(outputs)

    def _run(self, arguments: Arguments, axes: Axes, outputs: list[Value]) -> None:
        device = arguments.device
        accumulator = Accumulator.of(self._scan_type, outputs[0], arguments.dtypes)
        # Results are indexed like arguments.
        geometry = geometry_of(axes.shape, [*arguments.shapes, *[axes.shape] * len(outputs)], axes.order)
        loads = Loads(arguments.inputs, geometry, device.profile.limits.max_push_constants_size - 16, outputs)
        letters = tuple(sorted(arguments.dtypes.items(), key=lambda item: item[0]))

        def kernel_of(source: Loads | None, step: str) -> Kernel:
            key = ("sums" if source is None else (source.key, letters), accumulator, step)
            return self._kernel(device, key, lambda: self._load(arguments, source, accumulator, outputs, step))

        def scan(source: Loads | None, count: int, arrays: list[DeviceArray], targets: list[DeviceArray]) -> None:
            """Scans each row of the arguments, or of the chunks' combinations."""
            chunks = -(-count // _CHUNK)
            push = {"_n": count, "_rows": axes.rows, "_chunks": chunks, **(source.push() if source is not None else {})}
            if chunks == 1:
                run(kernel_of(source, _WHOLE), [*arrays, *targets], axes.rows, push)
                return
            totalling = kernel_of(source, _TOTALS)
            size = axes.rows * chunks * accumulator.stride(totalling)
            totals, carries = device.empty(size, np.uint8), device.empty(size, np.uint8)
            run(totalling, [*arrays, totals], axes.rows * chunks, push)
            scan(None, chunks, [totals], [carries])
            run(kernel_of(source, _CARRIED), [*arrays, carries, *targets], axes.rows * chunks, push)

        scan(loads, axes.count, loads.arrays(device), [value.array for value in outputs if value.array is not None])

    def _load(
        self, arguments: Arguments, loads: Loads | None, accumulator: Accumulator, outputs: list[Value], step: str
    ) -> Kernel:
        """Loads the kernel of a step, which reads the arguments or the chunks' combinations."""
        parts = {"input_expr": self._input, "scan_expr": self._scan, "output_statement": self._output}
        program = Program(self._preamble, {**parts, "neutral": self._neutral or ""})
        program.alias(arguments.dtypes)
        accumulator.declare(program)
        program.member("_rows", "uint")
        program.member("_chunks", "uint")
        kind = accumulator.computed
        sizes = {"_ind": "int(_n)"} | self._raw_lengths
        counted = self._counted
        if loads is not None:
            loads.declare(program)
            start = f"uint _i = _row * _n + _at;\nconst int i = int(_at);\n{counted}{loads.statements('_i')}"
            made = accumulator.made(quoted("input_expr", indexed(self._input, sizes)))
            body = f"{kind} _value(uint _row, uint _at) {{\n{start}{kind} _made = {made};\nreturn _made;\n}}\n"
        else:
            program.buffer("_totals", accumulator.stored, "readonly")
            body = (
                f"{kind} _value(uint _row, uint _at) {{ return {accumulator.loaded('_totals[_row * _n + _at]')}; }}\n"
            )
        body += accumulator.function("_scan", "a", "b", quoted("scan_expr", self._scan))
        if step == _CARRIED:
            program.buffer("_carries", accumulator.stored, "readonly")
        if step == _TOTALS or loads is None:
            program.buffer("_sums", accumulator.stored, "writeonly")
        if step != _TOTALS:
            body += f"void _put(uint _row, uint _at, {kind} item, {kind} prev_item) {{\n"
            if loads is None:
                body += f"_sums[_row * _n + _at] = {accumulator.converted('item')};\n}}\n"
            else:
                body += start
                stores = []
                for output in outputs:
                    parameter, element = output.declared, program.use(ELEMENTS[output.dtype])
                    program.buffer(f"_{parameter.name}", element.stored, "writeonly")
                    body += f"{element.computed} {parameter.name};\n"
                    stores.append(f"{loads.place(parameter.name, '_i')} = {element.converted(parameter.name)};\n")
                body += f"{{{quoted('output_statement', indexed(self._output, sizes))};}}\n{''.join(stores)}}}\n"
        neutral = None
        if self._uses_previous and loads is not None and self._neutral is not None:
            neutral = accumulator.made(quoted("neutral", self._neutral))
        carry = accumulator.loaded("_carries[_job - 1u]") if step == _CARRIED else None
        return program.load(
            arguments.device, body + _main(kind, accumulator, step == _TOTALS, carry, neutral), self.name
        )


def _main(kind: str, accumulator: Accumulator, totals: bool, carry: str | None, neutral: str | None) -> str:
    """Returns a ``main`` in which each workgroup scans a chunk of a row.

    Each invocation scans a few items, then all invocations scan their combinations.
    """
    head = f"""shared {kind} _shared[{LANES}];
void main() {{
uint _job = _group(), _lane = gl_LocalInvocationIndex;
if (_job >= _rows * _chunks) return;
uint _row = _job / _chunks, _chunk = _job % _chunks, _from = _chunk * {_CHUNK}u;
uint _to = min(_from + {_CHUNK}u, _n), _first = _from + _lane * {_ITEMS}u;
uint _count = _first < _to ? min(_to - _first, {_ITEMS}u) : 0u, _busy = (_to - _from + {_ITEMS - 1}u) / {_ITEMS}u;
{kind} _items[{_ITEMS}];
if (_count > 0u) {{
_items[0] = _value(_row, _first);
for (uint _k = 1u; _k < _count; ++_k) _items[_k] = _scan(_items[_k - 1u], _value(_row, _first + _k));
_shared[_lane] = _items[_count - 1u];
}}
memoryBarrierShared();
barrier();
for (uint _step = 1u; _step < {LANES}u; _step <<= 1) {{
bool _takes = _lane >= _step && _lane < _busy;
{kind} _sum;
if (_takes) _sum = _scan(_shared[_lane - _step], _shared[_lane]);
memoryBarrierShared();
barrier();
if (_takes) _shared[_lane] = _sum;
memoryBarrierShared();
barrier();
}}
"""
    if totals:
        return f"{head}if (_lane == _busy - 1u) _sums[_job] = {accumulator.converted('_shared[_lane]')};\n}}\n"
    taken = "if (_lane > 0u) { _before = _shared[_lane - 1u]; _has = true; }\n"
    if carry is not None:
        joined = f"if (_has) _before = _scan({carry}, _before); else _before = {carry};"
        taken += f"if (_chunk > 0u) {{ {joined} _has = true; }}\n"
    unknown = "_previous" if neutral is None else neutral
    return f"""{head}if (_count == 0u) return;
{kind} _before, _previous;
bool _has = false;
{taken}if (_has) _previous = _before; else _previous = {unknown};
for (uint _k = 0u; _k < _count; ++_k) {{
{kind} _item = _items[_k];
if (_has) _item = _scan(_before, _item);
_put(_row, _first + _k, _item, _previous);
_previous = _item;
}}
}}
"""
