"""The type of values that are combined: in expressions, in shared memory, and between passes."""

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
    """Attributes:
    element: ``None`` for a type that the preamble declares.
    computed: the GLSL type.
    """

    element: Element | None
    computed: str

    @classmethod
    def of(cls, name: str | None, first: Value, letters: Mapping[str, np.dtype[np.generic]]) -> Accumulator:
        """That of a name, or of the first result."""
        dtype = first.dtype if name is None else NAMES.get(name.strip(), letters.get(name.strip()))
        if dtype is None:
            assert name is not None
            return cls(None, name.strip())
        return cls(ELEMENTS[dtype], ELEMENTS[dtype].computed)

    @property
    def stored(self) -> str:
        """The GLSL type between passes: 32 bits for all that compute with 32."""
        return "uint" if self.computed == "bool" else self.computed

    def declare(self, program: Program) -> None:
        if self.element is not None:
            program.use(self.element)

    def loaded(self, lvalue: str) -> str:
        return f"({lvalue} != 0u)" if self.computed == "bool" else lvalue

    def converted(self, value: str) -> str:
        return f"uint({value})" if self.computed == "bool" else value

    def made(self, expression: str) -> str:
        """An expression's value as one of this type; types of the preamble have no conversions."""
        return f"({expression})" if self.element is None else f"{self.computed}({expression})"

    def function(self, name: str, first: str, second: str, expression: str) -> str:
        """A function of two values."""
        kind = self.computed
        return f"{kind} {name}({kind} {first}, {kind} {second}) {{ return {self.made(expression)}; }}\n"

    def stride(self, kernel: Kernel) -> int:
        """Bytes of a value between passes, as the last binding of a kernel declares it."""
        return kernel.parameters[-1].stride
