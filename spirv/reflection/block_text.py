"""GLSL's declarations of blocks as data: the names and types of their members.

Grammar, in which ``layout(…)`` and words such as ``readonly`` may stand before anything::

    text         declaration*
    declaration  "struct" NAME "{" member* "}" ";"
                 "layout" "(" … ")" WORD* NAME? "{" member* "}" (NAME length*)? ";"
    member       TYPE NAME length* ("," NAME length*)* ";"
    length       "[" (NUMBER | NAME)? "]"

Comments and lines that begin with ``#`` are skipped, and so are ``layout(…) in;`` and ``layout(buffer_reference) buffer
NAME;``. Other parts of a shader (constants, functions) are not declarations of blocks.
"""

from __future__ import annotations

import re
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...status import InvalidArgumentError, shown
from .reflection_types import ScalarType

_TOKENS: Final = re.compile(
    r"(?P<space>\s+|//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*)|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<number>0[xX][0-9A-Fa-f]{1,15}|\d{1,18})[uU]?|(?P<mark>[{}()\[\];,=])",
    re.ASCII | re.DOTALL | re.MULTILINE,
)
_QUALIFIERS: Final = frozenset(
    {"readonly", "writeonly", "coherent", "volatile", "restrict", "row_major", "column_major", "uniform", "buffer"}
    | {"shared", "const", "in", "highp", "mediump", "lowp", "nonuniformEXT", "nonprivate"}
)
_SCALARS: Final = {
    "float": ScalarType("float", 32),
    "double": ScalarType("float", 64),
    "int": ScalarType("int", 32),
    "uint": ScalarType("uint", 32),
    "bool": ScalarType("uint", 32),  # as blocks keep it
    "bfloat16_t": ScalarType("float", 16, "bfloat16"),
    **{f"float{bits}_t": ScalarType("float", bits) for bits in (16, 32, 64)},
    **{f"int{bits}_t": ScalarType("int", bits) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}_t": ScalarType("uint", bits) for bits in (8, 16, 32, 64)},
}
_PREFIXES: Final = {
    "": "float",
    "d": "double",
    "i": "int",
    "u": "uint",
    "b": "bool",
    **{f"f{bits}": f"float{bits}_t" for bits in (16, 32, 64)},
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
}
_VECTOR: Final = re.compile(r"(\w*?)vec([234])")
_MATRIX: Final = re.compile(r"(d|f16|f32|f64|)mat([234])(?:x([234]))?")


@dataclass(frozen=True, slots=True)
class DeclaredType:
    """A type as GLSL declares it: a scalar, vector or matrix, a structure, or a pointer.

    Attributes:
        text: the type as written.
        scalar: the scalar type; ``None`` for structures and pointers.
        components, columns: the vector size and the number of columns; see ``BlockMember``.
        members: the members of a structure.
    """

    text: str
    scalar: ScalarType | None = None
    components: int = 1
    columns: int = 1
    members: tuple[DeclaredMember, ...] | None = None


@dataclass(frozen=True, slots=True)
class DeclaredMember:
    """A member: its name, its type (any if not declared), and its lengths, 0 where a length is unknown."""

    name: str
    type: DeclaredType | None = None
    lengths: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class DeclaredBlock:
    """A block: its binding (``None`` for push constants), the names of its structure and variable, and its members."""

    binding: tuple[int, int] | None
    structure: str
    variable: str
    members: tuple[DeclaredMember, ...]


def glsl_type(name: str) -> DeclaredType | None:
    """Returns the type of that name, if it is a scalar, vector or matrix."""
    if name in _SCALARS:
        return DeclaredType(name, _SCALARS[name])
    vector, matrix = _VECTOR.fullmatch(name), _MATRIX.fullmatch(name)
    if vector is not None and vector[1] in _PREFIXES:
        return DeclaredType(name, _SCALARS[_PREFIXES[vector[1]]], components=int(vector[2]))
    if matrix is not None:
        columns, rows = int(matrix[2]), int(matrix[3] or matrix[2])
        return DeclaredType(name, _SCALARS[_PREFIXES[matrix[1]]], components=rows, columns=columns)
    return None


def parse_blocks(text: str) -> list[DeclaredBlock]:
    """Returns the blocks that a text declares.

    Raises:
        InvalidArgumentError: the text declares no blocks; the message has the line and column.
    """
    return _Parser(text).blocks()


def parse_members(text: str) -> tuple[DeclaredMember, ...]:
    """Returns the members that a text lists, after optional structure declarations; errors as ``parse_blocks``."""
    return _Parser(text).members_only()


class _Parser:
    """Reads one text; used once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, int]] = []
        self._at = 0
        self._types: dict[str, DeclaredType] = {}
        position = 0
        while position < len(text):
            match = _TOKENS.match(text, position)
            if match is None:
                raise self._error(position, f"expected a declaration, got {shown(text[position])}")
            if match.lastgroup != "space":
                self._tokens.append((match[0], position))
            position = match.end()
        self._tokens.append(("", len(text)))

    def blocks(self) -> list[DeclaredBlock]:
        blocks: list[DeclaredBlock] = []
        while self._peek():
            if self._peek() == "struct":
                self._structure()
                continue
            start = self._tokens[self._at][1]
            layout = self._qualifiers()
            structure = self._word("a block's name") if self._peek() not in ("{", ";") else ""
            if self._accept(";"):  # the sizes of workgroups, or a pointer that is defined later
                if structure:
                    self._types[structure] = DeclaredType(structure)
                continue
            members = self._members("a block is {, its members, and }")
            if "buffer_reference" in layout:
                self._types[structure] = DeclaredType(structure)
                self._expect(";")
                continue
            variable = ""
            if self._peek() != ";":
                variable = self._word("a variable's name")
                self._lengths()
            self._expect(";")
            binding = None if "push_constant" in layout else (layout.get("set") or 0, layout.get("binding") or 0)
            if binding is not None and "binding" not in layout:
                raise self._error(start, "expected layout(binding = …) or layout(push_constant) before the block")
            blocks.append(DeclaredBlock(binding, structure, variable, members))
        return blocks

    def members_only(self) -> tuple[DeclaredMember, ...]:
        members: list[DeclaredMember] = []
        while self._peek():
            if self._peek() == "struct":
                self._structure()
            else:
                members += self._member()
        return tuple(members)

    def _structure(self) -> None:
        self._at += 1
        name = self._word("a structure's name")
        self._types[name] = DeclaredType(name, members=self._members(f"struct {name} is {{, its members, and }}"))
        self._expect(";")

    def _members(self, noun: str) -> tuple[DeclaredMember, ...]:
        self._expect("{", noun)
        members: list[DeclaredMember] = []
        while not self._accept("}"):
            members += self._member()
        return tuple(members)

    def _member(self) -> list[DeclaredMember]:
        self._qualifiers()
        start = self._tokens[self._at][1]
        name = self._word("a member's type")
        of = glsl_type(name) or self._types.get(name)
        if of is None:
            known = f"; declared are {', '.join(self._types)}" if self._types else ""
            raise self._error(start, f"{shown(name)} is no type of GLSL's, and no structure declared before{known}")
        lengths = self._lengths()
        members = []
        while True:
            members.append(DeclaredMember(self._word("a member's name"), of, (*self._lengths(), *lengths)))
            if not self._accept(","):
                break
        self._expect(";")
        return members

    def _lengths(self) -> tuple[int, ...]:
        lengths: list[int] = []
        while self._accept("["):
            length = 0
            if self._peek() != "]":
                text = self._tokens[self._at][0].rstrip("uU")
                length = int(text, 0) if text[:1].isdigit() and (text.isdigit() or text[:2] in ("0x", "0X")) else 0
                self._skip()
            self._expect("]")
            lengths.append(length)
        return tuple(lengths)

    def _qualifiers(self) -> dict[str, int | None]:
        """Skips qualifiers; returns the entries of ``layout(…)``."""
        qualifiers: dict[str, int | None] = {}
        while True:
            if self._accept("layout"):
                self._expect("(")
                while not self._accept(")"):
                    key = self._word("a layout qualifier")
                    value = None
                    if self._accept("="):
                        text, start = self._tokens[self._at]
                        if text.rstrip("uU").isdigit():
                            value = int(text.rstrip("uU"))
                        elif key in ("set", "binding"):
                            raise self._error(start, f"expected the number of the {key}, got {shown(text)}")
                        self._skip()
                    qualifiers[key] = value
                    self._accept(",")
            elif self._peek() in _QUALIFIERS:
                self._at += 1
            else:
                return qualifiers

    def _peek(self) -> str:
        return self._tokens[self._at][0]

    def _skip(self) -> None:
        """Skips a token of any kind, except the end."""
        self._at += self._at < len(self._tokens) - 1

    def _accept(self, text: str) -> bool:
        if self._peek() != text:
            return False
        self._at += 1
        return True

    def _expect(self, text: str, noun: str = "") -> None:
        if not self._accept(text):
            got, start = self._tokens[self._at]
            raise self._error(start, f"{noun or f'expected {text}'}; got {shown(got) if got else 'the end'}")

    def _word(self, noun: str) -> str:
        text, start = self._tokens[self._at]
        if not (text[:1].isalpha() or text[:1] == "_"):
            raise self._error(start, f"expected {noun}, got {shown(text) if text else 'the end'}")
        self._at += 1
        return text

    def _error(self, position: int, message: str) -> InvalidArgumentError:
        before = self._text[:position]
        line, column = before.count("\n") + 1, position - before.rfind("\n")
        lines = self._text.split("\n")
        shown_line = lines[line - 1][:120]
        return InvalidArgumentError(f"{message}\n  {shown_line}\n  {' ' * (column - 1)}^", location=f"{line}:{column}")
