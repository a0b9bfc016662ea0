"""Variables of a function: registers split into webs, so that independent uses of a register become separate variables.

Each definition is a node. A block's start has a node for each register that the block reads before writing it, joined
with the nodes that reach it over the edges. Joined nodes form one variable (see Braun et al., Simple and Efficient
Construction of Static Single Assignment Form, 2013, without the phi functions).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...vm.translation.analysis import FunctionAnalysis
from ...vm.translation.basic_block import Edge as RegisterEdge
from ...vm.translation.basic_block import Variable as Register
from .ir import Variable


@dataclass(eq=False, slots=True)
class Node:
    """A definition, or the value of a register at the start of a block."""

    register: Register
    parent: Node | None = None
    variable: Variable | None = None
    null: bool = False  # whether it represents a moved reference

    def root(self) -> Node:
        """Returns the representative of the joined nodes."""
        node = self
        while node.parent is not None:
            if node.parent.parent is not None:
                node.parent = node.parent.parent
            node = node.parent
        return node


@dataclass(eq=False, slots=True)
class Webs:
    """The nodes of a function.

    Calling sequence: ``read``, ``write`` and ``move`` for each instruction in order, ``end`` after each block →
    ``join`` → ``variable`` for any node.
    """

    analysis: FunctionAnalysis
    nulls: list[tuple[int, int, Node]] = field(default_factory=list)  # block, instruction, and the node of a move
    copies: dict[RegisterEdge, list[tuple[Node, Node | None]]] = field(default_factory=dict)  # ``None``: null
    zeros: list[Node] = field(default_factory=list)  # read before any write
    _entries: dict[tuple[int, Register], Node] = field(default_factory=dict)
    _exits: list[dict[Register, Node]] = field(default_factory=list)
    _pending: list[tuple[int, Register]] = field(default_factory=list)
    _current: dict[Register, Node] = field(default_factory=dict)
    _block: int = 0
    _arguments: dict[Register, Node] = field(default_factory=dict)
    _edge_nodes: dict[tuple[RegisterEdge, Register], Node] = field(default_factory=dict)

    def argument(self, register: Register) -> Node:
        """Returns the definition of an argument."""
        node = self._arguments[register] = Node(register)
        return node

    def read(self, register: Register) -> Node:
        """Returns the current node of a register."""
        node = self._current.get(register)
        if node is None:
            node = self._entry(self._block, register)
        return node

    def write(self, register: Register) -> Node:
        """Returns a new definition of a register."""
        node = self._current[register] = Node(register)
        return node

    def move(self, number: int, index: int) -> None:
        """Notes that a reference register is null from an instruction on."""
        node = self.write(("r", number))
        node.null = True
        self.nulls.append((self._block, index, node))

    def end(self) -> None:
        """Ends a block."""
        self._exits.append(self._current)
        self._current = {}
        self._block += 1

    def _entry(self, block: int, register: Register) -> Node:
        node = self._entries.get((block, register))
        if node is None:
            node = self._entries[block, register] = Node(register)
            self._pending.append((block, register))
        return node

    def join(self) -> None:
        """Joins nodes that reach a common use."""
        arriving: list[list[tuple[int, RegisterEdge]]] = [[] for _ in self._exits]
        for block in self.analysis.blocks:
            for edge in block.edges:
                arriving[edge.target].append((block.index, edge))
        while self._pending:
            at, register = self._pending.pop()
            node = self._entries[at, register]
            if at == 0:
                start = self._arguments.get(register)
                if start is None:
                    start = Node(register)
                    self.zeros.append(start)
                _join(node, start)
            for source, edge in arriving[at]:
                _join(node, self._over(source, edge, register))

    def _over(self, source: int, edge: RegisterEdge, register: Register) -> Node:
        """Returns the node of a register after an edge."""
        kind, number = register
        origin: int | None = number
        if kind == "r" and number in edge.refs:
            origin = edge.refs[number]
        elif kind != "r" and number in edge.values:
            origin = edge.values[number]
        else:
            return self._at_end(source, register)
        known = self._edge_nodes.get((edge, register))
        if known is None:
            known = self._edge_nodes[edge, register] = Node(register)
            held = None if origin is None else self._at_end(source, (kind, origin))
            self.copies.setdefault(edge, []).append((known, held))
        return known

    def _at_end(self, block: int, register: Register) -> Node:
        node = self._exits[block].get(register)
        return node if node is not None else self._entry(block, register)

    def variable(self, node: Node) -> Variable:
        """Returns the variable that a node belongs to."""
        root = node.root()
        if root.variable is None:
            root.variable = Variable(root.register[0])
        return root.variable


def _join(first: Node, second: Node) -> None:
    root, other = first.root(), second.root()
    if root is not other:
        other.parent = root
