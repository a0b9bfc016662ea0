"""The interface of strategies: parameters of a schedule for a region, and its estimated cost."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import fields
from typing import ClassVar, Final, Self

from ..analysis.special_forms import products_per_element
from ..analysis.weights import words_of
from ..ir.operation import Operation
from ..ir.sizes import Dim, estimated
from .kernel import Kernel
from .region import KernelRegion

UNKNOWN_LENGTH = 1024
"""The estimate for a call-dependent length."""

LOAD = 4.0
"""The cost of a load of a word in instructions, if every invocation loads from a different address."""


MAX_WORDS: Final = 1 << 18
"""An estimate of the most words of a kernel's code: drivers take seconds to compile larger kernels."""


class Strategy(ABC):
    """A schedule for a region; a subclass is a frozen dataclass of numbers, such as the sides of a tile.

    Costs are the instructions of all invocations, divided by the number of concurrent invocations on a fully busy
    device. Only their order matters; all strategies use the same unit.

    Attributes:
        SWITCHES: the parameters that are 0 or 1.
    """

    __slots__ = ()
    SWITCHES: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    @abstractmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, Self]]:
        """Yields estimated costs and parameters for a region; none if the strategy is not worthwhile.

        The caller checks ``takes``.
        """

    @abstractmethod
    def takes(self, region: KernelRegion) -> bool:
        """Returns whether these parameters apply to a region on its target."""

    @abstractmethod
    def emit(self, region: KernelRegion) -> Kernel:
        """Emits the kernel of a region to which these parameters apply.

        Raises:
            NeedsSplitError: the region is too large for one kernel.
        """

    def copies(self, region: KernelRegion) -> int:
        """Returns the number of times that an element's code is written."""
        return 1

    def words(self, region: KernelRegion) -> int:
        """Estimates the words of code of a region's kernel."""
        return self.copies(region) * sum(words_of(operation) for operation in region.block.operations)

    @classmethod
    def name(cls) -> str:
        """Returns the name in attributes and texts: the class name in snake case."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    @classmethod
    def parameters(cls) -> list[str]:
        """Returns the names of the parameters."""
        return [field.name for field in fields(cls)]  # type: ignore[arg-type]

    def text(self) -> str:
        """Returns the parameters on one line, as in the tuning database: ``contraction_tile rows=4 columns=8``."""
        return " ".join([self.name(), *(f"{name}={getattr(self, name)}" for name in self.parameters())])


def number_of(length: Dim) -> int:
    """Returns a length, or the estimate for a call-dependent length."""
    return estimated(length, UNKNOWN_LENGTH)


def elements_cost(region: KernelRegion) -> float:
    """Estimates the cost of a region element by element, with operands loaded again for each product."""
    total = 0.0
    for operation in region.block.operations[:-1]:
        total += number_of(operation.results[0].tensor.count) * _per_element(operation)
    return total


def _per_element(operation: Operation) -> float:
    name = operation.name.removeprefix("stablehlo.")
    if name in ("dot_general", "convolution"):
        return number_of(products_per_element(operation)) * (2 * LOAD + 1)
    if name in ("reduce", "reduce_window"):
        count = number_of(operation.results[0].tensor.count)
        return number_of(operation.operands[0].tensor.count) / max(count, 1) * (LOAD + 1)
    return 1.0
