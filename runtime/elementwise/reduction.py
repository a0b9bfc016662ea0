"""Kernels that combine the elements along axes into one."""

from __future__ import annotations

from collections.abc import Sequence
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

# Elements that one workgroup combines. Loops are short, as some drivers cut loops of an invocation after 65,535
# iterations.
_CHUNK: Final = LANES * 64
# The longest row that one invocation combines.
_SERIAL: Final = 64


class ReductionKernel(Generated):
    """A function of arrays that combines elements along axes, by expressions in GLSL.

    >>> norm = pumice.ReductionKernel("T[] x", "T y", "x * x", "a + b", "y = sqrt(a)", "0")
    >>> norm(x, axis=1)

    ``map_expr`` maps each element; ``reduce_expr`` combines two values ``a`` and ``b``, in any order and grouping;
    ``post_map_expr`` computes each result from the combined ``a``. Parameters are those of `ElementwiseKernel`. In
    ``map_expr``, ``i`` is the index of the element among the combined elements, and ``n`` is their count.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        map_expr: str,
        reduce_expr: str,
        post_map_expr: str | None = None,
        identity: str | int | float | None = None,
        name: str = "reduction",
        *,
        reduce_type: str | None = None,
        preamble: str = "",
    ) -> None:
        """Args:
            in_params, out_params: the parameters and the results; see `ElementwiseKernel`.
            map_expr: the value of an element.
            reduce_expr: the combination of ``a`` and ``b``: associative and commutative.
            post_map_expr: statements that assign results from ``a``; with ``None`` the only result is ``a``.
            identity: the identity element, for axes of length 0; without it these raise an error.
            name: for messages and profiles.
            reduce_type: the type of ``a`` and ``b``: a name as for parameters, or a GLSL type that the preamble
                declares; by default that of the first result.
            preamble: functions, types and macros in GLSL that the expressions use.

        Raises:
            InvalidArgumentError: a text is wrong; the message shows the place.
        """
        super().__init__(name, preamble)
        self._declare(in_params, out_params, "reduction")
        self._map = expression_of("map_expr", map_expr)
        self._reduce = expression_of("reduce_expr", reduce_expr)
        if post_map_expr is None:
            post_map_expr = f"{self._outputs[0].name} = a"
        self._post = text_of("post_map_expr", post_map_expr)
        self._identity = None if identity is None else constant_of("identity", identity)
        self._reduce_type = None if reduce_type is None else text_of("reduce_type", reduce_type)

    def __call__(
        self,
        *args: Argument,
        out: Result | tuple[Result, ...] | list[Result] | None = None,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        device: Device | None = None,
        **named: Argument,
    ) -> Result | tuple[Result, ...] | None:
        """Combines the elements along ``axis``, one or several; ``None`` combines all.

        Other arguments, results and errors are those of `ElementwiseKernel`. ``keepdims`` keeps the axes with length 1.
        """
        arguments = Arguments(self.name, self._inputs, self._outputs, args, named, out, device)
        axes = Axes(self.name, common_shape(self.name, arguments.inputs), axis)
        shape = axes.kept_shape(keepdims)
        if axes.count == 0 and axes.rows and self._identity is None:
            raise InvalidArgumentError(
                f"{self.name}: shape {axes.shape} has nothing along the axis to combine, and the kernel has no identity"
            )
        outputs = arguments.complete(self._outputs, shape)
        if axes.rows:
            self._run(arguments, axes, outputs)
        return arguments.results(outputs)

    def _run(self, arguments: Arguments, axes: Axes, outputs: list[Value]) -> None:
        device = arguments.device
        accumulator = Accumulator.of(self._reduce_type, outputs[0], arguments.dtypes)
        loads = Loads(
            arguments.inputs,
            geometry_of(axes.shape, arguments.shapes, axes.order),
            device.profile.limits.max_push_constants_size - 16,
        )
        letters = tuple(sorted(arguments.dtypes.items(), key=lambda item: item[0]))
        targets = [value.array for value in outputs if value.array is not None]
        types = tuple(target.dtype for target in targets)

        def combine(source: Loads | None, count: int, arrays: list[DeviceArray]) -> None:
            """Combines each row of the arguments, or of the chunks' combinations."""
            chunks = max(1, -(-count // _CHUNK))
            last = chunks == 1
            # If there are many short rows, each invocation combines one.
            serial = last and count <= _SERIAL and axes.rows >= LANES
            key = ("partials" if source is None else (source.key, letters), accumulator, types if last else (), serial)
            written = outputs if last else None
            kernel = self._kernel(device, key, lambda: self._load(arguments, source, accumulator, written, serial))
            push = {"_n": count, "_rows": axes.rows, "_chunks": chunks, **(source.push() if source is not None else {})}
            groups = -(-axes.rows // LANES) if serial else axes.rows * chunks
            if last:
                run(kernel, [*arrays, *targets], groups, push)
                return
            partials = device.empty(groups * accumulator.stride(kernel), np.uint8)
            run(kernel, [*arrays, partials], groups, push)
            combine(None, chunks, [partials])

        combine(loads, axes.count, loads.arrays(device))

    def _load(
        self,
        arguments: Arguments,
        loads: Loads | None,
        accumulator: Accumulator,
        outputs: list[Value] | None,
        serial: bool,
    ) -> Kernel:
        """Loads the kernel of a pass, which reads arguments or partial results, and writes partial or final ones."""
        parts = {"map_expr": self._map, "reduce_expr": self._reduce, "post_map_expr": self._post}
        parts |= {"identity": self._identity or "", "reduce_type": self._reduce_type or ""}
        program = Program(self._preamble, parts)
        program.alias(arguments.dtypes)
        accumulator.declare(program)
        program.member("_rows", "uint")
        program.member("_chunks", "uint")
        sizes = {"_in_ind": "int(_n * _rows)", "_out_ind": "int(_rows)"}
        sizes |= self._raw_lengths
        counted = self._counted
        kind = accumulator.computed
        if loads is not None:
            loads.declare(program)
            value = accumulator.made(quoted("map_expr", indexed(self._map, sizes)))
            body = (
                f"{kind} _value(uint _row, uint _at) {{\nuint _i = _row * _n + _at;\nconst int i = int(_at);\n{counted}"
                f"{loads.statements('_i')}{kind} _made = {value};\nreturn _made;\n}}\n"
            )
        else:
            program.buffer("_partials", accumulator.stored, "readonly")
            body = (
                f"{kind} _value(uint _row, uint _at) {{ return {accumulator.loaded('_partials[_row * _n + _at]')}; }}\n"
            )
        body += accumulator.function("_reduce", "a", "b", quoted("reduce_expr", self._reduce))
        body += f"void _finish(uint _row, {kind} a) {{\n"
        if outputs is None:
            program.buffer("_sums", accumulator.stored, "writeonly")
            body += f"_sums[_row] = {accumulator.converted('a')};\n}}\n"
        else:
            stores = []
            for output in outputs:
                parameter, element = output.declared, program.use(ELEMENTS[output.dtype])
                program.buffer(f"_{parameter.name}", element.stored, "writeonly")
                body += f"{element.computed} {parameter.name};\n"
                stores.append(f"_{parameter.name}[_row] = {element.converted(parameter.name)};\n")
            post = quoted("post_map_expr", indexed(self._post, sizes))
            body += f"{counted}{{{post};}}\n{''.join(stores)}}}\n"
        identity = None if self._identity is None else accumulator.made(quoted("identity", self._identity))
        body += _serial_main(kind, identity) if serial else _parallel_main(kind, identity)
        return program.load(arguments.device, body, self.name)


def _serial_main(kind: str, identity: str | None) -> str:
    """Returns a ``main`` in which each invocation computes one result."""
    return f"""void main() {{
uint _row = _group() * {LANES}u + gl_LocalInvocationIndex;
if (_row >= _rows) return;
{kind} _sum;
{f"if (_n == 0u) {{ _sum = {identity}; _finish(_row, _sum); return; }}" if identity is not None else ""}
_sum = _value(_row, 0u);
for (uint _at = 1u; _at < _n; ++_at) _sum = _reduce(_sum, _value(_row, _at));
_finish(_row, _sum);
}}
"""


def _parallel_main(kind: str, identity: str | None) -> str:
    """Returns a ``main`` in which each workgroup combines a chunk of one result's elements."""
    return f"""shared {kind} _shared[{LANES}];
void main() {{
uint _job = _group(), _lane = gl_LocalInvocationIndex;
if (_job >= _rows * _chunks) return;
uint _row = _job / _chunks, _from = (_job % _chunks) * {_CHUNK}u, _to = min(_from + {_CHUNK}u, _n);
uint _busy = min(_to - _from, {LANES}u);
if (_lane < _busy) {{
{kind} _sum = _value(_row, _from + _lane);
for (uint _at = _from + _lane + {LANES}u; _at < _to; _at += {LANES}u) _sum = _reduce(_sum, _value(_row, _at));
_shared[_lane] = _sum;
}}
{f"else if (_n == 0u && _lane == 0u) {{ _shared[0] = {identity}; }}" if identity is not None else ""}
memoryBarrierShared();
barrier();
for (uint _half = {LANES // 2}u; _half > 0u; _half >>= 1) {{
if (_lane < _half && _lane + _half < _busy) _shared[_lane] = _reduce(_shared[_lane], _shared[_lane + _half]);
memoryBarrierShared();
barrier();
}}
if (_lane == 0u) _finish(_job, _shared[0]);
}}
"""
