"""Arguments that are storages for results (``iree.abi.output``)."""

from __future__ import annotations

import re
from typing import Final

from ...status import InvalidArgumentError
from ...vm.bytecode.declaration import DeclaredValue

_OUTPUT: Final = "iree.abi.output"
_NUMBER: Final = re.compile(r"(\d{1,4})(?: : \w+)?", re.ASCII)


def result_of(declared: DeclaredValue) -> int | None:
    """Returns the number of the result written into an argument; ``None`` for inputs."""
    text = declared.attributes.get(_OUTPUT)
    if text is None:
        return None
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise InvalidArgumentError(f"{declared}: expected the number of a result in {_OUTPUT}, got {text!r}")
    return int(match[1])
