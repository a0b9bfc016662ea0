"""The cooperative matrix products of a module; each device offers only a few shapes and types."""

from __future__ import annotations

from typing import Final, NamedTuple

from ..binary.grammar import LAYOUTS, Op
from ..binary.words import read_binary

_SIGNED_BITS: Final = (1, 2, 4, 8)  # bits of a, b, c and the result in a product's operand mask


class MatrixProduct(NamedTuple):
    """A product ``a @ b + c`` of cooperative matrices.

    Attributes:
        m, n, k: the rows of a, the columns of b, and the summed dimension.
        a, b, c, result: element types, such as ``"f16"``, ``"s8"``, ``"u32"``.
    """

    m: int
    n: int
    k: int
    a: str
    b: str
    c: str
    result: str


def matrix_products(code: bytes) -> frozenset[MatrixProduct]:
    """Returns the products whose shapes are constant; shapes by specialization constants are left out."""
    binary = read_binary(code)
    scalars: dict[int, str] = {}
    constants: dict[int, int] = {}
    shapes: dict[int, tuple[int, int, int]] = {}  # element type, rows, columns, by type
    types: dict[int, int] = {}
    products = set()
    for opcode, start, end in binary:
        words = binary.words[start:end]
        layout = LAYOUTS.get(opcode)
        if layout is not None and layout.operands[:2] == ("IdResultType", "IdResult"):
            types[words[2]] = words[1]
        if opcode == Op.TypeFloat and len(words) == 3:
            scalars[words[1]] = f"f{words[2]}"
        elif opcode == Op.TypeInt:
            scalars[words[1]] = f"i{words[2]}"
        elif opcode == Op.Constant:
            constants[words[2]] = words[3]
        elif opcode == Op.TypeCooperativeMatrixKHR and {words[4], words[5]} <= constants.keys():
            shapes[words[1]] = words[2], constants[words[4]], constants[words[5]]
        elif opcode == Op.CooperativeMatrixMulAddKHR:
            matrices = [shapes.get(types.get(id, 0)) for id in (*words[3:6], words[2])]
            names = [scalars.get(matrix[0], "") if matrix else "" for matrix in matrices]
            (a, b, *_) = matrices
            if a is not None and b is not None and all(names):
                signs = words[6] if len(words) > 6 else 0
                kinds = [
                    name.replace("i", "s" if signs & bit else "u")
                    for name, bit in zip(names, _SIGNED_BITS, strict=True)
                ]
                products.add(MatrixProduct(a[1], b[2], a[2], *kinds))
    return frozenset(products)
