"""Operations that are not element-wise, each as a function of a few arguments of any type, with NumPy's result.

Values are small whole numbers that every type of a kind has, and so are the results: all are compared exactly, but for
those of Fourier transforms.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
from support.compiler.operation_table import ANY, KINDS, NO_ZERO, kind_of

Array: TypeAlias = npt.NDArray[Any]
Given: TypeAlias = Mapping[str, Array]

ARGUMENTS: Final = {"m": "4x6x{T}", "n": "4x6x{T}", "v": "6x{T}", "s": "{T}", "p": "4x6xi1", "i": "3x1xi32", "k": "i32"}
"""Shapes of a case's arguments, by name."""
_TENSORS: Final = re.compile(r"tensor<((?:[^<>]|<[^<>]*>)*)>")


@dataclass(frozen=True, slots=True)
class Case:
    """A function of ``ARGUMENTS`` whose result is ``%r``.

    Attributes:
        name: of the operation.
        kinds: of types that the specification has.
        body: operations, with ``{T}`` for the type, ``{B}`` for unsigned integers of its width, ``{one}`` and
            ``{zero}`` for numbers of it; the last type in it is the result's.
        expected: the result in NumPy, of the arguments in the widest type of their kind.
        without: types for which there is nothing to show, and why.
        ulps: how far results may be off, in precisions of the type.
    """

    name: str
    kinds: str
    body: str
    expected: Callable[[Given], Array]
    without: Mapping[str, str] = field(default_factory=dict)
    ulps: float = 0

    @property
    def result(self) -> str:
        return str(_TENSORS.findall(self.body)[-1])

    def types(self) -> list[str]:
        """All types that are shown."""
        return [each for kind in ANY if kind in self.kinds for each in KINDS[kind] if each not in self.without]


def _region(body: str, count: int = 2) -> str:
    arguments = ", ".join(f"%a{number}: tensor<{{T}}>" for number in range(count))
    return f"({{{{\n^bb0({arguments}):\n{body}\n}}}})"


def _joining(name: str) -> str:
    return _region(f"%j = stablehlo.{name} %a0, %a1 : tensor<{{T}}>\nstablehlo.return %j : tensor<{{T}}>")


def _comparing(direction: str, is_complex: bool = False) -> str:
    if not is_complex:
        body = (
            f"%j = stablehlo.compare {direction}, %a0, %a1 : (tensor<{{T}}>, tensor<{{T}}>) -> tensor<i1>\n"
            "stablehlo.return %j : tensor<i1>"
        )
        return _region(body)
    parts = "\n".join(f"%b{n} = stablehlo.real %a{n} : (tensor<{{T}}>) -> tensor<{{P}}>" for n in range(2))
    compared = f"%j = stablehlo.compare {direction}, %b0, %b1 : (tensor<{{P}}>, tensor<{{P}}>) -> tensor<i1>"
    return _region(f"{parts}\n{compared}\nstablehlo.return %j : tensor<i1>")


def _summed(values: Sequence[Array]) -> Array:
    # Booleans are joined by `or`, as + of NumPy's does.
    return np.asarray(functools.reduce(lambda one, other: one + other, values))


def _product(given: Given) -> Array:
    left, right = given["m"].reshape(12, 2), given["n"].reshape(2, 12)
    return _summed([left[:, k, None] * right[k] for k in range(2)])


def _convolved(given: Given) -> Array:
    value, kernel = given["m"].reshape(6, 4), given["n"].reshape(2, 12)
    return _summed([value[tap : tap + 5, ::2, None] * kernel[tap] for tap in range(2)])[None]


def _greater(one: Array, other: Array) -> Array:
    """The greater complex number, by real and then by imaginary parts."""
    return np.where((one.real > other.real) | ((one.real == other.real) & (one.imag > other.imag)), one, other)


def _lesser(one: Array, other: Array) -> Array:
    return np.where(_greater(one, other) == one, other, one)


def _padded(given: Given) -> Array:
    found = np.full((5, 11), given["s"][()])
    found[1:, ::2] = given["m"]
    return found[:, :-1]


def _replaced(array: Array, place: Any, values: Array) -> Array:
    found = array.copy()
    found[place] = values
    return found


def _selected(given: Given, real: bool) -> Array:
    found = np.zeros_like(given["m"])
    for row in range(2):
        for column in range(3):
            window = given["m"][2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            place = int(np.argmax(window.real if real else window))
            found[2 * row + place // 2, 2 * column + place % 2] = given["n"][row, column]
    return found


_GATHER: Final = (
    "dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], "
    "index_vector_dim = 1>"
)
_SCATTER: Final = (
    "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], "
    "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>"
)
_SCATTERED: Final = (
    "%u = stablehlo.slice %n [0:3, 0:6] : (tensor<4x6x{T}>) -> tensor<3x6x{T}>\n"
    f'%r = "stablehlo.scatter"(%m, %i, %u) <{{{{{_SCATTER}}}}}> BODY '
    ": (tensor<4x6x{T}>, tensor<3x1xi32>, tensor<3x6x{T}>) -> tensor<4x6x{T}>"
)
_CONVOLUTION: Final = (
    "%x = stablehlo.reshape %m : (tensor<4x6x{T}>) -> tensor<1x6x4x1x{T}>\n"
    "%w = stablehlo.reshape %n : (tensor<4x6x{T}>) -> tensor<2x1x1x12x{T}>\n"
)
_NUMBERS: Final = "dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>"
_SORT: Final = (
    '%r = "stablehlo.sort"(%v) <{{dimension = 0 : i64, is_stable = true}}> BODY : (tensor<6x{T}>) -> tensor<6x{T}>'
)
_SELECT: Final = (
    "%u = stablehlo.slice %n [0:2, 0:3] : (tensor<4x6x{T}>) -> tensor<2x3x{T}>\n"
    "%z = stablehlo.constant dense<{zero}> : tensor<{T}>\n"
    '%r = "stablehlo.select_and_scatter"(%m, %u, %z) <{{window_dimensions = array<i64: 2, 2>, '
    "window_strides = array<i64: 2, 2>, padding = dense<0> : tensor<2x2xi64>}}> "
    f"(SELECT, {_joining('add')[1:-1]}) : (tensor<4x6x{{T}}>, tensor<2x3x{{T}}>, tensor<{{T}}>) -> tensor<4x6x{{T}}>"
)
_SHAPE: Final = "%d = stablehlo.constant dense<[LENGTHS]> : tensor<RANKxi32>\n"
_MATRIX: Final = "%a = stablehlo.constant dense<[[ROWS]]> : tensor<2x2x{T}>\n"


def _shape(*lengths: int) -> str:
    return _SHAPE.replace("LENGTHS", ", ".join(map(str, lengths))).replace("RANK", str(len(lengths)))


_RNG: Final = (
    "%a = stablehlo.constant dense<{one}> : tensor<{T}>\n"
    "%b = stablehlo.constant dense<{two}> : tensor<{T}>\n"
    "%c = stablehlo.constant dense<5> : tensor<1xi64>\n"
    "%r = stablehlo.rng %a, %b, %c, distribution = UNIFORM "
    ": (tensor<{T}>, tensor<{T}>, tensor<1xi64>) -> tensor<5x{T}>"
)


def _two(name: str, T: str) -> str:
    return f"%{name} = stablehlo.constant dense<{T}> : tensor<6x{{T}}>\n"


def _norm(name: str, operands: str, types: str, results: str) -> str:
    listed = ", ".join(f"tensor<{each}x{{T}}>" for each in types.split())
    given = ", ".join(f"tensor<{each}x{{T}}>" for each in results.split())
    few = ":3" if " " in results else ""
    return (
        "%x = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<6x{T}>) -> tensor<4x6x{T}>\n"
        + _two("one", "{one}")
        + _two("zero", "{zero}")
        + f'%q{few} = "stablehlo.{name}"({operands}) <{{{{epsilon = 1.0 : f32, feature_index = 1 : i64}}}}> '
        f": ({listed}) -> {f'({given})' if few else given}\n"
        + (f"%r = stablehlo.reshape %q{'#0' if few else ''} : (tensor<4x6x{{T}}>) -> tensor<24x{{T}}>")
    )


def _plain(name: str, kinds: str, text: str, expected: Callable[[Given], Array], *more: Any, **others: Any) -> Case:
    """An operation on arguments, and its result's type: ``%m, %n, dim = 1 -> 4x12x{T}``."""
    operation, _, result = text.partition(" -> ")
    types = ", ".join(f"tensor<{ARGUMENTS[argument]}>" for argument in re.findall(r"%(\w)", operation))
    body = f"%r = stablehlo.{name} {operation} : ({types}) -> tensor<{result}>"
    return Case(name, kinds, body, expected, *more, **others)


_GROUP: Final = "replica_groups = dense<0> : tensor<1x1xi64>"


def _alone(name: str, attributes: str, region: str = "") -> Case:
    """An operation between processes, where there is one."""
    body = f'%r = "stablehlo.{name}"(%m) {region} {{{{{attributes}}}}} : (tensor<4x6x{{T}}>) -> tensor<4x6x{{T}}>'
    return Case(name, ANY, body, lambda given: given["m"])


_BEGUN: Final = (
    '%f = "stablehlo.async_start"(%m) ({{ ^bb0(%y: tensor<4x6x{T}>):\n'
    f'%g = "stablehlo.all_gather"(%y) {{{{all_gather_dim = 1 : i64, {_GROUP}}}}} '
    ": (tensor<4x6x{T}>) -> tensor<4x6x{T}>\nstablehlo.return %g : tensor<4x6x{T}> }}) "
    ": (tensor<4x6x{T}>) -> !stablehlo.future<tensor<4x6x{T}>>\n"
    '%r = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<4x6x{T}>>) -> tensor<4x6x{T}>'
)

CASES: Final = (
    _alone("all_gather", f"all_gather_dim = 1 : i64, {_GROUP}"),
    _alone("all_reduce", _GROUP, _joining("add")),
    _alone("all_to_all", f"split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 1 : i64, {_GROUP}"),
    Case("async_done", ANY, _BEGUN, lambda given: given["m"]),
    Case("async_start", ANY, _BEGUN, lambda given: given["m"]),
    Case(
        "batch_norm_grad",
        "nw",
        _norm("batch_norm_grad", "%x, %one, %v, %zero, %x", "4x6 6 6 6 4x6", "4x6 6 6"),
        # All rows are alike: so is what flows back, and its mean is taken off.
        lambda given: np.zeros(24),
        NO_ZERO,
    ),
    Case(
        "batch_norm_inference",
        "nw",
        _norm("batch_norm_inference", "%x, %one, %one, %v, %zero", "4x6 6 6 6 6", "4x6"),
        lambda given: np.ones(24),
        NO_ZERO,
    ),
    Case(
        "batch_norm_training",
        "nw",
        _norm("batch_norm_training", "%x, %one, %one", "4x6 6 6", "4x6 6 6"),
        lambda given: np.ones(24),
        NO_ZERO,
    ),
    _plain(
        "bitcast_convert",
        "sunw",
        "%m -> 4x6x{B}",
        lambda given: given["bits of m"],
        dict.fromkeys(("f6E2M3FN", "f6E3M2FN"), "no integers have six bits"),
    ),
    _plain("broadcast_in_dim", ANY, "%v, dims = [1] -> 4x6x{T}", lambda given: np.broadcast_to(given["v"], (4, 6))),
    Case(
        "case",
        ANY,
        '%r = "stablehlo.case"(%k) ({{ stablehlo.return %v : tensor<6x{T}> }}, '
        "{{ %q = stablehlo.reverse %v, dims = [0] : tensor<6x{T}>\nstablehlo.return %q : tensor<6x{T}> }}) "
        ": (tensor<i32>) -> tensor<6x{T}>",
        lambda given: given["v"][::-1],
    ),
    Case(
        "cholesky",
        "nwc",
        _MATRIX.replace("ROWS", "{four}, {two}], [{two}, {two}")
        + "%r = stablehlo.cholesky %a, lower = true : tensor<2x2x{T}>",
        lambda given: np.array([[2, 0], [1, 1]]),
        NO_ZERO,
    ),
    _plain(
        "clamp",
        "bsunw",
        "%s, %m, %n -> 4x6x{T}",
        lambda given: np.minimum(np.maximum(given["m"], given["s"]), given["n"]),
    ),
    _plain("clamp", "c", "%s, %m, %n -> 4x6x{T}", lambda given: _lesser(_greater(given["m"], given["s"]), given["n"])),
    _alone("collective_broadcast", _GROUP),
    _alone("collective_permute", "source_target_pairs = dense<0> : tensor<1x2xi64>"),
    _alone("collective_reduce", _GROUP, _joining("add")),
    Case(
        "complex",
        "w",
        "%r = stablehlo.complex %m, %n : tensor<4x6xcomplex<{T}>>",
        lambda given: given["m"] + 1j * given["n"],
    ),
    _plain("composite", ANY, '"any.name" %m {{decomposition = @turned}} -> 4x6x{T}', lambda given: given["m"][:, ::-1]),
    _plain(
        "concatenate", ANY, "%m, %n, dim = 1 -> 4x12x{T}", lambda given: np.concatenate([given["m"], given["n"]], 1)
    ),
    Case(
        "constant",
        ANY,
        "%r = stablehlo.constant dense<[{one}, {two}, {one}]> : tensor<3x{T}>",
        lambda given: np.array([1, 2, 1]),
    ),
    Case(
        "convolution",
        ANY,
        _CONVOLUTION + "%r = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
        "window = {{stride = [1, 2]}} {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} "
        ": (tensor<1x6x4x1x{T}>, tensor<2x1x1x12x{T}>) -> tensor<1x5x2x12x{T}>",
        _convolved,
    ),
    Case(
        "dot_general",
        ANY,
        "%x = stablehlo.reshape %m : (tensor<4x6x{T}>) -> tensor<12x2x{T}>\n"
        "%y = stablehlo.reshape %n : (tensor<4x6x{T}>) -> tensor<2x12x{T}>\n"
        "%r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] "
        ": (tensor<12x2x{T}>, tensor<2x12x{T}>) -> tensor<12x12x{T}>",
        _product,
    ),
    Case(
        "dynamic_broadcast_in_dim",
        ANY,
        _shape(4, 6) + "%r = stablehlo.dynamic_broadcast_in_dim %v, %d, dims = [1] "
        ": (tensor<6x{T}>, tensor<2xi32>) -> tensor<4x6x{T}>",
        lambda given: np.broadcast_to(given["v"], (4, 6)),
    ),
    Case(
        "dynamic_conv",
        ANY,
        _CONVOLUTION
        + "%d = stablehlo.constant dense<0> : tensor<2x2xi32>\n"
        + f'%r = "stablehlo.dynamic_conv"(%x, %w, %d) <{{{{{_NUMBERS}, window_strides = array<i64: 1, 2>, '
        "batch_group_count = 1 : i64, feature_group_count = 1 : i64}}> "
        ": (tensor<1x6x4x1x{T}>, tensor<2x1x1x12x{T}>, tensor<2x2xi32>) -> tensor<1x5x2x12x{T}>",
        _convolved,
    ),
    Case(
        "dynamic_gather",
        ANY,
        _shape(1, 6) + f'%r = "stablehlo.dynamic_gather"(%m, %i, %d) <{{{{{_GATHER}}}}}> '
        ": (tensor<4x6x{T}>, tensor<3x1xi32>, tensor<2xi32>) -> tensor<3x6x{T}>",
        lambda given: given["m"][[2, 0, 3]],
    ),
    Case(
        "dynamic_iota",
        "sunwc",
        _shape(6, 2) + "%r = stablehlo.dynamic_iota %d, dim = 1 : (tensor<2xi32>) -> tensor<6x2x{T}>",
        lambda given: np.indices((6, 2))[1],
        NO_ZERO,
    ),
    Case(
        "dynamic_pad",
        ANY,
        "%low = stablehlo.constant dense<[1, 0]> : tensor<2xi32>\n"
        "%high = stablehlo.constant dense<[0, -1]> : tensor<2xi32>\n"
        "%gap = stablehlo.constant dense<[0, 1]> : tensor<2xi32>\n"
        "%r = stablehlo.dynamic_pad %m, %s, %low, %high, %gap "
        ": (tensor<4x6x{T}>, tensor<{T}>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<5x10x{T}>",
        _padded,
    ),
    Case(
        "dynamic_reshape",
        ANY,
        _shape(3, 8) + "%r = stablehlo.dynamic_reshape %m, %d : (tensor<4x6x{T}>, tensor<2xi32>) -> tensor<3x8x{T}>",
        lambda given: given["m"].reshape(3, 8),
    ),
    _plain("dynamic_slice", ANY, "%m, %k, %k, sizes = [2, 3] -> 2x3x{T}", lambda given: given["m"][1:3, 1:4]),
    Case(
        "dynamic_update_slice",
        ANY,
        "%u = stablehlo.reshape %v : (tensor<6x{T}>) -> tensor<2x3x{T}>\n"
        "%r = stablehlo.dynamic_update_slice %m, %u, %k, %k "
        ": (tensor<4x6x{T}>, tensor<2x3x{T}>, tensor<i32>, tensor<i32>) -> tensor<4x6x{T}>",
        lambda given: _replaced(given["m"], np.s_[1:3, 1:4], given["v"].reshape(2, 3)),
    ),
    _plain("fft", "c", "%m, type = FFT, length = [4, 6] -> 4x6x{T}", lambda given: np.fft.fft2(given["m"]), ulps=16),
    _plain(
        "fft", "w", "%m, type = RFFT, length = [6] -> 4x4xcomplex<{T}>", lambda given: np.fft.rfft(given["m"]), ulps=16
    ),
    Case(
        "gather",
        ANY,
        f'%r = "stablehlo.gather"(%m, %i) <{{{{{_GATHER}, slice_sizes = array<i64: 1, 6>}}}}> '
        ": (tensor<4x6x{T}>, tensor<3x1xi32>) -> tensor<3x6x{T}>",
        lambda given: given["m"][[2, 0, 3]],
    ),
    _plain("get_dimension_size", ANY, "%m, dim = 1 -> i32", lambda given: np.array(6)),
    Case(
        "get_tuple_element",
        ANY,
        "%t = stablehlo.tuple %m, %v : tuple<tensor<4x6x{T}>, tensor<6x{T}>>\n"
        "%r = stablehlo.get_tuple_element %t[1] : (tuple<tensor<4x6x{T}>, tensor<6x{T}>>) -> tensor<6x{T}>",
        lambda given: given["v"],
    ),
    Case(
        "if",
        ANY,
        "%c = stablehlo.compare EQ, %k, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        '%r = "stablehlo.if"(%c) ({{ %q = stablehlo.reverse %v, dims = [0] : tensor<6x{T}>\n'
        "stablehlo.return %q : tensor<6x{T}> }}, {{ stablehlo.return %v : tensor<6x{T}> }}) "
        ": (tensor<i1>) -> tensor<6x{T}>",
        lambda given: given["v"][::-1],
    ),
    Case(
        "iota", "sunwc", "%r = stablehlo.iota dim = 1 : tensor<6x2x{T}>", lambda given: np.indices((6, 2))[1], NO_ZERO
    ),
    Case(
        "map",
        ANY,
        f'%r = "stablehlo.map"(%m, %n) <{{{{dimensions = array<i64: 0, 1>}}}}> {_joining("multiply")} '
        ": (tensor<4x6x{T}>, tensor<4x6x{T}>) -> tensor<4x6x{T}>",
        lambda given: given["m"] * given["n"],
    ),
    Case(
        "optimization_barrier",
        ANY,
        "%q, %r = stablehlo.optimization_barrier %v, %m : tensor<6x{T}>, tensor<4x6x{T}>",
        lambda given: given["m"],
    ),
    _plain("pad", ANY, "%m, %s, low = [1, 0], high = [0, -1], interior = [0, 1] -> 5x10x{T}", _padded),
    Case(
        "reduce",
        ANY,
        "%x = stablehlo.reshape %m : (tensor<4x6x{T}>) -> tensor<12x2x{T}>\n"
        "%z = stablehlo.constant dense<{zero}> : tensor<{T}>\n"
        "%r = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [1] "
        ": (tensor<12x2x{T}>, tensor<{T}>) -> tensor<12x{T}>",
        lambda given: _summed(list(given["m"].reshape(12, 2).T)),
        NO_ZERO,
    ),
    Case(
        "reduce",
        "bsunw",
        "%r = stablehlo.reduce(%m init: %s) applies stablehlo.maximum across dimensions = [1] "
        ": (tensor<4x6x{T}>, tensor<{T}>) -> tensor<4x{T}>",
        lambda given: np.maximum(given["m"].max(1), given["s"]),
    ),
    Case(
        "reduce_precision",
        "nw",
        "%r = stablehlo.reduce_precision %m, format = e5m2 : tensor<4x6x{T}>",
        lambda given: given["m"],
    ),
    _alone("reduce_scatter", f"scatter_dimension = 0 : i64, {_GROUP}", _joining("add")),
    Case(
        "reduce_window",
        ANY,
        '%r = "stablehlo.reduce_window"(%m, %s) <{{window_dimensions = array<i64: 1, 2>, '
        f"window_strides = array<i64: 1, 2>}}}}> {_joining('multiply')} "
        ": (tensor<4x6x{T}>, tensor<{T}>) -> tensor<4x3x{T}>",
        lambda given: given["s"] * given["m"][:, ::2] * given["m"][:, 1::2],
    ),
    _plain("reshape", ANY, "%m -> 3x8x{T}", lambda given: given["m"].reshape(3, 8)),
    Case("reverse", ANY, "%r = stablehlo.reverse %m, dims = [0] : tensor<4x6x{T}>", lambda given: given["m"][::-1]),
    Case(
        "scatter",
        ANY,
        _SCATTERED.replace("BODY", _region("stablehlo.return %a1 : tensor<{T}>")),
        lambda given: _replaced(given["m"], [2, 0], given["n"][:2]),
    ),
    Case(
        "select",
        ANY,
        "%r = stablehlo.select %p, %m, %n : tensor<4x6xi1>, tensor<4x6x{T}>",
        lambda given: np.where(given["p"], given["m"], given["n"]),
    ),
    Case(
        "select_and_scatter",
        "bsunw",
        _SELECT.replace("SELECT", _comparing("GE")[1:-1]),
        lambda given: _selected(given, False),
        NO_ZERO,
    ),
    Case(
        "select_and_scatter",
        "c",
        _SELECT.replace("SELECT", _comparing("GE", True)[1:-1]),
        lambda given: _selected(given, True),
    ),
    _plain("slice", ANY, "%m [0:4:2, 1:6:3] -> 2x2x{T}", lambda given: given["m"][::2, 1::3]),
    Case("sort", "bsunw", _SORT.replace("BODY", _comparing("LT")), lambda given: np.sort(given["v"])),
    Case(
        "sort",
        "c",
        _SORT.replace("BODY", _comparing("LT", True)),
        lambda given: given["v"][np.argsort(given["v"].real, kind="stable")],
    ),
    _plain("transpose", ANY, "%m, dims = [1, 0] -> 6x4x{T}", lambda given: given["m"].T),
    Case(
        "triangular_solve",
        "nwc",
        _MATRIX.replace("ROWS", "{two}, {zero}], [{one}, {one}")
        + "%b = stablehlo.constant dense<[[{four}], [{four}]]> : tensor<2x1x{T}>\n"
        + '%r = "stablehlo.triangular_solve"(%a, %b) <{{left_side = true, lower = true, unit_diagonal = false, '
        "transpose_a = #stablehlo<transpose NO_TRANSPOSE>}}> : (tensor<2x2x{T}>, tensor<2x1x{T}>) -> tensor<2x1x{T}>",
        lambda given: np.array([[2], [2]]),
        NO_ZERO,
    ),
    Case(
        "tuple",
        ANY,
        "%t = stablehlo.tuple %m, %v : tuple<tensor<4x6x{T}>, tensor<6x{T}>>\n"
        "%r = stablehlo.get_tuple_element %t[0] : (tuple<tensor<4x6x{T}>, tensor<6x{T}>>) -> tensor<4x6x{T}>",
        lambda given: given["m"],
    ),
    Case(
        "while",
        ANY,
        "%n3 = stablehlo.constant dense<4> : tensor<i32>\n%n1 = stablehlo.constant dense<1> : tensor<i32>\n"
        "%w, %r = stablehlo.while(%c = %k, %x = %v) : tensor<i32>, tensor<6x{T}>\n"
        "cond {{ %q = stablehlo.compare LT, %c, %n3 : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        "stablehlo.return %q : tensor<i1> }} do {{ %q = stablehlo.add %c, %n1 : tensor<i32>\n"
        "%y = stablehlo.reverse %x, dims = [0] : tensor<6x{T}>\n"
        "stablehlo.return %q, %y : tensor<i32>, tensor<6x{T}> }}",
        lambda given: given["v"][::-1],
    ),
    Case(
        "rng",
        "bsu",
        _RNG,
        # The only number from one up to two, two left out; of booleans the first counts.
        lambda given: np.ones(5),
        {"i2": "two is no number of it"},
    ),
    Case(
        "rng",
        "nw",
        _RNG.replace("%r", "%q") + "\n%x = stablehlo.broadcast_in_dim %a, dims = [] : (tensor<{T}>) -> tensor<5x{T}>\n"
        "%y = stablehlo.clamp %a, %q, %b : (tensor<{T}>, tensor<5x{T}>, tensor<{T}>) -> tensor<5x{T}>\n"
        "%r = stablehlo.compare EQ, %y, %q : (tensor<5x{T}>, tensor<5x{T}>) -> tensor<5xi1>",
        lambda given: np.ones(5),
        {"f8E8M0FNU": "the type has no zero, so it has no differences"},
    ),
    Case(
        "rng_bit_generator",
        "sunw",
        "%a = stablehlo.constant dense<0> : tensor<2xui64>\n"
        "%b, %r = stablehlo.rng_bit_generator %a, algorithm = THREE_FRY "
        ": (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x{T}>)",
        # Threefry 2x32 with 20 rounds of zeros, and of one, with a key of zeros.
        lambda given: given["random bits"],
        dict.fromkeys(("f6E2M3FN", "f6E3M2FN"), "no integers have six bits"),
    ),
)


def numbers_of(type: str) -> Given:
    """Values of the arguments, in the widest type of their kind."""
    rng = np.random.default_rng(0)
    kind = kind_of(type)
    few = type in ("f4E2M1FN", "f6E2M3FN", "f8E8M0FNU")

    def chosen(*shape: int) -> Array:
        if kind == "b":
            return rng.integers(0, 2, shape).astype(np.bool_)
        if few:
            return rng.integers(1, 3, shape).astype(np.float64)
        low, high = (0, 4) if kind == "u" else (-2, 2) if type == "i2" else (-2, 3)
        found = rng.integers(low, high, shape)
        if kind == "c":
            return found + 1j * rng.integers(low, high, shape)
        return found.astype(np.int64 if kind in "su" else np.float64)

    given = {"m": chosen(4, 6), "n": chosen(4, 6), "v": chosen(6), "s": chosen(1)[0:1].reshape(())}
    if few:
        # Sums and products stay among the few numbers that there are.
        given |= {"m": np.repeat(chosen(12), 2).reshape(4, 6), "n": np.ones((4, 6)), "s": np.ones(())}
        given["v"] = given["v"] / 2
    places = np.array([[2], [0], [9]], np.int32)
    return {**given, "p": rng.integers(0, 2, (4, 6)).astype(np.bool_), "i": places, "k": np.array(1, np.int32)}
