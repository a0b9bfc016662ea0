"""The virtual machine's instructions as data: forms, operations, and differences between versions.

One table for bytecode versions 15, 16 and 17. Decoder, verifier, disassembler, assembler, translator and the reference
page ``docs/reference/isa.md`` all derive from it; ``isa`` turns it into objects. The facts are those of IREE's
``runtime/src/iree/vm/bytecode/isa/isa.json`` (17.0) and, for 15.0 and 16.0, of ``runtime/src/iree/vm/bytecode/`` in
releases 3.1 to 3.11.

**Forms.** A form is the list of an instruction's fields in byte order, one word per field, ``name:kind``:

=============== ======================================================================================================
kind            field
=============== ======================================================================================================
``i32`` …       register that is read: ``i32``, ``i64``, ``f32``, ``f64``, ``ref``; ``>i32`` … is one that is written
``ref!``        reference register whose MOVE bit has a meaning (``>ref!`` for one that is written)
``imm.i32`` …   immediate: ``imm.i32``, ``imm.i64``, ``imm.f32``, ``imm.f64``
``global``      byte offset of a primitive global, or ordinal of a reference global
``function``    ordinal of a function; bit 31 marks an import
``rodata``      ordinal of a rodata segment
``type``        ordinal in the module's type table
``string``      text
``target``      pc of the block where control continues
``remap``       branch operands: pairs of source and destination registers
``cases``       branch table: a target and branch operands a case
``segments``    counts of the segments of a variadic call's operands
``list.i32`` …  any number of registers that are read, all of one bank; ``list.any`` of any bank
``results``     any number of registers that are written
=============== ======================================================================================================

``$`` stands for the bank that the operation's row names (``$1``, ``$2`` where it names two).
"""

from __future__ import annotations

from typing import Final, TypeAlias

# First opcode, form, banks that stand for $ or $1 and $2, and the mnemonics of this and the next opcodes.
Row: TypeAlias = tuple[int, str, str, str]

# (major, minor) of the bytecode, newest last.
VERSIONS: Final = ((15, 0), (16, 0), (17, 0))

# Major version in which an operation appears; unlisted operations are in every version. From 15 to 17 no operation was
# removed, renumbered or encoded differently.
FIRST_VERSION: Final[dict[str, int]] = {
    "discard.refs": 16,
    "assign.ref": 16,
    "call.yieldable": 17,
    "call.variadic.yieldable": 17,
}

# In these versions the MOVE bit has a meaning only in register lists and branch operands. Compilers also set it in
# single register fields, but not reliably, and the runtimes of the time always retained.
VERSIONS_IGNORING_FIELD_MOVES: Final = frozenset({15})

PREFIX_EXT_F32: Final = 0xE0
PREFIX_EXT_F64: Final = 0xE1

# Operations that end a block. ``fail`` is included although with status 0 it does nothing: control then continues with
# the next instruction.
TERMINATORS: Final = frozenset(
    {
        "br",
        "br_table",
        "break",
        "call.variadic.yieldable",
        "call.yieldable",
        "cond_br",
        "cond_break",
        "fail",
        "return",
        "yield",
    }
)

FORMS: Final[dict[str, str]] = {
    "block": "",
    # computing
    "unary": "operand:$ result:>$",
    "binary": "left:$ right:$ result:>$",
    "ternary": "first:$ second:$ third:$ result:>$",
    "shift": "operand:$ amount:i32 result:>$",
    "test": "operand:$ result:>i32",
    "compare": "left:$ right:$ result:>i32",
    "convert": "operand:$1 result:>$2",
    "constant": "value:imm.$ result:>$",
    "zero": "result:>$",
    "select": "condition:i32 true_value:$ false_value:$ result:>$",
    "switch": "index:i32 default_value:$ values:list.$ result:>$",
    # primitive globals
    "global_load": "byte_offset:global result:>$",
    "global_store": "byte_offset:global value:$",
    "global_load_indirect": "byte_offset:i32 result:>$",
    "global_store_indirect": "byte_offset:i32 value:$",
    # references
    "global_load_ref": "global:global type:type result:>ref!",
    "global_store_ref": "global:global type:type value:ref!",
    "global_load_indirect_ref": "global:i32 type:type result:>ref!",
    "global_store_indirect_ref": "global:i32 type:type value:ref!",
    "const_ref_zero": "result:>ref!",
    "const_ref_rodata": "rodata:rodata result:>ref!",
    "select_ref": "condition:i32 type:type true_value:ref! false_value:ref! result:>ref!",
    "switch_ref": "index:i32 type:type default_value:ref! values:list.ref result:>ref!",
    "cast_any_ref": "operand:ref! type:type result:>ref!",
    "assign_ref": "source:ref! result:>ref!",
    "discard_refs": "refs:list.ref",
    # lists
    "list_alloc": "element_type:type initial_capacity:i32 result:>ref!",
    "list_reserve": "list:ref minimum_capacity:i32",
    "list_size": "list:ref result:>i32",
    "list_resize": "list:ref new_size:i32",
    "list_get": "list:ref index:i32 result:>$",
    "list_set": "list:ref index:i32 value:$",
    "list_get_ref": "list:ref index:i32 type:type result:>ref!",
    "list_set_ref": "list:ref index:i32 value:ref!",
    # buffers
    "buffer_alloc": "length:i64 alignment:i32 result:>ref!",
    "buffer_clone": "source:ref offset:i64 length:i64 alignment:i32 result:>ref!",
    "buffer_length": "buffer:ref result:>i64",
    "buffer_copy": "source_buffer:ref source_offset:i64 target_buffer:ref target_offset:i64 length:i64",
    "buffer_compare": "left_buffer:ref left_offset:i64 right_buffer:ref right_offset:i64 length:i64 result:>i32",
    "buffer_hash": "source_buffer:ref source_offset:i64 length:i64 result:>i64",
    "buffer_load": "source_buffer:ref source_offset:i64 result:>$",
    "buffer_store": "target_buffer:ref target_offset:i64 value:$",
    "buffer_fill": "target_buffer:ref target_offset:i64 length:i64 value:$",
    # control flow
    "branch": "dest:target operands:remap",
    "cond_branch": "condition:i32 true_dest:target true_operands:remap false_dest:target false_operands:remap",
    "cond_break": "condition:i32 dest:target operands:remap",
    "branch_table": "index:i32 default_dest:target default_operands:remap cases:cases",
    "call": "callee:function operands:list.any results:results",
    "call_variadic": "callee:function segment_sizes:segments operands:list.any results:results",
    "call_yieldable": "callee:function operands:list.any dest:target results:results",
    "call_variadic_yieldable": "callee:function segment_sizes:segments operands:list.any dest:target results:results",
    "return": "operands:list.any",
    "fail": "status:i32 message:string",
    "import_resolved": "import:function result:>i32",
    "trace": "event_name:string operands:list.any",
}

# Opcodes without a prefix byte.
CORE: Final[tuple[Row, ...]] = (
    (0x00, "global_load", "i32", "global.load.i32"),
    (0x01, "global_store", "i32", "global.store.i32"),
    (0x02, "global_load_indirect", "i32", "global.load.indirect.i32"),
    (0x03, "global_store_indirect", "i32", "global.store.indirect.i32"),
    (0x04, "global_load", "i64", "global.load.i64"),
    (0x05, "global_store", "i64", "global.store.i64"),
    (0x06, "global_load_indirect", "i64", "global.load.indirect.i64"),
    (0x07, "global_store_indirect", "i64", "global.store.indirect.i64"),
    (0x08, "global_load_ref", "", "global.load.ref"),
    (0x09, "global_store_ref", "", "global.store.ref"),
    (0x0A, "global_load_indirect_ref", "", "global.load.indirect.ref"),
    (0x0B, "global_store_indirect_ref", "", "global.store.indirect.ref"),
    (0x0C, "zero", "i32", "const.i32.zero"),
    (0x0D, "constant", "i32", "const.i32"),
    (0x0E, "zero", "i64", "const.i64.zero"),
    (0x0F, "constant", "i64", "const.i64"),
    (0x10, "const_ref_zero", "", "const.ref.zero"),
    (0x11, "const_ref_rodata", "", "const.ref.rodata"),
    (0x12, "list_alloc", "", "list.alloc"),
    (0x13, "list_reserve", "", "list.reserve"),
    (0x14, "list_size", "", "list.size"),
    (0x15, "list_resize", "", "list.resize"),
    (0x16, "list_get", "i32", "list.get.i32"),
    (0x17, "list_set", "i32", "list.set.i32"),
    (0x18, "list_get", "i64", "list.get.i64"),
    (0x19, "list_set", "i64", "list.set.i64"),
    (0x1A, "list_get_ref", "", "list.get.ref"),
    (0x1B, "list_set_ref", "", "list.set.ref"),
    (0x1C, "select", "i32", "select.i32"),
    (0x1D, "select", "i64", "select.i64"),
    (0x1E, "select_ref", "", "select.ref"),
    (0x1F, "switch", "i32", "switch.i32"),
    (0x20, "switch", "i64", "switch.i64"),
    (0x21, "switch_ref", "", "switch.ref"),
    (0x22, "binary", "i32", "add.i32 sub.i32 mul.i32 div.i32.s div.i32.u rem.i32.s rem.i32.u"),
    (0x29, "ternary", "i32", "fma.i32"),
    (0x2A, "binary", "i64", "add.i64 sub.i64 mul.i64 div.i64.s div.i64.u rem.i64.s rem.i64.u"),
    (0x31, "ternary", "i64", "fma.i64"),
    (0x32, "unary", "i32", "not.i32"),
    (0x33, "binary", "i32", "and.i32 or.i32 xor.i32"),
    (0x36, "unary", "i64", "not.i64"),
    (0x37, "binary", "i64", "and.i64 or.i64 xor.i64"),
    (0x3A, "shift", "i32", "shl.i32 shr.i32.s shr.i32.u"),
    (0x3D, "shift", "i64", "shl.i64 shr.i64.s shr.i64.u"),
    (0x40, "unary", "i32", "trunc.i32.i8 trunc.i32.i16"),
    (0x42, "convert", "i64 i32", "trunc.i64.i32"),
    (0x43, "unary", "i32", "ext.i8.i32.s ext.i8.i32.u ext.i16.i32.s ext.i16.i32.u"),
    (0x47, "convert", "i32 i64", "ext.i32.i64.s ext.i32.i64.u"),
    (0x49, "compare", "i32", "cmp.eq.i32 cmp.ne.i32 cmp.lt.i32.s cmp.lt.i32.u"),
    (0x4D, "test", "i32", "cmp.nz.i32"),
    (0x4E, "compare", "i64", "cmp.eq.i64 cmp.ne.i64 cmp.lt.i64.s cmp.lt.i64.u"),
    (0x52, "test", "i64", "cmp.nz.i64"),
    (0x53, "compare", "ref", "cmp.eq.ref cmp.ne.ref"),
    (0x55, "test", "ref", "cmp.nz.ref"),
    (0x56, "branch", "", "br"),
    (0x57, "cond_branch", "", "cond_br"),
    (0x58, "call", "", "call"),
    (0x59, "call_variadic", "", "call.variadic"),
    (0x5A, "return", "", "return"),
    (0x5B, "fail", "", "fail"),
    (0x5C, "import_resolved", "", "import.resolved"),
    (0x5D, "branch", "", "yield"),
    (0x5E, "trace", "", "trace print"),
    (0x60, "cond_break", "", "cond_break"),
    (0x61, "branch", "", "break"),
    (0x62, "buffer_load", "i32", "buffer.load.i8.u buffer.load.i8.s buffer.load.i16.u buffer.load.i16.s"),
    (0x66, "buffer_load", "i32", "buffer.load.i32"),
    (0x67, "buffer_load", "i64", "buffer.load.i64"),
    (0x68, "buffer_store", "i32", "buffer.store.i8 buffer.store.i16 buffer.store.i32"),
    (0x6B, "buffer_store", "i64", "buffer.store.i64"),
    (0x6C, "buffer_alloc", "", "buffer.alloc"),
    (0x6D, "buffer_clone", "", "buffer.clone"),
    (0x6E, "buffer_length", "", "buffer.length"),
    (0x6F, "buffer_copy", "", "buffer.copy"),
    (0x70, "buffer_compare", "", "buffer.compare"),
    (0x71, "buffer_fill", "i32", "buffer.fill.i8 buffer.fill.i16 buffer.fill.i32"),
    (0x74, "buffer_fill", "i64", "buffer.fill.i64"),
    (0x75, "unary", "i32", "ctlz.i32"),
    (0x76, "unary", "i64", "ctlz.i64"),
    (0x77, "unary", "i32", "abs.i32"),
    (0x78, "unary", "i64", "abs.i64"),
    (0x79, "block", "", "block"),
    (0x7A, "binary", "i32", "min.i32.s min.i32.u max.i32.s max.i32.u"),
    (0x7E, "binary", "i64", "min.i64.s min.i64.u max.i64.s max.i64.u"),
    (0x82, "cast_any_ref", "", "cast.any.ref"),
    (0x83, "branch_table", "", "br_table"),
    (0x84, "buffer_hash", "", "buffer.hash"),
    (0x85, "discard_refs", "", "discard.refs"),
    (0x86, "assign_ref", "", "assign.ref"),
    (0x87, "call_yieldable", "", "call.yieldable"),
    (0x88, "call_variadic_yieldable", "", "call.variadic.yieldable"),
)

# After prefix byte 0xE0; a function that uses them requires feature EXT_F32.
EXT_F32: Final[tuple[Row, ...]] = (
    (0x00, "global_load", "f32", "global.load.f32"),
    (0x01, "global_store", "f32", "global.store.f32"),
    (0x02, "global_load_indirect", "f32", "global.load.indirect.f32"),
    (0x03, "global_store_indirect", "f32", "global.store.indirect.f32"),
    (0x04, "zero", "f32", "const.f32.zero"),
    (0x05, "constant", "f32", "const.f32"),
    (0x06, "list_get", "f32", "list.get.f32"),
    (0x07, "list_set", "f32", "list.set.f32"),
    (0x08, "select", "f32", "select.f32"),
    (0x09, "switch", "f32", "switch.f32"),
    (0x0A, "binary", "f32", "add.f32 sub.f32 mul.f32 div.f32 rem.f32"),
    (0x0F, "ternary", "f32", "fma.f32"),
    (0x10, "unary", "f32", "abs.f32 neg.f32 ceil.f32 floor.f32"),
    (0x14, "convert", "i32 f32", "cast.si32.f32 cast.ui32.f32"),
    (0x16, "convert", "f32 i32", "cast.f32.si32 cast.f32.ui32"),
    (0x18, "convert", "i32 f32", "bitcast.i32.f32"),
    (0x19, "convert", "f32 i32", "bitcast.f32.i32"),
    (0x1A, "unary", "f32", "atan.f32"),
    (0x1B, "binary", "f32", "atan2.f32"),
    (0x1C, "unary", "f32", "cos.f32 sin.f32 exp.f32 exp2.f32 expm1.f32 log.f32 log10.f32 log1p.f32 log2.f32"),
    (0x25, "binary", "f32", "pow.f32"),
    (0x26, "unary", "f32", "rsqrt.f32 sqrt.f32 tanh.f32 erf.f32"),
    (0x2A, "compare", "f32", "cmp.eq.f32.o cmp.eq.f32.u cmp.ne.f32.o cmp.ne.f32.u cmp.lt.f32.o cmp.lt.f32.u"),
    (0x30, "compare", "f32", "cmp.lte.f32.o cmp.lte.f32.u"),
    (0x32, "test", "f32", "cmp.nan.f32"),
    (0x33, "buffer_load", "f32", "buffer.load.f32"),
    (0x34, "buffer_store", "f32", "buffer.store.f32"),
    (0x35, "buffer_fill", "f32", "buffer.fill.f32"),
    (0x36, "unary", "f32", "round.f32"),
    (0x37, "binary", "f32", "min.f32 max.f32"),
    (0x39, "unary", "f32", "round.f32.even"),
    (0x3A, "convert", "f32 i64", "cast.f32.si64 cast.f32.ui64"),
    (0x3C, "convert", "i64 f32", "cast.si64.f32 cast.ui64.f32"),
)

# After prefix byte 0xE1; a function that uses them requires feature EXT_F64.
EXT_F64: Final[tuple[Row, ...]] = (
    (0x00, "global_load", "f64", "global.load.f64"),
    (0x01, "global_store", "f64", "global.store.f64"),
    (0x02, "global_load_indirect", "f64", "global.load.indirect.f64"),
    (0x03, "global_store_indirect", "f64", "global.store.indirect.f64"),
    (0x04, "zero", "f64", "const.f64.zero"),
    (0x05, "constant", "f64", "const.f64"),
    (0x06, "list_get", "f64", "list.get.f64"),
    (0x07, "list_set", "f64", "list.set.f64"),
    (0x08, "select", "f64", "select.f64"),
    (0x09, "switch", "f64", "switch.f64"),
    (0x0A, "binary", "f64", "add.f64 sub.f64 mul.f64 div.f64 rem.f64"),
    (0x0F, "ternary", "f64", "fma.f64"),
    (0x10, "unary", "f64", "abs.f64 neg.f64 ceil.f64 floor.f64"),
    (0x14, "convert", "f64 f32", "trunc.f64.f32"),
    (0x15, "convert", "f32 f64", "ext.f32.f64"),
    (0x16, "convert", "i32 f64", "cast.si32.f64 cast.ui32.f64"),
    (0x18, "convert", "f64 i32", "cast.f64.si32 cast.f64.ui32"),
    (0x1A, "convert", "i64 f64", "cast.si64.f64 cast.ui64.f64"),
    (0x1C, "convert", "f64 i64", "cast.f64.si64 cast.f64.ui64"),
    (0x1E, "convert", "i64 f64", "bitcast.i64.f64"),
    (0x1F, "convert", "f64 i64", "bitcast.f64.i64"),
    (0x20, "unary", "f64", "atan.f64"),
    (0x21, "binary", "f64", "atan2.f64"),
    (0x22, "unary", "f64", "cos.f64 sin.f64 exp.f64 exp2.f64 expm1.f64 log.f64 log10.f64 log1p.f64 log2.f64"),
    (0x2B, "binary", "f64", "pow.f64"),
    (0x2C, "unary", "f64", "rsqrt.f64 sqrt.f64 tanh.f64 erf.f64"),
    (0x30, "compare", "f64", "cmp.eq.f64.o cmp.eq.f64.u cmp.ne.f64.o cmp.ne.f64.u cmp.lt.f64.o cmp.lt.f64.u"),
    (0x36, "compare", "f64", "cmp.lte.f64.o cmp.lte.f64.u"),
    (0x38, "test", "f64", "cmp.nan.f64"),
    (0x39, "buffer_load", "f64", "buffer.load.f64"),
    (0x3A, "buffer_store", "f64", "buffer.store.f64"),
    (0x3B, "buffer_fill", "f64", "buffer.fill.f64"),
    (0x3C, "unary", "f64", "round.f64"),
    (0x3D, "binary", "f64", "min.f64 max.f64"),
    (0x3F, "unary", "f64", "round.f64.even"),
)
