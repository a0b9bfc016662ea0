"""Samplers as text, for command lines and studies: ``filter=nearest,address=repeat``."""

from __future__ import annotations

from typing import Any, Final

from ...hal_vulkan.images.sampler import NO_CLAMP, SamplerSettings
from ...status import InvalidArgumentError, shown

_NUMBERS: Final = ("lod_bias", "min_lod", "max_lod", "anisotropy")
_WORDS: Final = ("filter", "address", "min_filter", "mip_filter", "compare", "border", "reduction")


def parse_sampler(text: str) -> dict[str, Any]:
    """Parses keywords of ``Device.sampler``, separated by commas; ``address`` may be one for each axis,
    ``repeat/repeat``.

    Raises:
        InvalidArgumentError: a keyword is unknown or repeated, or a number is malformed.
    """
    keywords: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name == "unnormalized" and value in ("", "1", "true"):
            keywords[name] = True
            continue
        if not equals or name not in (*_NUMBERS, *_WORDS) or name in keywords:
            raise InvalidArgumentError(
                f"expected NAME=VALUE, each once, such as filter=nearest,address=repeat, of "
                f"{', '.join((*_WORDS, *_NUMBERS, 'unnormalized'))}; got {shown(part)}"
            )
        keywords[name] = value.split("/") if name == "address" and "/" in value else value
        if name in _NUMBERS:
            try:
                keywords[name] = float(value)
            except ValueError:
                raise InvalidArgumentError(f"{name} is a number, got {shown(value)}") from None
    return keywords


def format_sampler(settings: SamplerSettings) -> str:
    """Returns a text that ``parse_sampler`` converts to the same sampler."""
    parts = [
        f"filter={settings.filter}",
        f"min_filter={settings.min_filter}",
        f"mip_filter={settings.mip_filter}",
        f"address={'/'.join(settings.address)}",
        *(f"{name}={getattr(settings, name)!r}" for name in _NUMBERS if name != "max_lod"),
        f"border={settings.border}",
        f"reduction={settings.reduction}",
    ]
    if settings.compare is not None:
        parts.append(f"compare={settings.compare}")
    if settings.unnormalized:
        parts.append("unnormalized")
    elif settings.max_lod != NO_CLAMP:
        parts.append(f"max_lod={settings.max_lod!r}")
    return ",".join(parts)
