"""Random kernels with loops: GLSL, and what it computes by a small interpreter.

A program changes the variables ``a``, ``b`` and ``c`` of an invocation by loads, in loops within loops of every form,
with ``break``, ``continue`` and, in functions, ``return``. The invocations' lengths ``n`` differ, so that they leave
loops at different times.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

LANES: Final = 64
WORDS: Final = np.random.default_rng(0).integers(1, 1 << 31, 256).astype(np.uint32)
LENGTHS: Final = (np.arange(LANES) * 7 % 13).astype(np.uint32)
_LOADED: Final = [int(word) for word in WORDS]
_MASK: Final = (1 << 32) - 1
_PASSES: Final = 9
_HEAD: Final = """#version 450
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { uint xs[]; };
layout(binding = 1) readonly buffer N { uint ns[]; };
layout(binding = 2) writeonly buffer R { uint rs[]; };
"""
_COUNTERS: Final = "uint t0 = 0u, t1 = 0u, k0 = 0u, k1 = 0u;"
Expression = Any
Statement = tuple[Any, ...]


class _Left(Exception):
    """A jump out of statements: ``break``, ``continue`` or ``return``."""


class Program:
    """The program of a seed.

    Attributes:
        source: a kernel that takes ``WORDS`` and ``LENGTHS``, and writes a word for each invocation.
        expected: these words.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._is_function = self._random.random() < 0.4
        body = [*self._block(0, 3, jumps=()), self._loop(0)]
        text = _text(body)
        if self._is_function:
            source = f"void f(uint n, inout uint a, inout uint b, inout uint c) {{ {_COUNTERS}\n{text} }}\n"
            text = "f(n, a, b, c);"
        else:
            source, text = "", _COUNTERS + text
        self.source: str = f"""{_HEAD}{source}void main() {{
  uint i = gl_GlobalInvocationID.x, n = ns[i], a = i, b = 1u, c = xs[i & 255u];
  {text}
  rs[i] = a + b * 3u + c * 5u + n + xs[i];
}}
"""
        self.expected: np.ndarray = np.array([_result(body, lane) for lane in range(LANES)], np.uint32)

    def _expression(self, depth: int = 0) -> Expression:
        choice = self._random.random()
        if depth > 1 or choice < 0.3:
            return self._random.choice(["a", "b", "c", "n", "k0", "k1"])
        if choice < 0.6:
            return ("load", self._expression(depth + 1))
        return (self._random.choice("+^"), self._expression(depth + 1), self._expression(depth + 1))

    def _condition(self, depth: int) -> Expression:
        counter = f"k{min(depth, 1)}"
        bit = ("bit", self._expression(), self._random.randrange(5))
        return self._random.choice([("<", counter, "n"), bit, ("<", ("load", counter), ("load", "n"))])

    def _set(self) -> Statement:
        return ("set", self._random.choice("abc"), self._expression())

    def _block(self, depth: int, size: int, jumps: Sequence[str]) -> list[Statement]:
        statements: list[Statement] = []
        for _ in range(self._random.randint(1, size)):
            choice = self._random.random()
            if choice < 0.45:
                statements.append(self._set())
            elif choice < 0.6:
                otherwise = self._block(depth, 2, jumps) if self._random.random() < 0.4 else []
                statements.append(("if", self._condition(depth), self._block(depth, 2, jumps), otherwise))
            elif choice < 0.66 and jumps:
                before = [self._set()] if self._random.random() < 0.5 else []
                statements.append(("if", self._condition(depth), [*before, (self._random.choice(jumps),)], []))
            elif depth < 2:
                statements.append(self._loop(depth))
        return statements

    def _loop(self, depth: int) -> Statement:
        form = self._random.choice(["do", "do", "while", "for", "forever"])
        jumps = ["break", "break"] + ["continue"] * (form != "forever") + ["return"] * self._is_function
        return (form, depth, self._condition(depth), self._block(depth + 1, 3, jumps))


# -- as GLSL -------------------------------------------------------------------------------------------


def _text(statements: Sequence[Statement]) -> str:
    return "".join(map(_statement, statements))


def _statement(statement: Statement) -> str:
    kind, *rest = statement
    if kind == "set":
        return f"{rest[0]} = {_value(rest[1])};\n"
    if kind == "if":
        otherwise = f" else {{ {_text(rest[2])} }}" if rest[2] else ""
        return f"if ({_value(rest[0])}) {{ {_text(rest[1])} }}{otherwise}\n"
    if not rest:
        return f"{kind};\n"
    depth, condition, body = rest
    passes, asked = f"t{depth}", _value(condition)
    text = f"k{depth} = ++{passes};\n{_text(body)}"
    more = f"({asked}) && {passes} < {_PASSES}u"
    loop = {
        "do": f"do {{ {text} }} while ({more});",
        "while": f"while ({more}) {{ {text} }}",
        "for": f"for (uint j = 0u; j < n && {passes} < {_PASSES}u && ({asked}); j++) {{ {text} }}",
        "forever": f"for (;;) {{ {text} if (!({more})) break; }}",
    }[kind]
    return f"{passes} = 0u; {loop}\n"


def _value(expression: Expression) -> str:
    if isinstance(expression, str):
        return expression
    kind, *rest = expression
    if kind == "load":
        return f"xs[({_value(rest[0])}) & 255u]"
    if kind == "bit":
        return f"((({_value(rest[0])}) >> {rest[1]}u) & 3u) != 0u"
    return f"(({_value(rest[0])}) {kind} ({_value(rest[1])}))"


# -- as Python computes it -----------------------------------------------------------------------------


def _result(body: Sequence[Statement], lane: int) -> int:
    values = {"a": lane, "b": 1, "c": _LOADED[lane], "n": int(LENGTHS[lane]), "k0": 0, "k1": 0}
    try:
        _run(body, values)
    except _Left:  # by return
        pass
    return (values["a"] + values["b"] * 3 + values["c"] * 5 + values["n"] + _LOADED[lane]) & _MASK


def _run(statements: Sequence[Statement], values: dict[str, int]) -> None:
    for kind, *rest in statements:
        if kind == "set":
            values[rest[0]] = _computed(rest[1], values)
        elif kind == "if":
            _run(rest[1] if _computed(rest[0], values) else rest[2], values)
        elif rest:
            _iterate(kind, *rest, values)
        else:
            raise _Left(kind)


def _iterate(form: str, depth: int, condition: Expression, body: Sequence[Statement], values: dict[str, int]) -> None:
    passes = 0
    while True:
        if form in ("while", "for") and not (passes < _PASSES and _computed(condition, values)):
            return
        if form == "for" and passes >= values["n"]:
            return
        passes += 1
        values[f"k{depth}"] = passes
        try:
            _run(body, values)
        except _Left as jump:
            if jump.args[0] == "break":
                return
            if jump.args[0] == "return":
                raise
        if form in ("do", "forever") and not (_computed(condition, values) and passes < _PASSES):
            return


def _computed(expression: Expression, values: dict[str, int]) -> int:
    if isinstance(expression, str):
        return values[expression]
    kind, *rest = expression
    first = _computed(rest[0], values)
    if kind == "load":
        return _LOADED[first & 255]
    if kind == "bit":
        return first >> rest[1] & 3
    second = _computed(rest[1], values)
    return first < second if kind == "<" else (first + second) & _MASK if kind == "+" else first ^ second
