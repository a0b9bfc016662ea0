"""Wrong programs, and a process that compiles them all in bounded memory.

Those in ``tests/compiler/wrong`` are written out, with a comment below the line at fault: a caret under the column, and
what the error says. A comment ``// LINE:COLUMN: text`` at the beginning says the same of places before the fourth
column. Those here are too large to be written out, or hold what no text file should.
"""

from __future__ import annotations

import json
import os
import re
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[2] / "compiler" / "wrong"
MEMORY: Final = 1 << 30
"""Bytes that the process may reserve beyond its code."""

MANY: Final = 100_000
T: Final = "tensor<4xf32>"
HUGE: Final = "tensor<72057594037927936xf32>"


@dataclass(frozen=True)
class Wrong:
    """A wrong program.

    Attributes:
        text: of the program.
        line: of the fault, from 1.
        column: of the fault, from 1.
        says: part of what the error says.
    """

    text: str
    line: int
    column: int
    says: str


def written() -> Iterator[tuple[str, Wrong]]:
    """The programs that are written out, by file and title."""
    for path in sorted(FOLDER.glob("*.mlir")):
        for part in path.read_text().split("// -----\n"):
            lines = part.splitlines()
            marks = [(number, line.index("^")) for number, line in enumerate(lines) if re.match(r"// +\^", line)]
            if marks:
                ((number, column),) = marks
                found = Wrong(part, number, column + 1, lines[number][column + 1 :].strip())
            else:
                place = re.match(r"// (\d+):(\d+): (.*)", lines[0])
                assert place is not None, f"{path}: {part}"
                found = Wrong(part, int(place[1]), int(place[2]), place[3])
            title = next(line for line in lines if re.match(r"// [A-Z]", line))
            yield f"{path.stem}: {title[3:]}", found


def _main(body: str, value: str = "%x") -> str:
    return f"func.func @main(%x: {T}) -> {T} {{\n{body}\n  return {value} : {T}\n}}\n"


def _attribute(text: str) -> str:
    return _main(f'  "stablehlo.iota"() {{a = {text}}} : () -> {T}')


def _taking(type: str) -> str:
    return f"func.func @main(%x: {type}) {{\n  return\n}}\n"


def _giving(type: str, operation: str) -> str:
    return f"func.func @main() -> {type} {{\n  %0 = {operation} : {type}\n  return %0 : {type}\n}}\n"


def _aliases(sigil: str, first: str, step: str) -> str:
    """Aliases each of which names the one before twice."""
    return f"{sigil}a0 = {first}\n" + "".join(
        f"{sigil}a{number + 1} = {step.replace('$', f'{sigil}a{number}')}\n" for number in range(60)
    )


def _called(count: int, times: int) -> str:
    """Functions each of which calls the next."""
    call = [f"  %{time + 1} = call @f$(%{time}) : ({T}) -> {T}\n" for time in range(times)]
    texts = [_main(f"  %0 = call @f0(%x) : ({T}) -> {T}", "%0")]
    for number in range(count):
        body = "".join(call).replace("$", str(number + 1))
        texts.append(f"func.func private @f{number}(%0: {T}) -> {T} {{\n{body}  return %{times} : {T}\n}}\n")
    return "".join(texts) + f"func.func private @f{count}(%x: {T}) -> {T} {{\n  return %x : {T}\n}}\n"


def _operations(count: int) -> str:
    line = f"stablehlo.add %x, %x : {T}\n"
    return _main("".join(f"%{number} = {line}" for number in range(count)))


MADE: Final[Mapping[str, tuple[Callable[[], str], str]]] = {
    "nothing": (lambda: "", "no public function"),
    "blank lines": (lambda: " \n" * MANY, "no public function"),
    "a long comment": (lambda: "// " + "x" * 1_000_000, "no public function"),
    "resources without an end": (lambda: "{-#", "no public function"),
    "a NUL byte": (lambda: _taking("tensor<4x\0f32>"), "expected a type"),
    "NUL bytes": (lambda: "\0\0\0\0", "expected an operation"),
    "bytes that are not UTF-8": (lambda: _main('  "\udcff\udcfe"() : () -> ()'), "expects a dialect that compiles"),
    "a name that is not UTF-8": (lambda: _main("").replace("@main", '@"\udcff"'), "where it is public"),
    "a name with a NUL": (lambda: _main("").replace("@main", '@"a\\00b"'), "where it is public"),
    "an empty name": (lambda: _main("").replace("@main", '@""'), "where it is public"),
    "a byte order mark": (lambda: "\ufeff" + _main(""), "expected an operation"),
    "MLIR's bytecode": (lambda: "ML\udcefR\x01\x02\x03", "unknown operation ML"),
    "letters beyond ASCII": (lambda: _main("").replace("%x", "%größe"), "expected ':'"),
    "digits beyond ASCII": (lambda: _taking("tensor<٤xf32>"), "expected a type"),
    "an empty location": (lambda: _main(f"  %0 = stablehlo.add %x, %x : {T} loc()"), "expected a location"),
    "a location's alias that is not defined": (
        lambda: _main(f"  %0 = stablehlo.add %x, %x : {T} loc(#nowhere)"),
        "#nowhere is not defined",
    ),
    "tuples in tuples": (lambda: _taking("tuple<" * MANY + T + ">" * MANY), "levels deep"),
    "complex numbers of complex numbers": (lambda: _taking("complex<" * MANY + "f32" + ">" * MANY), "levels deep"),
    "lists in lists": (lambda: _attribute("[" * MANY + "]" * MANY), "levels deep"),
    "dictionaries in dictionaries": (lambda: _attribute("{b = " * MANY + "1" + "}" * MANY), "levels deep"),
    "parentheses in parentheses": (lambda: _attribute("(" * MANY), "levels deep"),
    "elements in lists in lists": (
        lambda: _main(f"  %0 = stablehlo.constant dense<{'[' * MANY}1.0{']' * MANY}> : {T}"),
        "in nested lists",
    ),
    "regions in regions": (lambda: _main('  "stablehlo.case"(%x) ({' * MANY + "})" * MANY), "levels deep"),
    "modules in modules": (lambda: "module {\n" * MANY + "}" * MANY, "levels deep"),
    "brackets that do not end": (lambda: _main(f"  %0 = stablehlo.add %x, %x : {T} loc({'(' * MANY}"), "expected ')'"),
    "aliases of aliases": (lambda: _aliases("#", "[1]", "[$, $]") + _attribute("#a60"), "more than 10,000,000"),
    "types of types": (lambda: _aliases("!", "tuple<i32>", "tuple<$, $>") + _taking("!a60"), "more than 10,000,000"),
    "functions of functions": (lambda: _aliases("!", "() -> i32", "($) -> $") + _taking("!a60"), "10,000,000"),
    "calls that double": (lambda: _called(60, 2), "over 250,000 operations"),
    "calls in calls": (lambda: _called(2_000, 1), "100 levels deep"),
    "too many operations": (
        lambda: _operations(1_000_000 if os.environ.get("PUMICE_SOAK") == "1" else 300_000),
        "at most 250,000 operations",
    ),
    "an integer of a million digits": (lambda: _attribute("9" * 1_000_000), "more than 1,000 characters"),
    "an element of a million digits": (
        lambda: _giving("tensor<4xi32>", f"stablehlo.constant dense<{'9' * 1_000_000}>"),
        "expected numbers",
    ),
    "hexadecimal without quotes": (
        lambda: _giving("tensor<4xi32>", f"stablehlo.constant dense<0x{'9' * 1_000_000}>"),
        "string of hexadecimal digits",
    ),
    "a length of a million digits": (lambda: _taking(f"tensor<{'9' * 1_000_000}xf32>"), "2**63 - 1"),
    "a hundred thousand results": (lambda: _main(f"  %0:{'9' * MANY} = stablehlo.add %x, %x : {T}"), "has 1 results"),
    "an integer of too many bits": (lambda: _taking(f"i{'9' * MANY}"), "there is no type"),
    "a string without an end": (lambda: _main(f'  %0 = "{"a" * 10_000_000}'), "expected an operation"),
    "a long name": (lambda: _main(f"  %{'a' * 1_000_000} = stablehlo.add %y, %x : {T}"), "%y is not defined"),
    "too many operands": (lambda: _main(f"  %0 = stablehlo.add {'%x, ' * MANY}%x : {T}"), "2 operands, got 100001"),
    "too many arguments": (
        lambda: f"func.func @main({', '.join(f'%a{number}: {T}' for number in range(10_000))}) {{\n  return\n}}\n",
        "at most 8,192 arguments",
    ),
    "a constant larger than any memory": (
        lambda: _giving(HUGE, "stablehlo.constant dense<0.0>"),
        "elements or words or more",
    ),
    "bytes for more than any memory": (
        lambda: _giving(HUGE, 'stablehlo.constant dense<"0x00000000">'),
        "elements or words or more",
    ),
    "a count to more than any memory": (lambda: _giving(HUGE, "stablehlo.iota dim = 0"), "elements or words or more"),
    "a thousand dimensions": (lambda: _taking(f"tensor<{'1x' * 1000}f32>"), "at most 32 dimensions"),
}
"""Programs by what is wrong, with part of what the error says."""

BOUNDED: Final[Mapping[str, Callable[[], str]]] = {
    "locations in locations": lambda: _main(
        f'  %0 = stablehlo.add %x, %x : {T} loc({"callsite(" * MANY}"a":1:2{")" * MANY})'
    ),
    "locations of locations": lambda: (
        _aliases("#", 'loc("a":1:2)', "loc(callsite($ at $))")
        + _main(f"  %0 = stablehlo.add %x, %x : {T} loc(#a60)", "%0")
    ),
    "locations in a circle": lambda: (
        "#a = loc(#b)\n#b = loc(#a)\n" + _main(f"  %0 = stablehlo.add %x, %x : {T} loc(#a)", "%0")
    ),
    "a gigabyte of zeros": lambda: _giving("tensor<268435456xf32>", "stablehlo.constant dense<0.0>"),
}
"""Right programs that have to compile in bounded time and memory too."""


def _peak() -> int:
    """The most bytes resident so far. What getrusage counts begins at the size of the process that started this one."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s*(\d+) kB", status)[0]) << 10


def main() -> None:
    """Compiles every program, and prints a line of JSON for each: name, error, line, column, seconds, peak memory."""
    from pumice.compiler.ir.source import CompileError
    from pumice.compiler.kernels.scalars.target import Target
    from pumice.compiler.pipeline import compile_text

    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    texts: dict[str, Callable[[], str]] = {name: lambda each=each: each.text for name, each in written()}
    texts |= {name: make for name, (make, _) in MADE.items()} | dict(BOUNDED)
    for name, make in texts.items():
        text = make()
        start = time.process_time()
        said, line, column = "", 0, 0
        try:
            compile_text(text, "x.mlir", Target())
        except CompileError as error:
            said, line, column = error.message, error.line, error.column
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        seconds = time.process_time() - start
        peak = _peak()
        print(json.dumps([name, said[:2000], line, column, seconds, peak]), flush=True)


if __name__ == "__main__":
    sys.exit(main())
