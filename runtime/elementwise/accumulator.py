"""The accumulator: the type of combined values, in expressions, in shared memory, and between passes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...base.lazy_dataclass import dataclass
from ..kernels.kernel import Kernel
from .arguments import Value
from .program import Program
from .types import ELEMENTS, NAMES, Element


@dataclass(frozen=True, slots=True)
class Accumulator:
    """The type of combined values.

    Attributes:
        element: the type's element; ``None`` for a type that the preamble declares.
        computed: the GLSL type.
    """

    element: Element | None
    computed: str

    @classmethod
    def of(cls, name: str | None, first: Value, letters: Mapping[str, np.dtype[np.generic]]) -> Accumulator:
        """Returns the accumulator of a named type, or without a name, of the first result's type."""
        dtype = first.dtype if name is None else NAMES.get(name.strip(), letters.get(name.strip()))
        if dtype is None:
            assert name is not None
            return cls(None, name.strip())
        return cls(ELEMENTS[dtype], ELEMENTS[dtype].computed)

    @property
    def stored(self) -> str:
        """The GLSL type between passes."""
        return "uint" if self.computed == "bool" else self.computed

    def declare(self, program: Program) -> None:
        if self.element is not None:
            program.use(self.element)

    def loaded(self, lvalue: str) -> str:
        return f"({lvalue} != 0u)" if self.computed == "bool" else lvalue

    def converted(self, value: str) -> str:
        return f"uint({value})" if self.computed == "bool" else value

    def made(self, expression: str) -> str:
        """Converts an expression to this type; types from the preamble have no conversions."""
        return f"({expression})" if self.element is None else f"{self.computed}({expression})"

    def function(self, name: str, first: str, second: str, expression: str) -> str:
        """Returns the definition of a function of two values."""
        kind = self.computed
        return f"{kind} {name}({kind} {first}, {kind} {second}) {{ return {self.made(expression)}; }}\n"

    def stride(self, kernel: Kernel) -> int:
        """Returns the bytes of a value between passes, as declared in a kernel's last binding."""
        return kernel.parameters[-1].stride
