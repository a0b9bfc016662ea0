"""Lines that shaders print: their form in memory, and their text.

A ring of words takes the records of all kernels of a device. Its header has

- word 0: the number of words that records have taken so far, an atomic;
- word 1: the number of lines so far, an atomic;
- word 2: the host's: the number of words up to where it has read.

These numbers only increase, modulo 2**32; word ``n`` of the records lies at ``n % RING_WORDS`` behind the header. A
record that has no room is left out, and its line still counted. A record is

- one more than the number of the print in its module: not 0, as words are that no record takes;
- the number of the kernel, which the host puts into its report;
- the global invocation id;
- the values of the arguments.

Formats are those of C, with the vectors of GL_EXT_debug_printf (``%v3f``, ``%1.2v4f``). The types of arguments are
known: they determine the number of bits, regardless of the length of a specifier (``%lu``, ``%ul``), and an integer
under ``%f`` or a float under ``%d`` is shown as the number that it is.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

PRINT_SET: Final = "NonSemantic.DebugPrintf"
RING_WORDS: Final = 1 << 20
HEADER_WORDS: Final = 4
#: The words of a record before its values.
RECORD_WORDS: Final = 5
_SPECIFIER: Final = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\*|\d{1,4})?(?:\.(?P<precision>\*|\d{0,3}))?(?:v(?P<count>[234]))?"
    r"(?:[hlqjztL]{0,2})(?P<letter>[diouxXbeEfFgGaAcsp%])"
)
_FLOATS: Final = {16: "e", 32: "f", 64: "d"}
_INTEGER_LETTERS: Final = "diouxXbcp"


class PrintedValue(NamedTuple):
    """The form of an argument in memory.

    Attributes:
        kind: ``u`` or ``i`` for an integer, ``f`` for a float, ``b`` for a bool.
        width: the bits of a component: up to 32 take a word, 64 take two, the low one first.
        components: the number of components.
    """

    kind: str
    width: int
    components: int

    @property
    def words(self) -> int:
        return self.components * (2 if self.width > 32 else 1)

    def read(self, words: Sequence[int]) -> list[int | float | bool]:
        """Returns the components."""
        numbers = (
            list(words) if self.width <= 32 else [a | b << 32 for a, b in zip(words[::2], words[1::2], strict=True)]
        )
        if self.kind == "b":
            return [bool(number) for number in numbers]
        if self.kind == "f":  # narrow ones are widened by the shader
            integer, real = ("<I", "<f") if self.width <= 32 else ("<Q", "<d")
            return [struct.unpack(real, struct.pack(integer, number))[0] for number in numbers]
        sign = 1 << (self.width - 1) if self.kind == "i" else 0
        mask = (1 << self.width) - 1
        return [((number & mask) ^ sign) - sign for number in numbers]


class PrintSite(NamedTuple):
    """A print in a module.

    Attributes:
        format: the format.
        arguments: the forms of the arguments; texts, which are the same each time, as they are.
        file, line: the position in the source, empty and 0 if stripped.
    """

    format: str
    arguments: tuple[PrintedValue | str, ...]
    file: str
    line: int

    @property
    def words(self) -> int:
        """The number of words of its values."""
        return sum(argument.words for argument in self.arguments if not isinstance(argument, str))

    def text(self, words: Sequence[int]) -> str:
        """Returns the line of values in memory, without a line feed at its end."""
        values: list[tuple[PrintedValue | str, list[int | float | bool]]] = []
        at = 0
        for argument in self.arguments:
            if isinstance(argument, str):
                values.append((argument, []))
            else:
                values.append((argument, argument.read(words[at : at + argument.words])))
                at += argument.words
        values.reverse()

        def shown(match: re.Match[str]) -> str:
            if match["letter"] == "%":
                return "%"
            width, precision = match["width"] or "", match["precision"]
            if not values:
                return match[0]
            if width == "*":
                width = str(_integer(values.pop()))
            if precision == "*" and values:
                precision = str(_integer(values.pop()))
            if not values:
                return match[0]
            form, components = values.pop()
            if isinstance(form, str):
                return f"{form:>{width}}" if width and width[0] != "-" else form
            spec = match["flags"], width, None if precision is None else precision or "0", match["letter"]
            count = int(match["count"] or len(components))
            return ", ".join([_formatted(spec, form, value) for value in components[:count]])

        text = _SPECIFIER.sub(shown, _without_long(self.format, self.arguments)).removesuffix("\n")
        rest = [form if isinstance(form, str) else ", ".join(map(_plain, of)) for form, of in reversed(values)]
        return f"{text} [{', '.join(rest)}]" if rest else text


class PrintedLine(NamedTuple):
    """A line that a shader printed; as text, ``kernel (x, y, z): text``.

    Attributes:
        kernel: the name of the kernel.
        invocation: the global invocation id.
        text: the formatted text, without a line feed at its end.
        file, line: the position in the source, empty and 0 if the shader has no debug information.
    """

    kernel: str
    invocation: tuple[int, int, int]
    text: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.kernel} {self.invocation}: {self.text}"


def _without_long(text: str, arguments: Sequence[PrintedValue | str]) -> str:
    """Returns a format whose ``%ul`` and ``%ulx`` of 64-bit arguments are ``%u`` and ``%x``."""
    if "ul" not in text or not any(not isinstance(form, str) and form.width > 32 for form in arguments):
        return text
    return re.sub(r"(%[-+ #0]*[\d.]*(?:v[234])?)ul(x?)", lambda match: f"{match[1]}{'x' if match[2] else 'u'}", text)


def _integer(value: tuple[PrintedValue | str, list[int | float | bool]]) -> int:
    """Returns a width or precision that an argument gives, of at most 1,000."""
    _, components = value
    return max(-1000, min(1000, int(components[0]))) if components else 0


def _formatted(spec: tuple[str, str, str | None, str], form: PrintedValue, value: int | float | bool) -> str:
    """Returns a component by flags, width, precision and letter of its specifier."""
    flags, width, precision, letter = spec
    if width.startswith("-"):
        flags, width = f"{flags}-", width[1:]
    number = "" if precision is None else f".{precision}"
    if letter == "s" or (form.kind == "f" and letter in "diuc"):
        return f"%{flags}{width}s" % _plain(value)
    if letter in "aA":
        text = float(value).hex()
        return f"%{flags}{width}s" % (text.upper() if letter == "A" else text)
    if letter not in _INTEGER_LETTERS:
        return f"%{flags}{width}{number}{letter}" % value
    bits = int(value) if form.kind != "f" else _bits(float(value), form.width)
    size = max(form.width, 8)
    bits &= (1 << size) - 1
    if letter in "di":
        bits -= (bits >> (size - 1)) << size if form.kind != "b" else 0
    if letter == "c":
        return f"%{flags}{width}s" % (chr(bits) if bits < 0x110000 else "?")
    if letter == "p":
        return f"%{flags}{width}s" % f"0x{bits:0{size // 4}x}"
    if letter == "b":
        return f"%{flags}{width}s" % f"{bits:b}"
    return f"%{flags}{width}{number}{'d' if letter in 'iu' else letter}" % bits


def _bits(value: float, width: int) -> int:
    form = _FLOATS.get(width, "f")
    return int.from_bytes(struct.pack(f"<{form}", value), "little")


def _plain(value: int | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)
