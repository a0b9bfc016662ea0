"""Programs in VM assembly, run by the peer's tools (`iree-as-module`, `iree-run-module`), many cases a process.

Words go in and come out as integers: a float operand is the bitcast of a constant, and a float result is bitcast
before it is returned, so that no printing or parsing of floats stands between the two sides.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.peer import run_peer

TYPES = ("f32", "f64", "i8", "i16", "i32", "i64")
_WIDE = ("i64", "f64")


@dataclass
class Function:
    """One function's body under construction. Registers are handed out upwards and never used again."""

    lines: list[str] = field(default_factory=list)
    results: list[tuple[str, str]] = field(default_factory=list)
    _next: int = 0
    _next_ref: int = 0

    def register(self, kind: str) -> str:
        if kind in _WIDE:
            self._next += 2 + self._next % 2
            return f"%i{self._next - 2}:{self._next - 1}"
        self._next += 1
        return f"%i{self._next - 1}"

    def ref(self) -> str:
        self._next_ref += 1
        return f"%r{self._next_ref - 1}"

    def constant(self, kind: str, word: int) -> str:
        """A register with a constant; ``word`` is a signed integer, for floats the bits."""
        result = self.register(kind)
        if kind in ("i32", "i64"):
            self.lines.append(f"{result} = vm.const.{kind} {word}")
            return result
        integer = "i" + kind[1:]
        self.lines.append(f"{result} = vm.bitcast.{integer}.{kind} {self.constant(integer, word)}")
        return result

    def op(self, kind: str, text: str) -> str:
        """A register with the result of an operation written without its destination and ``vm.``."""
        result = self.register(kind)
        self.lines.append(f"{result} = vm.{text}")
        return result

    def do(self, text: str) -> None:
        self.lines.append(f"vm.{text}")

    def give(self, kind: str, register: str) -> None:
        """Adds a result to the function: the word, for floats its bits."""
        if kind in ("f32", "f64"):
            register = self.op("i" + kind[1:], f"bitcast.{kind}.i{kind[1:]} {register}")
            kind = "i" + kind[1:]
        self.results.append((kind, register))

    def text(self, name: str) -> str:
        signature = ", ".join(kind for kind, _ in self.results)
        returned = " " + ", ".join(register for _, register in self.results) if self.results else ""
        body = "\n".join(f"  {line}" for line in [*self.lines, f"vm.return{returned}"])
        return f"\nvm.export @{name}\nvm.func @{name}() -> ({signature}) {{\n^bb0:\n{body}\n}}\n"


class Program:
    """A module of functions, assembled once."""

    def __init__(
        self, folder: Path, functions: dict[str, Function], types: Iterable[str] = (), rodata: Sequence[bytes] = ()
    ):
        lines = ["vm.module @program version 0"]
        lines += [f"vm.type {name}" for name in sorted({*TYPES, *types})]
        lines += [f"vm.rodata[{i}] = {data.hex().upper()}" for i, data in enumerate(rodata)]
        source = folder / "program.vmasm"
        source.write_text("\n".join(lines) + "\n" + "".join(f.text(name) for name, f in functions.items()))
        self._module = folder / "program.vmfb"
        run_peer("iree-as-module", f"--output={self._module}", source)
        self._functions = functions

    def run(self, name: str) -> list[int]:
        """The function's results."""
        done = self._call(name)
        assert done.returncode == 0, done.stderr
        words = [int(w) for w in re.findall(r"^result\[\d+\]: i\d+=(-?\d+)$", done.stdout, re.MULTILINE)]
        assert len(words) == len(self._functions[name].results)
        return words

    def failure(self, name: str) -> str:
        """The status code's name that the function fails with; ``OK`` where it does not."""
        done = self._call(name)
        if done.returncode == 0:
            return "OK"
        found = re.search(r"(?::\d+: |^)([A-Z_]+);", done.stderr, re.MULTILINE)
        assert found is not None, done.stderr
        return found[1]

    def _call(self, name: str) -> subprocess.CompletedProcess[str]:
        return run_peer("iree-run-module", f"--module={self._module}", f"--function={name}", check=False)
