"""What a strategy is: parameters that say how a region is computed, with what they are estimated to cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import fields
from typing import ClassVar, Final, Self

from ..analysis.weights import words_of
from ..ir.operation import Operation
from ..ir.sizes import Dim, estimated
from .contractions import products_per_element
from .kernel import Kernel
from .region import KernelRegion

UNKNOWN_LENGTH = 1024
"""What a length that depends on the call is estimated as."""

LOAD = 4.0
"""Instructions that a load of a word counts as, where every invocation has an address of its own."""


MAX_WORDS: Final = 1 << 18
"""Words of code of a kernel, about: drivers take seconds to compile more."""


class Strategy(ABC):
    """A schedule for a region; a subclass is a frozen dataclass of numbers, such as the sides of a tile.

    Costs are instructions of all invocations together, divided by how many run at a time on a device that all keep
    busy; only their order matters, and what they are multiples of is the same for all strategies.

    Attributes:
        NAME: in the attribute that fixes a strategy.
        SWITCHES: those of the numbers that are 0 or 1.
    """

    __slots__ = ()
    NAME: ClassVar[str]
    SWITCHES: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    @abstractmethod
    def candidates(cls, region: KernelRegion) -> Iterator[tuple[float, Self]]:
        """Estimated costs and parameters for a region, none where it does not pay; ``takes`` is asked afterwards."""

    @abstractmethod
    def takes(self, region: KernelRegion) -> bool:
        """Whether a region can be computed with these parameters on its target, whoever asks for it."""

    @abstractmethod
    def emit(self, region: KernelRegion) -> Kernel:
        """The kernel of a region that these parameters take.

        Raises:
            NeedsSplitError: it is too much for one kernel.
        """

    def copies(self, region: KernelRegion) -> int:
        """How often the code of an element is written out."""
        return 1

    def words(self, region: KernelRegion) -> int:
        """Words of code that the kernel of a region has, about."""
        return self.copies(region) * sum(words_of(each) for each in region.block.operations)

    @classmethod
    def names(cls) -> list[str]:
        """The names of the parameters."""
        return [field.name for field in fields(cls)]  # type: ignore[arg-type]

    def text(self) -> str:
        """The parameters on a line, as tuning keeps them: ``contraction_tile rows=4 columns=8``."""
        return " ".join([self.NAME, *(f"{name}={getattr(self, name)}" for name in self.names())])


def number_of(length: Dim) -> int:
    """A length, or what stands for one that depends on the call."""
    return estimated(length, UNKNOWN_LENGTH)


def elements_cost(region: KernelRegion) -> float:
    """What a region is estimated to cost element by element: operands are loaded anew for each product."""
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
