"""The choice of a strategy for a region: fixed by an attribute, fastest by measurement, or cheapest by estimate.

The same strategy is expected to be the fastest for all regions of a class. A class lists the operations that strategies
are for, with their types, attributes and bodies. Lengths are approximate: the next power of two, and the divisor among
64, 16 and 4. Element-wise operations count only if there are no others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final

from ..analysis.weights import name_of
from ..ir.attributes import Attribute, IntegerAttr, attribute_text
from ..ir.operation import Operation
from ..ir.sizes import Dim, Size
from ..ir.types import ShapedType
from ..kernels.kernel import Kernel
from ..kernels.region import KernelRegion
from ..kernels.scalars.target import NeedsSplitError, compile_error
from ..kernels.strategy import MAX_WORDS, Strategy
from .contraction.contraction_tile import ContractionTile
from .contraction.cooperative_tile import CooperativeTile
from .contraction.workgroup_tile import WorkgroupTile
from .movement.elements import Elements
from .movement.scatter_in_order import ScatterInOrder
from .movement.shared_transpose import SharedTranspose
from .movement.transpose_tile import TransposeTile
from .rows.fourier_rows import FourierRows
from .rows.neighbours import Neighbours
from .rows.rows import Rows
from .rows.subgroup_rows import SubgroupRows
from .rows.subgroup_vectors import SubgroupVectors
from .scans.column_scans import ColumnScans
from .scans.look_back_scans import LookBackScans
from .scans.row_scans import RowScans
from .sorts.digit_sort import DigitSort
from .sorts.merge_sort import MergeSort

_HEROES: Final = frozenset(
    (
        *("convolution", "dot_general", "fft", "gather", "reduce", "reduce_window", "scatter", "select_and_scatter"),
        *("dynamic_update_slice", "sort", "transpose"),
    )
)
_EXACT: Final = 8
_DIVISORS: Final = (64, 16, 4)
_LONGEST: Final = 400
"""The most characters of an attribute in a class; constants have more."""


def class_of(region: KernelRegion) -> str:
    """Returns the class of a region, as text of one line."""
    heroes = [operation for operation in region.block.operations if name_of(operation) in _HEROES]
    parts = [_described(hero) for hero in heroes]
    if not heroes:
        names = sorted(
            {name_of(operation) for operation in region.block.operations[:-1]} - {"constant", "broadcast_in_dim"}
        )
        parts = ["+".join(names), *(_type(value.tensor) for value in region.block.arguments)]
    results = " ".join(_type(value.tensor) for value in region.results)
    return f"{'; '.join(parts)} -> {results}"


def _described(operation: Operation) -> str:
    """Describes an operation without the lengths of its tensors."""
    words = [name_of(operation), *(_type(value.tensor) for value in operation.operands)]
    words += (f"{name}={text}" for name, text in _attributes(operation))
    inner = [name_of(nested) for nested in operation.walk() if nested is not operation]
    return " ".join([*words, *(f"({'+'.join(inner)})" for _ in inner[:1])])


def _attributes(operation: Operation) -> Iterator[tuple[str, str]]:
    for name, value in sorted(operation.attributes.items()):
        text = " ".join(attribute_text(value).split())
        if len(text) <= _LONGEST:
            yield name, text.replace(" ", "")


def _type(type: ShapedType) -> str:
    return "x".join([*(_length(length) for length in type.lengths), str(type.scalar)])


def _length(length: Dim) -> str:
    if isinstance(length, Size):
        return "?"
    if length <= _EXACT:
        return str(length)
    power = 1 << (length - 1).bit_length()
    divisor = next((candidate for candidate in _DIVISORS if length % candidate == 0), 1)
    return f"{power}/{divisor}"


SHIPPED: Final[Mapping[str, tuple[tuple[str, Strategy], ...]]] = {
    # lavapipe of Mesa 22.3.6, two cores: in the other 17 classes of the benchmark's programs the estimate chooses the
    # best strategy.
    "cpu": (
        # Eight rows, as in the steps of a recurrent network: 0.74 and 0.83 of the time of tiles with four rows.
        ("dot_general 8x*/64xf32 */64x*/64xf32 * -> 8x*/64xf32", ContractionTile(8, 4, 8, 1, 8, 1)),
    ),
}
"""Results of tuning on available devices, for all devices of their family.

Each entry is a pattern of classes (``class_of``), in which ``*`` stands for anything, and a strategy. Write ``*`` for
brackets too, which ``fnmatch`` reads as sets of characters. The first entry that takes a region is used. Results of
tuning on the device itself take precedence. An entry is listed only if it was measured to be faster than the estimate's
choice (``benchmarks/generated_kernels.py --tune``). Other families use the tables of the strategies, ordered by
estimate.
"""


STRATEGIES: Final[tuple[type[Strategy], ...]] = (
    ContractionTile,
    WorkgroupTile,
    CooperativeTile,
    FourierRows,
    MergeSort,
    DigitSort,
    ScatterInOrder,
    SubgroupRows,
    Rows,
    LookBackScans,
    RowScans,
    ColumnScans,
    TransposeTile,
    SharedTranspose,
    SubgroupVectors,
    Neighbours,
    Elements,
)
"""All strategies; the last takes every region."""

_NUMBERS: Final = 1 << 16
"""The exclusive upper bound of a strategy's numbers."""


def ranked(region: KernelRegion) -> list[tuple[float, Strategy]]:
    """Returns all strategies for a region with their estimated costs, cheapest first."""
    ranking = [
        candidate
        for strategy in STRATEGIES
        for candidate in strategy.candidates(region)
        if _is_compiled(candidate[1], region)
    ]
    return sorted(ranking, key=lambda candidate: candidate[0])


def candidates_of(region: KernelRegion) -> list[Strategy]:
    """Returns the strategies worth trying for a region, cheapest first, up to the strategy that takes every region."""
    strategies = [strategy for _, strategy in ranked(region)]
    return strategies[: next(at for at, strategy in enumerate(strategies) if isinstance(strategy, Elements)) + 1]


def compile_region(region: KernelRegion, strategy: Strategy | None = None) -> Kernel:
    """Compiles a region with a strategy, or with the fastest one by measurement or estimate.

    Raises:
        CompileError: the generator or the target does not support an operation or a type, or the strategy does not
            apply.
        NeedsSplitError: the region is too large for one kernel.
    """
    _ = region.words  # raises if a type is not supported
    if strategy is not None:
        if not strategy.takes(region):
            message = f"the strategy {strategy.text()} does not apply to the region; leave the attribute out"
            raise compile_error(region.block.operations[0], message)
        words = strategy.words(region)
        if words > MAX_WORDS:
            message = (
                f"expected a strategy of at most {MAX_WORDS:,} words of code, got about {words:,} of "
                f"{strategy.text()}; choose smaller numbers, or leave the attribute out"
            )
            raise compile_error(region.block.operations[0], message)
        return strategy.emit(region)
    *others, last = candidates_of(region)
    tuned = tuned_strategy(region)
    for candidate in others if tuned is None else [tuned, *others]:
        try:
            return candidate.emit(region)
        except NeedsSplitError:
            continue
    return last.emit(region)


def _is_compiled(strategy: Strategy, region: KernelRegion) -> bool:
    """Returns whether a strategy takes a region, with code short enough that drivers compile it quickly."""
    return strategy.takes(region) and strategy.words(region) <= MAX_WORDS


def strategy_of(attribute: Attribute) -> Strategy | None:
    """Returns the strategy that an attribute such as ``{name = "elements"}`` fixes, or None."""
    if not isinstance(attribute, Mapping):
        return None
    numbers = {key: value.value for key, value in attribute.items() if isinstance(value, IntegerAttr)}
    return _made(str(attribute.get("name")), numbers) if len(numbers) + 1 == len(attribute) else None


def wanted_of(attribute: Attribute) -> str:
    """Describes the expected form of an attribute that fixes no strategy."""
    name = attribute.get("name") if isinstance(attribute, Mapping) else None
    named = next((strategy for strategy in STRATEGIES if name == strategy.name()), None)
    if named is None:
        return f"a strategy with one of the names {', '.join(strategy.name() for strategy in STRATEGIES)}"
    numbers = ", ".join(f"{name} (0 or 1)" if name in named.SWITCHES else name for name in named.parameters())
    if not numbers:
        return f"the strategy {named.name()} without numbers"
    return f"the strategy {named.name()} with all its numbers, each from 0 to {_NUMBERS - 1:,}: {numbers}"


def strategy_from(text: str) -> Strategy | None:
    """Returns the strategy that ``Strategy.text`` describes, or None, as the text may be from another release."""
    name, _, numbers = text.partition(" ")
    pairs = [word.partition("=") for word in numbers.split()]
    if not all(number.isascii() and number.isdigit() and len(number) < 6 for _, _, number in pairs):
        return None
    return _made(name, {key: int(number) for key, _, number in pairs})


def tuned_strategy(region: KernelRegion) -> Strategy | None:
    """Returns the strategy measured to be the fastest for a region's class on its target or family, if it applies."""
    target = region.target
    shipped = SHIPPED.get(target.family, ())
    if not target.tuned and not shipped:
        return None
    name = class_of(region)
    strategies = [strategy_from(text) for tuned, text in target.tuned if tuned == name]
    strategies += [strategy for pattern, strategy in shipped if fnmatchcase(name, pattern)]
    return next((strategy for strategy in strategies if strategy is not None and _is_compiled(strategy, region)), None)


def _made(name: str, numbers: Mapping[str, int]) -> Strategy | None:
    named = {strategy.name(): strategy for strategy in STRATEGIES}.get(name)
    if named is None or set(numbers) != set(named.parameters()):
        return None
    limits = {key: 2 if key in named.SWITCHES else _NUMBERS for key in numbers}
    return named(**numbers) if all(0 <= number < limits[key] for key, number in numbers.items()) else None
