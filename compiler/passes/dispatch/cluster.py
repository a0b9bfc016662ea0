"""Clusters: operations around a root that run as one dispatch, and the rules for joining them.

A kernel computes an operation once for each place at which it is read. A place is a path from the root to the
operation; only users that read their operand at other indices than their own count. Places multiply along chains of
such users, as in the stages of a sort. An operation with too many places becomes a region of its own.
"""

from __future__ import annotations

from typing import Final

from ...analysis.rows import RowShape, RowSpaces, Space, fills_device, is_long, rows_of
from ...analysis.scans import LOOK_BACK_CODE, fills_words, scan_of, scratch_words
from ...analysis.special_forms import follows_element_by_element, is_direct
from ...analysis.weights import HEAVY, MOVES, is_structure, iterations_of, lanes_of, name_of, words_of
from ...ir.operation import Operation, Value
from ...ir.sizes import is_at_least
from ..canonical.legacy import constant_of

MAX_BINDINGS: Final = 12
MAX_OPERATIONS: Final = 200

MAX_PLACES: Final = 4
"""How many times a kernel may recompute one operation."""

MAX_INTERLEAVED: Final = 2
"""The same for interleaved elements, as in the steps of ``lax.associative_scan``: every second element belongs to the
other operand, whose code runs for nothing or is written separately.
"""

MAX_WORDS: Final = 1 << 16
"""The approximate number of words of a kernel's code, at most."""

MAX_DEPTH: Final = 32
"""Depth of nested structures, such as concatenations of padded values."""

_COSTLY: Final = frozenset(
    {"atan2", "cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "power"}
    | {"rsqrt", "sine", "sqrt", "tan", "tanh", "divide", "remainder"}
)
_REPEATS: Final = frozenset({"broadcast_in_dim", "gather", "dot_general", "convolution", "reduce_window"})
"""Operations that read some element of an operand more than once."""

_ROOT: Final = 0


class Cluster:
    """Operations that will be one region.

    Attributes:
        operations: the operations from the last, the root, to the first.
        inputs: the values that they use and do not define.
        has_loop: whether an operation loops.
        has_scratch: whether an operation has scratch memory.
        max_places: the number of times that a joining operation may be computed.
        places: the numbers of the uses for which each operation is computed; the root has ``_ROOT``.
        depths: the nesting depth of each operation in structures.
        followed: the operations whose elements each contribute to one element of the root.
        updated: the operand that the root updates in place and no other operation reads.
        words: the approximate size of the code.
    """

    def __init__(self, root: Operation) -> None:
        self.operations: list[Operation] = [root]
        self.inputs: dict[Value, None] = dict.fromkeys(inputs_of(root))
        self.has_loop: bool = name_of(root) in HEAVY
        self._reduced = {rows_of(root)} if name_of(root) == "reduce" else set()
        self._spaces: dict[RowShape, tuple[RowSpaces, int]] = {}
        self.places: dict[Operation, set[int]] = {root: {_ROOT}}
        self.followed: set[Operation] = {root}
        self.depths: dict[Operation, int] = {root: int(is_structure(root))}
        self.updated: Value | None = root.operands[0] if is_direct(root) else None
        self._lanes = max(lanes_of(value.tensor) for value in root.results)
        self.words: int = words_of(root) * self._lanes
        self._numbers: dict[tuple[int, Operation, int], int] = {}
        self.has_scratch: bool = scratch_words([root]) > 0
        self.max_places: int = _max_places(root)

    def with_operation(self, operation: Operation) -> dict[Value, None]:
        """Returns the inputs of the cluster with one more operation."""
        rest = {value: None for value in self.inputs if value not in operation.results}
        return rest | dict.fromkeys(inputs_of(operation))

    def add(self, operation: Operation, users: set[Operation]) -> None:
        """Adds an operation, all of whose users are in the cluster."""
        self.inputs = self.with_operation(operation)
        self.operations.append(operation)
        if self.follows(operation, users):
            self.followed.add(operation)
        self.has_loop |= name_of(operation) in HEAVY
        self.has_scratch |= scratch_words([operation]) > 0
        self.max_places = min(self.max_places, _max_places(operation))
        if name_of(operation) == "reduce":
            self._reduced.add(rows_of(operation))
        self.places[operation] = self.places_of(operation, users)
        self.depths[operation] = self.depth_of(operation, users)
        self.words += self.words_with(operation, len(self.places[operation]))

    def follows(self, operation: Operation, users: set[Operation]) -> bool:
        """Whether each element of an operation contributes to one element of the root."""
        (user, *others) = users
        return not others and user in self.followed and follows_element_by_element(user, operation.results[0])

    @property
    def is_in_order(self) -> bool:
        """Whether the elements of the followed operations are in the root's order."""
        return all(name_of(operation) != "transpose" for operation in self.followed)

    def words_with(self, operation: Operation, places: int) -> int:
        """Returns the words of an operation's code at this many places."""
        return words_of(operation) * self._lanes * places

    def depth_of(self, operation: Operation, users: set[Operation]) -> int:
        """Returns the nesting depth of an operation whose users are all in the cluster."""
        return max(self.depths[user] for user in users) + is_structure(operation)

    def places_of(self, operation: Operation, users: set[Operation]) -> set[int]:
        """Returns the places of an operation whose users are all in the cluster."""
        around_all: set[int] = set()
        for user in users:
            if _is_pointwise(user):
                around_all |= self.places[user]
                continue
            # A value that only a user's body reads is not an operand of the user.
            positions = [at for at, operand in enumerate(user.operands) if operand in operation.results] or [-1]
            # A reduction visits its elements once, regardless of how its result is read.
            around = {_ROOT} if name_of(user) == "reduce" else self.places[user]
            keys = [(outer, user, position) for outer in around for position in positions]
            around_all.update(self._numbers.setdefault(key, len(self._numbers) + 1) for key in keys)
        return around_all

    def takes(self, operation: Operation, using: set[Operation], of_rows: RowShape | None) -> bool:
        """Whether an operation that only the cluster uses may join it.

        Args:
            operation: the candidate.
            using: the users of its result, which are all in the cluster.
            of_rows: the rows for each of which it is computed once, if it follows a reduction.
        """
        name = name_of(operation)
        if len(self.operations) >= MAX_OPERATIONS or len(operation.results) > 1:
            return False
        if name == "sort" or is_direct(operation):
            # These are roots of regions: their kernels write their own results.
            return False
        if self.updated is not None and self.updated in (*inputs_of(operation), *operation.results):
            return False
        has_scratch = self.has_scratch or scratch_words([operation]) > 0
        if len(self.with_operation(operation)) + (3 if has_scratch else 1) > MAX_BINDINGS:
            return False
        # A scan reads each element once or twice.
        names = {name_of(user) for user in using if scan_of(user) is None}
        places = self.places_of(operation, using)
        if len(places) > self.max_places or self.depth_of(operation, using) > MAX_DEPTH:
            return False
        most = LOOK_BACK_CODE if has_scratch else MAX_WORDS
        if self.words + self.words_with(operation, len(places)) > most:
            return False
        if name == "fft":
            (result, *others) = self.operations[0].results
            is_whole = not others and lanes_of(result.tensor) == 1
            return not self.has_loop and is_whole and self.follows(operation, using)
        scan = scan_of(operation)
        if scan is not None:
            in_order = places == {_ROOT} or (self.follows(operation, using) and self.is_in_order)
            fills = all(fills_words(scan, value) for value in self.operations[0].results)
            return in_order and fills and not self.has_loop
        spaces = None
        if name == "reduce" or self._reduced:
            spaces = self._spaces_with(operation, self._reduced | ({rows_of(operation)} if name == "reduce" else set()))
            if spaces is None and (self._spaces_over(self._reduced) is not None or is_long(operation)):
                return False
        elif of_rows is not None:
            # Its reduction will join, too.
            spaces = self._spaces_with(operation, {of_rows})
        space = None if spaces is None else spaces.of.get(operation.results[0])
        if name in HEAVY:
            if space is Space.ROWS and fills_device(operation):
                return True
            return not self.has_loop and places == {_ROOT}
        if iterations_of(operation) and self.has_loop and places != {_ROOT}:
            return False
        if not names & _REPEATS or space is Space.ROWS:
            return True
        # Repeated work is accepted if it is cheap or small.
        repeats = bool(names & (_REPEATS - {"broadcast_in_dim"})) or any(map(_grows, using))
        return not repeats or name in MOVES or name in ("convert", "iota") or not (name in _COSTLY or names & HEAVY)

    def _spaces_with(self, operation: Operation, every: set[RowShape | None]) -> RowSpaces | None:
        """Returns the spaces of the cluster's values with one more operation if all reductions have the same rows.

        Else None.
        """
        spaces = self._spaces_over(every)
        return spaces if spaces is not None and spaces.takes(operation) else None

    def _spaces_over(self, every: set[RowShape | None]) -> RowSpaces | None:
        """Returns the spaces of the cluster's values if all reductions have the rows ``every``; else None."""
        rows = next(iter(every)) if len(every) == 1 else None
        if rows is None:
            return None
        if rows not in self._spaces:
            self._spaces[rows] = RowSpaces(rows, self.operations[0]), 0
        spaces, count = self._spaces[rows]
        for operation in self.operations[count:]:
            spaces.add(operation)
        self._spaces[rows] = spaces, len(self.operations)
        return spaces if spaces.is_over_rows else None


def _max_places(operation: Operation) -> int:
    is_interleaved = name_of(operation) == "pad" and any(operation.sizes("interior_padding"))
    return MAX_INTERLEAVED if is_interleaved else MAX_PLACES


def _grows(operation: Operation) -> bool:
    if name_of(operation) != "broadcast_in_dim":
        return False
    result, operand = operation.results[0].tensor, operation.operands[0].tensor
    few = isinstance(operand.count, int) and operand.count <= 64
    return not few and is_at_least(result.count - operand.count, 1) is not False


def _is_pointwise(operation: Operation) -> bool:
    """Whether each element of the result depends only on elements at the same index."""
    name = name_of(operation)
    shape = operation.results[0].tensor.shape
    return name not in HEAVY and name not in MOVES and all(value.tensor.shape == shape for value in operation.operands)


def is_small(value: Value) -> bool:
    """Whether a value is a constant in the code instead of in memory."""
    constant = constant_of(value)
    return constant is not None and (constant.is_splat or constant.array.size <= 1)


def inputs_of(operation: Operation) -> list[Value]:
    """Returns the values from outside that an operation and its regions use, without small constants."""
    if not operation.regions:
        return [value for value in operation.operands if not is_small(value)]
    inside: set[Value] = set()
    inputs: list[Value] = []
    for inner in operation.walk():
        for region in inner.regions:
            for body in region.blocks:
                inside.update(body.arguments)
        inputs.extend(value for value in inner.operands if value not in inside and not is_small(value))
        inside.update(inner.results)
    return inputs
