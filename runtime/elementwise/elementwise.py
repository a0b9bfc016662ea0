"""Kernels that compute each element of their results from the elements at the same index."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ...status import InvalidArgumentError
from ..arrays.spec import check_shape
from ..kernels.kernel import Kernel
from .arguments import Argument, Arguments, Result, Value
from .geometry import common_shape, geometry_of
from .kernels import Generated, text_of
from .loads import Loads
from .parameters import parse_parameters
from .program import LANES, Program, indexed, quoted, run
from .types import ELEMENTS

if TYPE_CHECKING:
    from ..device import Device


class ElementwiseKernel(Generated):
    """A function of arrays that computes each element by an expression in GLSL.

    >>> axpy = pumice.ElementwiseKernel("float a, float[] x, float[] y", "float[] z", "z = a * x + y")
    >>> axpy(2.0, x, y)

    Parameters are declared in a text, as types and names separated by commas. A type is a name from NumPy (``float32``)
    or C (``float``, ``unsigned char``), or a capital letter for the argument's type. ``TYPE name`` takes a number or an
    array, which is broadcast as in NumPy; ``TYPE[] name`` an array; ``raw TYPE name`` an array that the operation
    indexes itself. The operation may use ``i``, the index of the element, and ``n``, the element count.

    As in PyOpenCL, arguments and operation can also be two texts, with all arrays as pointers:
    ``ElementwiseKernel("float a, const float *x, float *y", "y[i] = a * x[i]")``.
    """

    def __init__(
        self,
        in_params: str,
        out_params: str,
        operation: str | None = None,
        name: str = "elementwise",
        *,
        preamble: str = "",
    ) -> None:
        """Args:
            in_params: the parameters; without ``operation``, all of them.
            out_params: the results; without ``operation``, this is the operation.
            operation: the statements that assign each result.
            name: the name in messages and profiles.
            preamble: the functions and macros in GLSL that the operation uses.

        Raises:
            InvalidArgumentError: a text is wrong; the message shows the place.
        """
        super().__init__(name, preamble)
        if operation is None:
            out_params, operation = "", out_params
        self._inputs = parse_parameters(in_params, "in_params")
        self._outputs = parse_parameters(out_params, "out_params", known=self._inputs)
        self._operation = text_of("operation", operation)
        if not self._operation.strip():
            raise InvalidArgumentError("operation is empty: nothing would be computed")
        if not self._outputs and not any(parameter.is_writable for parameter in self._inputs):
            raise InvalidArgumentError(
                "out_params is empty, and no parameter is a pointer to write to: there is no result"
            )

    def __call__(
        self,
        *args: Argument,
        out: Result | tuple[Result, ...] | list[Result] | None = None,
        size: int | None = None,
        device: Device | None = None,
        **named: Argument,
    ) -> Result | tuple[Result, ...] | None:
        """Runs the operation for each element.

        Args:
            args: the parameters in order, and optionally arrays for the results.
            out: the arrays for the results that are not in ``args``.
            size: the element count, if all arrays are raw.
            device: the device to run on if all arguments are on the host; default: one for the process, from
                ``pumice.open_device()``.
            named: the parameters by name.

        Returns:
            The result, or a tuple of results: on the device if an argument was, else NumPy arrays.

        Raises:
            InvalidArgumentError: arguments are wrong, or the operation does not compile; the message has its place.
            UnimplementedError: the device lacks a type.
        """
        arguments = Arguments(self.name, self._inputs, self._outputs, args, named, out, device)
        shape = self._shape(arguments, size)
        ordered = arguments.complete(self._outputs, shape)
        fresh = {parameter.name for parameter in arguments.missing}
        written = ordered or [value for value in arguments.inputs if value.declared.is_writable]
        count = math.prod(shape)
        if count:
            self._run(arguments, ordered, fresh, shape, count)
        return arguments.results(written)

    def _shape(self, arguments: Arguments, size: int | None) -> tuple[int, ...]:
        """Returns the shape whose elements are computed: that of the broadcast arrays, or ``size``."""
        shaped = [value for value in arguments.inputs if value.array is not None and not value.declared.is_raw]
        results = [value for value in arguments.outputs if not value.declared.is_raw]
        if size is not None:
            if shaped or results:
                raise InvalidArgumentError(f"{self.name}: size= is for calls whose arrays are all raw")
            return check_shape(size)
        shape = common_shape(self.name, shaped) if shaped else ()
        if not shaped and results:
            shape = results[0].shape
        if not shaped and not results:
            pointers = [value for value in arguments.inputs if value.array is not None]
            if self._outputs or not pointers:
                raise InvalidArgumentError(f"{self.name}: no array tells how many elements there are: give size=")
            return (math.prod(pointers[0].shape),)
        return shape

    def _run(
        self, arguments: Arguments, outputs: list[Value], fresh: set[str], shape: tuple[int, ...], count: int
    ) -> None:
        device = arguments.device
        values = arguments.inputs
        loads = Loads(values, geometry_of(shape, arguments.shapes), device.profile.limits.max_push_constants_size - 8)
        key = (loads.key, tuple((value.dtype, value.declared.name in fresh) for value in outputs))

        def load() -> Kernel:
            program = Program(self._preamble, {"operation": self._operation})
            program.alias(arguments.dtypes)
            loads.declare(program)
            lines, stores = [loads.statements("_i")], []
            for value in outputs:
                parameter, element = value.declared, program.use(ELEMENTS[value.dtype])
                if parameter.is_raw:
                    program.buffer(parameter.name, element.stored)
                    continue
                program.buffer(f"_{parameter.name}", element.stored, "writeonly" if parameter.name in fresh else "")
                lvalue = f"_{parameter.name}[_i]"
                start = "" if parameter.name in fresh else f" = {element.loaded(lvalue)}"
                lines.append(f"{element.computed} {parameter.name}{start};")
                stores.append(f"{lvalue} = {element.converted(parameter.name)};")
            sizes = {"_ind": "int(_n)"} | self._raw_lengths
            operation = quoted("operation", indexed(self._operation, sizes))
            body = "\n".join(
                (
                    f"void main() {{\nuint _i = _group() * {LANES}u + gl_LocalInvocationIndex;",
                    f"if (_i >= _n) return;\nconst int i = int(_i);\n{self._counted}",
                    *lines,
                    f"{{{operation};}}",
                    *stores,
                    "}\n",
                )
            )
            return program.load(device, body, self.name)

        kernel = self._kernel(device, key, load)
        arrays = [*loads.arrays(device), *(value.array for value in outputs if value.array is not None)]
        run(kernel, arrays, -(-count // LANES), {"_n": count, **loads.push()})
