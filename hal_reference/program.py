"""Programs of tensor operations as plain data, and their evaluation with NumPy.

An executable of the reference device contains a program. Values are numbered through the whole program, so that a
body may use values defined around it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..base.lazy_dataclass import dataclass

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Type of a tensor: NumPy dtype and static shape. Tokens are empty tensors of bytes."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SizeNumber:
    """A size of the function, by its number, in place of an integer attribute that is call-dependent."""

    number: int


@dataclass(frozen=True, slots=True)
class Node:
    """An operation.

    Attributes:
        name: the name of the StableHLO operation, without the dialect.
        operands: the numbers of the values used.
        results: the numbers of the values defined.
        types: the types of the results.
        attributes: integers, lists of integers, names, booleans, numbers; ``value`` of a constant is an array.
        bodies: the operation's regions.
    """

    name: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    types: tuple[TensorSpec, ...]
    attributes: Mapping[str, Any]
    bodies: tuple[Body, ...] = ()


@dataclass(frozen=True, slots=True)
class Body:
    """Operations in order.

    Attributes:
        arguments: the numbers of the arguments.
        nodes: the operations in order.
        results: the numbers of the results.
    """

    arguments: tuple[int, ...]
    nodes: tuple[Node, ...]
    results: tuple[int, ...]


Definition: TypeAlias = Callable[["Evaluator", Node, Sequence[Array]], Sequence[Array]]


class Evaluator:
    """Evaluates bodies with one definition for each operation.

    Args:
        definitions: the definitions by name.
        check: a function that is called before each operation; an exception from it ends the evaluation.

    Attributes:
        node: the operation being evaluated.
    """

    def __init__(self, definitions: Mapping[str, Definition], check: Callable[[], None] | None = None) -> None:
        self._definitions = definitions
        self._check = check
        self._values: dict[int, Array] = {}
        self.node: Node | None = None

    def run(self, body: Body, arguments: Sequence[Array]) -> list[Array]:
        """Evaluates a body and returns its results.

        Raises:
            KeyError: an operation has no definition.
        """
        values = self._values
        values.update(zip(body.arguments, arguments, strict=True))
        for node in body.nodes:
            self.node = node
            if self._check is not None:
                self._check()
            results = self._definitions[node.name](self, node, [values[number] for number in node.operands])
            values.update(zip(node.results, results, strict=True))
        return [values[number] for number in body.results]
