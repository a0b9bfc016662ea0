"""``STRUCT``, ``BUFFER``, ``IMAGE`` and ``SAMPLER`` of AmberScript."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import Final

from ..base.files import reading_errors
from ..formats.image_texels import to_texels
from ..formats.picture import decode_picture, picture_to_array
from ..status import InvalidArgumentError, shown
from .script import Buffer, Extent, Sampler
from .source import Source, Statement, Token
from .types import NUMBER_NAMES, DataType, ImageFormat, Layout, Member, Number, Standard, Struct, layout_of, parse_type
from .values import pack, pack_series, parse_value

# The limit of one buffer's size: a forged size would take all memory.
MAX_BUFFER_BYTES: Final = 1 << 30
FRAMEBUFFER: Final = Extent(2, 250, 250)
"""An image by ``BUFFER … FORMAT`` has the size of a framebuffer, which is this unless a pipeline says otherwise."""

_SAMPLES: Final = {str(1 << n): 1 << n for n in range(7)}
_DIMENSIONS: Final = {"DIM_1D": 1, "DIM_2D": 2, "DIM_3D": 3}
_BLACK_AND_WHITE: Final = ("transparent_black", "opaque_black", "opaque_white")
_ADDRESS_MODES: Final = ("repeat", "mirrored_repeat", "clamp_to_edge", "clamp_to_border", "mirrored_clamp_to_edge")
_SAMPLER_WORDS: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys(("MAG_FILTER", "MIN_FILTER"), ("nearest", "linear")),
    **dict.fromkeys(("ADDRESS_MODE_U", "ADDRESS_MODE_V", "ADDRESS_MODE_W"), _ADDRESS_MODES),
    "BORDER_COLOR": [f"{kind}_{color}" for kind in ("float", "int") for color in _BLACK_AND_WHITE],
    "COMPARE_OP": (
        *("never", "less", "equal", "less_or_equal"),
        *("greater", "not_equal", "greater_or_equal", "always"),
    ),
}


class BufferParser:
    """Reads the declarations of structures, buffers, images and samplers.

    Attributes:
        structs, buffers, samplers: the structs, buffers and samplers, each by name.
    """

    def __init__(self, source: Source, folder: Path) -> None:
        self._source = source
        self._folder = folder
        self.structs: dict[str, Struct] = {}
        self.buffers: dict[str, Buffer] = {}
        self.samplers: dict[str, Sampler] = {}

    def new_name(self, statement: Statement, kind: str, known: Container[str]) -> Token:
        """Reads a name and checks that it is new; ScriptError if it exists already."""
        token = statement.take(f"the name of the {kind}")
        if token.text in known:
            self._source.fail(
                f"there is a {kind} {shown(token.text)} already; give this one another name", token.position
            )
        return token

    def data_type(self, statement: Statement) -> DataType:
        token = statement.take("a data type")
        data_type = parse_type(token.text, self.structs)
        if data_type is None:
            raise statement.unknown("a data type", token, [*self.structs, *NUMBER_NAMES, "R8G8B8A8_UNORM"])
        return data_type

    # -- structures ----------------------------------------------------------------------------------

    def struct(self, statement: Statement) -> None:
        """Reads ``STRUCT name [STRIDE n]``, members a line each, ``END``."""
        name = self.new_name(statement, "STRUCT", self.structs)
        stride = statement.integer("the stride", 1) if statement.accept("STRIDE") else None
        statement.finish()
        members: list[Member] = []
        for line in self._source.block(f"STRUCT {name.text}", name.position):
            members.append(self._member(line, name.text, members))
        if not members:
            self._source.fail(f"STRUCT {name.text} has no members", name.position)
        self.structs[name.text] = Struct(name.text, tuple(members), stride)

    def _member(self, line: Statement, struct: str, members: list[Member]) -> Member:
        first = line.first
        if first.text == struct:
            self._source.fail(f"STRUCT {struct} cannot hold itself", first.position)
        type = self.data_type(line)
        name = self.new_name(line, "member", [member.name for member in members])
        options: dict[str, int] = {}
        while (option := line.accept("OFFSET", "ARRAY_STRIDE", "MATRIX_STRIDE")) is not None:
            value = line.integer(f"the {option}")
            if option == "ARRAY_STRIDE" and not (isinstance(type, Number) and type.length is not None):
                self._source.fail(f"ARRAY_STRIDE is for arrays; {name.text} is {type}", name.position)
            if option == "MATRIX_STRIDE" and not (isinstance(type, Number) and type.columns > 1):
                self._source.fail(f"MATRIX_STRIDE is for matrices; {name.text} is {type}", name.position)
            options[option.lower()] = value
        line.finish()
        return Member(name.text, type, **options)

    # -- buffers and images --------------------------------------------------------------------------

    def buffer(self, statement: Statement) -> None:
        """Reads ``BUFFER name DATA_TYPE …`` or ``BUFFER name FORMAT …``."""
        name = self.new_name(statement, "BUFFER", self.buffers)
        if statement.accept("FORMAT"):
            self._framebuffer(name, statement)
            return
        statement.expect("DATA_TYPE")
        type = self.data_type(statement)
        standard: Standard = "STD140" if statement.accept("STD140", "STD430") == "STD140" else "STD430"
        layout = layout_of(type, standard)
        extent = None
        if statement.accept("DATA"):
            data = self._data(statement, layout, name)
        elif statement.accept("SIZE"):
            count = statement.integer("the number of elements")
            data = self._initial(statement, type, layout, count, name, required=True)
        elif statement.accept("WIDTH"):
            width = statement.integer("the WIDTH", 1)
            statement.expect("HEIGHT")
            extent = Extent(2, width, statement.integer("the HEIGHT", 1))
            data = self._initial(statement, type, layout, extent.texels, name, required=False)
        else:
            raise statement.wrong("expected STD140, STD430, SIZE, DATA or WIDTH")
        self.buffers[name.text] = Buffer(name.text, type, standard, data, name.position, extent)

    def _framebuffer(self, name: Token, statement: Statement) -> None:
        type = self.data_type(statement)
        if not isinstance(type, ImageFormat):
            self._source.fail(
                f"FORMAT takes an image format such as R8G8B8A8_UNORM, got {type}", statement.first.position
            )
        extent = FRAMEBUFFER
        data: bytes | None = None
        while (option := statement.accept("MIP_LEVELS", "SAMPLES", "FILE")) is not None:
            if option == "MIP_LEVELS":
                extent = dataclasses.replace(extent, mip_levels=statement.integer("the number of mip levels", 1, 32))
            elif option == "SAMPLES":
                extent = dataclasses.replace(extent, samples=statement.choice("a number of samples", _SAMPLES))
            else:
                statement.accept("PNG")
                width, height, data = self._picture(statement, type)
                extent = dataclasses.replace(extent, width=width, height=height)
        statement.finish()
        if data is None:
            data = bytes(extent.texels * layout_of(type, "STD430").size)
        self.buffers[name.text] = Buffer(name.text, type, "STD430", data, name.position, extent)

    def image(self, statement: Statement) -> None:
        """Reads ``IMAGE name {FORMAT f | DATA_TYPE t} DIM_nD WIDTH w [HEIGHT h [DEPTH d]] …``."""
        name = self.new_name(statement, "IMAGE", self.buffers)
        type: DataType | None = None
        sizes: dict[str, int] = {}
        dimensions = 0
        while (token := statement.peek()) is not None and token.text not in ("DATA", "FILL", "SERIES_FROM"):
            statement.take("an option")
            if token.text in ("FORMAT", "DATA_TYPE"):
                type = self.data_type(statement)
                if not isinstance(type, ImageFormat) and (not isinstance(type, Number) or type.columns > 1):
                    self._source.fail(
                        f"texels are of an image format, a scalar or a vector, not {type}", token.position
                    )
            elif token.text in _DIMENSIONS:
                dimensions = _DIMENSIONS[token.text]
            elif token.text in ("WIDTH", "HEIGHT", "DEPTH"):
                sizes[token.text] = statement.integer(f"the {token.text}", 1, 1 << 16)
            elif token.text == "MIP_LEVELS":
                sizes["MIP_LEVELS"] = statement.integer("the number of mip levels", 1, 32)
            elif token.text == "SAMPLES":
                sizes["SAMPLES"] = statement.choice("a number of samples", _SAMPLES)
            else:
                options = ("FORMAT", "DATA_TYPE", *_DIMENSIONS, "WIDTH", "HEIGHT", "DEPTH", "MIP_LEVELS", "SAMPLES")
                raise statement.unknown("an option of IMAGE", token, options)
        if type is None or not dimensions:
            self._source.fail(
                f"IMAGE {name.text} needs FORMAT or DATA_TYPE, and DIM_1D, DIM_2D or DIM_3D", name.position
            )
        for axis in ("WIDTH", "HEIGHT", "DEPTH")[:dimensions]:
            if axis not in sizes:
                self._source.fail(f"IMAGE {name.text} of {dimensions} dimensions needs its {axis}", name.position)
        height = sizes["HEIGHT"] if dimensions > 1 else 1
        depth = sizes["DEPTH"] if dimensions > 2 else 1
        levels, samples = sizes.get("MIP_LEVELS", 1), sizes.get("SAMPLES", 1)
        extent = Extent(dimensions, sizes["WIDTH"], height, depth, levels, samples)
        layout = layout_of(type, "STD430")
        if statement.accept("DATA"):
            data = self._data(statement, layout, name)
            if len(data) != extent.texels * layout.size:
                self._source.fail(
                    f"IMAGE {name.text} has {extent.texels} texels, its DATA {len(data) // layout.size}", name.position
                )
        else:
            data = self._initial(statement, type, layout, extent.texels, name, required=False)
        self.buffers[name.text] = Buffer(name.text, type, "STD430", data, name.position, extent)

    # -- contents ------------------------------------------------------------------------------------

    def _initial(
        self, statement: Statement, type: DataType, layout: Layout, count: int, name: Token, *, required: bool
    ) -> bytes:
        """Returns the contents after the size: ``FILL``, ``SERIES_FROM``, ``FILE``, or zeros if these are optional."""
        size = count * layout.size
        if size > MAX_BUFFER_BYTES:
            self._source.fail(f"{name.text} would have {size:,} bytes; {MAX_BUFFER_BYTES:,} is the most", name.position)
        data = bytes(size)
        if statement.accept("FILL"):
            token = statement.take("the value to fill with")
            element = tuple(parse_value(self._source, token, segment) for segment in layout.segments)
            data = pack(element, layout) * count
        elif statement.accept("SERIES_FROM"):
            if len(layout.segments) != 1:
                self._source.fail(f"SERIES_FROM is for scalars; {name.text} is of {type}", statement.first.position)
            first = parse_value(self._source, statement.take("the first value"), layout.segments[0])
            statement.expect("INC_BY")
            step = parse_value(self._source, statement.take("the increment"), layout.segments[0])
            data = pack_series(first, step, count, layout)
        elif statement.accept("FILE"):
            data = self._file(statement, layout, name)
            if len(data) % layout.size:
                self._source.fail(
                    f"elements of {name.text} have {layout.size} bytes; the file has {len(data)}, no multiple of it",
                    statement.first.position,
                )
            data = data.ljust(size, b"\0")  # a longer file makes a longer buffer
        elif required:
            raise statement.wrong("expected FILL, SERIES_FROM or FILE")
        statement.finish()
        return data

    def _file(self, statement: Statement, layout: Layout, name: Token) -> bytes:
        read: Callable[[bytes], bytes] = bytes
        if statement.accept("TEXT"):

            def read(content: bytes) -> bytes:
                lines = Source(content.decode("utf-8", "replace"), token.text)
                tokens = []
                while (line := lines.statement()) is not None:
                    tokens += line.tokens
                return self._packed(lines, tokens, layout)

        elif statement.accept("PNG"):
            raise statement.wrong("FILE PNG is for BUFFER … FORMAT; expected FILE TEXT or BINARY")
        else:
            statement.accept("BINARY")
        token = statement.take("the file's path")
        path = self._folder / token.text
        with reading_errors(path):
            return read(path.read_bytes())

    def _picture(self, statement: Statement, type: ImageFormat) -> tuple[int, int, bytes]:
        """Returns width, height and texels of a PNG file."""
        token = statement.take("the file's path")
        texels = type.texels
        path = self._folder / token.text
        with reading_errors(path):
            content = path.read_bytes()
        try:
            picture = picture_to_array(decode_picture(content, token.text), texels, token.text)
        except InvalidArgumentError as error:
            raise self._source.error(error.message, token.position) from error
        return picture.shape[1], picture.shape[0], to_texels(picture, texels, token.text).tobytes()

    def _data(self, statement: Statement, layout: Layout, name: Token) -> bytes:
        """Returns the values after ``DATA``, on any number of lines, up to ``END``."""
        tokens: list[Token] = []
        line: Statement | None = statement
        while True:
            while line is not None and (token := line.peek()) is not None:
                line.take("a value")
                if token.text == "END":
                    line.finish()
                    if not tokens:
                        self._source.fail(f"the DATA of {name.text} is empty", token.position)
                    return self._packed(self._source, tokens, layout)
                tokens.append(token)
            line = self._source.statement()
            if line is None:
                self._source.fail(f"the DATA of {name.text} is not closed: expected END", name.position)

    def _packed(self, source: Source, tokens: list[Token], layout: Layout) -> bytes:
        width = len(layout.segments)
        values = [parse_value(source, token, layout.segments[i % width]) for i, token in enumerate(tokens)]
        if len(values) % width:
            source.fail(
                f"expected {width} values an element; the last has {len(values) % width} ({len(values)} in all)",
                tokens[-1].position,
            )
        return pack(values, layout)

    # -- samplers ------------------------------------------------------------------------------------

    def sampler(self, statement: Statement) -> None:
        """Reads ``SAMPLER name`` and its options."""
        name = self.new_name(statement, "SAMPLER", self.samplers)
        sampler = Sampler(name.text, name.position)
        others = ("MIN_LOD", "MAX_LOD", "NORMALIZED_COORDS", "UNNORMALIZED_COORDS", "COMPARE")
        while (token := statement.peek()) is not None:
            option = token.text
            statement.take("an option")
            value: str | float | bool
            if option in _SAMPLER_WORDS:
                value = statement.word(f"a value of {option}", _SAMPLER_WORDS[option])
            elif option in ("MIN_LOD", "MAX_LOD"):
                value = statement.number(f"the {option}")
            elif option == "COMPARE":
                value = statement.switch("on or off")
            elif option.endswith("NORMALIZED_COORDS") and option in others:
                option, value = "normalized", option == "NORMALIZED_COORDS"
            else:
                raise statement.unknown("an option of SAMPLER", token, [*_SAMPLER_WORDS, *others])
            sampler = dataclasses.replace(sampler, **{option.lower(): value})  # type: ignore[arg-type]
        if sampler.max_lod < sampler.min_lod:
            self._source.fail(f"SAMPLER {name.text}: MAX_LOD is below MIN_LOD", name.position)
        if not sampler.normalized:
            sampler = dataclasses.replace(sampler, min_lod=0.0, max_lod=0.0)
        self.samplers[name.text] = sampler
