"""Formats of storage images that a shader reads without naming one, for devices that cannot.

HLSL declares the type of texels, ``RWTexture2D<float2>``, not their format. dxc and glslang take the format of that
type; Slang leaves it open for floats, so that an image of any format fits, which needs a feature of the device. Here
the format is that of the components that the shader reads or writes, of 32 bits each.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from ..binary.grammar import ENUMERATIONS, Op, StorageClass
from ..binary.words import read_binary
from ..instrument.editor import Editor, Words, opcode_of
from ..instrument.paths import result_of

_FORMAT: Final = ENUMERATIONS["ImageFormat"]
_CAPABILITY: Final = ENUMERATIONS["Capability"]
_FORMATS: Final = {
    "float": (_FORMAT.R32f, _FORMAT.Rg32f, _FORMAT.Rgba32f, _FORMAT.Rgba32f),
    "int": (_FORMAT.R32i, _FORMAT.Rg32i, _FORMAT.Rgba32i, _FORMAT.Rgba32i),
    "uint": (_FORMAT.R32ui, _FORMAT.Rg32ui, _FORMAT.Rgba32ui, _FORMAT.Rgba32ui),
}
_STORAGE: Final = 2
_BITS: Final = 32


def with_formats(code: bytes) -> bytes:
    """Returns a valid module that names the format of each storage image that it reads; the same bytes if it does.

    Arrays of images, and images that functions take as parameters, stay as they are.
    """
    if all(opcode != Op.ImageRead for opcode, _, _ in read_binary(code)):
        return code
    editor = Editor(code)
    images = {id: kind for id in editor.defs if (kind := _open_format(editor, id))}
    uses = _Uses(editor, images)
    named = [variable for variable in images if variable in uses.read - uses.escaped]
    for variable in named:
        uses.name_format(variable)
    return editor.code() if named else code


def _open_format(editor: Editor, variable: int) -> str:
    """Returns the scalar type of a storage image without a format; ``""`` for any other declaration."""
    declaration = editor.defs[variable]
    if opcode_of(declaration) != Op.Variable or declaration[3] != StorageClass.UniformConstant:
        return ""
    image = editor.defs[editor.defs[declaration[1]][3]]
    if opcode_of(image) != Op.TypeImage or image[7] != _STORAGE or image[8] != _FORMAT.Unknown:
        return ""
    scalar = editor.defs[image[2]]
    if scalar[2] != _BITS:
        return ""
    return "float" if opcode_of(scalar) == Op.TypeFloat else "int" if scalar[3] else "uint"


class _Uses:
    """The uses of open images.

    Attributes:
        read: the variables whose texels are read.
        escaped: the variables with a use that is not followed.
    """

    def __init__(self, editor: Editor, images: dict[int, str]) -> None:
        self._editor = editor
        self._images = images
        self.read: set[int] = set()
        self.escaped: set[int] = set()
        self._components: defaultdict[int, int] = defaultdict(int)
        for body in editor.functions:
            self._scan(body)

    def _scan(self, body: list[Words]) -> None:
        values = {result: instruction for instruction in body if (result := result_of(instruction))}
        loads = {id: load[3] for id, load in values.items() if opcode_of(load) == Op.Load and load[3] in self._images}
        texels: dict[int, int] = {}
        for instruction in body:
            match opcode_of(instruction):
                case Op.Load:
                    pass
                case Op.ImageRead if instruction[3] in loads:
                    self.read.add(loads[instruction[3]])
                    texels[instruction[2]] = loads[instruction[3]]
                case Op.ImageWrite if instruction[1] in loads:
                    self._note(loads[instruction[1]], self._written(values.get(instruction[3], ())))
                case Op.ImageQuerySize | Op.ImageQueryFormat:
                    pass
                case Op.CompositeExtract if instruction[3] in texels:
                    self._note(texels[instruction[3]], instruction[4] + 1)
                case Op.VectorShuffle:
                    for index, vector in enumerate(instruction[3:5]):
                        taken = [n - 4 * index + 1 for n in instruction[5:] if n // 4 == index]
                        if vector in texels and taken:
                            self._note(texels[vector], max(taken))
                case Op.Name | Op.Line:
                    pass
                case _:
                    for word in instruction[1:]:
                        self._note(texels.get(word, 0), 4)
                        self.escaped |= {word} & self._images.keys()
                        self.escaped |= {loads[word]} if word in loads else set()

    def _note(self, variable: int, components: int) -> None:
        self._components[variable] = max(self._components[variable], components)

    def _written(self, texel: Words) -> int:
        """Returns the number of components of a texel before those that compilers fill up with."""
        if not texel or opcode_of(texel) != Op.CompositeConstruct or len(texel) != 7:
            return 4
        parts = texel[3:]
        if len(set(parts)) == 1:
            return 1
        zero = self._editor.defs.get(parts[3], ())
        is_zero = bool(zero) and opcode_of(zero) in (Op.Constant, Op.ConstantNull) and not any(zero[3:])
        return next((n for n in (2, 3) if is_zero and set(parts[n:]) == {parts[3]}), 4)

    def name_format(self, variable: int) -> None:
        """Gives an image the format of its components, with a type of its own."""
        editor = self._editor
        declaration = editor.defs[variable]
        image = editor.defs[editor.defs[declaration[1]][3]]
        named = _FORMATS[self._images[variable]][max(self._components[variable], 1) - 1]
        if named not in (formats[0] for formats in _FORMATS.values()):
            editor.capability(_CAPABILITY.StorageImageExtendedFormats)
        kind = editor.retype(variable, (Op.TypeImage, *image[2:8], named, *image[9:]))
        for body in editor.functions:
            for index, instruction in enumerate(body):
                if opcode_of(instruction) == Op.Load and instruction[3] == variable:
                    body[index] = (instruction[0], kind, *instruction[2:])
