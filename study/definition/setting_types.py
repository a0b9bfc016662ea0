"""Types of settings: they check values and bring them into one form.

Values are JSON values, with all expressions evaluated. Errors contain the expected and the actual value; their location
is the path within the value, such as ``[1].shape[0]``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from ...base.lazy_dataclass import dataclass
from ...formats.element_type import ElementType, parse_shape_and_type
from ...formats.image_format import ImageFormat
from ...runtime.values.image_text import is_image_text
from ...runtime.values.sampler_text import parse_sampler
from ...status import InvalidArgumentError, shown
from .messages import did_you_mean, located
from .point import is_number


@dataclass(frozen=True, slots=True)
class SettingType:
    """The type of a setting: a text for messages, a check that returns the canonical form, and all values if few."""

    text: str
    check: Callable[[object], object]
    choices: tuple[str, ...] = ()


def integer(least: int, most: float = math.inf) -> SettingType:
    """Ints from ``least`` to ``most``, and floats without a fraction, as ``n / 64`` may yield."""
    text = f"an int of at least {least}" if most == math.inf else f"an int from {least} to {most}"

    def check(value: object) -> object:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise _unexpected(text, value)
        return value

    return SettingType(text, check)


def choice(*choices: str) -> SettingType:
    text = "one of " + ", ".join(choices)

    def check(value: object) -> object:
        if value not in choices:
            hint = did_you_mean(value, choices) if isinstance(value, str) else ""
            raise InvalidArgumentError(f"expected {text}; got {shown(value)}{hint}")
        return value

    return SettingType(text, check, choices)


def _unexpected(text: str, value: object) -> InvalidArgumentError:
    return InvalidArgumentError(f"expected {text}, got {shown(value)}")


def _instance(text: str, *kinds: type) -> SettingType:
    """Makes a type that accepts some of JSON's types."""

    def check(value: object) -> object:
        if not isinstance(value, kinds):
            raise _unexpected(text, value)
        return value

    return SettingType(text, check)


def _list_of(check: Callable[[object], object], text: str) -> SettingType:
    def check_list(value: object) -> object:
        if not isinstance(value, (list, tuple)):
            raise _unexpected(text, value)
        checked = []
        for i, item in enumerate(value):
            with located(f"[{i}]"):
                checked.append(check(item))
        return checked

    return SettingType(text, check_list)


def _table_of(check: Callable[[object], object], text: str) -> SettingType:
    def check_table(value: object) -> object:
        if not isinstance(value, Mapping):
            raise _unexpected(text, value)
        checked = {}
        for name, item in value.items():
            with located(str(name)):
                checked[str(name)] = check(item)
        return checked

    return SettingType(text, check_table)


def _seconds(value: object) -> object:
    if not is_number(value) or not 0 <= value < math.inf:
        raise _unexpected(SECONDS.text, value)
    return value


def _text(value: object) -> object:
    if not isinstance(value, str) or not value:
        raise _unexpected("a text", value)
    return value


def _element_type(value: object) -> str:
    if not isinstance(value, str):
        raise _unexpected("an element type such as f32, i32 or u8", value)
    # Studies may write u8 for ui8, as NumPy, Vulkan and WGSL do.
    name = f"ui{value[1:]}" if value[:1] == "u" and value[1:].isdigit() else value
    return ElementType.parse(name).short_name


def _shape(value: object) -> object:
    length = integer(0)
    many = isinstance(value, (list, tuple))
    return _list_of(length.check, "a list of ints").check(value) if many else [length.check(value)]


def _groups(value: object) -> object:
    count = integer(1)
    if not isinstance(value, (list, tuple)):
        return count.check(value)
    if not 1 <= len(value) <= 3:
        raise _unexpected(GROUPS.text, value)
    return _list_of(count.check, GROUPS.text).check(value)


def _buffer(value: object) -> object:
    """Checks a binding or an input: a text with shape and type, or a table with shape, dtype or format, and init.

    Bindings are images too, and samplers, ``sampler:filter=nearest``.
    """
    if isinstance(value, str):
        head = value.removeprefix("&").partition("=")[0]
        if value.partition(":")[0].strip() == "sampler":
            parse_sampler(value.partition(":")[2])
        elif not is_image_text(value) and not value.startswith(("@", "+", "*")):
            parse_shape_and_type(head)
        return value
    if not isinstance(value, Mapping):
        raise _unexpected("a text such as 4xf32=1,2,3,4, or a table with shape, dtype and init", value)
    for name in value:
        if name not in ("shape", "dtype", "format", "sampler", "init"):
            hint = did_you_mean(name, ("shape", "dtype", "format", "sampler", "init"))
            raise InvalidArgumentError(f"expected a table with shape, dtype and init, got the key {shown(name)}{hint}")
    if "shape" not in value:
        raise InvalidArgumentError("expected a shape: an int or a list of ints")
    table: dict[str, object] = {}
    with located("shape"):
        table["shape"] = _shape(value["shape"])
    if value.get("dtype") is not None and value.get("format") is not None:
        raise InvalidArgumentError("expected a dtype for a buffer or a format for an image, got both")
    if value.get("dtype") is not None:
        with located("dtype"):
            table["dtype"] = _element_type(value["dtype"])
    if value.get("format") is not None:
        with located("format"):
            table["format"] = ImageFormat.parse(str(value["format"])).name
    if value.get("sampler") is not None:
        with located("sampler"):
            if "format" not in table:
                raise InvalidArgumentError("expected a sampler with a format, of an image")
            parse_sampler(str(_text(value["sampler"])))
            table["sampler"] = value["sampler"]
    with located("init"):
        table["init"] = _init(value.get("init", "random"))
    return table


def _binding(value: object) -> object:
    """Checks like `_buffer`; also accepts tables with the binding's name, or a block's members instead of a shape."""
    if not isinstance(value, Mapping) or not value.keys() & {"name", "block"}:
        return _buffer(value)
    table: dict[str, object] = {}
    if "name" in value:
        with located("name"):
            table["name"] = _text(value["name"])
    if "block" not in value:
        buffer = _buffer({key: item for key, item in value.items() if key != "name"})
        assert isinstance(buffer, dict)
        return {**table, **buffer}
    if value.keys() - {"name", "block"}:
        raise InvalidArgumentError(
            f"expected a table with name and block alone, got {', '.join(sorted(value.keys() - {'name', 'block'}))} too"
        )
    with located("block"):
        table["block"] = _members(value["block"])
    return table


def _members(value: object) -> object:
    """Checks the members of a block: numbers, lists and tables within each other."""
    if isinstance(value, Mapping):
        return _table_of(_members, "a table of members").check(value)
    many = isinstance(value, (list, tuple))
    return _list_of(_members, "a list").check(value) if many else _SCALAR.check(value)


def _init(value: object) -> object:
    named = isinstance(value, str) and (
        value in ("zeros", "random", "arange") or (value.startswith("@") and len(value) > 1)
    )
    if named or (is_number(value) and math.isfinite(value)):
        return value
    raise _unexpected("zeros, random, arange, a number, or @ and a file's name", value)


def _input(value: object) -> object:
    """Checks like `_buffer`, and accepts numbers and other texts that ``pumice run --input`` accepts."""
    if isinstance(value, str):
        return value
    return str(value) if is_number(value) else _buffer(value)


def _push_member(value: object) -> object:
    many = isinstance(value, (list, tuple))
    return _list_of(_push_member, "a list").check(value) if many else _SCALAR.check(value)


def _push(value: object) -> object:
    text = "a table of numbers by name, or a list of numbers or of texts such as i32=4"
    if not isinstance(value, (list, tuple)):
        return _table_of(_members, text).check(value)
    texts = [isinstance(item, str) for item in value]
    if any(texts) and not all(texts):
        raise _unexpected("a list of numbers or of texts, not of both", value)
    return _list_of(_SCALAR_OR_TEXT.check if any(texts) else _push_member, text).check(value)


_SCALAR: Final = _instance("a number, true or false", bool, int, float)
_SCALAR_OR_TEXT: Final = _instance("a number, a text, true or false", bool, int, float, str)
BOOLEAN: Final = _instance("true or false", bool)
TEXT: Final = SettingType("a text", _text)
SECONDS: Final = SettingType("a number of at least 0", _seconds)
ELEMENT_TYPE: Final = SettingType("an element type such as f32", _element_type)
GROUPS: Final = SettingType("an int, or a list of 1 to 3 ints", _groups)
NUMBERS: Final = _table_of(_SCALAR.check, "a table of numbers or truth values")
DEFINES: Final = _table_of(_SCALAR_OR_TEXT.check, "a table of numbers or texts")
FOLDERS: Final = _list_of(_text, "a list of folders")
FILES: Final = _table_of(_text, "a table of file names")
PUSH: Final = SettingType("a table of numbers, or a list", _push)
BINDINGS: Final = _list_of(_binding, "a list of tables or texts")
INPUTS: Final = _list_of(_input, "a list of texts or tables")
