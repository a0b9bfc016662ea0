"""A function in VM assembly: registers given out as they are asked for, constants in the entry block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

IMPORTS = {
    "check.expect_all_true": "0rr_v",
    "check.expect_almost_eq": "0rrrff_v",
    "check.expect_eq": "0rrr_v",
    "hal.allocator.allocate": "0rIiiI_r",
    "hal.buffer.assert": "0rrrIii_v",
    "hal.buffer.load": "0rIi_i",
    "hal.buffer.store": "0irIi_v",
    "hal.buffer_view.assert": "0rriiCID_v",
    "hal.buffer_view.buffer": "0r_r",
    "hal.buffer_view.dim": "0ri_I",
    "hal.buffer_view.create": "0rIIiiCID_r",
    "hal.command_buffer.copy_buffer": "0riirIrIII_v",
    "hal.command_buffer.create": "0riiIi_r",
    "hal.command_buffer.dispatch": "0rrIiiiICiDCiirIID_v",
    "hal.command_buffer.dispatch.indirect": "0rrIirIICiDCiirIID_v",
    "hal.command_buffer.execution_barrier": "0riiI_v",
    "hal.command_buffer.finalize": "0r_v",
    "hal.device.allocator": "0r_r",
    "hal.device.query.i64": "0rrr_iI",
    "hal.device.queue.alloca": "0rIrrIiiII_r",
    "hal.device.queue.barrier": "0rIrrI_v",
    "hal.device.queue.copy": "0rIrrrIrIII_v",
    "hal.device.queue.dealloca": "0rIrrrI_v",
    "hal.device.queue.execute.indirect": "0rIrrrICrIID_v",
    "hal.device.queue.read": "0rIrrrIrIII_v",
    "hal.devices.count": "0v_i",
    "hal.devices.get": "0i_r",
    "hal.ex.file.from_memory": "0rIirIIi_r",
    "hal.executable.create": "0rIrrr_r",
    "hal.executable.lookup.function": "0rr_I",
    "hal.fence.await": "0iICrD_i",
    "hal.fence.create": "0rI_r",
}
"""Functions of the HAL and check modules that sequences call, with their calling conventions (IREE 3.12 and 3.13)."""

SCALAR = 65535
"""In a variadic call's list of segments: an argument that is no list."""


_TYPES: Final = {"r": "!vm.ref<?>", "i": "i32", "I": "i64", "f": "f32", "F": "f64"}


class FunctionText:
    """Lines of one function.

    Args:
        name: of the function.
        takes: letters of its arguments: ``r``, ``i``, ``I``, ``f``, ``F``.
        gives: letters of its results.
        attributes: reflection.
        place: where it comes from: what stands in the parentheses of ``loc(…)``.

    Attributes:
        arguments: their registers.
    """

    def __init__(
        self, name: str, takes: str, gives: str, attributes: dict[str, str] | None = None, place: str = "unknown"
    ) -> None:
        self.name = name
        self._place = self._first_place = place
        self._takes = takes
        self._gives = gives
        self._attributes = attributes or {}
        self._constants: dict[tuple[str, int], str] = {}
        self._lines: list[str] = []
        self._integers = self._references = self._labels = 0
        self.imports: set[str] = set()
        banks = {"r": self.reference, "i": self.integer, "f": self.integer, "I": self.wide, "F": self.wide}
        self.arguments = [banks[letter]() for letter in takes]

    def i32(self, value: int) -> str:
        """The register of a 32-bit constant."""
        return self._constant("i32", value)

    def f32(self, value: float) -> str:
        """The register of a 32-bit floating-point constant."""
        register = self.integer()
        self.line(f"{register} = vm.const.f32 {value!r}" if value else f"{register} = vm.const.f32.zero")
        return register

    def i64(self, value: int) -> str:
        """The register pair of a 64-bit constant."""
        return self._constant("i64", value)

    def _constant(self, bank: str, value: int) -> str:
        key = bank, value
        if key not in self._constants:
            self._constants[key] = self.integer() if bank == "i32" else self.wide()
        return self._constants[key]

    def integer(self) -> str:
        """A new 32-bit register."""
        self._integers += 1
        return f"%i{self._integers - 1}"

    def wide(self) -> str:
        """A new pair of 32-bit registers."""
        self._integers += self._integers % 2 + 2
        return f"%i{self._integers - 2}:{self._integers - 1}"

    def reference(self) -> str:
        """A new reference register."""
        self._references += 1
        return f"%r{self._references - 1}"

    def line(self, text: str) -> None:
        """Adds an instruction."""
        self._lines.append(f"  {text}")

    def at(self, place: str) -> None:
        """Says where what is added from now on comes from."""
        if place != self._place:
            self._place = place
            self._lines.append(f"  loc({place})")

    @property
    def position(self) -> int:
        """How many lines there are."""
        return len(self._lines)

    @contextmanager
    def inserted(self, position: int) -> Iterator[None]:
        """What is added goes before the lines from a position on."""
        rest = self._lines[position:]
        del self._lines[position:]
        yield
        self._lines += rest

    def new_label(self) -> str:
        """A new label, which ``label`` places."""
        self._labels += 1
        return f"^bb{self._labels}"

    def label(self, name: str) -> None:
        """Begins a block."""
        self._lines.append(f"{name}:")

    @contextmanager
    def counted(self, times: str) -> Iterator[str]:
        """A loop around what is added inside, which runs as often as an unsigned 32-bit register says; its counter."""
        counter, runs = self.integer(), self.integer()
        test, body, done = self.new_label(), self.new_label(), self.new_label()
        self.line(f"{counter} = vm.const.i32.zero")
        self.line(f"vm.br {test}()")
        self.label(test)
        self.line(f"{runs} = vm.cmp.lt.i32.u {counter}, {times}")
        self.line(f"vm.cond_br {runs}, {body}(), {done}()")
        self.label(body)
        yield counter
        self.line(f"{counter} = vm.add.i32 {counter}, {self.i32(1)}")
        self.line(f"vm.br {test}()")
        self.label(done)

    @contextmanager
    def where(self, condition: str) -> Iterator[None]:
        """What is added inside runs where a condition holds."""
        then, done = self.new_label(), self.new_label()
        self.line(f"vm.cond_br {condition}, {then}(), {done}()")
        self.label(then)
        yield
        self.line(f"vm.br {done}()")
        self.label(done)

    def chosen(self, bank: str, condition: str, one: str, other: str) -> str:
        """One of two registers by a condition."""
        found = self.integer() if bank == "i32" else self.wide()
        self.line(f"{found} = vm.select.{bank} {condition} ? {one} : {other}")
        return found

    def null(self) -> str:
        """A null reference."""
        found = self.reference()
        self.line(f"{found} = vm.const.ref.zero")
        return found

    def rodata(self, ordinal: int) -> str:
        """A reference to a constant of the module."""
        found = self.reference()
        self.line(f"{found} = vm.const.ref.rodata {ordinal}")
        return found

    def load_global(self, name: str, type: str) -> str:
        """A reference that a global holds."""
        found = self.reference()
        self.line(f"{found} = vm.global.load.ref @{name} : !{type}")
        return found

    def store_global(self, value: str, name: str, type: str) -> None:
        """Stores a reference in a global."""
        self.line(f"vm.global.store.ref {value}, @{name} : !{type}")

    def call(
        self, function: str, arguments: Sequence[str | Sequence[Sequence[str]]], results: Sequence[str] = ()
    ) -> None:
        """A call of an import; a list among the arguments is a variadic one, of tuples of registers."""
        self.imports.add(function)
        flat: list[str] = []
        segments = []
        for argument in arguments:
            if isinstance(argument, str):
                flat.append(argument)
                segments.append(SCALAR)
            else:
                segments.append(len(argument))
                flat.extend(register for item in argument for register in item)
        given = f"{', '.join(results)} = " if results else ""
        if all(size == SCALAR for size in segments):
            self.line(f"{given}vm.call @{function}({', '.join(flat)})")
        else:
            sizes = ", ".join(map(str, segments))
            self.line(f"{given}vm.call.variadic @{function} segments[{sizes}]({', '.join(flat)})")

    def reference_of(self, function: str, arguments: Sequence[str | Sequence[Sequence[str]]]) -> str:
        """The reference that a call gives."""
        found = self.reference()
        self.call(function, arguments, [found])
        return found

    def await_fence(self, fence: str) -> None:
        """Waits for a fence, and fails with its status."""
        self.imports.add("hal.fence.await")
        status = self.integer()
        awaited, failed, reached = self.new_label(), self.new_label(), self.new_label()
        segments = f"{SCALAR}, {SCALAR}, 1"
        operands = f"{self.i32(-1)}, {self.i64(0)}, {fence}"
        self.line(
            f"vm.call.variadic.yieldable @hal.fence.await segments[{segments}]({operands}) -> {awaited}({status})"
        )
        self.label(awaited)
        self.line(f"vm.cond_br {status}, {failed}(), {reached}()")
        self.label(failed)
        self.line(f'vm.fail {status}, "failed to wait on timepoint"')
        self.label(reached)

    def text(self) -> str:
        """The whole function."""
        taken = zip(self.arguments, self._takes, strict=True)
        arguments = ", ".join(f"{register}: {_TYPES[letter]}" for register, letter in taken)
        results = ", ".join(_TYPES[letter] for letter in self._gives)
        shown = ", ".join(f"{key} = {_quoted(value)}" for key, value in self._attributes.items())
        attributes = f" attributes {{{shown}}}" if shown else ""
        constants = [
            f"  {register} = vm.const.{bank} {value}" if value else f"  {register} = vm.const.{bank}.zero"
            for (bank, value), register in self._constants.items()
        ]
        lines = ["^bb0:", f"  loc({self._first_place})", *constants, *self._lines]
        return f"vm.func @{self.name}({arguments}) -> ({results}){attributes} {{\n" + "\n".join(lines) + "\n}\n"


def _quoted(text: str) -> str:
    """A string, with escapes where it has quotes."""
    if '"' not in text:
        return f'"{text}"'
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'e"{escaped}"'
