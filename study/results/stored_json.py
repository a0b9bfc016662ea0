"""JSON values as results store them, and the differences between two of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from ...status import InvalidArgumentError

_ABSENT = "nothing"


def to_json(value: object, what: str) -> str:
    """JSON text of a value; ``what`` names it in errors.

    Raises:
        InvalidArgumentError: it contains something that JSON does not have, such as NaN.
    """
    try:
        return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{what} has to be of JSON values to be kept in results: {error}") from error


def _plain(value: object) -> object:
    """Mappings and sequences of all kinds as the dicts and lists that ``json`` takes."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value


def differences(kept: object, new: object, where: str = "") -> list[str]:
    """A text for each difference of two JSON values, such as ``"sampling.seed: 0 is kept, 1 came"``."""
    if isinstance(kept, dict) and isinstance(new, dict):
        names = [*kept, *(name for name in new if name not in kept)]
        pairs = [
            (f"{where}.{name}" if where else name, kept.get(name, _ABSENT), new.get(name, _ABSENT)) for name in names
        ]
    elif isinstance(kept, list) and isinstance(new, list):
        length = max(len(kept), len(new))
        padded = [[*one, *[_ABSENT] * (length - len(one))] for one in (kept, new)]
        pairs = [(f"{where}[{place}]", *both) for place, both in enumerate(zip(*padded, strict=True))]
    else:
        return (
            [] if type(kept) is type(new) and kept == new else [f"{where}: {_short(kept)} is kept, {_short(new)} came"]
        )
    return [text for place, one, other in pairs for text in differences(one, other, place)]


def _short(value: object) -> str:
    if value is _ABSENT:
        return _ABSENT
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "..."
