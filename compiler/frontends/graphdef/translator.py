"""Translation of the nodes that a graph's outputs depend on into blocks of StableHLO operations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

import numpy as np

from ...dialects.builder import Builder
from ...dialects.rules.hlo import infer
from ...dialects.rules.requirements import OperationError
from ...ir.operation import Block, DebugLocation, Location, Operation, Value
from ...ir.parser import MAX_OPERATIONS
from ...ir.source import CompileError
from ...ir.types import I1, I32, TensorType, Type, types_text
from .file.graph import ARGUMENT, Graph, GraphNode, Ref
from .file.plan import Context, GraphLoop, GraphPlan
from .operations import OPERATIONS, why_not
from .operators.control import choose, while_loop
from .operators.known_values import known_array
from .operators.lists import opened
from .operators.node import MAX_ELEMENTS, Node, Translate

_MAX_DEPTH: Final = 64
"""The deepest nesting of functions, conditionals and loops."""


class Scope:
    """Values that a block's operations may use: its own, and those of enclosing blocks.

    Args:
        builder: the builder that appends to the block.
        around: the enclosing block's scope.
        values: the values that the block starts with.
        context: the branches under which the block's operations run.
    """

    def __init__(
        self, builder: Builder, around: Scope | None, values: Mapping[Ref, Value], context: Context = frozenset()
    ) -> None:
        self.builder = builder
        self.around = around
        self.values: dict[Ref, Value] = dict(values)
        self.context = context

    def find(self, ref: Ref) -> Value | None:
        """Returns the value of an output, if it has been translated."""
        scope: Scope | None = self
        while scope is not None:
            value = scope.values.get(ref)
            if value is not None:
                return value
            scope = scope.around
        return None

    def inner(self, block: Block, values: Mapping[Ref, Value], context: Context) -> Scope:
        """Makes a scope for a block inside this one's."""
        return Scope(Builder(block, self.builder.location), self, values, context)


class Translator:
    """Translates the graphs of one document.

    Args:
        functions: the library's functions by name.
        file_name: the document's file name.
    """

    def __init__(self, functions: Mapping[str, Graph], file_name: str) -> None:
        self._functions = functions
        self._file_name = file_name
        self._plans: dict[Graph, GraphPlan] = {}
        self._depth = 0
        self._count = 0

    def plan(self, graph: Graph) -> GraphPlan:
        """Returns the plan of a graph, made once."""
        if graph not in self._plans:
            self._plans[graph] = GraphPlan(graph)
        return self._plans[graph]

    def call(self, name: str, arguments: Sequence[Value], node: Node, builder: Builder) -> Sequence[Value]:
        """Appends the body of a function; returns its results."""
        graph = self._functions.get(name)
        if graph is None:
            raise node.error(f"there is no function '{name}' in the library")
        if len(arguments) != len(graph.arguments):
            count = len(graph.arguments)
            raise node.error(f"function '{name}' takes {count} argument{'s' * (count != 1)}, got {len(arguments)}")
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise node.error(f"function '{name}' calls itself, or functions are nested more than {_MAX_DEPTH} deep")
        bound = {Ref(argument, 0): value for argument, value in zip(graph.arguments, arguments, strict=True)}
        location = builder.location
        results = self.values(graph, graph.results, Scope(builder, None, bound))
        builder.location = location
        self._depth -= 1
        return results

    def values(self, graph: Graph, wanted: Sequence[Ref], scope: Scope) -> list[Value]:
        """Returns the values of outputs; translates the nodes that the scope lacks."""
        plan = self.plan(graph)
        needed = self.needed(graph, wanted, scope)
        for name in sorted(needed, key=plan.rank.__getitem__):
            node = graph.nodes[name]
            if scope.find(Ref(name, 0)) is not None or not plan.contexts[name] <= scope.context:
                continue
            self._count += 1
            if self._count > MAX_OPERATIONS:
                raise graph.error(
                    node, f"the graph has more than {MAX_OPERATIONS} nodes, calls of functions written out"
                )
            scope.builder.location = self._location(graph, node)
            start = len(scope.builder.block.operations)
            if name in plan.choices:
                self._choose(graph, plan, node, needed, scope)
            elif name in plan.loops:
                self._loop(graph, plan.loops[name], node, scope)
            else:
                self._translate(graph, node, scope)
            _check(graph, node, scope.builder.block.operations[start:])
        return [self._value(graph, ref, scope) for ref in wanted]

    def needed(self, graph: Graph, wanted: Iterable[Ref], scope: Scope) -> set[str]:
        """Returns the names of the nodes that outputs depend on and that the scope lacks."""
        plan = self.plan(graph)
        needed: set[str] = set()
        stack = [ref for ref in wanted if scope.find(ref) is None]
        while stack:
            name = stack.pop().node
            if name in needed:
                continue
            needed.add(name)
            stack.extend(ref for ref in plan.sources(graph.nodes[name]) if scope.find(ref) is None)
        return needed

    def _value(self, graph: Graph, ref: Ref, scope: Scope, user: GraphNode | None = None) -> Value:
        value = scope.find(ref)
        if value is not None:
            return value
        node = graph.nodes[ref.node]
        if scope.find(Ref(ref.node, 0)) is not None:
            raise graph.error(user or node, f"'{ref}' is wanted, which is not among the outputs of '{ref.node}'")
        raise graph.error(user or node, f"'{ref}' has a value only on one side of a Switch, or inside a loop")

    def _location(self, graph: Graph, node: GraphNode) -> Location:
        line, column = graph.source.place(node.offset)
        quoted = node.name.replace("\\", "\\\\").replace('"', '\\"')
        file_name = self._file_name.replace("\\", "\\\\").replace('"', '\\"')
        text = f'"{quoted}"("{file_name}":{line}:{column})'
        return Location(node.offset, DebugLocation(text, node.name, self._file_name, line, column))

    def _translate(self, graph: Graph, graph_node: GraphNode, scope: Scope) -> None:
        translate = OPERATIONS.get(graph_node.op)
        operands = [self._value(graph, ref, scope, graph_node) for ref in graph_node.inputs]
        node = Node(graph, graph_node, operands, scope.builder, self)
        if graph_node.op == "Switch":
            # Both outputs have the value; the Merge that ends the context decides which side runs.
            node.expect(2)
            results: Sequence[Value] = [operands[0], operands[0]]
        elif translate is not None:
            node.expect_declared_type()
            results = _guarded(node, translate)
        elif graph_node.op in self._functions:
            results = self.call(graph_node.op, operands, node, scope.builder)
        elif graph_node.op == ARGUMENT:
            raise node.error("it is an argument without a value")
        else:
            raise node.error(why_not(graph_node.op))
        for port, value in enumerate(results):
            scope.values[Ref(graph_node.name, port)] = value
        if not results:
            raise node.error("it has no outputs, and one is wanted")

    def _choose(self, graph: Graph, plan: GraphPlan, node: GraphNode, needed: set[str], scope: Scope) -> None:
        """Adds a conditional for a Merge and the merges that share it."""
        choice, context = plan.choices[node.name], plan.contexts[node.name]
        merges = [name for name in choice.together if name in needed]
        predicate = self._value(graph, choice.predicate, scope, node)
        if predicate.type is not TensorType((), I1):
            raise graph.error(node, f"its predicate has to be one boolean, got {predicate.type}")

        def branch(truth: int, inner: Scope) -> list[Value]:
            inputs = [plan.choices[name].branches[truth] for name in merges]
            refs = [graph.nodes[name].inputs[index] for name, index in zip(merges, inputs, strict=True)]
            values = self.values(graph, refs, inner)
            return [*values, *(inner.builder.constant(index, TensorType((), I32)) for index in inputs)]

        known = known_array(predicate)
        if known is not None:
            active = context | {(choice.predicate, int(bool(known)))}
            inner = Scope(scope.builder, scope, {}, active)
            results: Sequence[Value] = branch(int(bool(known)), inner)
        else:
            self._enter(graph, node)

            def chosen(truth: int, builder: Builder) -> list[Value]:
                return branch(truth, scope.inner(builder.block, {}, context | {(choice.predicate, truth)}))

            scope.builder.location = self._location(graph, node)
            branches = [("its branch if true", partial(chosen, 1)), ("its branch if false", partial(chosen, 0))]
            with _errors_of(graph, node):
                results = choose(scope.builder, "if", predicate, branches)
            self._depth -= 1
        for index, name in enumerate(merges):
            scope.values[Ref(name, 0)] = results[index]
            scope.values[Ref(name, 1)] = results[len(merges) + index]

    def _loop(self, graph: Graph, loop: GraphLoop, node: GraphNode, scope: Scope) -> None:
        """Adds a loop; sets the values of all its Exits."""
        condition = loop.condition
        if condition is None or not loop.variables:
            raise graph.error(node, "its loop has no LoopCond")
        self._enter(graph, node)
        initial = [self._value(graph, variable.initial, scope, node) for variable in loop.variables]

        def given(arguments: Sequence[Value]) -> dict[Ref, Value]:
            values = {}
            for variable, value in zip(loop.variables, arguments, strict=True):
                values[Ref(variable.merge, 0)] = value
                if variable.switch:
                    values[Ref(variable.switch, 1)] = value
            return values

        def test(builder: Builder, arguments: Sequence[Value]) -> Sequence[Value]:
            inner = scope.inner(builder.block, given(arguments), scope.context)
            return self.values(graph, [condition], inner)

        def body(builder: Builder, arguments: Sequence[Value]) -> Sequence[Value]:
            inner = scope.inner(builder.block, given(arguments), scope.context)
            return self.values(graph, [variable.following for variable in loop.variables], inner)

        scope.builder.location = self._location(graph, node)
        with _errors_of(graph, node):
            results = while_loop(scope.builder, initial, test, body, partial(opened, scope.builder))
        for variable, value in zip(loop.variables, results, strict=True):
            if variable.exit:
                scope.values[Ref(variable.exit, 0)] = value
        self._depth -= 1

    def _enter(self, graph: Graph, node: GraphNode) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise graph.error(node, f"conditionals, loops and functions are nested more than {_MAX_DEPTH} deep")


@contextmanager
def _errors_of(graph: Graph, node: GraphNode) -> Iterator[None]:
    """Turns errors of incompatible shapes into errors of a node."""
    try:
        yield
    except CompileError:
        raise
    except ValueError as error:
        raise graph.error(node, str(error)) from None


def _guarded(node: Node, translate: Translate) -> Sequence[Value]:
    """Translates a node; turns errors of incompatible shapes and numbers into errors of the node."""
    try:
        return translate(node)
    except CompileError:
        raise
    except (ArithmeticError, IndexError, TypeError, ValueError, np.exceptions.AxisError) as error:
        types = [value.type for value in node.operands]
        shown = f"; its inputs are ({types_text(types)})" if types else ""
        if any(isinstance(type, TensorType) and not type.is_static for type in types):
            shown += "; feeds with shapes such as x=8x4 make lengths fixed"
        raise node.error(f"{error}{shown}") from None


def _check(graph: Graph, node: GraphNode, operations: Sequence[Operation]) -> None:
    """Checks new operations by their rules, so that errors name the node."""
    for operation in operations:
        for value in operation.results:
            _check_size(graph, node, value.type)
        if not operation.name.startswith("stablehlo."):
            continue
        try:
            inferred = infer(operation)
        except OperationError as error:
            raise graph.error(node, f"{operation.name} expects {error.expected}") from None
        types = [value.type for value in operation.results]
        if list(inferred) != types:
            raise graph.error(
                node, f"{operation.name} gives ({types_text(inferred)}) where ({types_text(types)}) is expected"
            )


def _check_size(graph: Graph, node: GraphNode, type: Type) -> None:
    if isinstance(type, TensorType):
        shape = [length for length in type.lengths if isinstance(length, int)]
        if min(shape, default=0) < 0 or math.prod(filter(None, shape)) >= MAX_ELEMENTS:
            raise graph.error(
                node, f"it makes {type}; lengths are not negative, and there are less than {MAX_ELEMENTS} elements"
            )
