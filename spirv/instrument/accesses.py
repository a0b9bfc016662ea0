"""The accesses of one function that are checked, and their replacements."""

from __future__ import annotations

from typing import Final

from ..binary.grammar import LAYOUTS, Decoration, Op, StorageClass, opcodes_of, operand_kinds
from .addresses import AddressChecks
from .checks import Checks
from .editor import Words, opcode_of
from .images import TEXEL_ACCESSES, ImageChecks
from .lines import Lines
from .paths import CHAINS, POINTER_CHAINS, Path, Step, result_of
from .reports import ReportKind, Site
from .rewrite import Writer, rewrite
from .workgroup import WorkgroupChecks

# Words that hold pointers to the memory that is accessed.
_POINTERS: Final[dict[int, tuple[int, ...]]] = {
    **dict.fromkeys(opcodes_of("Atomic"), (3,)),
    Op.Load: (3,),
    Op.Store: (1,),
    Op.AtomicStore: (1,),
    Op.AtomicFlagClear: (1,),
    Op.CopyMemory: (1, 2),
    Op.CopyMemorySized: (1, 2),
}
_ALONE: Final = frozenset(
    opcode
    for opcode, layout in LAYOUTS.items()
    if layout.name.startswith(("CooperativeMatrix", "CooperativeVector", "Untyped", "RawAccessChain", "TensorRead"))
    or layout.name in ("TensorWriteARM", "BufferPointerEXT")
)
_NO_POINTER_USE: Final = frozenset({Op.CopyObject, *CHAINS, *_POINTERS})
_ALIGNED: Final = 2


class FunctionPass:
    """The pass over one function."""

    def __init__(
        self,
        checks: Checks,
        body: list[Words],
        addresses: AddressChecks,
        images: ImageChecks,
        workgroup: WorkgroupChecks,
    ) -> None:
        self._checks = checks
        self._addresses = addresses
        self._images = images
        self._workgroup = workgroup
        self._editor = checks.editor
        self._paths = checks.paths
        self._body = body
        self._lines = Lines(self._editor)
        self._paths.enter(body)
        self._clamped = self._escaping()
        # By pointer or image: whether the access chain it comes from was in range.
        self._well: dict[int, int] = {}
        # The block's checks, by the compared operands.
        self._known: dict[object, int] = {}

    def write(self) -> list[Words]:
        """Returns the new body."""
        self._checks.reporter.enter(self._body[0][2])
        written = rewrite(self._editor, self._body, self._splits, self._visit)
        self._checks.reporter.enter(0)
        return written

    def _escaping(self) -> set[int]:
        """Returns the access chains whose result has uses that cannot be skipped; their indices are clamped."""
        chains = {item[2]: item for item in self._body if opcode_of(item) in (Op.CopyObject, *CHAINS)}
        escapes: set[int] = set()
        for item in self._body:
            opcode = opcode_of(item)
            if opcode in _ALONE:
                self._checks.unwatched[f"Op{LAYOUTS[opcode].name}"] = None
                continue
            if opcode in POINTER_CHAINS and self._editor.defs[item[1]][2] != StorageClass.PhysicalStorageBuffer:
                self._checks.unwatched[f"the first index of Op{LAYOUTS[opcode].name}"] = None
            if opcode == Op.Load and self._is_opaque(item[1]):
                escapes.update(item[3:4])
            elif opcode == Op.Store:
                escapes.update(item[2:3])
            elif opcode not in _NO_POINTER_USE:
                escapes.update(item[at] for at, kind in operand_kinds(item, 0, len(item)) if kind == "IdRef")
        pending = [item for item in escapes if item in chains]
        escaping = set(pending)
        while pending:
            base = chains[pending.pop()][3]
            if base in chains and base not in escaping:
                escaping.add(base)
                pending.append(base)
        return escaping

    def _is_opaque(self, type_id: int) -> bool:
        of = self._editor.defs.get(type_id, ())
        return bool(of) and opcode_of(of) in _OPAQUE

    def _has_zero(self, type_id: int, is_part: bool = False) -> bool:
        """Whether a type has a zero value, and its values can go through a phi."""
        of = self._editor.defs.get(type_id, ())
        opcode = opcode_of(of) if of else 0
        if opcode in (Op.TypeArray, Op.TypeStruct):
            return all(self._has_zero(part, True) for part in of[2 : 3 if opcode == Op.TypeArray else None])
        if opcode == Op.TypePointer:
            return not is_part and of[2] == StorageClass.PhysicalStorageBuffer
        return opcode in _PLAIN

    # -- which instructions ----------------------------------------------------------------------------

    def _splits(self, instruction: Words) -> bool:
        opcode = opcode_of(instruction)
        if opcode in TEXEL_ACCESSES:
            return opcode != Op.ImageTexelPointer
        return opcode in _POINTERS and bool(self._watched(instruction))

    def _watched(self, instruction: Words) -> list[tuple[int, Path]]:
        opcode = opcode_of(instruction)
        types = [instruction[1]] if result_of(instruction) else []
        if types and not self._has_zero(types[0]):
            return []
        watched = []
        for word in _POINTERS[opcode]:
            path = self._paths.walk(instruction[word])
            if path is not None and self._needs_check(path):
                watched.append((instruction[word], path))
                if path.storage == StorageClass.PhysicalStorageBuffer:
                    types += [path.pointee, self._editor.defs[self._paths.type_of(path.root)][3]]
        return watched if watched and self._checks.may_compute(types) else []

    def _needs_check(self, path: Path) -> bool:
        physical = path.storage == StorageClass.PhysicalStorageBuffer
        return bool(path.steps or physical or self._has_range(path) or self._workgroup.watches(path)) or (
            path.root in self._well or opcode_of(self._paths.definition(path.root) or (0,)) == Op.ImageTexelPointer
        )

    def _has_range(self, path: Path) -> bool:
        """Whether the bytes of an access are compared with the bound range."""
        if path.is_runtime or path.offset is None or path.size is None or not path.variable:
            return False
        if path.storage == StorageClass.StorageBuffer:
            return True
        if path.storage != StorageClass.Uniform:
            return False
        of = self._editor.defs[self._editor.defs[self._editor.defs[path.variable][1]][3]]
        block = of[2] if opcode_of(of) in (Op.TypeArray, Op.TypeRuntimeArray) else of[1]
        return self._editor.decoration(block, Decoration.BufferBlock) is not None

    # -- instructions ----------------------------------------------------------------------------------

    def _visit(self, instruction: Words, writer: Writer) -> None:
        self._lines.pass_over(instruction)
        opcode = opcode_of(instruction)
        if opcode == Op.Label:
            self._known.clear()
            return
        if opcode in CHAINS and instruction[2] in self._clamped:
            instruction = self._clamp(instruction, writer)
        elif opcode in TEXEL_ACCESSES:
            self._texels(instruction, writer)
            return
        elif opcode in _POINTERS:
            self._access(instruction, writer)
            return
        elif opcode in (Op.VectorExtractDynamic, Op.VectorInsertDynamic):
            instruction = self._component(instruction, writer)
        elif opcode == Op.FunctionCall:
            self._checks.reporter.calls(instruction[3])
        elif opcode in (Op.SampledImage, Op.Image, Op.CopyObject) and instruction[3] in self._well:
            self._well[instruction[2]] = self._well[instruction[3]]
        writer.put(instruction)

    def _access(self, instruction: Words, writer: Writer) -> None:
        if result_of(instruction) and self._is_opaque(instruction[1]) and instruction[3] in self._well:
            self._well[instruction[2]] = self._well[instruction[3]]
        watched = self._watched(instruction)
        conditions: list[int] = []
        for pointer, path in watched:
            conditions += self._check_path(writer, path, pointer, _alignment(instruction))
            if pointer in self._well:
                conditions.append(self._well[pointer])
            if path.root in self._well:
                conditions.append(self._well[path.root])
        accesses = [path for _, path in watched if self._workgroup.watches(path)]
        opcode = opcode_of(instruction)
        for path in accesses:
            is_target = instruction[1] if opcode in (Op.Store, Op.CopyMemory, Op.AtomicStore) else 0
            if not is_target or self._pointer_of(path, watched) != is_target:
                self._workgroup.check(writer, path, self.site(ReportKind.UNINITIALISED, path, "read"), conditions)
        if conditions:
            writer.guarded(writer.all_of(conditions), instruction, bool(result_of(instruction)))
        else:
            writer.put(instruction)
        for path in accesses:
            if opcode != Op.Load and not (
                opcode == Op.CopyMemory and self._pointer_of(path, watched) != instruction[1]
            ):
                self._workgroup.mark(writer, path, conditions)

    @staticmethod
    def _pointer_of(path: Path, watched: list[tuple[int, Path]]) -> int:
        return next(pointer for pointer, candidate in watched if candidate is path)

    def site(self, kind: ReportKind, path: Path, rule: str) -> Site:
        """Returns the place of the instruction that is being visited."""
        binding = self._paths.binding_of(path.variable)
        return Site(kind, path.name, self._lines.file, self._lines.line, rule, binding)

    # -- checks ----------------------------------------------------------------------------------------

    def _check_path(self, writer: Writer, path: Path, pointer: int, alignment: int) -> list[int]:
        conditions: list[int] = []
        descriptor = path.descriptor
        for step in path.steps:
            if step.rule == "descriptor":
                condition = self._check_step(writer, path, step, 0)
                conditions.append(condition)
                descriptor = self._within(writer, condition, step.index)
        for step in path.steps:
            if step.rule != "descriptor":
                conditions.append(self._check_step(writer, path, step, descriptor))
        if self._has_range(path):
            conditions.append(self._check_range(writer, path, descriptor))
        if path.storage == StorageClass.PhysicalStorageBuffer:
            conditions += self._addresses.check(
                writer, path, pointer, alignment, lambda rule: self.site(ReportKind.WILD_ADDRESS, path, rule)
            )
        return conditions

    def _within(self, writer: Writer, condition: int, index: int) -> int:
        """Returns the index if the condition holds, else 0."""
        key = ("within", condition, index)
        if key not in self._known:
            kind = self._paths.type_of(index)
            selected = writer.op(Op.Select, kind, condition, index, self._editor.null(kind))
            if self._editor.decoration(index, Decoration.NonUniform) is not None:
                self._editor.decorate(selected, Decoration.NonUniform)
            self._known[key] = selected
        return self._known[key]

    def _check_step(self, writer: Writer, path: Path, step: Step, descriptor: int) -> int:
        key = (step.index, step.length or (path.root, descriptor, step.struct, step.member))
        is_inside = self._known.get(key)
        if is_inside is None:
            limit = self._length(writer, path, step, descriptor)
            site = self.site(ReportKind.OUT_OF_BOUNDS, path, step.rule)
            is_inside = self._known[key] = self._checks.compare(writer, step.index, limit, site)
        return is_inside

    def _length(self, writer: Writer, path: Path, step: Step, descriptor: int) -> int:
        editor = self._editor
        if step.length:
            literal = self._paths.literal(step.length)
            if literal is not None:
                return editor.constant_u32(min(literal, 0xFFFFFFFF))
            return self._checks.as_u32(writer, step.length)[0]
        key = ("length", path.root, descriptor, step.struct, step.member)
        if key not in self._known:
            pointer = path.root
            if path.descriptor:
                kind = editor.pointer(path.storage, step.struct)
                pointer = writer.op(Op.AccessChain, kind, path.root, descriptor)
                if editor.decoration(path.descriptor, Decoration.NonUniform) is not None:
                    editor.decorate(pointer, Decoration.NonUniform)
            self._known[key] = writer.op(Op.ArrayLength, editor.u32(), pointer, step.member)
        return self._known[key]

    def _check_range(self, writer: Writer, path: Path, descriptor: int) -> int:
        editor, u32 = self._editor, self._editor.u32()
        assert path.offset is not None and path.size is not None
        key = ("range", path.variable, descriptor, path.offset, path.size, *path.strides)
        is_inside = self._known.get(key)
        if is_inside is None:
            bound_key = ("bound", path.variable, descriptor)
            if bound_key not in self._known:
                self._known[bound_key] = self._checks.range_of(writer, path, descriptor)
            bound = self._known[bound_key]
            start = editor.constant_u32(path.offset)
            for index, stride in path.strides:
                low = self._checks.as_u32(writer, index)[0]
                start = writer.op(Op.IAdd, u32, start, writer.op(Op.IMul, u32, low, editor.constant_u32(stride)))
            end = writer.op(Op.IAdd, u32, start, editor.constant_u32(path.size))
            is_inside = self._known[key] = writer.op(Op.ULessThanEqual, editor.bool_type(), end, bound)
            site = self.site(ReportKind.OUT_OF_BOUNDS, path, "byte")
            self._checks.note(writer, is_inside, site, start, editor.constant_u32(0), bound)
        return is_inside

    def _clamp(self, chain: Words, writer: Writer) -> Words:
        path = self._paths.walk(chain[2])
        if path is None or path.storage == StorageClass.PhysicalStorageBuffer:
            return chain
        conditions = [self._well[chain[3]]] if chain[3] in self._well else []
        words = list(chain)
        descriptor = path.descriptor
        for step in path.steps:
            if step.rule == "descriptor":
                condition = self._check_step(writer, path, step, 0)
                descriptor = self._within(writer, condition, step.index)
            else:
                condition = self._check_step(writer, path, step, descriptor)
            if step.chain == chain[2]:
                conditions.append(condition)
                words[step.operand] = self._within(writer, condition, step.index)
        if conditions:
            self._well[chain[2]] = writer.all_of(conditions)
        return tuple(words)

    def _component(self, instruction: Words, writer: Writer) -> Words:
        """Keeps the index of ``OpVectorExtractDynamic`` and ``OpVectorInsertDynamic`` in range."""
        word = 4 if opcode_of(instruction) == Op.VectorExtractDynamic else 5
        index = instruction[word]
        vector = self._editor.defs.get(self._paths.type_of(instruction[3]), ())
        if not vector or opcode_of(vector) != Op.TypeVector:
            return instruction
        literal = self._paths.literal(index)
        if literal is not None and literal < vector[3]:
            return instruction
        name = self._editor.names.get(instruction[3], "")
        site = Site(ReportKind.OUT_OF_BOUNDS, f"{name}[]", self._lines.file, self._lines.line, "index")
        condition = self._checks.compare(writer, index, self._editor.constant_u32(vector[3]), site)
        return (*instruction[:word], self._within(writer, condition, index), *instruction[word + 1 :])

    def _texels(self, instruction: Words, writer: Writer) -> None:
        opcode = opcode_of(instruction)
        image = instruction[1 if opcode == Op.ImageWrite else 3]
        conditions = [self._well[image]] if image in self._well else []
        path = self._paths.walk(self._image_pointer(image)) or Path(image, 0, 0, 0)
        conditions += self._images.check(
            writer, instruction, lambda rule: self.site(ReportKind.OUT_OF_BOUNDS, path, rule)
        )
        if not conditions:
            writer.put(instruction)
        elif opcode == Op.ImageTexelPointer:
            self._well[instruction[2]] = writer.all_of(conditions)
            writer.put(instruction)
        else:
            writer.guarded(writer.all_of(conditions), instruction, bool(result_of(instruction)))

    def _image_pointer(self, image: int) -> int:
        """Returns the pointer that an image, or the image of a sampled one, was loaded from."""
        while True:
            definition = self._paths.definition(image)
            opcode = opcode_of(definition) if definition else 0
            if opcode not in (Op.Image, Op.SampledImage, Op.CopyObject, Op.Load):
                return image
            image = definition[3]
            if opcode == Op.Load:
                return image


def _alignment(instruction: Words) -> int:
    """Returns the pointer alignment in bytes that an access declares, or 0."""
    word = {Op.Load: 4, Op.Store: 3, Op.CopyMemory: 3}.get(opcode_of(instruction), len(instruction))
    if word + 1 < len(instruction) and instruction[word] & _ALIGNED:
        # Bits below Aligned: Volatile, which has no operand.
        return instruction[word + 1]
    return 0


_PLAIN: Final = frozenset({Op.TypeBool, Op.TypeInt, Op.TypeFloat, Op.TypeVector, Op.TypeMatrix})
_OPAQUE: Final = frozenset(
    {Op.TypeImage, Op.TypeSampler, Op.TypeSampledImage, Op.TypeAccelerationStructureKHR, Op.TypeTensorARM}
)
