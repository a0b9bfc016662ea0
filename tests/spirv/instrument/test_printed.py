"""Formatting of what shaders print, against Python's and C's own where they have the specifier."""

from __future__ import annotations

import struct

import pytest

from pumice.spirv.instrument.printed import PrintedLine, PrintedValue, PrintSite


def words(form: str, *values: float) -> list[int]:
    data = struct.pack(f"<{len(values)}{form}", *values)
    data += bytes(-len(data) % 4)
    return list(struct.unpack(f"<{len(data) // 4}I", data))


U, S, F = PrintedValue("u", 32, 1), PrintedValue("i", 32, 1), PrintedValue("f", 32, 1)
U64, I64, F64 = PrintedValue("u", 64, 1), PrintedValue("i", 64, 1), PrintedValue("f", 64, 1)
BOOL = PrintedValue("b", 32, 1)


def text(format: str, form: PrintedValue, *values: float) -> str:
    letter = {"u": "IQ", "i": "iq", "f": "fd", "b": "II"}[form.kind][form.width > 32]
    form = form._replace(components=len(values))
    return PrintSite(format, (form,), "", 0).text(words(letter, *values))


@pytest.mark.parametrize("format", ["%d", "%i", "%5d", "%-5d|", "%+d", "% d", "%05d", "%.3d", "%x", "%#X", "%o", "%c"])
@pytest.mark.parametrize("value", [0, 7, 97])
def test_integers_as_python_has_them(format: str, value: int) -> None:
    for form in (U, S, U64, I64):
        assert text(format, form, value) == format % value


@pytest.mark.parametrize("format", ["%f", "%F", "%e", "%E", "%g", "%G", "%.2f", "%8.3f", "%-9.1e|", "%+g", "%.0f"])
@pytest.mark.parametrize("value", [0.0, -1.5, 12345.75, float("inf"), float("nan")])
def test_floats_as_python_has_them(format: str, value: float) -> None:
    for form in (F, F64):
        assert text(format, form, value) == format % value


@pytest.mark.parametrize(
    ("format", "form", "value", "expected"),
    [
        ("%d", S, -3, "-3"),
        ("%u", S, -3, "4294967293"),
        ("%d", U, 0xFFFFFFFF, "-1"),
        ("%x", S, -1, "ffffffff"),
        ("%lu", U64, 1 << 63, "9223372036854775808"),
        ("%ul", U64, 1 << 63, "9223372036854775808"),
        ("%ulx|", U64, 0xDEADBEEF00, "deadbeef00|"),
        ("%lx", U64, 0xDEADBEEF00, "deadbeef00"),
        ("%llx", I64, -1, "f" * 16),
        ("%ld", I64, -(1 << 62), str(-(1 << 62))),
        ("%u", U64, 1 << 40, str(1 << 40)),
        ("%ul", U, 5, "5l"),  # an l of the text
        ("%hhd", S, -7, "-7"),
        ("%d", PrintedValue("i", 8, 1), -7, "-7"),
        ("%u", PrintedValue("i", 16, 1), -1, "65535"),
        ("%p", U64, 0xABC0, "0x000000000000abc0"),
        ("%a", F, 1.0, float(1).hex()),
        ("%d", BOOL, 1, "1"),
        ("%s", BOOL, 0, "false"),
        ("%s", F, 2.5, "2.5"),
        ("%f", S, 3, "3.000000"),
        ("%d", F, 2.5, "2.5"),
        ("%u", F, 1e10, "1e+10"),
        ("%x", F, 1.0, "3f800000"),
        ("%c", S, -1, "?"),
        ("100 %%", S, 4, "100 % [4]"),
        ("a line\n", U, 1, "a line [1]"),
        ("%d%d", S, 1, "1%d"),
        ("%", S, 1, "% [1]"),
        ("%y %d", S, 1, "%y 1"),
    ],
)
def test_specifiers(format: str, form: PrintedValue, value: float, expected: str) -> None:
    assert text(format, form, value) == expected


def test_vectors() -> None:
    assert text("%v3f", F, 1, 2.5, -3) == "1.000000, 2.500000, -3.000000"
    assert text("%1.2v4f", F, 1, 2, 3, 4) == "1.00, 2.00, 3.00, 4.00"
    assert text("<%v2d>", S, -1, 2) == "<-1, 2>"
    assert text("%v2lu", U64, 1 << 40, 2) == f"{1 << 40}, 2"
    assert text("%v2ul", U64, 1 << 40, 2) == f"{1 << 40}, 2"
    assert text("%d", S, 1, 2, 3) == "1, 2, 3"  # the vector that was given
    assert text("%v2d", S, 1, 2, 3) == "1, 2"


def test_several_arguments() -> None:
    site = PrintSite("%s: %*d|%.*f|%v2u\n", ("name", S, S, S, F, PrintedValue("u", 32, 2)), "k.comp", 3)
    assert site.words == 6
    values = [*words("i", 4), *words("i", 7), *words("i", 1), *words("f", 2.25), 8, 9]
    assert site.text(values) == "name:    7|2.2|8, 9"


def test_a_line_as_text() -> None:
    assert str(PrintedLine("blur", (1, 2, 0), "x = 3", "", 0)) == "blur (1, 2, 0): x = 3"
