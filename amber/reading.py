"""Reads scripts of either form."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ..base.files import reading_errors
from ..status import InvalidArgumentError
from .parser import ScriptParser
from .script import Script
from .source import Source
from .vkscript import VkScriptParser

_MAGIC: Final = "#!amber"
_MAX_BYTES: Final = 256 << 20


def parse(path: str | Path) -> Script:
    """Reads a script file.

    Raises:
        ScriptError: the script is wrong; the message has the location, the line and the expected text.
        UnsupportedScriptError: the script needs a feature that pumice does not run, such as a graphics pipeline.
        NotFoundError: there is no such file.
    """
    path = Path(path)
    with reading_errors(path):
        data = path.read_bytes()
    if len(data) > _MAX_BYTES:
        raise InvalidArgumentError(f"{path} has {len(data):,} bytes; a script has at most {_MAX_BYTES:,}")
    return parse_text(data.decode("utf-8", "replace"), str(path), path.parent)


def parse_text(text: str, file_name: str = "<script>", folder: str | Path = ".") -> Script:
    """Reads a script's text.

    Args:
        text: AmberScript, whose first line is ``#!amber``, or VkScript.
        file_name: the name of the script in messages.
        folder: the folder of the files that it names.
    """
    source = Source(text.removeprefix("\ufeff"), file_name)
    if source.lines and source.lines[0].startswith(_MAGIC):
        return ScriptParser(source, Path(folder)).parse()
    return VkScriptParser(source).parse()
