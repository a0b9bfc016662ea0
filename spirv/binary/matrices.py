"""Cooperative matrices of a subgroup (``VK_KHR_cooperative_matrix``)."""

from __future__ import annotations

from .builder import Builder
from .declarations import Kind
from .expression import Id
from .grammar import Op
from .shared_memory import SharedMemory


def matrix(builder: Builder, component: Kind, rows: int, columns: int, use: int) -> Kind:
    """Returns the type of matrices; use 0, 1 or 2 for a, b or c of ``a @ b + c``."""
    return builder.declarations.matrix(component, rows, columns, use)


def zeros(builder: Builder, kind: Kind) -> Id:
    return builder.emit(Op.CompositeConstruct, kind, builder.constant(kind._replace(width=1), 0))


def load(kind: Kind, memory: SharedMemory, first: Id, pitch: int, is_column_major: bool) -> Id:
    """Loads a matrix from shared memory of width 4; ``first`` and ``pitch`` (the row or column stride) are in words."""
    word = memory.builder.word
    pointer = memory.place(first, 4)
    return memory.builder.written(Op.CooperativeMatrixLoadKHR, kind, pointer, word(is_column_major), word(pitch // 4))


def store(matrix: Id, memory: SharedMemory, first: Id, pitch: int) -> None:
    """Writes a matrix row by row to shared memory of width 4; ``first`` and ``pitch`` are in words."""
    word = memory.builder.word
    memory.builder.write(Op.CooperativeMatrixStoreKHR, memory.place(first, 4), matrix, word(0), word(pitch // 4))


def multiplied(left: Id, right: Id, total: Id) -> Id:
    """Returns ``left @ right + total``."""
    letters = [operand.kind.letter == "s" for operand in (left, right, total, total)]
    signs = sum(bit << number for number, bit in enumerate(letters))
    return left.builder.emit(Op.CooperativeMatrixMulAddKHR, total.kind, left, right, total, *([signs] if signs else []))
