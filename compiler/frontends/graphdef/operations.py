"""The supported operations of TensorFlow, and the reasons why others are not supported."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final

from .file.document import FREEZE
from .operators.contractions import CONTRACTIONS
from .operators.control import CONTROL
from .operators.elementwise import ELEMENTWISE
from .operators.images import BLOCKS, IMAGES
from .operators.indexing import INDEXING
from .operators.lists import LISTS
from .operators.node import Translate
from .operators.normalization import NORMALIZATION
from .operators.pieces import PIECES
from .operators.reductions import REDUCTIONS
from .operators.shapes import SHAPES
from .operators.windows import WINDOWS

ROOMS: Final[Mapping[str, Mapping[str, Translate]]] = {
    "element-wise": ELEMENTWISE,
    "contractions": CONTRACTIONS,
    "windows": WINDOWS,
    "normalization": NORMALIZATION,
    "reductions": REDUCTIONS,
    "shapes": SHAPES,
    "pieces": PIECES,
    "blocks": BLOCKS,
    "indexing": INDEXING,
    "images": IMAGES,
    "control flow": CONTROL,
    "lists": LISTS,
}
"""Translations by kind and name; ``plan`` handles the dataflow operations of control flow."""

OPERATIONS: Final[Mapping[str, Translate]] = {
    name: translate for room in ROOMS.values() for name, translate in room.items()
}

_VARIABLES: Final = ("Variable", "VarHandleOp", "ReadVariableOp", "AssignVariableOp", "ResourceGather", "Assign")


def why_not(op: str) -> str:
    """Returns the reason why an operation is not translated, and a remedy."""
    if op.startswith(_VARIABLES):
        return (
            "variables have no place in a compiled program: freeze the graph, which makes constants of them, "
            f"with {FREEZE}"
        )
    close = difflib.get_close_matches(op, OPERATIONS, 1, 0.8)
    meant = f"; did you mean {close[0]}?" if close else ""
    return f"the operation {op} is not supported, nor is it a function of the library{meant}"
