"""The code of rows that the invocations of a workgroup share (``rows``).

Each invocation has some of a row's elements. It joins its own elements, then the invocations join their results: in a
subgroup by exchanging values, across subgroups through shared memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from ....spirv.binary.expression import Id
from ....spirv.binary.offsets import neighbours
from ....spirv.binary.shared_memory import SharedMemory
from ...analysis.rows import Space, identity_in
from ...ir.operation import Operation, Value
from ...ir.sizes import Size, is_multiple, parts_at_most, quotient
from ...kernels.elements import scalar_of, shape_of
from ...kernels.index import Index, split
from ...kernels.kernel import Kernel, Workload
from ...kernels.reductions import Join, Values, chosen, join_all, join_of, of_words, rounded, subgroup_of
from ...kernels.reductions import words_of as words_of_values
from ...kernels.region import KernelRegion, Shader, group_count
from ...kernels.scalars.lengths import KernelBuilder
from ...kernels.scalars.scalars import Scalar, storage_bits
from .rows_region import is_small, joins_in_order, spaces_in, width_of

STEPS: Final = 8
"""Steps of an iteration over long rows of dynamic length."""


class RowShare(NamedTuple):
    """The division of rows among the invocations of a workgroup; ``Rows`` documents the numbers."""

    invocations: int
    rows: int
    width: int
    unrolled: int


class RowsWriter:
    """Writes the kernel of a region.

    Args:
        parameters: the parameters that apply to the region.
        region: a region over rows.
        builder: the builder to use instead of the general builder.
    """

    def __init__(self, parameters: RowShare, region: KernelRegion, builder: KernelBuilder | None = None) -> None:
        rows_and_spaces = spaces_in(region)
        assert rows_and_spaces is not None
        self._region = region
        self._shape, self._spaces = rows_and_spaces
        self._share = parameters
        self._width = parameters.width
        self._shader = Shader(region, builder)
        self._shader.load_runs()
        self._builder = self._shader.builder
        self._count = self._shape.row_count
        self._is_ordered = joins_in_order(region)
        # Enough consecutive rows that their results fill a word.
        narrow = [storage_bits(scalar_of(value)) for value in region.results if self._is_packed(value)]
        self._turns = 32 // min(narrow, default=32)
        local = self._builder.built_in("LocalInvocationId")[0]
        self._local = local
        # Idle lanes of a workgroup must not count loops below zero, as llvmpipe waits for them.
        is_shared = parameters.rows > 1 or isinstance(self._shape.length, Size)
        self._place = local % parameters.invocations if is_shared else local
        self._reductions = 0
        self._memory: tuple[SharedMemory, int] | None = None

    def kernel(self) -> Kernel:
        """Writes and returns the kernel."""
        builder, share = self._builder, self._share
        units = quotient(self._count + (self._turns - 1), self._turns)
        groups: tuple[int, int, int] | Workload
        if isinstance(units, Size):
            groups, covered = Workload(units, share.rows), None
        else:
            groups = group_count(-(-units // share.rows), self._region.target)
            covered = groups[0] * groups[1] * groups[2] * share.rows
        unit = self._unit(groups)
        if share.rows > 1:
            unit = unit * share.rows + self._local // share.invocations
        is_there = None if covered == units else unit < builder.word(units)
        zeros = [builder.word(0) for value in self._region.results if self._is_packed(value)]
        (root, *_) = self._region.block.operations[::-1][1:]

        def turn(number: Id, words: Values) -> list[Scalar]:
            row = unit * self._turns + number if self._turns > 1 else unit
            if is_there is not None or not is_multiple(self._count, self._turns):
                last = builder.word(self._count) - 1
                row = (row < last).select(row, last)
            if self._turns > 1 and share.invocations > subgroup_of(self._region.target):
                # Values shared for the previous row may still be read.
                builder.barrier()
            return self._row(row, number, list(words), is_there)

        def write() -> None:
            if self._turns > 1:
                words = self._shader.frame.fold(root, self._turns, zeros, turn)
                self._store_packed(unit, words, is_there)
            else:
                turn(builder.word(0), [])

        length = self._shape.length
        if isinstance(length, Size) and not is_multiple(length, share.width):
            is_wide = (builder.word(length) % share.width).equals(0)
            builder.when(is_wide, lambda: self._shader.with_multiple(length, share.width, write))
            self._width = width_of(self._region, self._shape, self._spaces)
            builder.when(~is_wide, write)
        else:
            write()
        return self._shader.finish((share.invocations * share.rows, 1, 1), groups)

    def _unit(self, groups: tuple[int, int, int] | Workload) -> Id:
        """Returns the number of this workgroup."""
        return self._shader.group(groups)

    def _row(self, row: Id, number: Id, words: list[Scalar], is_there: Id | None) -> list[Scalar]:
        """Computes a row; returns the words of narrow results, with this row's added."""
        frame, builder, region = self._shader.frame, self._builder, self._region
        parts = split(builder, row, self._shape.rows)
        for operation in region.block.operations[:-1]:
            if operation.name == "stablehlo.reduce":
                totals = self._reduced(operation, parts)
                frame.keep(operation.results[0], Index(builder, self._shape.rows, parts), totals)
            elif self._spaces.get(operation.results[0]) is Space.ROWS:
                frame.at(operation.results[0], self._of_row(operation.results[0], parts))
        wide = [result_number for result_number, value in enumerate(region.results) if self._is_of_elements(value)]
        if wide:
            self._when(is_there, lambda: self._store_elements(wide, parts))
        packed = 0
        for result_number, value in enumerate(region.results):
            if result_number in wide:
                continue
            type = scalar_of(value)
            bits = frame.scalars.to_words(type, frame.at(value, self._of_row(value, parts)))
            if self._is_packed(value):
                shift = number % (32 // storage_bits(type)) * storage_bits(type)
                word = words[packed]
                assert isinstance(word, Id)
                words[packed] = word | bits[0] << shift
                packed += 1
                continue

            def store(number: int = result_number, bits: list[Id] = bits) -> None:
                builder.store_words(self._shader.outputs[number], row * len(bits), bits)

            self._when(self._is_first(is_there), store)
        return words

    def _reduced(self, operation: Operation, parts: Sequence[Id]) -> list[Scalar]:
        """Returns the results of a reduction for a row."""
        frame, join = self._shader.frame, join_of(self._shader.frame, operation)
        count = len(operation.results)
        values, starts = operation.operands[:count], operation.operands[count:]

        def elements(base: Id) -> list[list[Scalar]]:
            return [[frame.at(value, index) for value in values] for index in self._indices(base, parts)]

        def flat(chains: Sequence[Values]) -> list[Scalar]:
            """Flattens chains: one chain in order, or one chain for each neighbour."""
            return [scalar for chain in ([join_all(chains, join)] if self._is_ordered else chains) for scalar in chain]

        def apart(chains_so_far: Values) -> list[Values]:
            return [chains_so_far[at : at + count] for at in range(0, len(chains_so_far), count)]

        def step(base: Id, chains_so_far: Values) -> list[Scalar]:
            own = apart(flat(elements(base)))
            return flat([join(chain, value) for chain, value in zip(apart(chains_so_far), own, strict=True)])

        if isinstance(self._shape.length, Size):
            identity = identity_in(operation)
            assert identity is not None
            types = [scalar_of(value) for value in values]
            none = [frame.scalars.constant(type, identity) for type in types] * self._width
            chains_so_far = apart(self._over_row(operation, none, step, 0))
        else:
            begun = flat(elements(self._base(self._builder.word(0))))
            chains_so_far = apart(self._over_row(operation, begun, step))
        total = self._across(join_all(chains_so_far, join), join)
        return rounded(frame, operation, join([frame.scalar(start) for start in starts], total))

    def _across(self, values: Values, join: Join) -> Values:
        """Joins the values of all invocations of a row."""
        target, builder, count = self._region.target, self._builder, self._share.invocations
        scalars = self._shader.scalars
        distance = 1
        while distance < count and distance < subgroup_of(target):
            words = [builder.exchanged(word, distance) for word in words_of_values(scalars, values)]
            values = self._ordered(values, of_words(scalars, values, words), distance, join)
            distance *= 2
        if distance == count:
            return values
        words = words_of_values(scalars, values)
        places = self._share.invocations * self._share.rows // distance
        if self._memory is None or self._memory[1] < len(words):
            self._memory = SharedMemory(builder, 2 * places * len(words)), len(words)
        memory = self._memory[0]
        if distance == 1:
            # Without subgroup exchanges: pairs of joined values, through alternating halves of the memory.
            while distance < count:
                words = words_of_values(scalars, values)
                first = self._first(places * len(words))
                self._put(memory, first, self._local, words)
                builder.barrier()
                others = self._got(memory, first, self._local ^ distance, values)
                values = self._ordered(values, others, distance, join)
                distance *= 2
            return values
        first = self._first(places * len(words))
        builder.when(
            (self._local % distance).equals(0), lambda: self._put(memory, first, self._local // distance, words)
        )
        builder.barrier()
        begin = (self._local // count) * (count // distance) if self._share.rows > 1 else builder.word(0)
        total: Values | None = None
        for number in range(count // distance):
            partner = self._got(memory, first, begin + number, values)
            total = partner if total is None else join(total, partner)
        assert total is not None
        return total

    def _ordered(self, values: Values, others: Values, distance: int, join: Join) -> Values:
        """Joins the values of this invocation and its partner in the order of invocations."""
        is_first = (self._local & distance).equals(0)
        return join(chosen(is_first, values, others), chosen(is_first, others, values))

    def _first(self, words: int) -> int:
        """Returns the start of the next shared values, after those of the last barrier, which may still be read."""
        self._reductions += 1
        return words * (self._reductions % 2)

    def _put(self, memory: SharedMemory, first: int, index: Id, words: Sequence[Id]) -> None:
        for position, word in enumerate(words):
            memory.store(index * len(words) + (first + position), [word])

    def _got(self, memory: SharedMemory, first: int, index: Id, like: Values) -> list[Scalar]:
        scalars = self._shader.scalars
        count = len(words_of_values(scalars, like))
        words = [memory.load(index * count + (first + position))[0] for position in range(count)]
        return of_words(scalars, like, words)

    # -- the elements of a row -------------------------------------------------------------------------

    def _over_row(
        self,
        operation: Operation,
        starts: Values,
        step: Callable[[Id, Values], Values],
        skipped: int = 1,
    ) -> list[Scalar]:
        """Returns the values after a step for each of an invocation's positions except the first ``skipped``."""
        builder, share, length = self._builder, self._share, self._shape.length
        values = list(starts)
        if isinstance(length, Size):
            runs = builder.word(length) // self._width
            steps = STEPS if share.unrolled else 1
            covered = share.invocations * steps
            count = (runs + (covered - 1) - self._place) // covered
            most = parts_at_most(length, covered * self._width)

            def below(base: Id, values: Values) -> Values:
                return self._shader.frame.conditional(base < runs, lambda: step(base, values), lambda: values)

            def some(number: Id, accumulated: Values) -> Values:
                if steps == 1:
                    return step(self._base(number), accumulated)
                for number_of_step in range(steps):
                    accumulated = below(self._base(number * steps + number_of_step), accumulated)
                return accumulated

            return self._shader.frame.counted(count, most, values, some)
        places, rest = divmod(length, share.width * share.invocations)
        if share.unrolled:
            for number in range(skipped, places):
                values = list(step(self._base(builder.word(number)), values))
        else:
            values = self._shader.frame.fold(
                operation,
                places - skipped,
                values,
                lambda number, accumulated: step(self._base(number + skipped), accumulated),
                1 if is_small(self._shape) else None,
            )
        if rest:
            last = self._place + places * share.invocations
            values = self._shader.frame.conditional(
                self._place < rest // share.width, lambda: step(last, values), lambda: values
            )
        return values

    def _base(self, number: Id) -> Id:
        """Returns the number of the run of neighbours at an invocation's position."""
        if not self._is_ordered:
            return number * self._share.invocations + self._place
        assert isinstance(self._shape.length, int)
        return self._place * (self._shape.length // (self._share.width * self._share.invocations)) + number

    def _indices(self, base: Id, parts: Sequence[Id]) -> list[Index]:
        indices = []
        for column in neighbours(base, self._width):
            inner = Index(self._builder, self._shape.columns, linear=column).parts
            indices.append(Index(self._builder, self._shape.shape, [*parts, *inner]))
        return indices

    def _store_elements(self, results: Sequence[int], parts: Sequence[Id]) -> None:
        frame, (root, *_) = self._shader.frame, self._region.block.operations[::-1][1:]

        def step(base: Id, _: Values) -> list[Scalar]:
            indices = self._indices(base, parts)
            for result in results:
                value = self._region.results[result]
                self._shader.store(result, [(index, frame.at(value, index)) for index in indices])
            return []

        self._over_row(root, [], step, 0)

    # -- results of rows -------------------------------------------------------------------------------

    def _store_packed(self, unit: Id, words: Values, is_there: Id | None) -> None:
        """Writes results whose rows share words."""
        packed = [number for number, value in enumerate(self._region.results) if self._is_packed(value)]

        def store() -> None:
            for number, word in zip(packed, words, strict=True):
                value = self._region.results[number]
                lanes = 32 // storage_bits(scalar_of(value))
                assert isinstance(word, Id)
                if lanes == self._turns:
                    self._builder.store(self._shader.outputs[number], unit, word)

        self._when(self._is_first(is_there), store)

    def _is_of_elements(self, value: Value) -> bool:
        return self._spaces[value] is Space.ELEMENTS

    def _is_packed(self, value: Value) -> bool:
        return not self._is_of_elements(value) and storage_bits(scalar_of(value)) < 32

    def _of_row(self, value: Value, parts: Sequence[Id]) -> Index:
        """Returns the index of a row's element in a value."""
        long = iter([part for part, length in zip(parts, self._shape.rows, strict=True) if length != 1])
        shape = shape_of(value)
        zero = self._builder.word(0)
        return Index(self._builder, shape, [zero if length == 1 else next(long) for length in shape])

    def _is_first(self, is_there: Id | None) -> Id | None:
        if self._share.invocations == 1:
            return is_there
        first = self._place.equals(0)
        return first if is_there is None else first & is_there

    def _when(self, condition: Id | None, run: Callable[[], None]) -> None:
        if condition is None:
            run()
        else:
            self._builder.when(condition, run)
