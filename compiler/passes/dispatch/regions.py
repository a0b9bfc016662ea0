"""Dispatch regions: operations that run as one dispatch, outlined by what their results are used for.

Operations are visited from the last to the first. One whose users all lie in one region joins it, if nothing expensive
would be computed more often than it is stored; every other begins a region of its own. Since no value of a region but
its root's results leaves it, regions cannot wait for each other in a circle.

A kernel computes an operation once for each place at which it is read. A place is how one gets there from the root: by
which users that read their operand elsewhere than they are written. Places multiply along chains of such users, as in
the stages of a sort, so that what is read at too many is a region of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from ...dialects.builder import Builder
from ...ir.attributes import Attribute, DenseArray, DenseElements, IntegerAttr, StructAttr
from ...ir.operation import Block, Location, Operation, Region, Value
from ...ir.sizes import Dim, Size, is_at_least, product
from ...ir.types import I32, I64, TensorType, Type
from ..canonical.canonicalize import drop_unused
from ..direct_scatters import is_direct
from ..rows import RowShape, Space, computed_of_rows, fills_device, is_long, spaces_of, spaces_over
from ..scans import fills_words, scan_of
from ..short_transforms import follows_element_by_element
from ..weights import HEAVY, MOVES, is_structure, iterations_of, lanes_of, words_of

MAX_BINDINGS: Final = 12
MAX_OPERATIONS: Final = 200
MAX_REPEATED: Final = 8
"""Users of a view, at most, that have one of their own."""

MAX_PLACES: Final = 4
"""At most so often a kernel's code computes one operation."""

MAX_WORDS: Final = 1 << 16
"""Words of a kernel's code, about."""

MAX_DEPTH: Final = 32
"""Structures within structures, such as concatenations of what is padded."""

CONTROL: Final = frozenset({"while", "if", "case", "custom_call", "after_all", "create_token"})
"""Operations of the sequencer: they stay outside of regions."""

_COSTLY: Final = frozenset(
    {"atan2", "cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "power"}
    | {"rsqrt", "sine", "sqrt", "tan", "tanh", "divide", "remainder"}
)
_VIEWS: Final = frozenset({"broadcast_in_dim", "iota", "reshape", "reverse", "slice"})
"""Operations whose elements cost no more than reading their operand's."""

_REPEATS: Final = frozenset({"broadcast_in_dim", "gather", "dot_general", "convolution", "reduce_window"})
"""Operations that read an element of an operand more than once."""

_ROOT: Final = 0


class _Cluster:
    """Operations that will be one region.

    Attributes:
        operations: from the last, the root, to the first.
        inputs: values that they use and do not define.
        has_loop: whether one of them loops.
        has_reduction: whether one of them is a reduction.
        places: where each is read; the root's elements are read where they are written.
        depths: of structures around each, with itself.
        followed: operations each element of which goes to one element of the root, by one user after another.
        updated: what the root takes updates to in place, and nothing else reads.
        words: of the code of all, about.
    """

    __slots__ = (
        "_lanes",
        "_numbers",
        "depths",
        "followed",
        "has_loop",
        "has_reduction",
        "inputs",
        "operations",
        "places",
        "updated",
        "words",
    )

    def __init__(self, root: Operation) -> None:
        self.operations = [root]
        self.inputs = dict.fromkeys(_inputs(root))
        self.has_loop = _name(root) in HEAVY
        self.has_reduction = _name(root) == "reduce"
        self.places: dict[Operation, set[int]] = {root: {_ROOT}}
        self.followed = {root}
        self.depths = {root: int(is_structure(root))}
        self.updated = root.operands[0] if is_direct(root) else None
        self._lanes = max(lanes_of(value.tensor) for value in root.results)
        self.words = words_of(root) * self._lanes
        self._numbers: dict[tuple[int, Operation, int], int] = {}

    def with_operation(self, operation: Operation) -> dict[Value, None]:
        """The inputs that the cluster has with one operation more."""
        rest = {value: None for value in self.inputs if value not in operation.results}
        return rest | dict.fromkeys(_inputs(operation))

    def add(self, operation: Operation, users: set[Operation]) -> None:
        """Adds an operation, all of whose users are in the cluster."""
        self.inputs = self.with_operation(operation)
        self.operations.append(operation)
        if self.follows(operation, users):
            self.followed.add(operation)
        self.has_loop |= _name(operation) in HEAVY
        self.has_reduction |= _name(operation) == "reduce"
        self.places[operation] = self.places_of(operation, users)
        self.depths[operation] = self.depth_of(operation, users)
        self.words += self.words_with(operation, len(self.places[operation]))

    def follows(self, operation: Operation, users: set[Operation]) -> bool:
        """Whether each element of an operation goes to one element of the root."""
        (user, *others) = users
        return not others and user in self.followed and follows_element_by_element(user, operation.results[0])

    @property
    def is_in_order(self) -> bool:
        """Whether what follows element by element has its elements in the order of the root's."""
        return all(_name(each) != "transpose" for each in self.followed)

    def words_with(self, operation: Operation, places: int) -> int:
        """Words that an operation takes at so many places."""
        return words_of(operation) * self._lanes * places

    def depth_of(self, operation: Operation, users: set[Operation]) -> int:
        """Structures around an operation, if all its users are in the cluster."""
        return max(self.depths[user] for user in users) + is_structure(operation)

    def places_of(self, operation: Operation, users: set[Operation]) -> set[int]:
        """Where an operation is read, if all its users are in the cluster."""
        found: set[int] = set()
        for user in users:
            if _is_pointwise(user):
                found |= self.places[user]
                continue
            # What only a user's body reads is no operand of it.
            positions = [at for at, operand in enumerate(user.operands) if operand in operation.results] or [-1]
            # A reduction goes over its elements once, however often its result is read.
            around = {_ROOT} if _name(user) == "reduce" else self.places[user]
            keys = [(place, user, position) for place in around for position in positions]
            found.update(self._numbers.setdefault(key, len(self._numbers) + 1) for key in keys)
        return found


def form_regions(block: Block) -> None:
    """Moves all math of a block into dispatch regions, that of the bodies of loops and branches too, in place."""
    _form(block)
    # Small constants stand in the regions now.
    drop_unused(block)


def _form(block: Block) -> None:
    _fill(block)
    _repeat_views(block)
    users: dict[Value, list[Operation]] = defaultdict(list)
    for operation in block.operations:
        for inner in operation.walk():
            for value in inner.operands:
                users[value].append(operation)
    of_rows = computed_of_rows(block)
    cluster_of: dict[Operation, _Cluster] = {}
    for operation in reversed(block.operations):
        name = _name(operation)
        if not operation.name.startswith("stablehlo.") or name in CONTROL or name in ("constant", "return"):
            continue
        using = {user for value in operation.results for user in users[value]}
        found = {cluster_of.get(user) for user in using}
        cluster = found.pop() if len(found) == 1 else None
        if cluster is not None and _joins(operation, using, cluster, of_rows.get(operation)):
            cluster.add(operation, using)
        else:
            cluster = _Cluster(operation)
        cluster_of[operation] = cluster
    _rebuild(block, cluster_of)


def _fill(block: Block) -> None:
    """Gives scatters that go forward an operand in memory, in place, where it is a constant of the code."""
    operations, block.operations = block.operations, []
    builder = Builder(block)
    for operation in operations:
        if is_direct(operation) and _is_small(operation.operands[0]):
            builder.location = operation.location
            value, *others = operation.operands
            constant = value.owner
            assert isinstance(constant, Operation)
            given = constant.attributes["value"]
            assert isinstance(given, DenseElements)
            scalar = builder.constant(given.array.reshape(-1)[0], TensorType((), value.tensor.scalar))
            operation.operands = [builder.broadcast(scalar, value.tensor.lengths, ()), *others]
        block.append(operation)


def _repeat_views(block: Block) -> None:
    """Gives each user of a view one of its own, in place: it costs nothing to compute, and a dispatch to store."""
    users: dict[Value, list[tuple[Operation, int]]] = defaultdict(list)
    kept: list[Operation] = []
    for operation in reversed(block.operations):
        using = users[operation.results[0]] if _name(operation) in _VIEWS else []
        for user, position in using[1:MAX_REPEATED]:
            copy = Operation(
                operation.name,
                list(operation.operands),
                [operation.results[0].type],
                operation.attributes,
                location=operation.location,
            )
            copy.parent = block
            user.operands = [*user.operands[:position], copy.result, *user.operands[position + 1 :]]
            kept.append(copy)
            _use(users, copy)
        kept.append(operation)
        _use(users, operation)
    block.operations = kept[::-1]


def _use(users: dict[Value, list[tuple[Operation, int]]], operation: Operation) -> None:
    for position, value in enumerate(operation.operands):
        users[value].append((operation, position))


def _rebuild(block: Block, cluster_of: Mapping[Operation, _Cluster]) -> None:
    operations, block.operations = block.operations, []
    builder = Builder(block)
    replaced: dict[Value, Value] = {}
    for operation in operations:
        builder.location = operation.location
        cluster = cluster_of.get(operation)
        if cluster is None:
            for inner in operation.walk():
                inner.operands = [replaced.get(value, value) for value in inner.operands]
            for region in operation.regions:
                for body in region.blocks:
                    _form(body)
            block.append(operation)
        elif cluster.operations[0] is operation:
            replaced.update(zip(operation.results, _region(builder, cluster, replaced), strict=True))


def _name(operation: Operation) -> str:
    return operation.name.removeprefix("stablehlo.")


def _joins(operation: Operation, using: set[Operation], cluster: _Cluster, of_rows: RowShape | None) -> bool:
    """Whether an operation may be computed where its only region needs it.

    Args:
        operation: to be computed.
        using: its users.
        cluster: that all of them are in.
        of_rows: the rows that it is computed once for each of, if it follows a reduction.
    """
    name = _name(operation)
    if len(cluster.operations) >= MAX_OPERATIONS or len(operation.results) > 1:
        return False
    if name == "sort" or is_direct(operation):
        # They are the roots of regions: their kernels write what they compute themselves.
        return False
    if cluster.updated is not None and cluster.updated in (*_inputs(operation), *operation.results):
        return False
    if len(cluster.with_operation(operation)) + 1 > MAX_BINDINGS:
        return False
    # A scan reads each element once or twice.
    names = {_name(user) for user in using if scan_of(user) is None}
    places = cluster.places_of(operation, using)
    if len(places) > MAX_PLACES or cluster.depth_of(operation, using) > MAX_DEPTH:
        return False
    if cluster.words + cluster.words_with(operation, len(places)) > MAX_WORDS:
        return False
    if name == "fft":
        (result, *others) = cluster.operations[0].results
        is_whole = not others and lanes_of(result.tensor) == 1
        return not cluster.has_loop and is_whole and cluster.follows(operation, using)
    scan = scan_of(operation)
    if scan is not None:
        in_order = places == {_ROOT} or (cluster.follows(operation, using) and cluster.is_in_order)
        fills = all(fills_words(scan, each) for each in cluster.operations[0].results)
        return in_order and fills and not cluster.has_loop
    space = None
    if name == "reduce" or cluster.has_reduction:
        rows = spaces_of([*cluster.operations, operation])
        if rows is None and (spaces_of(cluster.operations) is not None or is_long(operation)):
            return False
        space = None if rows is None else rows[1][operation.results[0]]
    elif of_rows is not None:
        # Its reduction comes to be here as well.
        spaces = spaces_over([*cluster.operations, operation], of_rows)
        space = None if spaces is None else spaces[operation.results[0]]
    if name in HEAVY:
        if space is Space.ROWS and fills_device(operation):
            return True
        return not cluster.has_loop and places == {_ROOT}
    if iterations_of(operation) and cluster.has_loop and places != {_ROOT}:
        return False
    if not names & _REPEATS or space is Space.ROWS:
        return True
    # Repeated work is accepted where it is cheap, and where it is little.
    repeats = bool(names & (_REPEATS - {"broadcast_in_dim"})) or any(map(_grows, using))
    return not repeats or name in MOVES or name in ("convert", "iota") or not (name in _COSTLY or names & HEAVY)


def _grows(operation: Operation) -> bool:
    if _name(operation) != "broadcast_in_dim":
        return False
    result, operand = operation.results[0].tensor, operation.operands[0].tensor
    few = isinstance(operand.count, int) and operand.count <= 64
    return not few and is_at_least(result.count - operand.count, 1) is not False


def _is_pointwise(operation: Operation) -> bool:
    """Whether each element of the result depends on the elements at the same place."""
    name = _name(operation)
    shape = operation.results[0].tensor.shape
    return name not in HEAVY and name not in MOVES and all(value.tensor.shape == shape for value in operation.operands)


def _is_small(value: Value) -> bool:
    """Whether a value is a constant that stands in code rather than in memory."""
    owner = value.owner
    if not isinstance(owner, Operation) or owner.name != "stablehlo.constant":
        return False
    constant = owner.attributes["value"]
    return isinstance(constant, DenseElements) and (constant.is_splat or constant.array.size <= 1)


def _inputs(operation: Operation) -> list[Value]:
    """Values that an operation and its regions use from outside, small constants left out."""
    if not operation.regions:
        return [value for value in operation.operands if not _is_small(value)]
    inside: set[Value] = set()
    found: list[Value] = []
    for inner in operation.walk():
        for region in inner.regions:
            for body in region.blocks:
                inside.update(body.arguments)
        found.extend(value for value in inner.operands if value not in inside and not _is_small(value))
        inside.update(inner.results)
    return found


def _region(builder: Builder, cluster: _Cluster, replaced: Mapping[Value, Value]) -> list[Value]:
    """Appends the region of a cluster; gives its results."""
    operations = cluster.operations[::-1]
    root = operations[-1]
    inputs = list(cluster.inputs)
    body = Block([value.type for value in inputs])
    inside = dict(zip(inputs, body.arguments, strict=True))
    for operation in operations:
        for inner in operation.walk():
            for value in inner.operands:
                owner = value.owner
                if value not in inside and _is_small(value) and isinstance(owner, Operation):
                    copy = Operation(owner.name, (), [value.type], owner.attributes, location=owner.location)
                    inside[value] = body.append(copy).result
            inner.operands = [inside.get(value, value) for value in inner.operands]
        body.append(operation)
    body.append(Operation("iree.return", list(root.results), location=root.location))
    types = [value.type for value in root.results]
    workload = builder.block.append(workload_of(types, root.location)).result
    operands = [workload, *(replaced.get(value, value) for value in inputs)]
    cost: dict[str, Attribute] = {
        "bytes": _cost(_bytes([*inputs, *root.results])),
        "flops": _cost(_flops(operations)),
    }
    made = Operation("iree.dispatch_region", operands, types, cost, [Region([body])], location=root.location)
    return builder.block.append(made).results


def workload_of(types: Sequence[Type], location: Location) -> Operation:
    """The shape of the result, the innermost dimension first, as up to three numbers: a constant if they are known."""
    (first, *_) = types
    shape = [length or 1 for length in first.shape] if isinstance(first, TensorType) else []
    every = [*shape[::-1], 1, 1, 1]
    sizes = [every[0], every[1], product(every[2:])]
    numbers = [size for size in sizes if isinstance(size, int)]
    if len(numbers) < len(sizes):
        attributes: dict[str, Attribute] = {"sizes": DenseArray(I64, tuple(sizes))}
        return Operation("iree.workload", (), [TensorType((3,), I64)], attributes, location=location)
    type = TensorType((3,), I32 if max(numbers) < 2**31 else I64)
    return Operation("arith.constant", (), [type], {"value": DenseElements.of(numbers, type)}, location=location)


def _cost(number: Dim) -> Attribute:
    return str(number) if isinstance(number, Size) else IntegerAttr(number, I64)


def _bytes(values: Sequence[Value]) -> Dim:
    total: Dim = 0
    for value in values:
        type = value.type
        if isinstance(type, TensorType):
            total += type.count * max(type.scalar.bits // 8, 1)
    return total


def _flops(operations: Sequence[Operation]) -> Dim:
    """Arithmetic operations on elements, a multiplication with its addition as two."""
    total: Dim = 0
    for operation in operations:
        name = _name(operation)
        count = operation.results[0].tensor.count
        if name in ("dot_general", "convolution"):
            total += 2 * count * _depth(operation)
        elif name in ("reduce", "reduce_window"):
            total += operation.operands[0].tensor.count
        elif name not in MOVES and name not in ("constant", "iota", "convert"):
            total += count
    return total


def _depth(operation: Operation) -> Dim:
    """Products that are summed for each element of a contraction or a convolution."""
    left, right = (value.tensor for value in operation.operands[:2])
    numbers = operation.attributes.get("dot_dimension_numbers", operation.attributes.get("dimension_numbers"))
    assert isinstance(numbers, StructAttr)
    if operation.name == "stablehlo.dot_general":
        return product(left.lengths[axis] or 1 for axis in numbers.ints("lhs_contracting_dimensions"))
    features = numbers.int("kernel_output_feature_dimension")
    return product(length for axis, length in enumerate(right.lengths) if axis != features)
